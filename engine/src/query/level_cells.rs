//! Cells of a rollup level that a result uses where they are stored. If the step of a query is a level, most cells of a
//! series are those of one block, as they are. To copy the aggregates of all their fields into rows, which are read once,
//! takes longer than everything else.
//!
//! The first and the last cell of a block are copied, because its neighbours may have rows in them. So are cells that
//! are not behind those that were shared before, in the requested order, and those that take less memory as copies:
//! because few of them have all fields, or because few are wanted. Rows that arrived out of order may be copied into the
//! midst of shared cells; this is found at the end, and those cells are copied then.

use std::ops::Range;
use std::sync::Arc;

use super::Touched;
use super::budget::{Budget, Held};
use super::cell::Cell;
use super::cells::{Cells, Wanted};
use super::group::{Grouped, Grouping, NumberedCells};
use crate::EngineError;
use crate::aggregate::Aggregate;

/// Fewer cells than this are copied.
const CELLS_MIN: usize = 16;

/// Consecutive cells of a rollup level of a block, ascending. Each has values of at least one field.
#[derive(Debug)]
pub struct LevelCells {
    /// Number of the source, as given with its rows.
    pub source: u32,
    /// The cells among those of the block.
    cells: Range<usize>,
    starts_ns: Arc<[i64]>,
    columns: Vec<NumberedCells>,
}

impl LevelCells {
    /// Start of each cell.
    pub fn starts_ns(&self) -> &[i64] {
        &self.starts_ns[self.cells.clone()]
    }

    /// The number of each field, ascending, and its aggregates in all cells. A count of zero: the cell does not have
    /// the field.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (u32, &[Aggregate])> {
        let columns = self.columns.iter();
        columns.map(|(number, aggregates)| (*number, &aggregates[self.cells.clone()]))
    }

    /// The number of a field, by its index among those that there are, and its aggregate in a cell.
    #[inline]
    pub fn value(&self, column: usize, cell: usize) -> Option<(u32, &Aggregate)> {
        let (number, aggregates) = self.columns.get(column)?;
        Some((*number, aggregates.get(self.cells.start + cell)?))
    }

    /// Whether a cell with this start would be among them.
    fn surrounds(&self, start_ns: i64) -> bool {
        let (first_ns, last_ns) = self.ends_ns();
        first_ns <= start_ns && start_ns <= last_ns
    }

    /// Its memory: all cells of the block stay with it.
    fn bytes(&self) -> usize {
        let cell_bytes = size_of::<i64>() + self.columns.len() * size_of::<Aggregate>();
        size_of::<Self>() + self.starts_ns.len() * cell_bytes
    }

    /// Starts of the first and the last cell.
    fn ends_ns(&self) -> (i64, i64) {
        let starts_ns = self.starts_ns();
        (starts_ns[0], starts_ns[starts_ns.len() - 1])
    }
}

/// The cells that are not copied, in the requested order. They do not overlap. Usually they are shared with the cache; a
/// level with many cells is decoded for the result alone.
pub(super) struct Shared<'b> {
    levels: Vec<LevelCells>,
    /// Number of all their cells.
    count: usize,
    held: Held<'b>,
}

impl<'b> Shared<'b> {
    fn new(budget: &'b Budget) -> Self {
        Shared {
            levels: Vec::new(),
            count: 0,
            held: budget.hold(),
        }
    }

    /// Shares cells of a level, but for the first and the last, and returns which; none if all have to be copied. A result
    /// has at most as many shared cells as are wanted, and those of one more level, besides its copied ones.
    pub(super) fn share(
        &mut self,
        (starts_ns, columns): (&Arc<[i64]>, &[NumberedCells]),
        cells: Range<usize>,
        source: u32,
        copied: &mut Cells<'_>,
    ) -> Option<Range<usize>> {
        if cells.len() < CELLS_MIN {
            return None;
        }
        let shared = cells.start + 1..cells.end - 1;
        // A block may have columns without values.
        let columns = columns.iter().filter(|(_, column)| column.len() >= shared.end);
        let level = LevelCells {
            source,
            cells: shared.clone(),
            starts_ns: Arc::clone(starts_ns),
            columns: columns.cloned().collect(),
        };
        let columns = level.columns();
        let present = columns.map(|(_, column)| column.iter().filter(|cell| cell.count > 0).count());
        let present: Vec<usize> = present.collect();
        let have_values = present.contains(&shared.len());
        let are_ordered = level.columns.is_sorted_by(|one, other| one.0 < other.0);
        let bytes = level.bytes();
        // Of copies, those that turn out not to be wanted are dropped.
        let kept = shared.len().min(Cells::<Aggregate>::kept_max(copied.wanted));
        let kept_fields = present.iter().sum::<usize>() * kept / shared.len();
        if !have_values || !are_ordered || bytes > Cell::<Aggregate>::bytes_of(kept, kept_fields) {
            return None;
        }
        let wanted = copied.wanted;
        let (first_ns, last_ns) = level.ends_ns();
        let before = self.levels.last().map(LevelCells::ends_ns);
        let is_behind = before.is_none_or(|before| match wanted.descending {
            true => last_ns < before.0,
            false => before.1 < first_ns,
        });
        let are_wanted = copied.admits(first_ns, source) && copied.admits(last_ns, source);
        if !is_behind || !are_wanted || self.held.grow(bytes).is_err() {
            return None;
        }
        self.levels.push(level);
        self.count += shared.len();
        if self.count >= wanted.rows_max {
            let end_ns = if wanted.descending { first_ns } else { last_ns };
            copied.limit((end_ns, source));
        }
        Some(shared)
    }

    /// Copies the levels that have copied cells between their first and their last one.
    fn copy_overlapping(&mut self, copied: &mut Cells<'_>) -> Result<(), EngineError> {
        if self.levels.is_empty() {
            return Ok(());
        }
        let mut overlapped = vec![false; self.levels.len()];
        let descending = copied.wanted.descending;
        for start_ns in copied.starts_ns() {
            let at = self.levels.partition_point(|level| match descending {
                true => level.ends_ns().0 > start_ns,
                false => level.ends_ns().1 < start_ns,
            });
            if self.levels.get(at).is_some_and(|level| level.surrounds(start_ns)) {
                overlapped[at] = true;
            }
        }
        let mut overlapped = overlapped.into_iter();
        for level in self.levels.extract_if(.., |_| overlapped.next() == Some(true)) {
            for (number, aggregates) in level.columns() {
                let there = level.starts_ns().iter().zip(aggregates);
                for (start_ns, aggregate) in there.filter(|(_, aggregate)| aggregate.count > 0) {
                    if let Some(into) = copied.entry(*start_ns, level.source, number)? {
                        into.merge(aggregate);
                    }
                }
            }
            self.held.shrink(level.bytes());
        }
        Ok(())
    }
}

/// The cells of a result: some are copied, some used where they are stored.
pub struct GroupedParts<'b> {
    copied: Vec<Cell>,
    shared: Vec<LevelCells>,
    descending: bool,
    /// What was read.
    pub touched: Touched,
    _held: [Held<'b>; 2],
}

/// Consecutive cells of a result, in the requested order.
#[derive(Debug)]
pub enum CellsPart<'c> {
    /// Cells in this order.
    Copied(&'c [Cell]),
    /// Cells of a level.
    Level(CellsOfLevel<'c>),
}

/// Some cells of a level.
#[derive(Debug)]
pub struct CellsOfLevel<'c> {
    /// All of them, ascending.
    pub level: &'c LevelCells,
    cells: Range<usize>,
    descending: bool,
}

impl CellsOfLevel<'_> {
    /// Number of cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The index of a cell among those of the level.
    #[inline]
    pub fn cell(&self, index: usize) -> usize {
        match self.descending {
            true => self.cells.end - 1 - index,
            false => self.cells.start + index,
        }
    }
}

impl CellsPart<'_> {
    /// Number of cells.
    pub fn len(&self) -> usize {
        match self {
            CellsPart::Copied(cells) => cells.len(),
            CellsPart::Level(cells) => cells.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of the cells, by their indexes.
    fn cut(self, range: Range<usize>) -> Self {
        match self {
            CellsPart::Copied(cells) => CellsPart::Copied(&cells[range]),
            CellsPart::Level(CellsOfLevel {
                level,
                cells,
                descending,
            }) => CellsPart::Level(CellsOfLevel {
                level,
                cells: match descending {
                    true => cells.end - range.end..cells.end - range.start,
                    false => cells.start + range.start..cells.start + range.end,
                },
                descending,
            }),
        }
    }
}

impl<'b> Grouping<'b> {
    /// A result without sources, whose cells of rollup levels are not copied where that is possible: with one source.
    pub fn in_parts(wanted: Wanted, budget: &'b Budget) -> Self {
        Grouping {
            shared: Some(Shared::new(budget)),
            ..Grouping::new(wanted, budget)
        }
    }

    /// The cells found.
    ///
    /// # Errors
    /// [`EngineError::OverBudget`].
    pub fn finish_parts(self) -> Result<GroupedParts<'b>, EngineError> {
        let Grouping {
            mut cells,
            shared,
            touched,
            budget,
            ..
        } = self;
        let mut shared = shared.unwrap_or_else(|| Shared::new(budget));
        shared.copy_overlapping(&mut cells)?;
        let descending = cells.wanted.descending;
        let (copied, held) = cells.finish()?;
        Ok(GroupedParts {
            copied,
            shared: shared.levels,
            descending,
            touched,
            _held: [held, shared.held],
        })
    }
}

impl<'b> GroupedParts<'b> {
    /// Of cells that are all copied, in the requested order.
    pub fn of(grouped: Grouped<'b>, descending: bool, budget: &'b Budget) -> Self {
        GroupedParts {
            copied: grouped.cells,
            shared: Vec::new(),
            descending,
            touched: grouped.touched,
            _held: [grouped.held, budget.hold()],
        }
    }

    /// At most `limit` cells behind the first `offset`, and whether more follow. [`Wanted::rows_max`] should be at least
    /// `offset + limit + 1`; otherwise it may be false although more cells follow.
    pub fn page(&self, offset: usize, limit: usize) -> (Vec<CellsPart<'_>>, bool) {
        let (mut page, mut more) = (Vec::new(), false);
        let (mut skip, mut rest) = (offset, limit);
        for part in self.parts() {
            let len = part.len();
            let first = skip.min(len);
            let past = len.min(first.saturating_add(rest));
            (skip, rest) = (skip - first, rest - (past - first));
            if past > first {
                page.push(part.cut(first..past));
            }
            more |= past < len;
        }
        (page, more)
    }

    /// All cells.
    fn parts(&self) -> Vec<CellsPart<'_>> {
        let mut parts = Vec::with_capacity(2 * self.shared.len() + 1);
        let mut copied = &*self.copied;
        for level in &self.shared {
            let starts_ns = level.starts_ns();
            let before = copied.partition_point(|cell| match self.descending {
                true => cell.start_ns > starts_ns[0],
                false => cell.start_ns < starts_ns[0],
            });
            let (cells, behind) = copied.split_at(before);
            copied = behind;
            parts.push(CellsPart::Copied(cells));
            parts.push(CellsPart::Level(CellsOfLevel {
                level,
                cells: 0..starts_ns.len(),
                descending: self.descending,
            }));
        }
        parts.push(CellsPart::Copied(copied));
        parts
    }
}
