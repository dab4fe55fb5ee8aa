//! The first cells of a grouped result, from the requested end: as many as the result needs, over all its sources.
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
use super::cell::{Cell, Content};

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

    /// Merges cells that are in order, and drops those that are not wanted. `held` counts both lists before, and the
    /// result afterwards.
    pub(super) fn merge<C: Content>(
        self,
        one: Vec<Cell<C>>,
        other: Vec<Cell<C>>,
        held: &mut Held<'_>,
    ) -> Result<Vec<Cell<C>>, EngineError> {
        let bytes_of = |cells: &Vec<Cell<C>>| cells.capacity() * size_of::<Cell<C>>();
        // A helper that came too late has none.
        if one.is_empty() || other.is_empty() {
            let (some, empty) = if one.is_empty() {
                (other, one)
            } else {
                (one, other)
            };
            held.shrink(bytes_of(&empty));
            return Ok(some);
        }
        let bytes = bytes_of(&one) + bytes_of(&other);
        let count = self.rows_max.min(one.len() + other.len());
        let mut merged = Vec::new();
        held.reserve(&mut merged, count)?;
        let (mut one, mut other) = (one.into_iter().peekable(), other.into_iter().peekable());
        while merged.len() < count {
            let takes_other = match (one.peek(), other.peek()) {
                (Some(one), Some(other)) => self.is_before(other.key(), one.key()),
                (one, _) => one.is_none(),
            };
            merged.extend(if takes_other { other.next() } else { one.next() });
        }
        let gone = one.chain(other).map(|cell| cell.heap_bytes());
        held.shrink(bytes + gone.sum::<usize>());
        Ok(merged)
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
    /// Place of the field that was found last. The next value usually belongs to the next field of the same cell, or to
    /// the same field of the next cell.
    place: usize,
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
            place: 0,
            stride: 1,
            more_fields: 0,
            held: budget.hold(),
            last: None,
            settled: 0,
        }
    }

    /// Maximum number of cells before those that are not wanted are dropped: a quarter beyond the wanted number, so that the
    /// cost of sorting is a small constant per cell.
    pub(super) fn kept_max(wanted: Wanted) -> usize {
        wanted.rows_max.saturating_add(wanted.rows_max / 4 + 64)
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

    /// Says that there are enough cells of which none is behind this one.
    pub(super) fn limit(&mut self, last: (i64, u32)) {
        if self.last.is_none_or(|before| self.wanted.is_before(last, before)) {
            self.last = Some(last);
        }
    }

    /// Start of each cell.
    pub(super) fn starts_ns(&self) -> impl Iterator<Item = i64> {
        self.cells.iter().map(|cell| cell.start_ns)
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

    /// The content of a field in a cell; `None` if the cell is not wanted. Inlined, because a call and its result would
    /// take as long as what is done here and with the content.
    #[inline(always)]
    pub(super) fn entry(
        &mut self,
        start_ns: i64,
        source: u32,
        field: u32,
    ) -> Result<Option<&mut C>, EngineError> {
        let is_found = self.is_current(start_ns, source) || self.is_expected(start_ns, source);
        if is_found && let Some(place) = self.cells[self.current].place(field, self.place) {
            self.place = place;
            return Ok(Some(self.cells[self.current].content_mut(place)));
        }
        self.open_entry(start_ns, source, field, is_found)
    }

    /// The same for a field that is not where it was expected. `is_found`: the cell is the current one.
    #[inline(never)]
    fn open_entry(
        &mut self,
        start_ns: i64,
        source: u32,
        field: u32,
        is_found: bool,
    ) -> Result<Option<&mut C>, EngineError> {
        if !is_found && !self.find_or_open(start_ns, source)? {
            return Ok(None);
        }
        // Capacity is checked first, because settling may move the cell.
        let cell = &self.cells[self.current];
        let is_full = !cell.begins_with(field) && cell.is_full();
        if is_full && self.cells.len() > self.settled && !self.has_room() {
            self.settle();
            if !self.find_or_open(start_ns, source)? {
                return Ok(None);
            }
        }
        let cell = &mut self.cells[self.current];
        self.place = cell.entry(field, self.more_fields, &mut self.held)?;
        Ok(Some(cell.content_mut(self.place)))
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
        let freed = match self.entry(start_ns, source, field)? {
            Some(content) => content.absorb(part),
            None => bytes,
        };
        self.held.shrink(freed);
        Ok(())
    }

    /// Sets how many fields most cells of what follows have, so that new ones get room for them.
    pub(super) fn expect(&mut self, fields: usize) {
        self.more_fields = fields.saturating_sub(1);
    }

    /// Whether the current cell, which is full, may get room for another field.
    fn has_room(&self) -> bool {
        self.held.has_room(self.cells[self.current].least_growth_bytes())
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
        if self.cells.len() >= Self::kept_max(self.wanted) {
            self.settle();
        }
        self.make_room()?;
        if !self.admits(start_ns, source) {
            return Ok(false);
        }
        self.current = self.cells.len();
        self.cells.push(Cell::new(start_ns, source));
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
        let last = cells
            .last()
            .filter(|_| cells.len() == wanted.rows_max)
            .map(Cell::key);
        if let Some(last) = last {
            self.limit(last);
        }
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
