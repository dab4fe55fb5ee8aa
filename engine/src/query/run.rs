//! Sorted runs of rows in a scan: blocks and chunks of a head, which only this module distinguishes.

use std::borrow::Cow;
use std::sync::Arc;

use super::budget::{Budget, Held};
use super::scan::{Position, Selection};
use super::{MetadataFilter, directory_bytes, metadata_passes};
use crate::EngineError;
use crate::block::BlockReader;
use crate::column::{Column, FieldColumn};
use crate::columns::Columns;
use crate::entry::BlockEntry;

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

#[derive(Clone, Copy)]
pub(super) enum Origin<'a> {
    Block(&'a BlockEntry),
    Chunk(&'a Arc<Columns>),
}

/// A sorted run that may contain rows of the page; times are in scan direction.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) rows: u64,
    pub(super) selection: u32,
    pub(super) origin: Origin<'a>,
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
    /// 1 for a block, for counting blocks.
    pub(super) fn is_block(&self) -> u64 {
        u64::from(matches!(self.origin, Origin::Block(_)))
    }

    /// Whether every row of the run within the range is included, as far as is known without reading it.
    pub(super) fn all_visible(&self, selection: &Selection<'_>, filtered: bool) -> Result<bool, EngineError> {
        if filtered {
            return Ok(false);
        }
        let Some(fields) = selection.fields.as_deref() else {
            return Ok(true);
        };
        Ok(match &self.origin {
            Origin::Block(entry) => {
                let summary = entry.block(selection.series.cache())?.summary;
                fields.iter().any(|field| {
                    let field = summary.field(*field);
                    field.is_some_and(|field| field.aggregate.count == self.rows)
                })
            }
            Origin::Chunk(chunk) => fields.iter().any(|field| {
                let column = chunk.field(*field);
                column.is_some_and(|column| column.present.is_none())
            }),
        })
    }

    pub(super) fn timestamps_ns(&self, selection: &Selection<'_>) -> Result<Cow<'a, [i64]>, EngineError> {
        match self.origin {
            Origin::Block(entry) => {
                let block = entry.block(selection.series.cache())?;
                Ok(Cow::Owned(BlockReader::new(&block)?.timestamps_ns()?))
            }
            Origin::Chunk(chunk) => Ok(Cow::Borrowed(&chunk.timestamps_ns)),
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
        open.read(selection, part, budget)?;
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
        let block = match self.origin {
            Origin::Chunk(chunk) => return Ok((Arc::clone(chunk), true)),
            Origin::Block(entry) => entry.block(selection.series.cache())?,
        };
        let rows = self.rows as usize;
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
        let all = || block.summary.fields.iter().map(|summary| summary.field).collect();
        let wanted: Cow<'_, [u16]> = selection
            .fields
            .as_deref()
            .map_or_else(|| Cow::Owned(all()), Cow::Borrowed);
        for field in wanted.iter() {
            if let Some(column) = reader.field(*field)?
                && let Some(column) = keep(column)?
            {
                columns.fields.push(FieldColumn {
                    field: *field,
                    column,
                });
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
        let total = self.candidate.rows as usize;
        let fields = selection.fields.as_deref();
        let all_visible = self.candidate.all_visible(selection, part.filter.is_some())?;
        let passes = |metadata: Option<&Column>| match part.filter {
            Some(filter) => metadata_passes(filter, metadata, total, part.stop),
            None => Ok(vec![true; total]),
        };
        let mut held = budget.reserve(if all_visible { 0 } else { 2 * total })?;
        let (timestamps_ns, sequences, visible): (Cow<'_, [i64]>, Cow<'_, [u64]>, _) =
            match self.candidate.origin {
                Origin::Chunk(chunk) => {
                    let visible = (!all_visible).then(|| {
                        let visible = passes(chunk.metadata.as_deref())?;
                        and_present(visible, fields, &mut budget.hold(), |field| {
                            Ok(chunk.field(field).map(Cow::Borrowed))
                        })
                    });
                    let visible = visible.transpose()?;
                    (
                        (&*chunk.timestamps_ns).into(),
                        (&*chunk.sequences).into(),
                        visible,
                    )
                }
                Origin::Block(entry) => {
                    let block = entry.block(selection.series.cache())?;
                    held.grow(total * size_of::<Position>() + directory_bytes(&block.summary))?;
                    let reader = BlockReader::new(&block)?;
                    let visible = (!all_visible).then(|| {
                        let mut decoded = budget.hold();
                        let metadata = match part.filter {
                            Some(_) => reader.metadata()?,
                            None => None,
                        };
                        decoded.set(metadata.as_ref().map_or(0, |column| column.memory_bytes()))?;
                        let visible = passes(metadata.as_deref())?;
                        drop(metadata);
                        and_present(visible, fields, &mut decoded, |field| {
                            Ok(reader.field(field)?.map(Cow::Owned))
                        })
                    });
                    let visible = visible.transpose()?;
                    (
                        reader.timestamps_ns()?.into(),
                        reader.sequences()?.into(),
                        visible,
                    )
                }
            };
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

/// Clears `visible` for rows that have none of the fields.
fn and_present<'c>(
    mut visible: Vec<bool>,
    fields: Option<&[u16]>,
    decoded: &mut Held<'_>,
    column: impl Fn(u16) -> Result<Option<Cow<'c, Column>>, EngineError>,
) -> Result<Vec<bool>, EngineError> {
    let Some(fields) = fields else { return Ok(visible) };
    let mut present = vec![false; visible.len()];
    for field in fields {
        if let Some(column) = column(*field)? {
            if let Cow::Owned(column) = &column {
                decoded.set(column.memory_bytes())?;
            }
            present
                .iter_mut()
                .enumerate()
                .for_each(|(row, present)| *present |= column.has(row));
        }
    }
    visible
        .iter_mut()
        .zip(present)
        .for_each(|(visible, present)| *visible &= present);
    Ok(visible)
}
