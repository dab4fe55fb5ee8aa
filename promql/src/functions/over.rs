//! Functions over ranges, applied to windows that move along a series.

use super::counter::{self, Extrapolation, Window};
use super::kahan::Sum;
use super::sliding::{self, Greatest, Least, Sliding};
use super::{regression, statistics};
use crate::error::Error;
use crate::options::Semantics;
use crate::storage::{STALE_MARKER, Samples, WindowFunction};

/// How many steps pass between two looks at the clock.
const STEPS_UNINTERRUPTED: usize = 64;

/// `rate`, `avg_over_time` and the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Rate,
    Increase,
    Delta,
    Irate,
    Idelta,
    Changes,
    Resets,
    Deriv,
    PredictLinear,
    Smoothing,
    Avg,
    Min,
    Max,
    Sum,
    Count,
    Last,
    First,
    Present,
    Quantile,
    Stddev,
    Stdvar,
    Mad,
    TimeOfFirst,
    TimeOfLast,
    TimeOfMin,
    TimeOfMax,
}

/// The names, of before 3.0 too.
const NAMES: &[(&str, Over)] = &[
    ("rate", Over::Rate),
    ("increase", Over::Increase),
    ("delta", Over::Delta),
    ("irate", Over::Irate),
    ("idelta", Over::Idelta),
    ("changes", Over::Changes),
    ("resets", Over::Resets),
    ("deriv", Over::Deriv),
    ("predict_linear", Over::PredictLinear),
    ("double_exponential_smoothing", Over::Smoothing),
    ("holt_winters", Over::Smoothing),
    ("avg_over_time", Over::Avg),
    ("min_over_time", Over::Min),
    ("max_over_time", Over::Max),
    ("sum_over_time", Over::Sum),
    ("count_over_time", Over::Count),
    ("last_over_time", Over::Last),
    ("first_over_time", Over::First),
    ("present_over_time", Over::Present),
    ("quantile_over_time", Over::Quantile),
    ("stddev_over_time", Over::Stddev),
    ("stdvar_over_time", Over::Stdvar),
    ("mad_over_time", Over::Mad),
    ("ts_of_first_over_time", Over::TimeOfFirst),
    ("ts_of_last_over_time", Over::TimeOfLast),
    ("ts_of_min_over_time", Over::TimeOfMin),
    ("ts_of_max_over_time", Over::TimeOfMax),
];

impl Over {
    pub(crate) fn named(name: &str) -> Option<Over> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, over)| *over)
    }

    pub(crate) fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, over)| *over == self)
            .map_or("", |(name, _)| name)
    }

    /// Which argument is the range vector; the others are numbers.
    pub(crate) fn range_argument(self) -> usize {
        usize::from(self == Over::Quantile)
    }

    /// Whether the result is a value of the metric, so that it keeps its name.
    pub(crate) fn keeps_name(self) -> bool {
        matches!(self, Over::Last | Over::First)
    }

    /// The function that a storage may answer by itself.
    pub(crate) fn window_function(self) -> Option<WindowFunction> {
        match self {
            Over::Avg => Some(WindowFunction::Avg),
            Over::Min => Some(WindowFunction::Min),
            Over::Max => Some(WindowFunction::Max),
            Over::Sum => Some(WindowFunction::Sum),
            Over::Count => Some(WindowFunction::Count),
            _ => None,
        }
    }
}

/// The windows of the steps of an evaluation: of one length, each with an end that is not before the previous one's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowPlan {
    pub(crate) first_end_ms: i64,
    /// 0 when all windows are the same, because of `@`.
    pub(crate) step_ms: i64,
    pub(crate) range_ms: i64,
    pub(crate) count: usize,
    pub(crate) semantics: Semantics,
}

impl WindowPlan {
    pub(crate) fn end_ms(&self, step: usize) -> i64 {
        self.first_end_ms + self.step_ms * step as i64
    }

    /// The latest instant that is in no window because it is too early.
    pub(crate) fn after_ms(&self) -> i64 {
        match self.semantics {
            Semantics::V3 => self.first_end_ms - self.range_ms,
            // Ranges are closed on their left.
            Semantics::V2 => self.first_end_ms - self.range_ms - 1,
        }
    }
}

/// What a function over ranges is applied to, beside the samples.
pub(crate) struct OverCall<'a> {
    pub(crate) over: Over,
    pub(crate) windows: WindowPlan,
    /// The instants of the steps, in milliseconds: the first one, and the distance.
    pub(crate) steps: (i64, i64),
    /// The numbers among the arguments, one per step.
    pub(crate) params: &'a [Vec<f64>],
    pub(crate) is_interrupted: &'a dyn Fn() -> bool,
}

impl OverCall<'_> {
    /// One value per step, a stale marker where there is none. The samples are without stale markers.
    pub(crate) fn apply(&self, samples: Samples<'_>, out: &mut Vec<f64>) -> Result<(), Error> {
        let Samples { times, values } = samples;
        let window = |begin: usize, end: usize, step: usize| {
            let end_ms = self.windows.end_ms(step);
            Window {
                times: &times[begin..end],
                values: &values[begin..end],
                start_ms: end_ms - self.windows.range_ms,
                end_ms,
            }
        };
        let or_none = |value: Option<f64>| value.unwrap_or(STALE_MARKER);
        match self.over {
            Over::Rate => self.extrapolate(samples, out, true, true),
            Over::Increase => self.extrapolate(samples, out, true, false),
            Over::Delta => self.extrapolate(samples, out, false, false),
            Over::Irate => self.each(times, out, |b, e, step| {
                or_none(counter::instant(window(b, e, step), true))
            }),
            Over::Idelta => self.each(times, out, |b, e, step| {
                or_none(counter::instant(window(b, e, step), false))
            }),
            Over::Changes => self.each(times, out, |b, e, _| counter::changes(&values[b..e])),
            Over::Resets => {
                let resets = counter::resets(values);
                self.each(times, out, |b, e, _| between(&resets, b, e).len() as f64)
            }
            Over::Deriv => self.each(times, out, |b, e, step| {
                let window = window(b, e, step);
                or_none(regression::line(window, window.times[0]).map(|(slope, _)| slope))
            }),
            Over::PredictLinear => self.each(times, out, |b, e, step| {
                let at_ms = self.steps.0 + self.steps.1 * step as i64;
                let line = regression::line(window(b, e, step), at_ms);
                or_none(line.map(|(slope, value)| slope * self.param(0, step) + value))
            }),
            Over::Smoothing => self.smooth(samples, out),
            Over::Avg => {
                let mut sums = Sliding::<Sum>::new(values);
                self.each(times, out, |b, e, _| {
                    sliding::mean(sums.window(b, e), &values[b..e])
                })
            }
            Over::Sum => {
                let mut sums = Sliding::<Sum>::new(values);
                self.each(times, out, |b, e, _| sums.window(b, e).total())
            }
            Over::Min => {
                let mut least = Sliding::<Least>::new(values);
                self.each(times, out, |b, e, _| least.window(b, e).0)
            }
            Over::Max => {
                let mut greatest = Sliding::<Greatest>::new(values);
                self.each(times, out, |b, e, _| greatest.window(b, e).0)
            }
            Over::Count => self.each(times, out, |b, e, _| (e - b) as f64),
            Over::Last => self.each(times, out, |_, e, _| values[e - 1]),
            Over::First => self.each(times, out, |b, _, _| values[b]),
            Over::Present => self.each(times, out, |_, _, _| 1.0),
            Over::Quantile => {
                let mut sorted = Vec::new();
                self.each(times, out, |b, e, step| {
                    sorted.clear();
                    sorted.extend_from_slice(&values[b..e]);
                    statistics::quantile(self.param(0, step), &mut sorted)
                })
            }
            Over::Stddev => self.each(times, out, |b, e, _| statistics::variance(&values[b..e]).sqrt()),
            Over::Stdvar => self.each(times, out, |b, e, _| statistics::variance(&values[b..e])),
            Over::Mad => {
                let mut scratch = Vec::new();
                self.each(times, out, |b, e, _| {
                    statistics::median_absolute_deviation(&values[b..e], &mut scratch)
                })
            }
            Over::TimeOfFirst => self.each(times, out, |b, _, _| seconds(times[b])),
            Over::TimeOfLast => self.each(times, out, |_, e, _| seconds(times[e - 1])),
            Over::TimeOfMin => self.each(times, out, |b, e, step| {
                extreme_time(window(b, e, step), |value, least| value <= least)
            }),
            Over::TimeOfMax => self.each(times, out, |b, e, step| {
                extreme_time(window(b, e, step), |value, greatest| value >= greatest)
            }),
        }
    }

    fn param(&self, index: usize, step: usize) -> f64 {
        self.params.get(index).map_or(f64::NAN, |values| values[step])
    }

    /// Calls `value` with the positions of the samples of each window that has any, and the number of its step.
    fn each(
        &self,
        times: &[i64],
        out: &mut Vec<f64>,
        mut value: impl FnMut(usize, usize, usize) -> f64,
    ) -> Result<(), Error> {
        out.clear();
        out.reserve(self.windows.count);
        let (mut begin, mut end) = (0, 0);
        for step in 0..self.windows.count {
            if step % STEPS_UNINTERRUPTED == 0 && (self.is_interrupted)() {
                return Err(Error::interrupted());
            }
            let until = self.windows.end_ms(step);
            let after = match self.windows.semantics {
                Semantics::V3 => until - self.windows.range_ms,
                Semantics::V2 => until - self.windows.range_ms - 1,
            };
            while end < times.len() && times[end] <= until {
                end += 1;
            }
            while begin < end && times[begin] <= after {
                begin += 1;
            }
            out.push(if begin < end {
                value(begin, end, step)
            } else {
                STALE_MARKER
            });
        }
        Ok(())
    }

    fn extrapolate(
        &self,
        samples: Samples<'_>,
        out: &mut Vec<f64>,
        is_counter: bool,
        is_rate: bool,
    ) -> Result<(), Error> {
        let resets = if is_counter {
            counter::resets(samples.values)
        } else {
            Vec::new()
        };
        let kind = Extrapolation {
            is_counter,
            is_rate,
            semantics: self.windows.semantics,
        };
        self.each(samples.times, out, |begin, end, step| {
            let end_ms = self.windows.end_ms(step);
            let window = Window {
                times: &samples.times[begin..end],
                values: &samples.values[begin..end],
                start_ms: end_ms - self.windows.range_ms,
                end_ms,
            };
            let lost = between(&resets, begin, end)
                .iter()
                .map(|at| samples.values[at - 1]);
            counter::extrapolated(window, kind, lost).unwrap_or(STALE_MARKER)
        })
    }

    fn smooth(&self, samples: Samples<'_>, out: &mut Vec<f64>) -> Result<(), Error> {
        let mut refused = None;
        self.each(samples.times, out, |begin, end, step| {
            let values = &samples.values[begin..end];
            match regression::smoothed(values, self.param(0, step), self.param(1, step)) {
                Ok(value) => value.unwrap_or(STALE_MARKER),
                Err(error) => {
                    refused.get_or_insert(error);
                    STALE_MARKER
                }
            }
        })?;
        refused.map_or(Ok(()), Err)
    }
}

/// The positions after `begin` and before `end`: a reset at `begin` lies between two samples of which one is outside.
fn between(positions: &[usize], begin: usize, end: usize) -> &[usize] {
    let from = positions.partition_point(|at| *at <= begin);
    let to = positions.partition_point(|at| *at < end);
    &positions[from.min(to)..to]
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

/// The time of the last extreme value; of NaN only when all values are.
fn extreme_time(window: Window<'_>, replaces: impl Fn(f64, f64) -> bool) -> f64 {
    let mut found = 0;
    for (at, value) in window.values.iter().enumerate() {
        if replaces(*value, window.values[found]) || window.values[found].is_nan() {
            found = at;
        }
    }
    seconds(window.times[found])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values at 60, 120 and 180 s over the minute before, of a sample every 20 s from 20 s on.
    fn over(name: &str, params: &[f64]) -> Vec<f64> {
        let times: Vec<i64> = (1..=6).map(|at| at * 20_000).collect();
        let call = OverCall {
            over: Over::named(name).unwrap(),
            windows: WindowPlan {
                first_end_ms: 60_000,
                step_ms: 60_000,
                range_ms: 60_000,
                count: 3,
                semantics: Semantics::V3,
            },
            steps: (60_000, 60_000),
            params: &params.iter().map(|param| vec![*param; 3]).collect::<Vec<_>>(),
            is_interrupted: &|| false,
        };
        let samples = Samples {
            times: &times,
            values: &[1.0, 3.0, 5.0, 2.0, 6.0, 4.0],
        };
        let mut out = Vec::new();
        call.apply(samples, &mut out).unwrap();
        assert!(
            crate::storage::is_stale_marker(out[2]),
            "{name} has a value without samples"
        );
        out.truncate(2);
        out
    }

    #[test]
    fn each_function_is_applied_to_each_window() {
        let cases: &[(&str, &[f64], [f64; 2])] = &[
            ("count_over_time", &[], [3.0, 3.0]),
            ("sum_over_time", &[], [9.0, 12.0]),
            ("avg_over_time", &[], [3.0, 4.0]),
            ("min_over_time", &[], [1.0, 2.0]),
            ("max_over_time", &[], [5.0, 6.0]),
            ("last_over_time", &[], [5.0, 4.0]),
            ("first_over_time", &[], [1.0, 2.0]),
            ("present_over_time", &[], [1.0, 1.0]),
            ("stdvar_over_time", &[], [8.0 / 3.0, 8.0 / 3.0]),
            (
                "stddev_over_time",
                &[],
                [(8.0_f64 / 3.0).sqrt(), (8.0_f64 / 3.0).sqrt()],
            ),
            ("quantile_over_time", &[0.5], [3.0, 4.0]),
            ("mad_over_time", &[], [2.0, 2.0]),
            ("changes", &[], [2.0, 2.0]),
            ("resets", &[], [0.0, 1.0]),
            ("delta", &[], [6.0, 3.0]),
            // From the counter's zero on, 20 s and then 10 s before the first sample.
            ("increase", &[], [5.0, 10.0]),
            ("rate", &[], [5.0 / 60.0, 10.0 / 60.0]),
            ("irate", &[], [0.1, 0.2]),
            ("idelta", &[], [2.0, -2.0]),
            ("deriv", &[], [0.1, 0.05]),
            ("predict_linear", &[60.0], [11.0, 8.0]),
            ("holt_winters", &[0.5, 0.5], [5.0, 7.0]),
            ("ts_of_first_over_time", &[], [20.0, 80.0]),
            ("ts_of_last_over_time", &[], [60.0, 120.0]),
            ("ts_of_min_over_time", &[], [20.0, 80.0]),
            ("ts_of_max_over_time", &[], [60.0, 100.0]),
        ];
        for (name, params, expected) in cases {
            let values = over(name, params);
            let is_near = values
                .iter()
                .zip(expected)
                .all(|(value, expected)| (value - expected).abs() < 1e-9);
            assert!(is_near, "{name}: {values:?}, expected {expected:?}");
        }
    }
}
