//! The first cells of a grouped result, from the requested end: as many as the result needs, over all its sources. A
//! cell contains only fields that have values in it.
//!
//! Cells arrive in any order, usually directly after the previous one. When the list has grown by some fraction, parts
//! of the same cell are merged and cells beyond the last wanted one are dropped. From then on, the window limits what
//! has to be read. A cell beyond a full window can never enter it again, so the result is exact.

use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::zone::LocalStep;

use super::budget::{Budget, Held};

/// A row of a grouped result: the values of one source, or of all merged, in one time step.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Start of the step.
    pub start_ns: i64,
    /// Number of the source, as given with its rows.
    pub source: u32,
    /// Order of arrival: parts of the same cell are merged in this order.
    order: u32,
    /// The field with the smallest number; without values only until the first one arrives.
    first: Entry,
    /// The other fields in ascending order. Most queries have one field, which then needs no allocation.
    rest: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    field: u32,
    aggregate: Aggregate,
}

impl Cell {
    /// The fields with values, ascending by their numbers.
    pub fn values(&self) -> impl Iterator<Item = (u32, &Aggregate)> {
        std::iter::once(&self.first)
            .chain(&self.rest)
            .map(|entry| (entry.field, &entry.aggregate))
    }

    /// The aggregate of a field, created if it does not exist.
    fn entry(&mut self, field: u32, held: &mut Held<'_>) -> Result<&mut Aggregate, EngineError> {
        if self.first.aggregate.count == 0 {
            self.first.field = field;
        }
        if self.first.field == field {
            return Ok(&mut self.first.aggregate);
        }
        let index = match self.rest.last() {
            // Fields usually arrive in order.
            Some(last) if last.field < field => Err(self.rest.len()),
            _ => self.rest.binary_search_by_key(&field, |entry| entry.field),
        };
        let index = match index {
            Ok(index) => index,
            Err(index) => {
                self.make_room(held)?;
                let new = Entry {
                    field,
                    aggregate: Aggregate::default(),
                };
                if field < self.first.field {
                    self.rest.insert(0, std::mem::replace(&mut self.first, new));
                    return Ok(&mut self.first.aggregate);
                }
                self.rest.insert(index, new);
                index
            }
        };
        Ok(&mut self.rest[index].aggregate)
    }

    fn make_room(&mut self, held: &mut Held<'_>) -> Result<(), EngineError> {
        if self.rest.len() == self.rest.capacity() {
            let more = self.rest.len().max(1);
            held.grow(more * size_of::<Entry>())?;
            self.rest.reserve_exact(more);
        }
        Ok(())
    }

    fn absorb(&mut self, part: &Cell, held: &mut Held<'_>) -> Result<(), EngineError> {
        for (field, aggregate) in part.values() {
            self.entry(field, held)?.merge(aggregate);
        }
        Ok(())
    }

    fn rest_bytes(&self) -> usize {
        self.rest.capacity() * size_of::<Entry>()
    }
}

/// Which of all cells a result needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Maximum number of cells.
    pub rows_max: usize,
    /// Return the last cells instead of the first: by start, then by source number.
    pub descending: bool,
}

impl Wanted {
    /// All cells, oldest first.
    pub const ALL: Self = Self {
        rows_max: usize::MAX,
        descending: false,
    };

    fn is_before(self, one: (i64, u32), other: (i64, u32)) -> bool {
        if self.descending { one > other } else { one < other }
    }
}

/// The cells found so far.
pub(super) struct Cells<'b> {
    pub(super) wanted: Wanted,
    cells: Vec<Cell>,
    held: Held<'b>,
    /// The last wanted cell, once there are enough cells.
    last: Option<(i64, u32)>,
    /// Number of cells after parts were last merged.
    settled: usize,
}

impl<'b> Cells<'b> {
    pub(super) fn new(wanted: Wanted, budget: &'b Budget) -> Self {
        Cells {
            wanted,
            cells: Vec::new(),
            held: budget.hold(),
            last: None,
            settled: 0,
        }
    }

    /// Whether a cell may still be among the wanted ones.
    #[inline]
    pub(super) fn admits(&self, start_ns: i64, source: u32) -> bool {
        self.last
            .is_none_or(|last| !self.wanted.is_before(last, (start_ns, source)))
    }

    /// The part of a source's range, with inclusive ends, that is still to be read.
    pub(super) fn reach(&self, source: u32, step: LocalStep<'_>, (start, end): (i64, i64)) -> (i64, i64) {
        let Some((last_ns, last_source)) = self.last else {
            return (start, end);
        };
        let next_ns = step.next_ns(last_ns);
        // At the end of time a step has no successor.
        let past_ns = if next_ns == i64::MAX { None } else { Some(next_ns) };
        match self.wanted.descending {
            true if source >= last_source => (start.max(last_ns), end),
            true => (past_ns.map_or(i64::MAX, |past_ns| start.max(past_ns)), end),
            false if source <= last_source => (start, past_ns.map_or(end, |past_ns| end.min(past_ns - 1))),
            false => (start, end.min(last_ns.saturating_sub(1))),
        }
    }

    /// The aggregate of a field in a cell; `None` if the cell is not wanted.
    #[inline]
    pub(super) fn entry(
        &mut self,
        start_ns: i64,
        source: u32,
        field: u32,
    ) -> Result<Option<&mut Aggregate>, EngineError> {
        let is_last = |cell: &Cell| cell.start_ns == start_ns && cell.source == source;
        if !self.cells.last().is_some_and(is_last) && !self.open(start_ns, source)? {
            return Ok(None);
        }
        // Capacity is checked first, because settling may move the cell.
        let full = self
            .cells
            .last()
            .is_some_and(|cell| cell.rest.len() == cell.rest.capacity());
        if full && self.cells.len() > self.settled && !self.has_room() {
            self.settle()?;
            if !self.cells.last().is_some_and(is_last) && !self.open(start_ns, source)? {
                return Ok(None);
            }
        }
        let Self { cells, held, .. } = self;
        match cells.last_mut() {
            Some(cell) => cell.entry(field, held).map(Some),
            None => Ok(None),
        }
    }

    /// Whether the capacity for fields of the last cell may double.
    fn has_room(&self) -> bool {
        let doubled = self.cells.last().map_or(0, Cell::rest_bytes) + size_of::<Entry>();
        self.held.has_room(doubled)
    }

    /// Appends a cell; false if it is not wanted.
    fn open(&mut self, start_ns: i64, source: u32) -> Result<bool, EngineError> {
        if !self.admits(start_ns, source) {
            return Ok(false);
        }
        // Settles at a quarter beyond the wanted number, or at twice the number of distinct cells, so that the cost of
        // sorting is a small constant per cell.
        let wanted = self.wanted.rows_max.saturating_add(self.wanted.rows_max / 4 + 64);
        let settle_at = wanted.min(2 * self.settled + 1_024);
        if self.cells.len() >= settle_at {
            self.settle()?;
        }
        if self.cells.len() == self.cells.capacity() {
            let more = match self.cells.len() {
                few @ ..1_024 => few.max(32),
                many => many / 2,
            };
            let bytes = more * size_of::<Cell>();
            if !self.held.has_room(bytes) && self.cells.len() > self.settled {
                self.settle()?;
            }
            if self.cells.len() == self.cells.capacity() {
                self.held.grow(bytes)?;
                self.cells.reserve_exact(more);
            }
        }
        if !self.admits(start_ns, source) {
            return Ok(false);
        }
        self.cells.push(Cell {
            start_ns,
            source,
            order: self.cells.len() as u32,
            first: Entry {
                field: 0,
                aggregate: Aggregate::default(),
            },
            rest: Vec::new(),
        });
        Ok(true)
    }

    /// Sorts the cells in place, merges the parts of each cell, and drops those that are not wanted.
    fn settle(&mut self) -> Result<(), EngineError> {
        let Self {
            wanted, cells, held, ..
        } = self;
        let key = |cell: &Cell| (cell.start_ns, cell.source);
        if !cells.is_sorted_by(|one, other| wanted.is_before(key(one), key(other))) {
            cells.sort_unstable_by(|one, other| {
                let by_key = match wanted.descending {
                    true => key(other).cmp(&key(one)),
                    false => key(one).cmp(&key(other)),
                };
                by_key.then(one.order.cmp(&other.order))
            });
            let mut result = Ok(());
            cells.dedup_by(|part, cell| {
                if result.is_err() || key(part) != key(cell) {
                    return false;
                }
                result = cell.absorb(part, held);
                held.shrink(part.rest_bytes());
                true
            });
            result?;
        }
        let gone = cells.get(wanted.rows_max..).unwrap_or_default();
        held.shrink(gone.iter().map(Cell::rest_bytes).sum());
        cells.truncate(wanted.rows_max);
        for (order, cell) in (0..).zip(&mut *cells) {
            cell.order = order;
        }
        self.settled = cells.len();
        self.last = (cells.len() == wanted.rows_max)
            .then(|| cells.last().map(key))
            .flatten();
        Ok(())
    }

    /// The wanted cells in the requested order, and their memory reservation.
    pub(super) fn finish(mut self) -> Result<(Vec<Cell>, Held<'b>), EngineError> {
        self.settle()?;
        Ok((self.cells, self.held))
    }
}
