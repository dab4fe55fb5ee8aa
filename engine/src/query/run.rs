//! Sorted runs of rows in a scan.

use std::sync::Arc;

use super::budget::{Budget, Held};
use super::directory_bytes;
use super::filter::{MetadataFilter, may_include, passing};
use super::reader::{Run, RunReader};
use super::scan::{Position, Selection};
use crate::EngineError;
use crate::block::BlockReader;
use crate::column::{Column, FieldColumn};
use crate::columns::Columns;
use crate::rows::Scalar;

/// A time in the direction of the scan: descending scans mirror time, so that one algorithm serves both directions.
pub(super) fn directed(timestamp_ns: i64, descending: bool) -> i64 {
    if descending { !timestamp_ns } else { timestamp_ns }
}

pub(super) fn directed_position((timestamp_ns, sequence): Position, descending: bool) -> Position {
    match descending {
        true => (!timestamp_ns, !sequence),
        false => (timestamp_ns, sequence),
    }
}

/// A sorted run that may contain rows of the page; times are in scan direction.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) selection: u32,
    pub(super) run: Run<'a>,
}

/// The requested part of a run, in scan direction.
pub(super) struct Part<'q> {
    pub(super) descending: bool,
    /// Bounds in scan direction, inclusive.
    pub(super) range: (i64, i64),
    /// In scan direction; rows up to this one have been processed.
    pub(super) after: Option<Position>,
    pub(super) rows_max: usize,
    /// Selects rows by their metadata.
    pub(super) filter: Option<MetadataFilter<'q>>,
    pub(super) stop: &'q dyn Fn() -> bool,
}

/// An included row, with its position in scan direction.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) position: Position,
    pub(super) row: u32,
}

/// An open run with its next included rows. The data used to find them is released.
pub(super) struct Open<'a, 'b> {
    pub(super) candidate: Candidate<'a>,
    pub(super) rows: Vec<Found>,
    /// Index of the next row in `rows`.
    pub(super) next: usize,
    /// Whether more rows may follow.
    pub(super) more: bool,
    /// Number of rows taken for the page.
    pub(super) taken: usize,
    /// Number of times that the run was read.
    pub(super) reads: u32,
    held: Held<'b>,
}

impl<'a, 'b> Candidate<'a> {
    pub(super) fn rows(&self) -> u64 {
        self.run.rows() as u64
    }

    /// 1 for a block, for counting blocks.
    pub(super) fn is_block(&self) -> u64 {
        u64::from(matches!(self.run, Run::Block(_)))
    }

    /// Whether every row of the run within the range is included, as far as is known without reading it.
    pub(super) fn all_visible(&self, selection: &Selection<'_>, filtered: bool) -> Result<bool, EngineError> {
        match (
            filtered || !selection.values.is_empty() || selection.rows.is_some(),
            selection.fields.as_deref(),
        ) {
            (true, _) => Ok(false),
            (false, None) => Ok(true),
            (false, Some(fields)) => self.run.has_in_every_row(fields, selection.series.cache()),
        }
    }

    /// Opens the run and reads its first rows.
    pub(super) fn open(
        self,
        selection: &Selection<'_>,
        part: &Part<'_>,
        budget: &'b Budget,
    ) -> Result<Open<'a, 'b>, EngineError> {
        let mut open = Open {
            candidate: self,
            rows: Vec::new(),
            next: 0,
            more: true,
            taken: 0,
            reads: 0,
            held: budget.hold(),
        };
        let may_include = match self.run {
            Run::Block(entry) if !selection.values.is_empty() => {
                may_include(selection.values, &entry.block(selection.series.cache())?.summary)
            }
            Run::Block(_) | Run::Chunk(_) => true,
        };
        if may_include {
            open.read(selection, part, budget)?;
        }
        Ok(open)
    }

    /// The picked rows, in ascending order, with the requested fields. If it costs no more, all rows of the run are
    /// returned instead (then `true`).
    pub(super) fn columns(
        &self,
        selection: &Selection<'_>,
        picks: &[(u32, u32)],
        held: &mut Held<'_>,
        budget: &Budget,
    ) -> Result<(Arc<Columns>, bool), EngineError> {
        let block = match self.run {
            Run::Chunk(chunk) => return Ok((Arc::clone(chunk), true)),
            Run::Block(entry) => entry.block(selection.series.cache())?,
        };
        let rows = self.run.rows();
        let whole = 2 * picks.len() >= rows;
        let _directory = budget.reserve(directory_bytes(&block.summary))?;
        let reader = BlockReader::new(&block)?;
        held.grow(if whole { rows } else { picks.len() } * size_of::<Position>())?;
        let mut decoded = budget.reserve(rows * size_of::<Position>())?;
        let (timestamps_ns, sequences) = (reader.timestamps_ns()?, reader.sequences()?);
        let mut columns = Columns::default();
        if whole {
            (columns.timestamps_ns, columns.sequences) = (timestamps_ns, sequences);
        } else {
            let rows = || picks.iter().map(|(_, row)| *row as usize);
            columns.timestamps_ns = rows().map(|row| timestamps_ns[row]).collect();
            columns.sequences = rows().map(|row| sequences[row]).collect();
        }
        let mut keep = |column: Column| -> Result<Option<Column>, EngineError> {
            decoded.set(column.memory_bytes())?;
            let column = match whole {
                true => column,
                false => picked(column, picks),
            };
            held.grow(column.memory_bytes() + size_of::<FieldColumn>())?;
            Ok((whole || column.count(picks.len()) > 0).then_some(column))
        };
        let wanted = selection.fields.as_deref();
        let is_wanted = |field: &u16| wanted.is_none_or(|wanted| wanted.binary_search(field).is_ok());
        let fields = block.summary.fields.iter().map(|summary| summary.field);
        for field in fields.filter(is_wanted) {
            if let Some(column) = reader.field(field)?
                && let Some(column) = keep(column)?
            {
                columns.fields.push(FieldColumn { field, column });
            }
        }
        if let Some(metadata) = reader.metadata()? {
            columns.metadata = keep(*metadata)?.map(Box::new);
        }
        Ok((Arc::new(columns), whole))
    }
}

impl<'b> Open<'_, 'b> {
    /// Reads the next included rows; fields are decoded only if they decide that.
    pub(super) fn read(
        &mut self,
        selection: &Selection<'_>,
        part: &Part<'_>,
        budget: &'b Budget,
    ) -> Result<(), EngineError> {
        self.close();
        self.reads += 1;
        let run = self.candidate.run;
        let total = run.rows();
        let all_visible = self.candidate.all_visible(selection, part.filter.is_some())?;
        let mut held = budget.reserve(if all_visible { 0 } else { 2 * total })?;
        let reader = run.open(selection.series.cache(), &mut held)?;
        held.grow(reader.decoded_bytes(total * size_of::<Position>()))?;
        let visible = match all_visible {
            true => None,
            false => Some(visible(&reader, selection, part, budget)?),
        };
        let (timestamps_ns, sequences) = (reader.timestamps_ns()?, reader.sequences()?);
        let row_of = |index: usize| if part.descending { total - 1 - index } else { index };
        let position = |index: usize| {
            let row = row_of(index);
            directed_position((timestamps_ns[row], sequences[row]), part.descending)
        };
        let (mut low, mut high) = (0, total);
        while low < high {
            let middle = (low + high) / 2;
            let at = position(middle);
            let before = at.0 < part.range.0 || part.after.is_some_and(|after| at <= after);
            if before { low = middle + 1 } else { high = middle }
        }
        self.more = false;
        for index in low..total {
            let position = position(index);
            if position.0 > part.range.1 {
                break;
            }
            let row = row_of(index);
            if visible.as_ref().is_some_and(|visible| !visible[row]) {
                continue;
            }
            if self.rows.len() == part.rows_max {
                self.more = true;
                break;
            }
            if self.rows.len() == self.rows.capacity() {
                let more = (total - index).min(part.rows_max - self.rows.len());
                self.held.reserve(&mut self.rows, more.min(1_024))?;
            }
            let row = row as u32;
            self.rows.push(Found { position, row });
        }
        Ok(())
    }

    /// Releases the rows: they have been processed.
    pub(super) fn close(&mut self) {
        self.rows = Vec::new();
        self.next = 0;
        self.held.shrink(usize::MAX);
    }

    /// The position of the next included row among those read.
    pub(super) fn position(&self) -> Option<Position> {
        self.rows.get(self.next).map(|found| found.position)
    }
}

/// The picked rows of a column.
fn picked(column: Column, picks: &[(u32, u32)]) -> Column {
    let kind = column.values.kind();
    // Wrapped as the only column of some rows, because rows are gathered from [`Columns`].
    let rows = Columns {
        metadata: Some(Box::new(column)),
        ..Columns::default()
    };
    Column::gather(kind, &[&rows], picks, |rows| rows.metadata.as_deref())
}

/// The rows that pass the filter and have one of the fields.
fn visible(
    reader: &RunReader<'_>,
    selection: &Selection<'_>,
    part: &Part<'_>,
    budget: &Budget,
) -> Result<Vec<bool>, EngineError> {
    let rows = reader.rows();
    let mut visible = passing(reader, part.filter, selection.values, part.stop, budget)?;
    let Some(fields) = selection.fields.as_deref() else {
        return Ok(visible);
    };
    let mut decoded = budget.hold();
    if let Some(test) = &selection.rows {
        let mut columns = Vec::new();
        for field in fields {
            if let Some(column) = reader.field(*field)? {
                decoded.grow(reader.decoded_bytes(column.memory_bytes()))?;
                columns.push((*field, column));
            }
        }
        for (row, visible) in visible.iter_mut().enumerate() {
            let number = |field: u16| {
                let index = columns.binary_search_by_key(&field, |(field, _)| *field).ok()?;
                match columns[index].1.value(row)? {
                    Scalar::Number(number) => Some(number),
                    Scalar::Boolean(_) | Scalar::Text(_) => None,
                }
            };
            let has_any = || {
                let mut columns = columns.iter();
                columns.any(|(field, column)| test.fields.contains(field) && column.has(row))
            };
            *visible = *visible && (has_any() || (test.includes)(&number));
        }
        return Ok(visible);
    }
    let mut present = vec![false; rows];
    for field in fields {
        if let Some(column) = reader.field(*field)? {
            decoded.set(reader.decoded_bytes(column.memory_bytes()))?;
            for (row, present) in present.iter_mut().enumerate() {
                *present |= column.has(row);
            }
        }
    }
    for (visible, present) in visible.iter_mut().zip(present) {
        *visible &= present;
    }
    Ok(visible)
}
