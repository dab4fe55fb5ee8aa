//! What the evaluation asks of whoever holds the series.

use std::ops::ControlFlow;

use crate::error::Error;
use crate::labels::Labels;
use crate::matcher::Matcher;

/// The bits of the NaN that ends a series: a stale marker, as remote write sends it.
pub const STALE_MARKER_BITS: u64 = 0x7ff0_0000_0000_0002;

/// The value that ends a series; where values are given per step, it stands for "no value here".
pub const STALE_MARKER: f64 = f64::from_bits(STALE_MARKER_BITS);

/// Whether a value is a stale marker. Any other NaN is a value.
pub fn is_stale_marker(value: f64) -> bool {
    value.to_bits() == STALE_MARKER_BITS
}

/// The samples of a series: two columns of one length.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    /// Milliseconds since 1970, strictly ascending.
    pub times: &'a [i64],
    /// The values, stale markers included.
    pub values: &'a [f64],
}

/// Which samples are asked for: after `after_ms` up to and including `until_ms`, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Exclusive.
    pub after_ms: i64,
    /// Inclusive.
    pub until_ms: i64,
}

/// What will be done with the samples of a selection. A storage may ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// The function over the range in brackets, by name; none for an instant selector.
    pub function: Option<&'static str>,
    /// The range in brackets, or how far an instant selector looks back.
    pub range_ms: i64,
    /// The time between steps; 0 when there is one step.
    pub step_ms: i64,
}

/// Functions whose windows a storage may know without samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowFunction {
    /// `avg_over_time`
    Avg,
    /// `min_over_time`
    Min,
    /// `max_over_time`
    Max,
    /// `sum_over_time`
    Sum,
    /// `count_over_time`
    Count,
}

/// Windows of equal length: number `i` is the time after `first_end_ms + i * step_ms - range_ms` up to and including
/// `first_end_ms + i * step_ms`. Range and step are whole minutes; `first_end_ms` may be any instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// What is wanted of each window.
    pub function: WindowFunction,
    /// The end of window 0.
    pub first_end_ms: i64,
    /// From one end to the next; 0 when there is one window.
    pub step_ms: i64,
    /// The length of each window.
    pub range_ms: i64,
    /// How many windows there are.
    pub count: usize,
}

/// Whether a storage has answered windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// Every series that has a sample in a window was given.
    Yes,
    /// Nothing was given: samples have to be selected.
    No,
}

/// Takes the samples of one series after the other; after a break the storage returns as soon as it can.
pub type VisitSamples<'v> = &'v mut dyn FnMut(Labels, Samples<'_>) -> ControlFlow<()>;

/// Takes the values of one series after the other, one per window; after a break the storage returns as soon as it can.
pub type VisitWindows<'v> = &'v mut dyn FnMut(Labels, &[f64]) -> ControlFlow<()>;

/// Whoever holds the series.
pub trait Storage {
    /// Visits each series that all matchers match and that has samples in the range, once, in any order.
    ///
    /// A label that a series has not matches as the empty text. Label sets are unique. The samples of a visit end with
    /// it, so that a storage can use the same buffers for the next series, and no more than one is in memory.
    fn select(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
        hints: &Hints,
        visit: VisitSamples<'_>,
    ) -> Result<(), Error>;

    /// Visits each series with one value per window, from whatever is aggregated in advance, or says that it cannot.
    ///
    /// A window without samples is a [`STALE_MARKER`]. Stale markers among the samples count for nothing.
    fn windows(
        &self,
        _matchers: &[Matcher],
        _windows: &Windows,
        _visit: VisitWindows<'_>,
    ) -> Result<Answered, Error> {
        Ok(Answered::No)
    }
}
