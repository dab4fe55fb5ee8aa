//! A row of a grouped result. It contains only fields that have values in it.

use crate::EngineError;
use crate::aggregate::Aggregate;

use super::budget::Held;

/// A cell that gets a second field gets room for as many more as are expected, at most this many: it may turn out to
/// have fewer.
const MORE_FIELDS_MAX: usize = 16;

/// What a cell contains of a field.
pub trait Content: Default {
    /// Whether it contains no values.
    fn is_empty(&self) -> bool;

    /// Adds another part of the same cell. Returns how many bytes less the result takes than both, by
    /// [`Content::heap_bytes`].
    fn absorb(&mut self, part: Self) -> usize;

    /// Its memory besides its own size, in bytes.
    fn heap_bytes(&self) -> usize;
}

impl Content for Aggregate {
    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn absorb(&mut self, part: Self) -> usize {
        self.merge(&part);
        0
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
    /// A cell without fields.
    pub(super) fn new(start_ns: i64, source: u32) -> Self {
        Cell {
            start_ns,
            source,
            first: Entry::default(),
            rest: Vec::new(),
        }
    }

    /// The fields with values, ascending by their numbers.
    pub fn values(&self) -> CellValues<'_, C> {
        CellValues {
            first: Some(&self.first),
            rest: self.rest.iter(),
        }
    }

    /// Start and source.
    pub(super) fn key(&self) -> (i64, u32) {
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

    /// The place of a field with values, if it is the first field, at place `near`, or at the one after it.
    #[inline]
    pub(super) fn place(&self, field: u32, near: usize) -> Option<usize> {
        if self.begins_with(field) {
            return Some(0);
        }
        let is_it = |place: &usize| {
            self.rest
                .get(place.wrapping_sub(1))
                .is_some_and(|entry| entry.field == field)
        };
        [near + 1, near].into_iter().find(is_it)
    }

    /// The content at a place.
    #[inline]
    pub(super) fn content_mut(&mut self, place: usize) -> &mut C {
        match place.checked_sub(1) {
            None => &mut self.first.content,
            Some(index) => &mut self.rest[index].content,
        }
    }

    /// The same, owned.
    pub fn into_values(self) -> impl Iterator<Item = (u32, C)> {
        let Cell { first, rest, .. } = self;
        std::iter::once(first)
            .chain(rest)
            .map(|entry| (entry.field, entry.content))
    }

    /// Whether this is the first field, and has values.
    pub(super) fn begins_with(&self, field: u32) -> bool {
        self.first.field == field && !self.first.content.is_empty()
    }

    /// The place of a field, created if it does not exist. The cell is expected to get `more_fields` besides its first.
    pub(super) fn entry(
        &mut self,
        field: u32,
        more_fields: usize,
        held: &mut Held<'_>,
    ) -> Result<usize, EngineError> {
        if self.first.content.is_empty() {
            self.first.field = field;
        }
        if self.first.field == field {
            return Ok(0);
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
                    return Ok(0);
                }
                self.rest.insert(index, new);
                index
            }
        };
        Ok(index + 1)
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

    /// Whether another field needs more room.
    pub(super) fn is_full(&self) -> bool {
        self.rest.len() == self.rest.capacity()
    }

    /// For how many more fields it gets room at least when it is full.
    fn least_growth(&self) -> usize {
        self.rest.len().max(1)
    }

    /// How many bytes that takes at least.
    pub(super) fn least_growth_bytes(&self) -> usize {
        self.least_growth() * size_of::<Entry<C>>()
    }

    /// Approximate memory of cells with so many fields in all, in bytes.
    pub(super) fn bytes_of(cells: usize, fields: usize) -> usize {
        cells * size_of::<Self>() + fields.saturating_sub(cells) * size_of::<Entry<C>>()
    }

    /// Its memory besides its own size, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let contents = self.values().map(|(_, content)| content.heap_bytes());
        self.rest.capacity() * size_of::<Entry<C>>() + contents.sum::<usize>()
    }
}
