//! Quantiles, deviations and variances of values.

use super::kahan::Sum;

/// The quantile of values by linear interpolation between the two nearest ranks. Sorts them, NaN first.
///
/// Below 0 it is -Inf, above 1 +Inf; of NaN or of no values NaN.
pub(crate) fn quantile(q: f64, values: &mut [f64]) -> f64 {
    if values.is_empty() || q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    values.sort_unstable_by(|left, right| match (left.is_nan(), right.is_nan()) {
        (false, false) => left.total_cmp(right),
        (left, right) => right.cmp(&left),
    });
    let last = (values.len() - 1) as f64;
    let rank = q * last;
    let lower = rank.floor().max(0.0);
    let upper = (lower + 1.0).min(last);
    let weight = rank - rank.floor();
    values[lower as usize] * (1.0 - weight) + values[upper as usize] * weight
}

/// The median of the distances from the median.
pub(crate) fn median_absolute_deviation(values: &[f64], scratch: &mut Vec<f64>) -> f64 {
    scratch.clear();
    scratch.extend_from_slice(values);
    let median = quantile(0.5, scratch);
    for value in scratch.iter_mut() {
        *value = (*value - median).abs();
    }
    quantile(0.5, scratch)
}

/// The population variance, by Welford's method.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let mut count = 0.0;
    let mut mean = Sum::default();
    let mut squares = Sum::default();
    for value in values {
        count += 1.0;
        let delta = value - mean.total();
        mean.add(delta / count);
        squares.add(delta * (value - mean.total()));
    }
    squares.total() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_between_ranks() {
        assert_eq!(quantile(0.5, &mut [3.0, 1.0, 2.0, 4.0]), 2.5);
        assert_eq!(quantile(1.0, &mut [3.0, 1.0]), 3.0);
        assert_eq!(quantile(0.5, &mut [7.0]), 7.0);
        assert_eq!(quantile(-0.1, &mut [1.0]), f64::NEG_INFINITY);
        assert_eq!(quantile(1.1, &mut [1.0]), f64::INFINITY);
        assert!(quantile(f64::NAN, &mut [1.0]).is_nan());
        assert!(quantile(0.0, &mut [1.0, f64::NAN]).is_nan());
    }

    #[test]
    fn variance_is_of_the_population() {
        assert_eq!(variance(&[1.0, 2.0, 3.0, 4.0]), 1.25);
        assert_eq!(variance(&[5.0]), 0.0);
    }

    #[test]
    fn the_median_absolute_deviation_ignores_an_outlier() {
        assert_eq!(
            median_absolute_deviation(&[4.0, 6.0, 2.0, 1.0, 999.0, 1.0, 2.0], &mut Vec::new()),
            1.0
        );
    }
}
