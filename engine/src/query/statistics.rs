//! What is computed of a field from its rows in order of time, beyond the sums that rollups store. Parts of the same
//! cell, which are those of merged sources, can be combined in any order.

use super::cell::Content;
use super::distinct::Distinct;
use super::moments::Moments;
use super::quantile::{Values, quantile};
use super::scan::Position;
use crate::aggregate::Aggregate;
use crate::value::{Ends, within_doubles};

/// Which statistics are computed of a field, besides its [`Aggregate`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// The first and the last value.
    pub ends: bool,
    /// Of these the last one alone, and no [`Aggregate`]: older rows of a step are passed over.
    pub newest: bool,
    /// The spread of numbers around their mean.
    pub moments: bool,
    /// The growth of a counter.
    pub growth: bool,
    /// The average of numbers or booleans over time.
    pub over_time: bool,
    /// The numbers themselves, for quantiles.
    pub values: bool,
    /// The number of distinct values.
    pub distinct: bool,
}

impl Needs {
    /// Whether only the first and the last value are needed.
    pub fn are_ends(self) -> bool {
        self.ends && !self.has_parts()
    }

    /// Whether anything besides the ends is needed.
    pub(super) fn has_parts(self) -> bool {
        let ends = Needs {
            ends: self.ends,
            newest: self.newest,
            ..Needs::default()
        };
        self != ends
    }
}

/// The statistics of a field in a cell.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Of numbers, and of booleans as 0 or 1; of texts, and of booleans of which only the ends are needed, the count.
    pub aggregate: Aggregate,
    pub(super) ends: Option<Ends>,
    pub(super) parts: Option<Box<Parts>>,
}

/// What is needed besides the aggregate and the ends.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) moments: Moments,
    pub(super) growth: Growth,
    pub(super) over_time: Option<OverTime>,
    pub(super) values: Values,
    pub(super) distinct: Distinct,
}

/// The growth of a counter, scaled; that of merged sources is added up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Growth {
    pub(super) increase: Option<f64>,
    pub(super) rate: Option<f64>,
}

/// Values weighed by the time for which they held.
#[derive(Debug, Clone, Copy)]
pub(super) struct OverTime {
    pub(super) covered_ns: i64,
    /// Sum of the products of value and weight; see [`OverTime::hold`].
    pub(super) weighed: Sum,
    pub(super) last: (Position, f64),
}

/// A sum with its rounding error (Neumaier, Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen,
/// 1974).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    sum: f64,
    error: f64,
}

impl Statistics {
    /// The first and the last value.
    pub fn ends(&self) -> Option<&Ends> {
        self.ends.as_ref()
    }

    /// The standard deviation of a sample; `None` for fewer than two values, or beyond the range of doubles.
    pub fn stddev(&self) -> Option<f64> {
        self.parts.as_ref()?.moments.stddev()
    }

    /// The growth of a counter: a value below the previous one counts as a restart from zero.
    pub fn increase(&self) -> Option<f64> {
        self.parts.as_ref()?.growth.increase.map(unscaled)
    }

    /// The growth of a counter per second.
    pub fn rate(&self) -> Option<f64> {
        self.parts.as_ref()?.growth.rate.map(unscaled)
    }

    /// The average over time; of booleans, the share of time in which they are true.
    pub fn over_time(&self) -> Option<f64> {
        let over_time = self.parts.as_ref()?.over_time.as_ref()?;
        let (_, last) = over_time.last;
        Some(match over_time.covered_ns {
            ..=0 => last,
            covered_ns => within_doubles(over_time.weighed.value() / weight(covered_ns)),
        })
    }

    /// Accounts for a value that held for some time.
    pub(super) fn hold(&mut self, value: f64, ns: i64) {
        if let Some(over_time) = self.parts.as_mut().and_then(|parts| parts.over_time.as_mut()) {
            over_time.hold(value, ns);
        }
    }

    /// A quantile of the numbers, between 0 and 1.
    pub fn quantile(&mut self, share: f64) -> Option<f64> {
        match &mut self.parts.as_mut()?.values {
            Values::Unsorted(values) => quantile(values, share),
            Values::Reduced(found) => found.iter().find(|(of, _)| *of == share).map(|(_, value)| *value),
        }
    }

    /// The number of distinct values.
    pub fn distinct(&self) -> u64 {
        self.parts.as_ref().map_or(0, |parts| parts.distinct.count())
    }

    /// Replaces the values by their quantiles and their number: no other part of the cell will follow.
    pub(super) fn reduce(&mut self, quantiles: &[f64]) {
        if let Some(parts) = &mut self.parts {
            parts.values.reduce(quantiles);
            parts.distinct.reduce();
        }
    }
}

impl Content for Statistics {
    fn is_empty(&self) -> bool {
        self.aggregate.count == 0
    }

    fn absorb(&mut self, part: Self) -> usize {
        if self.aggregate.count == 0 && self.ends.is_none() && self.parts.is_none() {
            *self = part;
            return 0;
        }
        let both = self.heap_bytes() + part.heap_bytes();
        self.aggregate.merge(&part.aggregate);
        match (&mut self.ends, part.ends) {
            (Some(ends), Some(others)) => ends.absorb(others),
            (ends, others) => *ends = ends.take().or(others),
        }
        match (&mut self.parts, part.parts) {
            (Some(parts), Some(others)) => parts.absorb(*others),
            (parts, others) => *parts = parts.take().or(others),
        }
        both.saturating_sub(self.heap_bytes())
    }

    fn heap_bytes(&self) -> usize {
        let texts = self.ends.as_ref().map_or(0, Ends::text_bytes);
        let parts = self.parts.as_ref();
        texts + parts.map_or(0, |parts| size_of::<Parts>() + parts.heap_bytes())
    }
}

impl Parts {
    fn heap_bytes(&self) -> usize {
        self.values.heap_bytes() + self.distinct.heap_bytes()
    }

    fn absorb(&mut self, others: Parts) {
        self.moments.absorb(others.moments);
        self.growth.absorb(others.growth);
        if let Some(others) = others.over_time {
            match &mut self.over_time {
                Some(over_time) => over_time.absorb(others),
                none => *none = Some(others),
            }
        }
        self.values.absorb(others.values);
        self.distinct.absorb(others.distinct);
    }
}

/// For answers in which booleans stand beside averages: the average is the share of time in which they are true.
impl From<Statistics> for Aggregate {
    fn from(statistics: Statistics) -> Self {
        let Aggregate { count, min, max, .. } = statistics.aggregate;
        let share = statistics.over_time().unwrap_or_default().min(1.0);
        Aggregate::new(count, share * count as f64, min, max)
    }
}

impl Growth {
    fn absorb(&mut self, others: Growth) {
        let both = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        self.increase = both(self.increase, others.increase);
        self.rate = both(self.rate, others.rate);
    }
}

impl OverTime {
    /// A single value that has not held yet.
    pub(super) fn at(position: Position, value: f64) -> Self {
        OverTime {
            covered_ns: 0,
            weighed: Sum::default(),
            last: (position, value),
        }
    }

    /// Accounts for a value that held for some time.
    #[inline]
    pub(super) fn hold(&mut self, value: f64, ns: i64) {
        if ns > 0 {
            self.covered_ns = self.covered_ns.saturating_add(ns);
            self.weighed.add(value * weight(ns));
        }
    }

    fn absorb(&mut self, others: OverTime) {
        self.covered_ns = self.covered_ns.saturating_add(others.covered_ns);
        self.weighed.add(others.weighed.sum);
        self.weighed.add(others.weighed.error);
        if others.last.0 > self.last.0 {
            self.last = others.last;
        }
    }
}

/// The weight of a time: below 1 / 64, so that no sum of weighed doubles overflows.
fn weight(ns: i64) -> f64 {
    const SCALE: f64 = 1.0 / (1u128 << 70) as f64;
    ns as f64 * SCALE
}

impl Sum {
    #[inline]
    pub(super) fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.error += match self.sum.abs() >= value.abs() {
            true => (self.sum - sum) + value,
            false => (value - sum) + self.sum,
        };
        self.sum = sum;
    }

    pub(super) fn value(self) -> f64 {
        // Beyond the range of doubles the error is not a number.
        match self.sum.is_finite() {
            true => self.sum + self.error,
            false => self.sum,
        }
    }
}

/// Growth is added up on this scale, on which no sum of differences of doubles overflows.
pub(super) const GROWTH_SCALE: f64 = 1.0 / (1u128 << 64) as f64;

fn unscaled(growth: f64) -> f64 {
    within_doubles(growth / GROWTH_SCALE)
}
