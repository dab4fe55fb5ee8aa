//! `fill`: every step of the range is a row of every source.

use engine::LocalStep;
use engine::query::Held;

use super::table::{Computed, TableRow, TableValue};
use crate::error::{Detail, ServiceError};
use crate::limits::FILLED_ROWS_MAX;

/// What stands in a row for a value that is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// Nothing.
    Null,
    /// The value before it.
    Previous,
    /// A number on the line between its neighbours.
    Linear,
    /// A number.
    Number(f64),
}

/// A value that every row of a source has.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) field: u32,
    pub(super) aggregation: u32,
    /// Whether its values are numbers.
    pub(super) is_numeric: bool,
}

/// All rows of a filled answer, and which of them are wanted.
pub(super) struct Grid {
    /// Starts of the steps, ascending.
    steps_ns: Vec<i64>,
    /// Number of rows of each step.
    sources: usize,
    /// The wanted rows, in ascending order of steps and sources.
    wanted: std::ops::Range<usize>,
}

impl Grid {
    /// The rows of a range. `offset` and `limit` count from its end if the order is descending.
    ///
    /// # Errors
    /// 400 at `fill` for more rows than [`FILLED_ROWS_MAX`].
    pub(super) fn new(
        (start_ns, end_ns): (i64, i64),
        step: LocalStep<'_>,
        sources: usize,
        (offset, limit, descending): (usize, usize, bool),
        held: &mut Held<'_>,
    ) -> Result<Self, ServiceError> {
        let mut steps_ns = Vec::new();
        let mut next_ns = step.start_ns(start_ns);
        while next_ns <= end_ns && sources > 0 {
            if (steps_ns.len() + 1).saturating_mul(sources) > FILLED_ROWS_MAX {
                return Err(too_many());
            }
            held.reserve(&mut steps_ns, 1)?;
            steps_ns.push(next_ns);
            next_ns = match step.next_ns(next_ns) {
                i64::MAX => break,
                next_ns => next_ns,
            };
        }
        let rows = steps_ns.len() * sources;
        let (first, past) = (offset.min(rows), offset.saturating_add(limit).min(rows));
        Ok(Grid {
            steps_ns,
            sources,
            wanted: match descending {
                true => rows - past..rows - first,
                false => first..past,
            },
        })
    }

    /// Whether rows follow the wanted ones.
    pub(super) fn has_more(&self, descending: bool) -> bool {
        match descending {
            true => self.wanted.start > 0,
            false => self.wanted.end < self.steps_ns.len() * self.sources,
        }
    }

    /// The first and the last start of the cells that are needed; `None` if no row is wanted.
    pub(super) fn starts_ns(&self, fill: Fill) -> Option<(i64, i64)> {
        let wanted = !self.wanted.is_empty();
        let first = self
            .steps_ns
            .get(self.wanted.start / self.sources.max(1))
            .filter(|_| wanted)?;
        let last = self.steps_ns.get((self.wanted.end - 1) / self.sources.max(1))?;
        let (start, end) = (*self.steps_ns.first()?, *self.steps_ns.last()?);
        Some(match fill {
            Fill::Null | Fill::Number(_) => (*first, *last),
            Fill::Previous => (start, *last),
            Fill::Linear => (start, end),
        })
    }

    /// The wanted rows, ascending. `rows` are those with values, in the same order; `slots` returns what a row of a source
    /// has, in order.
    pub(super) fn rows<'s>(
        &self,
        rows: &[TableRow],
        slots: impl Fn(u32) -> &'s [Slot],
        fill: Fill,
        held: &mut Held<'_>,
    ) -> Result<Vec<TableRow>, ServiceError> {
        let mut filled = Vec::new();
        held.reserve(&mut filled, self.wanted.len())?;
        for index in self.wanted.clone() {
            let source = (index % self.sources) as u32;
            let mut row = TableRow {
                start_ns: self.steps_ns[index / self.sources],
                source,
                values: Vec::new(),
                previous: None,
            };
            row.values.reserve_exact(slots(source).len());
            row.hold(held)?;
            filled.push(row);
        }
        let mut of_source: Vec<Vec<&TableRow>> = Vec::new();
        held.reserve(&mut of_source, self.sources)?;
        of_source.resize_with(self.sources, Vec::new);
        for row in rows {
            held.reserve(&mut of_source[row.source as usize], 1)?;
            of_source[row.source as usize].push(row);
        }
        for (source, rows) in (0..).zip(&of_source) {
            for slot in slots(source) {
                self.fill_slot(source as usize, *slot, rows, fill, &mut filled);
            }
        }
        Ok(filled)
    }

    /// Adds a value to each wanted row of a source.
    fn fill_slot(&self, source: usize, slot: Slot, rows: &[&TableRow], fill: Fill, filled: &mut [TableRow]) {
        let key = (slot.field, slot.aggregation);
        let value_of = |row: &'_ &TableRow| {
            let found = row
                .values
                .binary_search_by_key(&key, |value| (value.field, value.aggregation));
            found
                .ok()
                .map(|index| (row.start_ns, row.values[index].value.clone()))
        };
        let mut known = rows.iter().filter_map(value_of).peekable();
        let mut following = rows
            .iter()
            .filter_map(value_of)
            .filter(|(_, value)| *value != Computed::Null)
            .peekable();
        let mut before: Option<(i64, Computed)> = None;
        // The first wanted row of the source.
        let first =
            self.wanted.start + (source + self.sources - self.wanted.start % self.sources) % self.sources;
        for index in (first..self.wanted.end).step_by(self.sources) {
            let start_ns = self.steps_ns[index / self.sources];
            let mut own = None;
            while let Some((at_ns, value)) = known.next_if(|(at_ns, _)| *at_ns <= start_ns) {
                if at_ns == start_ns {
                    own = Some(value.clone());
                }
                if value != Computed::Null {
                    before = Some((at_ns, value));
                }
            }
            let value = match (own, fill) {
                (Some(own), _) => own,
                (None, Fill::Number(number)) if slot.is_numeric => Computed::Number(number),
                (None, Fill::Null | Fill::Number(_)) => Computed::Null,
                (None, Fill::Previous) => before.clone().map_or(Computed::Null, |(_, value)| value),
                (None, Fill::Linear) => {
                    while following.next_if(|(at_ns, _)| *at_ns <= start_ns).is_some() {}
                    Computed::of(between(before.as_ref(), following.peek(), start_ns))
                }
            };
            filled[index - self.wanted.start].values.push(TableValue {
                field: slot.field,
                aggregation: slot.aggregation,
                value,
            });
        }
    }
}

/// The number on the line between two values.
fn between(before: Option<&(i64, Computed)>, after: Option<&(i64, Computed)>, at_ns: i64) -> Option<f64> {
    let ((before_ns, before), (after_ns, after)) = (before?, after?);
    let (before, after) = (before.number()?, after.number()?);
    let part = (at_ns - before_ns) as f64 / (after_ns - before_ns) as f64;
    Some(before * (1.0 - part) + after * part)
}

fn too_many() -> ServiceError {
    let message = format!(
        "gives more than {FILLED_ROWS_MAX} rows; ask for a shorter range (filters.startTime, filters.endTime), a longer \
         step (groupBy) or fewer data sources (filters.dataSourceIds)"
    );
    ServiceError::faults(vec![Detail::at(&["fill"], message)])
}
