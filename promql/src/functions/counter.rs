//! Changes over the samples of a range: `rate` and its relatives.

use crate::options::Semantics;

/// A range with at least one sample: `times` and `values` of it, and its bounds in milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Window<'a> {
    pub(crate) times: &'a [i64],
    pub(crate) values: &'a [f64],
    pub(crate) start_ms: i64,
    pub(crate) end_ms: i64,
}

/// How `rate`, `increase` and `delta` differ.
#[derive(Clone, Copy)]
pub(crate) struct Extrapolation {
    /// A value that falls has begun again at zero.
    pub(crate) is_counter: bool,
    /// Per second of the range.
    pub(crate) is_rate: bool,
    pub(crate) semantics: Semantics,
}

/// The change over a range, extrapolated to its bounds where the samples come close to them; none for a single sample.
///
/// `lost` is the sum of the values before each reset.
pub(crate) fn extrapolated(
    window: Window<'_>,
    kind: Extrapolation,
    lost: impl Iterator<Item = f64>,
) -> Option<f64> {
    let (&[first_ms, .., last_ms], &[first, .., last]) = (window.times, window.values) else {
        return None;
    };
    let mut change = last - first;
    for value in lost {
        change += value;
    }
    let mut to_start = (first_ms - window.start_ms) as f64 / 1000.0;
    let mut to_end = (window.end_ms - last_ms) as f64 / 1000.0;
    let sampled = (last_ms - first_ms) as f64 / 1000.0;
    let average = sampled / (window.times.len() - 1) as f64;
    // Samples that end further from a bound than this do not reach it: the series begins or ends within the range.
    let threshold = average * 1.1;
    let to_zero = if kind.is_counter && change > 0.0 && first >= 0.0 {
        sampled * (first / change)
    } else {
        f64::INFINITY
    };
    match kind.semantics {
        Semantics::V3 => {
            if to_start >= threshold {
                to_start = average / 2.0;
            }
            to_start = to_start.min(to_zero);
        }
        Semantics::V2 => {
            to_start = to_start.min(to_zero);
            if to_start >= threshold {
                to_start = average / 2.0;
            }
        }
    }
    if to_end >= threshold {
        to_end = average / 2.0;
    }
    let mut factor = (sampled + to_start + to_end) / sampled;
    if kind.is_rate {
        factor /= (window.end_ms - window.start_ms) as f64 / 1000.0;
    }
    Some(change * factor)
}

/// The change between the last two samples, per second if `is_rate`: then a value that falls counts from zero.
pub(crate) fn instant(window: Window<'_>, is_rate: bool) -> Option<f64> {
    let (&[.., before_ms, last_ms], &[.., before, last]) = (window.times, window.values) else {
        return None;
    };
    let change = if is_rate && last < before {
        last
    } else {
        last - before
    };
    Some(if is_rate {
        change / ((last_ms - before_ms) as f64 / 1000.0)
    } else {
        change
    })
}

/// How often the value changes. From NaN to NaN is no change.
pub(crate) fn changes(values: &[f64]) -> f64 {
    let differ = |pair: &&[f64]| pair[0] != pair[1] && !(pair[0].is_nan() && pair[1].is_nan());
    values.windows(2).filter(differ).count() as f64
}

/// The positions at which a value is below the one before it.
pub(crate) fn resets(values: &[f64]) -> Vec<usize> {
    (1..values.len())
        .filter(|at| values[*at] < values[at - 1])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Extrapolation = Extrapolation {
        is_counter: true,
        is_rate: true,
        semantics: Semantics::V3,
    };

    fn window<'a>(times: &'a [i64], values: &'a [f64]) -> Window<'a> {
        Window {
            times,
            values,
            start_ms: 0,
            end_ms: 60_000,
        }
    }

    #[test]
    fn a_steady_counter_has_its_slope_as_rate() {
        let window = window(&[15_000, 30_000, 45_000, 60_000], &[15.0, 30.0, 45.0, 60.0]);
        let rate = extrapolated(window, RATE, [].into_iter()).unwrap();
        assert!((rate - 1.0).abs() < 1e-12, "{rate}");
    }

    #[test]
    fn a_counter_is_not_extrapolated_below_zero() {
        let window = window(
            &[10_000, 20_000, 30_000, 40_000, 50_000],
            &[0.0, 10.0, 20.0, 30.0, 40.0],
        );
        let increase = Extrapolation {
            is_rate: false,
            ..RATE
        };
        assert_eq!(extrapolated(window, increase, [].into_iter()), Some(50.0));
    }

    #[test]
    fn a_gap_at_a_bound_is_extrapolated_by_half_the_average_distance() {
        let window = window(&[30_000, 40_000], &[100.0, 110.0]);
        let delta = Extrapolation {
            is_counter: false,
            is_rate: false,
            semantics: Semantics::V3,
        };
        assert_eq!(extrapolated(window, delta, [].into_iter()), Some(20.0));
    }

    #[test]
    fn the_zero_point_is_weighed_before_the_threshold_in_version_2() {
        // The counter's zero lies 8 s before its first sample, within the threshold of 11 s; the range begins 30 s before.
        let window = window(&[30_000, 40_000, 50_000, 60_000], &[8.0, 18.0, 28.0, 38.0]);
        let increase = |semantics| Extrapolation {
            is_rate: false,
            is_counter: true,
            semantics,
        };
        assert_eq!(
            extrapolated(window, increase(Semantics::V3), [].into_iter()),
            Some(35.0)
        );
        assert_eq!(
            extrapolated(window, increase(Semantics::V2), [].into_iter()),
            Some(38.0)
        );
    }

    #[test]
    fn what_a_reset_lost_is_added() {
        let window = window(&[20_000, 40_000, 60_000], &[100.0, 5.0, 25.0]);
        let increase = Extrapolation {
            is_rate: false,
            ..RATE
        };
        let lost: Vec<f64> = resets(window.values)
            .iter()
            .map(|at| window.values[at - 1])
            .collect();
        assert_eq!(extrapolated(window, increase, lost.into_iter()), Some(37.5));
    }

    #[test]
    fn instant_changes_take_the_last_two_samples() {
        let falling = window(&[0, 10_000, 20_000], &[1.0, 50.0, 20.0]);
        assert_eq!(instant(falling, true), Some(2.0));
        assert_eq!(instant(falling, false), Some(-30.0));
        assert_eq!(instant(window(&[0], &[1.0]), true), None);
    }

    #[test]
    fn changes_and_resets_count() {
        let values = [1.0, 1.0, 2.0, f64::NAN, f64::NAN, 1.0, 0.0];
        assert_eq!(changes(&values), 4.0);
        assert_eq!(resets(&values), [6]);
    }
}
