//! The statistics of a field in a step that is being read.

use std::ops::Range;
use std::sync::Arc;

use super::budget::Held;
use super::ordered::BatchRun;
use super::quantile::Values as Kept;
use super::scan::Position;
use super::statistics::{GROWTH_SCALE, Growth, Needs, OverTime, Parts, Statistics, Sum};
use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::column::{Column, Values};
use crate::value::{Ends, Value};

/// The previous value of a field in the range: since when it holds in the current step, and the value; of booleans 0 or 1.
pub(super) type Previous = (i64, f64);

/// A step that may get more values.
pub(super) struct OpenStep {
    pub(super) start_ns: i64,
    pub(super) next_ns: i64,
    statistics: Statistics,
    /// Since when growth is measured: the time of the previous value, or of the step's first one.
    grows_from_ns: i64,
    increase: Option<Sum>,
    /// The time of the last value.
    last_ns: i64,
}

/// Rows of one step that follow each other; the first one counts.
pub(super) struct Part<'p> {
    pub(super) run: &'p BatchRun<'p>,
    pub(super) column: &'p Column,
    pub(super) rows: Range<usize>,
    /// Whether all rows count.
    pub(super) is_dense: bool,
}

impl Part<'_> {
    /// The rows that have a value and pass the filters.
    fn counting(&self) -> impl DoubleEndedIterator<Item = usize> {
        let passes = self.run.passes.as_deref();
        self.rows.clone().filter(move |row| {
            self.is_dense || (self.column.has(*row) && passes.is_none_or(|passes| passes[*row]))
        })
    }

    /// The value of a row, with its position.
    fn value(&self, row: usize) -> (Position, Value) {
        let value = match &self.column.values {
            Values::Numbers { values, .. } => Value::Number(values[row]),
            Values::Booleans(values) => Value::Boolean(values[row]),
            Values::Texts(texts) => Value::Text(Arc::clone(texts.get(row))),
        };
        (self.run.position(row), value)
    }
}

impl OpenStep {
    /// Opens a step with these bounds for its first value; the previous one belongs to an earlier step.
    pub(super) fn new(
        (start_ns, next_ns): (i64, i64),
        first_ns: i64,
        needs: Needs,
        previous: &mut Option<Previous>,
    ) -> Self {
        let grows_from_ns = previous.map_or(first_ns, |(at_ns, _)| at_ns);
        if let Some((at_ns, _)) = previous {
            // What it held before was accounted for in its own step, or belongs to empty ones.
            *at_ns = start_ns.max(*at_ns);
        }
        OpenStep {
            start_ns,
            next_ns,
            statistics: Statistics {
                parts: needs.has_parts().then(Box::default),
                ..Statistics::default()
            },
            grows_from_ns,
            increase: None,
            last_ns: first_ns,
        }
    }

    /// Completes the step; its last value holds until its end, or until the given time.
    pub(super) fn complete(mut self, last: Option<Previous>, holds_until_ns: i64) -> Statistics {
        if let Some(parts) = &mut self.statistics.parts {
            let until_ns = self.next_ns.min(holds_until_ns);
            if let (Some(over_time), Some((at_ns, value))) = (&mut parts.over_time, last) {
                over_time.hold(value, until_ns.saturating_sub(at_ns));
            }
            let increase = self.increase.map(Sum::value);
            let seconds = self.last_ns.saturating_sub(self.grows_from_ns) as f64 / 1e9;
            let rate = increase
                .filter(|_| seconds > 0.0)
                .map(|increase| increase / seconds);
            parts.growth = Growth { increase, rate };
        }
        self.statistics
    }

    /// Adds rows; `held` grows by what that takes.
    pub(super) fn add(
        &mut self,
        part: &Part<'_>,
        needs: Needs,
        previous: &mut Option<Previous>,
        held: &mut Held<'_>,
    ) -> Result<(), EngineError> {
        match &part.column.values {
            Values::Numbers { values, .. } => {
                let aggregate = &mut self.statistics.aggregate;
                match part.is_dense {
                    true => aggregate.add_all(&values[part.rows.clone()]),
                    false => part.counting().for_each(|row| aggregate.add(values[row])),
                }
                self.add_numbers(part, values, needs, held)?;
                if needs.growth || needs.over_time {
                    self.follow(part, |row| values[row], needs, previous);
                }
            }
            Values::Booleans(values) => {
                let number = |row: usize| f64::from(values[row]);
                let aggregate = &mut self.statistics.aggregate;
                part.counting().for_each(|row| aggregate.add(number(row)));
                if needs.over_time {
                    self.follow(part, number, needs, previous);
                }
            }
            Values::Texts(_) => {
                let count = part.counting().count() as u64;
                self.statistics.aggregate.merge(&Aggregate::of_count(count));
            }
        }
        if needs.ends {
            add_ends(&mut self.statistics.ends, part, held)?;
        }
        if needs.distinct
            && let Some(parts) = &mut self.statistics.parts
        {
            add_distinct(parts, part, held)?;
        }
        Ok(())
    }

    fn add_numbers(
        &mut self,
        part: &Part<'_>,
        values: &[f64],
        needs: Needs,
        held: &mut Held<'_>,
    ) -> Result<(), EngineError> {
        let Some(parts) = &mut self.statistics.parts else {
            return Ok(());
        };
        if needs.moments {
            part.counting().for_each(|row| parts.moments.add(values[row]));
        }
        if needs.values
            && let Kept::Unsorted(kept) = &mut parts.values
        {
            held.reserve(kept, part.rows.len())?;
            match part.is_dense {
                true => kept.extend_from_slice(&values[part.rows.clone()]),
                false => kept.extend(part.counting().map(|row| values[row])),
            }
        }
        Ok(())
    }

    /// Adds what depends on the previous value.
    fn follow(
        &mut self,
        part: &Part<'_>,
        number: impl Fn(usize) -> f64,
        needs: Needs,
        previous: &mut Option<Previous>,
    ) {
        let Some(parts) = &mut self.statistics.parts else {
            return;
        };
        let mut over_time = parts.over_time.take();
        for row in part.counting() {
            let (at_ns, value) = (part.run.times.get(row), number(row));
            if let Some((since_ns, before)) = *previous {
                if needs.growth {
                    let value = value * GROWTH_SCALE;
                    let before = before * GROWTH_SCALE;
                    let grown = if value < before { value } else { value - before };
                    self.increase.get_or_insert_default().add(grown);
                }
                if needs.over_time {
                    let over_time =
                        over_time.get_or_insert_with(|| OverTime::at(part.run.position(row), value));
                    over_time.hold(before, at_ns.saturating_sub(since_ns));
                }
            }
            *previous = Some((at_ns, value));
            self.last_ns = at_ns;
        }
        if needs.over_time
            && let Some(row) = part.counting().next_back()
        {
            let last = (part.run.position(row), number(row));
            let over_time = over_time.get_or_insert_with(|| OverTime::at(last.0, last.1));
            over_time.last = last;
        }
        parts.over_time = over_time;
    }
}

fn add_ends(ends: &mut Option<Ends>, part: &Part<'_>, held: &mut Held<'_>) -> Result<(), EngineError> {
    let Some(last) = part.counting().next_back().map(|row| part.value(row)) else {
        return Ok(());
    };
    held.grow(last.1.text_bytes())?;
    match ends {
        Some(ends) => {
            held.shrink(ends.last.1.text_bytes());
            ends.last = last;
        }
        none => {
            let first = part.value(part.rows.start);
            held.grow(first.1.text_bytes())?;
            *none = Some(Ends { first, last });
        }
    }
    Ok(())
}

fn add_distinct(parts: &mut Parts, part: &Part<'_>, held: &mut Held<'_>) -> Result<(), EngineError> {
    let (distinct, mut rows) = (&mut parts.distinct, part.counting());
    match &part.column.values {
        Values::Numbers { values, .. } => rows.try_for_each(|row| distinct.add_number(values[row], held)),
        Values::Booleans(values) => {
            rows.for_each(|row| distinct.add_boolean(values[row]));
            Ok(())
        }
        Values::Texts(texts) => rows.try_for_each(|row| distinct.add_text(texts.get(row), held)),
    }
}
