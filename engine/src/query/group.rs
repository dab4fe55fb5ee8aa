//! Grouped aggregates of one source.
//!
//! A block that lies within the range and within one cell answers by its summary. Otherwise the part of the range
//! within the block is cut into whole cells of the coarsest kept rollup level and, at the two edges, into finer
//! levels and at last rows: raw edge, minutes, hours, days, hours, minutes, raw edge. Only a range that ends within
//! the block makes an edge, so at most two blocks of a source that arrives in order are ever read row by row.

use std::ops::Range;

use super::{MetadataFilter, Touched, metadata_passes};
use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::block::{Block, BlockReader, Level};
use crate::calendar::Unit;
use crate::column::{Column, Values};
use crate::columns::Columns;
use crate::rollup::LEVELS;
use crate::snapshot::SeriesSnapshot;

/// What to group.
pub struct GroupQuery<'a> {
    /// First and last timestamp, both inclusive.
    pub range_ns: (i64, i64),
    /// The calendar unit of a cell.
    pub unit: Unit,
    /// The fields to aggregate; of fields that are no numbers only the count means something.
    pub fields: &'a [u16],
    /// Which rows count, by their metadata.
    pub metadata: Option<MetadataFilter<'a>>,
    /// Asked before each block and chunk, and between metadata texts; `true` ends the query with
    /// [`EngineError::Stopped`].
    pub stop: &'a dyn Fn() -> bool,
}

/// Cells with rows, ascending by start; `aggregates` has one entry for each cell and field, cell by cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Groups {
    /// Start of each cell.
    pub starts_ns: Vec<i64>,
    /// Aggregates of the fields asked for, in their order, for each cell.
    pub aggregates: Vec<Aggregate>,
    /// What was read.
    pub touched: Touched,
}

impl Groups {
    /// The aggregates of the `index`-th cell.
    pub fn cell(&self, index: usize) -> &[Aggregate] {
        let fields = self
            .aggregates
            .len()
            .checked_div(self.starts_ns.len())
            .unwrap_or(0);
        &self.aggregates[index * fields..(index + 1) * fields]
    }

    /// Puts the cells of other sources to these, by their starts. All must be of the same fields, in number.
    pub fn merge(groups: impl IntoIterator<Item = Groups>, fields: usize) -> Groups {
        let mut all = Groups::default();
        for part in groups {
            all.starts_ns.extend(part.starts_ns);
            all.aggregates.extend(part.aggregates);
            all.touched.rows += part.touched.rows;
            all.touched.cells += part.touched.cells;
        }
        all.settle(fields);
        all
    }

    /// The cell that starts at `start_ns`, which is nearly always the last one: rows come nearly in order. Where it is
    /// not, a second entry of the same start is made, and [`Groups::settle`] puts them together.
    fn open(&mut self, start_ns: i64, fields: usize) -> &mut [Aggregate] {
        if self.starts_ns.last() != Some(&start_ns) {
            self.starts_ns.push(start_ns);
            self.aggregates
                .resize(self.aggregates.len() + fields, Aggregate::default());
        }
        let len = self.aggregates.len();
        &mut self.aggregates[len - fields..]
    }

    /// Sorts the cells, puts those of one start together, and drops cells without a value.
    fn settle(&mut self, fields: usize) {
        let mut order: Vec<usize> = (0..self.starts_ns.len()).collect();
        order.sort_by_key(|index| self.starts_ns[*index]);
        let mut settled = Groups {
            touched: self.touched,
            ..Groups::default()
        };
        for index in order {
            let part = &self.aggregates[index * fields..(index + 1) * fields];
            if part.iter().all(|aggregate| aggregate.count == 0) {
                continue;
            }
            let cell = settled.open(self.starts_ns[index], fields);
            cell.iter_mut()
                .zip(part)
                .for_each(|(cell, part)| cell.merge(part));
        }
        *self = settled;
    }
}

/// Groups one source's rows.
///
/// # Errors
/// [`EngineError::Corrupt`] for a damaged block, [`EngineError::Stopped`] when `stop` says so.
pub fn group(series: &SeriesSnapshot, query: &GroupQuery<'_>) -> Result<Groups, EngineError> {
    let mut groups = Groups::default();
    let (start, end) = query.range_ns;
    if start > end || query.fields.is_empty() {
        return Ok(groups);
    }
    let live = series.live()?;
    for entry in live
        .blocks
        .iter()
        .filter(|entry| entry.first_ns <= end && entry.last_ns >= start)
    {
        if (query.stop)() {
            return Err(EngineError::Stopped);
        }
        group_block(&entry.block, query, &mut groups)?;
    }
    for chunk in &live.chunks {
        if (query.stop)() {
            return Err(EngineError::Stopped);
        }
        let columns: Vec<Option<&Column>> = query.fields.iter().map(|field| chunk.field(*field)).collect();
        let rows = rows_within(&chunk.timestamps_ns, query.range_ns);
        let passes = passes(query, chunk)?;
        group_rows(
            &chunk.timestamps_ns,
            &columns,
            rows,
            query.unit,
            passes.as_deref(),
            &mut groups,
        );
    }
    groups.settle(query.fields.len());
    Ok(groups)
}

fn passes(query: &GroupQuery<'_>, columns: &Columns) -> Result<Option<Vec<bool>>, EngineError> {
    query
        .metadata
        .map(|filter| metadata_passes(filter, columns.metadata.as_deref(), columns.rows(), query.stop))
        .transpose()
}

pub(super) fn rows_within(timestamps_ns: &[i64], (start, end): (i64, i64)) -> Range<usize> {
    let first = timestamps_ns.partition_point(|timestamp| *timestamp < start);
    first
        ..timestamps_ns
            .partition_point(|timestamp| *timestamp <= end)
            .max(first)
}

fn group_block(block: &Block, query: &GroupQuery<'_>, groups: &mut Groups) -> Result<(), EngineError> {
    let summary = &block.summary;
    if query.fields.iter().all(|field| summary.field(*field).is_none()) {
        return Ok(());
    }
    let (start, end) = query.range_ns;
    let mut reader = Lazy {
        query,
        block,
        reader: None,
        rows: None,
    };
    if query.metadata.is_some() {
        return reader.rows((start, end), groups);
    }
    let cell = query.unit.start_ns(summary.first_ns);
    let whole = start <= summary.first_ns && summary.last_ns <= end;
    if whole && cell == query.unit.start_ns(summary.last_ns) {
        groups.touched.cells += 1;
        for (into, field) in groups.open(cell, query.fields.len()).iter_mut().zip(query.fields) {
            if let Some(summary) = summary.field(*field) {
                into.merge(&summary.aggregate);
            }
        }
        return Ok(());
    }
    // An end of the range beyond the block's own is none: no cell is cut by it.
    let start = if start <= summary.first_ns {
        i64::MIN
    } else {
        start
    };
    let end = if end >= summary.last_ns { i64::MAX } else { end };
    let coarsest = LEVELS.iter().rposition(|level| *level <= query.unit).unwrap_or(0);
    reader.levels((start, end), coarsest, groups)
}

/// A block of which only what is needed is decoded, once.
struct Lazy<'a> {
    query: &'a GroupQuery<'a>,
    block: &'a Block,
    reader: Option<BlockReader<'a>>,
    rows: Option<Rows>,
}

/// A block's decoded rows.
struct Rows {
    timestamps_ns: Vec<i64>,
    /// The fields asked for.
    columns: Vec<Option<Column>>,
    /// Rows that count; `None` for all.
    passes: Option<Vec<bool>>,
}

impl Lazy<'_> {
    fn reader(&mut self) -> Result<&BlockReader<'_>, EngineError> {
        if self.reader.is_none() {
            self.reader = Some(BlockReader::new(self.block)?);
        }
        match &self.reader {
            Some(reader) => Ok(reader),
            None => unreachable!("BUG: opened above"),
        }
    }

    /// Answers `range` from level `level` and finer ones.
    fn levels(&mut self, range: (i64, i64), level: usize, groups: &mut Groups) -> Result<(), EngineError> {
        let edges = self.block.with_level(level, |kept| match kept {
            Some(kept) => self.cells(range, level, kept, groups),
            None => Ok(vec![range]),
        })?;
        for edge in edges {
            match level {
                0 => self.rows(edge, groups)?,
                _ => self.levels(edge, level - 1, groups)?,
            }
        }
        Ok(())
    }

    /// Adds the cells that lie wholly within `range`; answers what of it they leave over.
    fn cells(
        &self,
        range: (i64, i64),
        level: usize,
        kept: &Level,
        groups: &mut Groups,
    ) -> Result<Vec<(i64, i64)>, EngineError> {
        let (fields, starts, unit) = (self.query.fields, &kept.starts_ns, LEVELS[level]);
        let first = starts.partition_point(|cell| *cell < range.0);
        let past = match range.1 {
            i64::MAX => starts.len(),
            end => starts.partition_point(|cell| unit.next_ns(*cell) - 1 <= end),
        };
        if first >= past {
            return Ok(vec![range]);
        }
        groups.touched.cells += (past - first) as u64;
        let mut columns = Vec::with_capacity(fields.len());
        for field in fields {
            columns.push(kept.aggregates(self.block, level, *field)?);
        }
        for (cell, start) in starts.iter().enumerate().take(past).skip(first) {
            let start = if unit == self.query.unit {
                *start
            } else {
                self.query.unit.start_ns(*start)
            };
            let into = groups.open(start, fields.len());
            for (into, column) in into.iter_mut().zip(&columns) {
                if let Some(aggregate) = column.get(cell) {
                    into.merge(aggregate);
                }
            }
        }
        let mut edges = Vec::new();
        if first > 0 && range.0 > i64::MIN {
            edges.push((range.0, starts[first] - 1));
        }
        if past < starts.len() {
            edges.push((starts[past], range.1));
        }
        Ok(edges)
    }

    fn rows(&mut self, range: (i64, i64), groups: &mut Groups) -> Result<(), EngineError> {
        if self.rows.is_none() {
            let query = self.query;
            let total = self.block.summary.rows as usize;
            let reader = self.reader()?;
            let passes = match query.metadata {
                Some(filter) => {
                    let metadata = reader.metadata()?;
                    Some(metadata_passes(filter, metadata.as_deref(), total, query.stop)?)
                }
                None => None,
            };
            let columns = query
                .fields
                .iter()
                .map(|field| reader.field(*field))
                .collect::<Result<_, _>>()?;
            let decoded = Rows {
                timestamps_ns: reader.timestamps_ns()?,
                columns,
                passes,
            };
            self.rows = Some(decoded);
        }
        if let Some(Rows {
            timestamps_ns,
            columns,
            passes,
        }) = &self.rows
        {
            let columns: Vec<Option<&Column>> = columns.iter().map(Option::as_ref).collect();
            let rows = rows_within(timestamps_ns, range);
            group_rows(
                timestamps_ns,
                &columns,
                rows,
                self.query.unit,
                passes.as_deref(),
                groups,
            );
        }
        Ok(())
    }
}

/// Adds rows one by one, cell after cell and column after column.
fn group_rows(
    timestamps_ns: &[i64],
    columns: &[Option<&Column>],
    rows: Range<usize>,
    unit: Unit,
    passes: Option<&[bool]>,
    groups: &mut Groups,
) {
    groups.touched.rows += rows.len() as u64;
    let mut row = rows.start;
    while row < rows.end {
        let next = unit.next_ns(timestamps_ns[row]);
        let len = timestamps_ns[row..rows.end]
            .partition_point(|timestamp| *timestamp < next)
            .max(1);
        let cell = groups.open(unit.start_ns(timestamps_ns[row]), columns.len());
        for (into, column) in cell.iter_mut().zip(columns) {
            let Some(column) = column else { continue };
            let counts = |row: &usize| passes.is_none_or(|passes| passes[*row]) && column.has(*row);
            match &column.values {
                Values::Numbers { values, .. } if passes.is_none() && column.present.is_none() => {
                    values[row..row + len].iter().for_each(|value| into.add(*value));
                }
                Values::Numbers { values, .. } => {
                    (row..row + len)
                        .filter(counts)
                        .for_each(|row| into.add(values[row]));
                }
                Values::Booleans(_) | Values::Texts(_) => {
                    let count = (row..row + len).filter(counts).count() as u64;
                    into.merge(&Aggregate::of_count(count));
                }
            }
        }
        row += len;
    }
}
