//! The first cells of a grouped result, from the requested end: as many as the result needs, over all its sources. A
//! cell contains only fields that have values in it.
//!
//! While cells arrive in the requested order, each is a new one or the last one. From the first that does not, cells are
//! found by a hash table, so that merging many series costs the same for each of their parts. When the list has grown by
//! some fraction beyond what is wanted, cells beyond the last wanted one are dropped. From then on, the window limits what
//! has to be read. A cell beyond a full window can never enter it again, so the result is exact.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::local_step::LocalStep;

use super::budget::{Budget, Held};

/// A cell that gets a second field gets room for as many more as are expected, at most this many: it may turn out to
/// have fewer.
const MORE_FIELDS_MAX: usize = 16;

/// What a cell contains of a field.
pub trait Content: Default {
    /// Whether it contains no values.
    fn is_empty(&self) -> bool;

    /// Adds another part of the same cell; `held` grows by what that takes.
    ///
    /// # Errors
    /// [`EngineError::OverBudget`].
    fn absorb(&mut self, part: Self, held: &mut Held<'_>) -> Result<(), EngineError>;

    /// Its memory besides its own size, in bytes.
    fn heap_bytes(&self) -> usize;
}

impl Content for Aggregate {
    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn absorb(&mut self, part: Self, _held: &mut Held<'_>) -> Result<(), EngineError> {
        self.merge(&part);
        Ok(())
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

/// A row of a grouped result: the values of one source, or of all merged, in one time step.
#[derive(Debug)]
pub struct Cell<C = Aggregate> {
    /// Start of the step.
    pub start_ns: i64,
    /// Number of the source, as given with its rows.
    pub source: u32,
    /// The field with the smallest number; without values only until the first one arrives.
    first: Entry<C>,
    /// The other fields in ascending order. Most queries have one field, which then needs no allocation.
    rest: Vec<Entry<C>>,
}

#[derive(Debug, Default)]
struct Entry<C> {
    field: u32,
    content: C,
}

/// The fields of a cell with their numbers, ascending.
pub struct CellValues<'c, C> {
    first: Option<&'c Entry<C>>,
    rest: std::slice::Iter<'c, Entry<C>>,
}

impl<'c, C> Iterator for CellValues<'c, C> {
    type Item = (u32, &'c C);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.first.take().or_else(|| self.rest.next())?;
        Some((entry.field, &entry.content))
    }
}

impl<C: Content> Cell<C> {
    /// The fields with values, ascending by their numbers.
    pub fn values(&self) -> CellValues<'_, C> {
        CellValues {
            first: Some(&self.first),
            rest: self.rest.iter(),
        }
    }

    fn key(&self) -> (i64, u32) {
        (self.start_ns, self.source)
    }

    /// The content of a field.
    pub(super) fn value_mut(&mut self, field: u32) -> Option<&mut C> {
        if self.first.field == field {
            return Some(&mut self.first.content);
        }
        let index = self.rest.binary_search_by_key(&field, |entry| entry.field);
        Some(&mut self.rest[index.ok()?].content)
    }

    /// The same, owned.
    pub fn into_values(self) -> impl Iterator<Item = (u32, C)> {
        let Cell { first, rest, .. } = self;
        std::iter::once(first)
            .chain(rest)
            .map(|entry| (entry.field, entry.content))
    }

    /// The content of a field, created if it does not exist. The cell is expected to get `more_fields` besides its first.
    fn entry(&mut self, field: u32, more_fields: usize, held: &mut Held<'_>) -> Result<&mut C, EngineError> {
        if self.first.content.is_empty() {
            self.first.field = field;
        }
        if self.first.field == field {
            return Ok(&mut self.first.content);
        }
        let index = match self.rest.last() {
            // Fields usually arrive in order.
            Some(last) if last.field < field => Err(self.rest.len()),
            _ => self.rest.binary_search_by_key(&field, |entry| entry.field),
        };
        let index = match index {
            Ok(index) => index,
            Err(index) => {
                self.make_room(more_fields, held)?;
                let new = Entry {
                    field,
                    content: C::default(),
                };
                if field < self.first.field {
                    self.rest.insert(0, std::mem::replace(&mut self.first, new));
                    return Ok(&mut self.first.content);
                }
                self.rest.insert(index, new);
                index
            }
        };
        Ok(&mut self.rest[index].content)
    }

    /// Makes room for another field. Room for those that are expected to follow it is only taken if there is enough.
    fn make_room(&mut self, more_fields: usize, held: &mut Held<'_>) -> Result<(), EngineError> {
        if self.is_full() {
            let expected = more_fields.min(MORE_FIELDS_MAX);
            let more = match self.rest.is_empty() && held.has_room(expected * size_of::<Entry<C>>()) {
                true => expected.max(1),
                false => self.least_growth(),
            };
            held.grow(more * size_of::<Entry<C>>())?;
            self.rest.reserve_exact(more);
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.rest.len() == self.rest.capacity()
    }

    /// For how many more fields it gets room at least when it is full.
    fn least_growth(&self) -> usize {
        self.rest.len().max(1)
    }

    fn rest_bytes(&self) -> usize {
        self.rest.capacity() * size_of::<Entry<C>>()
    }

    fn heap_bytes(&self) -> usize {
        let contents = self.values().map(|(_, content)| content.heap_bytes());
        self.rest_bytes() + contents.sum::<usize>()
    }
}

/// Which of all cells a result needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Maximum number of cells.
    pub rows_max: usize,
    /// Return the last cells instead of the first: by start, then by source number.
    pub descending: bool,
    /// The starts of the cells, both ends inclusive.
    pub starts_ns: (i64, i64),
}

impl Wanted {
    /// All cells, oldest first.
    pub const ALL: Self = Self {
        rows_max: usize::MAX,
        descending: false,
        starts_ns: (i64::MIN, i64::MAX),
    };

    fn is_before(self, one: (i64, u32), other: (i64, u32)) -> bool {
        if self.descending { one > other } else { one < other }
    }

    /// Sorts cells in place, and drops those that are not wanted.
    pub(super) fn keep<C: Content>(self, cells: &mut Vec<Cell<C>>, held: &mut Held<'_>) {
        if !cells.is_sorted_by(|one, other| self.is_before(one.key(), other.key())) {
            cells.sort_unstable_by(|one, other| match self.descending {
                true => other.key().cmp(&one.key()),
                false => one.key().cmp(&other.key()),
            });
        }
        let gone = cells.get(self.rows_max..).unwrap_or_default();
        held.shrink(gone.iter().map(Cell::heap_bytes).sum());
        cells.truncate(self.rows_max);
    }
}

/// The cells found so far.
pub(super) struct Cells<'b, C = Aggregate> {
    pub(super) wanted: Wanted,
    cells: Vec<Cell<C>>,
    /// Indices in `cells` by start and source; `None` while all cells are in the requested order.
    places: Option<HashTable<u32>>,
    hasher: RandomState,
    /// Index of the cell that the last value was added to.
    current: usize,
    /// How far a cell is behind the one before of its source. The cells of a source are evenly spaced if all sources have
    /// the same steps.
    stride: usize,
    /// How many fields new cells are expected to get besides the first.
    more_fields: usize,
    held: Held<'b>,
    /// The last wanted cell, once there are enough cells.
    last: Option<(i64, u32)>,
    /// Number of cells after unwanted ones were last dropped.
    settled: usize,
}

/// Memory of the hash table for each cell that there is capacity for: an index and a byte, in a table whose size is a
/// power of two and of which an eighth stays free.
const PLACE_BYTES: usize = 12;

impl<'b, C: Content> Cells<'b, C> {
    pub(super) fn new(wanted: Wanted, budget: &'b Budget) -> Self {
        Cells {
            wanted,
            cells: Vec::new(),
            places: None,
            hasher: RandomState::default(),
            current: 0,
            stride: 1,
            more_fields: 0,
            held: budget.hold(),
            last: None,
            settled: 0,
        }
    }

    /// Whether a cell may still be among the wanted ones.
    #[inline]
    pub(super) fn admits(&self, start_ns: i64, source: u32) -> bool {
        let (first_ns, last_ns) = self.wanted.starts_ns;
        first_ns <= start_ns
            && start_ns <= last_ns
            && self
                .last
                .is_none_or(|last| !self.wanted.is_before(last, (start_ns, source)))
    }

    /// The part of a source's range, with inclusive ends, that is still to be read.
    pub(super) fn reach(&self, source: u32, step: LocalStep<'_>, (start, end): (i64, i64)) -> (i64, i64) {
        let (first_ns, last_ns) = self.wanted.starts_ns;
        let end = match last_ns {
            i64::MAX => end,
            last_ns => end.min(step.next_ns(last_ns).saturating_sub(1).max(last_ns)),
        };
        let start = start.max(first_ns);
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

    /// The content of a field in a cell; `None` if the cell is not wanted.
    #[inline]
    pub(super) fn entry(
        &mut self,
        start_ns: i64,
        source: u32,
        field: u32,
    ) -> Result<Option<&mut C>, EngineError> {
        if !self.is_current(start_ns, source)
            && !self.is_expected(start_ns, source)
            && !self.find_or_open(start_ns, source)?
        {
            return Ok(None);
        }
        let cell = &self.cells[self.current];
        if cell.first.field == field && !cell.first.content.is_empty() {
            return Ok(Some(&mut self.cells[self.current].first.content));
        }
        // Capacity is checked first, because settling may move the cell.
        if self.cells[self.current].is_full() && self.cells.len() > self.settled && !self.has_room() {
            self.settle();
            if !self.find_or_open(start_ns, source)? {
                return Ok(None);
            }
        }
        let Self {
            cells,
            current,
            more_fields,
            held,
            ..
        } = self;
        cells[*current].entry(field, *more_fields, held).map(Some)
    }

    #[inline]
    fn is_current(&self, start_ns: i64, source: u32) -> bool {
        let current = self.cells.get(self.current);
        current.is_some_and(|cell| cell.start_ns == start_ns && cell.source == source)
    }

    /// Makes the cell that is expected after the current one the current one, if it is this one. Before the window is
    /// known, [`Cells::find_or_open`] decides when to settle.
    #[inline]
    fn is_expected(&mut self, start_ns: i64, source: u32) -> bool {
        let expected = self.current.wrapping_add(self.stride);
        let is_it = self.last.is_some() || self.cells.len() < self.wanted.rows_max;
        let is_it = is_it
            && self
                .cells
                .get(expected)
                .is_some_and(|cell| cell.start_ns == start_ns && cell.source == source);
        if is_it {
            self.current = expected;
        }
        is_it
    }

    /// Adds a part of a cell, if the cell is wanted.
    pub(super) fn add(&mut self, start_ns: i64, source: u32, field: u32, part: C) -> Result<(), EngineError> {
        let bytes = part.heap_bytes();
        self.held.grow(bytes)?;
        let is_wanted = self.entry(start_ns, source, field)?.is_some();
        let Self {
            cells,
            held,
            current,
            more_fields,
            ..
        } = self;
        held.shrink(bytes);
        match is_wanted {
            true => cells[*current]
                .entry(field, *more_fields, held)?
                .absorb(part, held),
            false => Ok(()),
        }
    }

    /// Sets how many fields most cells of what follows have, so that new ones get room for them.
    pub(super) fn expect(&mut self, fields: usize) {
        self.more_fields = fields.saturating_sub(1);
    }

    /// Whether the current cell, which is full, may get room for another field.
    fn has_room(&self) -> bool {
        let more = self.cells[self.current].least_growth();
        self.held.has_room(more * size_of::<Entry<C>>())
    }

    /// Makes a cell the current one, and appends it if it does not exist; false if it is not wanted.
    fn find_or_open(&mut self, start_ns: i64, source: u32) -> Result<bool, EngineError> {
        if !self.admits(start_ns, source) {
            return Ok(false);
        }
        let mut found = self.find((start_ns, source))?;
        if found.is_some() && self.last.is_none() && self.cells.len() >= self.wanted.rows_max {
            // Cells come again, so that there may be no more of them than now: the window is known from here on.
            self.settle();
            if !self.admits(start_ns, source) {
                return Ok(false);
            }
            found = self.find((start_ns, source))?;
        }
        if let Some(found) = found {
            if self
                .cells
                .get(self.current)
                .is_some_and(|before| before.source == source)
            {
                self.stride = found.wrapping_sub(self.current);
            }
            self.current = found;
            return Ok(true);
        }
        // At a quarter beyond the wanted number, so that the cost of sorting is a small constant per cell.
        let settle_at = self.wanted.rows_max.saturating_add(self.wanted.rows_max / 4 + 64);
        if self.cells.len() >= settle_at {
            self.settle();
        }
        self.make_room()?;
        if !self.admits(start_ns, source) {
            return Ok(false);
        }
        self.current = self.cells.len();
        self.cells.push(Cell {
            start_ns,
            source,
            first: Entry::default(),
            rest: Vec::new(),
        });
        if let Some(places) = &mut self.places {
            let hash = self.hasher.hash_one((start_ns, source));
            let (cells, hasher) = (&self.cells, &self.hasher);
            let hash_of = |place: &u32| hasher.hash_one(cells[*place as usize].key());
            places.insert_unique(hash, self.current as u32, hash_of);
        }
        Ok(true)
    }

    /// Index of a cell.
    fn find(&mut self, key: (i64, u32)) -> Result<Option<usize>, EngineError> {
        if self.places.is_none() {
            match self.cells.last() {
                Some(last) if last.key() == key => return Ok(Some(self.cells.len() - 1)),
                Some(last) if self.wanted.is_before(key, last.key()) => {}
                _ => return Ok(None),
            }
            let bytes = self.cells.capacity() * PLACE_BYTES;
            if !self.held.has_room(bytes) && self.cells.len() > self.settled {
                self.settle();
            }
            self.held.grow(bytes)?;
            self.places = Some(HashTable::with_capacity(self.cells.capacity()));
            self.fill_places();
        }
        let expected = self.current.wrapping_add(self.stride);
        if self.cells.get(expected).is_some_and(|cell| cell.key() == key) {
            return Ok(Some(expected));
        }
        let hash = self.hasher.hash_one(key);
        let is_it = |place: &u32| self.cells[*place as usize].key() == key;
        let places = self.places.as_ref();
        let found = places.and_then(|places| places.find(hash, is_it));
        Ok(found.map(|place| *place as usize))
    }

    fn fill_places(&mut self) {
        let Self {
            cells,
            places,
            hasher,
            ..
        } = self;
        let Some(places) = places else { return };
        let hash_of = |cell: &Cell<C>| hasher.hash_one(cell.key());
        places.clear();
        for (place, cell) in (0..).zip(&*cells) {
            places.insert_unique(hash_of(cell), place, |place| hash_of(&cells[*place as usize]));
        }
    }

    /// Makes room for another cell.
    fn make_room(&mut self) -> Result<(), EngineError> {
        if self.cells.len() < self.cells.capacity() {
            return Ok(());
        }
        let more = match self.cells.len() {
            few @ ..1_024 => few.max(32),
            many => many / 2,
        };
        let place_bytes = self.places.as_ref().map_or(0, |_| PLACE_BYTES);
        let bytes = more * (size_of::<Cell<C>>() + place_bytes);
        if !self.held.has_room(bytes) && self.cells.len() > self.settled {
            self.settle();
        }
        if self.cells.len() == self.cells.capacity() {
            self.held.grow(bytes)?;
            self.cells.reserve_exact(more);
            let (cells, hasher) = (&self.cells, &self.hasher);
            if let Some(places) = &mut self.places {
                places.reserve(more, |place| hasher.hash_one(cells[*place as usize].key()));
            }
        }
        Ok(())
    }

    /// Sorts the cells in place, and drops those that are not wanted.
    fn settle(&mut self) {
        let Self {
            wanted, cells, held, ..
        } = self;
        wanted.keep(cells, held);
        self.settled = cells.len();
        self.last = match cells.last() {
            Some(last) if cells.len() == wanted.rows_max => Some(last.key()),
            _ => None,
        };
        self.current = usize::MAX;
        self.fill_places();
    }

    /// The wanted cells in the requested order, and their memory reservation.
    pub(super) fn finish(mut self) -> Result<(Vec<Cell<C>>, Held<'b>), EngineError> {
        if self.places.take().is_some() {
            self.held.shrink(self.cells.capacity() * PLACE_BYTES);
        }
        self.settle();
        Ok((self.cells, self.held))
    }
}
