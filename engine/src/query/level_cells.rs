//! Cells of a rollup level that a result uses where they are stored. If the step of a query is a level, most cells of a
//! series are those of one block, as they are. To copy the aggregates of all their fields into rows, which are read once,
//! takes longer than everything else.
//!
//! The first and the last cell of a block are copied, because its neighbours may have rows in them. So are cells that
//! are not behind those that were taken before, in the requested order. What is copied into the midst of taken cells,
//! from rows that arrived out of order, is found at the end; they are copied then.

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

    /// Starts of the first and the last cell.
    fn ends_ns(&self) -> (i64, i64) {
        let starts_ns = self.starts_ns();
        (starts_ns[0], starts_ns[starts_ns.len() - 1])
    }
}

/// The cells that are taken, in the requested order. They do not overlap.
pub(super) struct Taken<'b> {
    levels: Vec<LevelCells>,
    /// Number of all their cells.
    count: usize,
    held: Held<'b>,
}

impl<'b> Taken<'b> {
    fn new(budget: &'b Budget) -> Self {
        Taken {
            levels: Vec::new(),
            count: 0,
            held: budget.hold(),
        }
    }

    /// Takes cells of a level, but for the first and the last, and returns which; none if all have to be copied.
    pub(super) fn take(
        &mut self,
        (starts_ns, columns): (&Arc<[i64]>, &[NumberedCells]),
        cells: Range<usize>,
        source: u32,
        copied: &mut Cells<'_>,
    ) -> Option<Range<usize>> {
        if cells.len() < CELLS_MIN {
            return None;
        }
        let taken = cells.start + 1..cells.end - 1;
        let has_all = |(_, column): &NumberedCells| {
            let of_cells = column.get(taken.clone());
            of_cells.is_some_and(|cells| cells.iter().all(|aggregate| aggregate.count > 0))
        };
        if !columns.iter().any(has_all) || !columns.is_sorted_by(|one, other| one.0 < other.0) {
            return None;
        }
        // A block may have columns without values.
        let columns = columns.iter().filter(|(_, column)| column.len() >= taken.end);
        let level = LevelCells {
            source,
            cells: taken.clone(),
            starts_ns: Arc::clone(starts_ns),
            columns: columns.cloned().collect(),
        };
        let wanted = copied.wanted;
        let (first_ns, last_ns) = level.ends_ns();
        let before = self.levels.last().map(LevelCells::ends_ns);
        let is_behind = before.is_none_or(|before| match wanted.descending {
            true => last_ns < before.0,
            false => before.1 < first_ns,
        });
        let are_wanted = copied.admits(first_ns, source) && copied.admits(last_ns, source);
        // The level as a whole stays in memory.
        let bytes = starts_ns.len() * (size_of::<i64>() + level.columns.len() * size_of::<Aggregate>());
        if !is_behind || !are_wanted || self.held.grow(size_of::<LevelCells>() + bytes).is_err() {
            return None;
        }
        self.levels.push(level);
        self.count += taken.len();
        if self.count >= wanted.rows_max {
            let end_ns = if wanted.descending { first_ns } else { last_ns };
            copied.limit((end_ns, source));
        }
        Some(taken)
    }

    /// Copies cells that are not alone within their time.
    fn give_back(&mut self, copied: &mut Cells<'_>) -> Result<(), EngineError> {
        if self.levels.is_empty() {
            return Ok(());
        }
        let mut mixed = vec![false; self.levels.len()];
        let descending = copied.wanted.descending;
        for start_ns in copied.starts_ns() {
            let at = self.levels.partition_point(|level| match descending {
                true => level.ends_ns().0 > start_ns,
                false => level.ends_ns().1 < start_ns,
            });
            if self.levels.get(at).is_some_and(|level| level.surrounds(start_ns)) {
                mixed[at] = true;
            }
        }
        let mut mixed = mixed.into_iter();
        let given = self.levels.extract_if(.., |_| mixed.next() == Some(true));
        for level in given {
            for (number, aggregates) in level.columns() {
                let there = level.starts_ns().iter().zip(aggregates);
                for (start_ns, aggregate) in there.filter(|(_, aggregate)| aggregate.count > 0) {
                    if let Some(into) = copied.entry(*start_ns, level.source, number)? {
                        into.merge(aggregate);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The cells of a result: some are copied, some used where they are stored.
pub struct GroupedParts<'b> {
    copied: Vec<Cell>,
    taken: Vec<LevelCells>,
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
            taken: Some(Taken::new(budget)),
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
            taken,
            touched,
            budget,
            ..
        } = self;
        let mut taken = taken.unwrap_or_else(|| Taken::new(budget));
        taken.give_back(&mut cells)?;
        let descending = cells.wanted.descending;
        let (copied, held) = cells.finish()?;
        Ok(GroupedParts {
            copied,
            taken: taken.levels,
            descending,
            touched,
            _held: [held, taken.held],
        })
    }
}

impl<'b> GroupedParts<'b> {
    /// Of cells that are all copied, in the requested order.
    pub fn of(grouped: Grouped<'b>, descending: bool, budget: &'b Budget) -> Self {
        GroupedParts {
            copied: grouped.cells,
            taken: Vec::new(),
            descending,
            touched: grouped.touched,
            _held: [grouped.held, budget.hold()],
        }
    }

    /// At most `limit` cells behind the first `offset`, and whether more follow, if that many are wanted.
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
        let mut parts = Vec::with_capacity(2 * self.taken.len() + 1);
        let mut copied = &*self.copied;
        for level in &self.taken {
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
