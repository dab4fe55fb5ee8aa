//! Quantiles and fractions of classic histograms: cumulative counts by upper bound, the label `le`.

use crate::options::Semantics;

/// How far, relatively, a count may be off its neighbour by rounding alone.
const COUNT_TOLERANCE: f64 = 1e-12;

/// The observations up to and including an upper bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket {
    pub(crate) upper: f64,
    pub(crate) count: f64,
}

/// The quantile, by linear interpolation within a bucket. Sorts the buckets and repairs their counts.
///
/// NaN without a bucket of +Inf, with fewer than two buckets and without observations. In the last bucket it is the bound
/// before; the first bucket begins at 0 when its bound is above 0, else its bound is the quantile.
pub(crate) fn quantile(q: f64, buckets: &mut Vec<Bucket>, semantics: Semantics) -> f64 {
    if q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    if !sort(buckets) {
        return f64::NAN;
    }
    make_monotonic(buckets, semantics);
    let last = buckets.len() - 1;
    let observations = buckets[last].count;
    if last == 0 || observations == 0.0 || observations.is_nan() {
        return f64::NAN;
    }
    let mut rank = q * observations;
    let at = buckets[..last].partition_point(|bucket| bucket.count < rank);
    if at == last {
        return buckets[last - 1].upper;
    }
    let Bucket { upper, mut count } = buckets[at];
    if at == 0 && upper <= 0.0 {
        return upper;
    }
    let mut lower = 0.0;
    if at > 0 {
        lower = buckets[at - 1].upper;
        count -= buckets[at - 1].count;
        rank -= buckets[at - 1].count;
    }
    lower + (upper - lower) * (rank / count)
}

/// The share of the observations between two bounds, by linear interpolation within a bucket. Sorts the buckets.
pub(crate) fn fraction(lower: f64, upper: f64, buckets: &mut Vec<Bucket>) -> f64 {
    if !sort(buckets) {
        return f64::NAN;
    }
    let observations = buckets[buckets.len() - 1].count;
    if observations == 0.0 || observations.is_nan() || lower.is_nan() || upper.is_nan() {
        return f64::NAN;
    }
    if lower >= upper {
        return 0.0;
    }
    (rank(upper, buckets).min(observations) - rank(lower, buckets).min(observations)) / observations
}

/// How many observations lie below a bound.
fn rank(bound: f64, buckets: &[Bucket]) -> f64 {
    let mut below = Bucket {
        upper: f64::NEG_INFINITY,
        count: 0.0,
    };
    for (index, bucket) in buckets.iter().enumerate() {
        // As for a quantile, the first bucket begins at 0 when its bound is above 0.
        if index == 0 && bucket.upper > 0.0 {
            below.upper = 0.0;
        }
        if below.upper >= bound {
            return below.count;
        }
        if bucket.upper > bound {
            return below.count
                + (bucket.count - below.count) * (bound - below.upper) / (bucket.upper - below.upper);
        }
        below = *bucket;
    }
    below.count
}

/// Sorts by bound and adds up buckets of one bound; false when the last bound is not +Inf.
fn sort(buckets: &mut Vec<Bucket>) -> bool {
    buckets.sort_by(|left, right| left.upper.total_cmp(&right.upper));
    buckets.dedup_by(|later, kept| {
        let is_same = later.upper == kept.upper;
        if is_same {
            kept.count += later.count;
        }
        is_same
    });
    buckets.last().is_some_and(|last| last.upper == f64::INFINITY)
}

/// Scraped and remotely written buckets are not of one instant, so counts may fall: they are raised to the ones before.
fn make_monotonic(buckets: &mut [Bucket], semantics: Semantics) {
    if semantics == Semantics::V3 {
        let mut before = buckets[0].count;
        for bucket in &mut buckets[1..] {
            let delta = (bucket.count - before).abs();
            if delta != 0.0 && delta / bucket.count <= COUNT_TOLERANCE {
                bucket.count = before;
            } else if delta != 0.0 {
                before = bucket.count;
            }
        }
    }
    let mut greatest = buckets[0].count;
    for bucket in &mut buckets[1..] {
        if bucket.count > greatest {
            greatest = bucket.count;
        } else if bucket.count < greatest {
            bucket.count = greatest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(pairs: &[(f64, f64)]) -> Vec<Bucket> {
        pairs
            .iter()
            .map(|(upper, count)| Bucket {
                upper: *upper,
                count: *count,
            })
            .collect()
    }

    fn quantile_of(q: f64, pairs: &[(f64, f64)]) -> f64 {
        quantile(q, &mut buckets(pairs), Semantics::V3)
    }

    const INF: f64 = f64::INFINITY;

    #[test]
    fn quantiles_interpolate_within_a_bucket() {
        let pairs = [(INF, 100.0), (1.0, 50.0), (2.0, 90.0)];
        assert_eq!(quantile_of(0.25, &pairs), 0.5);
        assert_eq!(quantile_of(0.7, &pairs), 1.5);
        assert_eq!(quantile_of(0.99, &pairs), 2.0);
        assert_eq!(quantile_of(-1.0, &pairs), -INF);
        assert_eq!(quantile_of(2.0, &pairs), INF);
        assert!(quantile_of(f64::NAN, &pairs).is_nan());
    }

    #[test]
    fn quantiles_need_an_infinite_bucket_a_second_one_and_observations() {
        assert!(quantile_of(0.5, &[(1.0, 5.0), (2.0, 6.0)]).is_nan());
        assert!(quantile_of(0.5, &[(INF, 5.0)]).is_nan());
        assert!(quantile_of(0.5, &[(1.0, 0.0), (INF, 0.0)]).is_nan());
    }

    #[test]
    fn a_first_bucket_up_to_zero_answers_its_bound() {
        assert_eq!(quantile_of(0.1, &[(-1.0, 50.0), (INF, 100.0)]), -1.0);
    }

    #[test]
    fn falling_counts_are_raised_and_equal_bounds_added_up() {
        assert_eq!(quantile_of(0.5, &[(1.0, 10.0), (2.0, 5.0), (INF, 10.0)]), 0.5);
        assert_eq!(quantile_of(0.5, &[(1.0, 5.0), (1.0, 5.0), (INF, 10.0)]), 0.5);
        let rounding = [(1.0, 10.0), (2.0, 10.0 + 1e-14), (INF, 10.0 + 1e-14)];
        assert_eq!(quantile_of(1.0, &rounding), 1.0);
    }

    #[test]
    fn fractions_are_shares_between_bounds() {
        let of = |lower, upper| {
            fraction(
                lower,
                upper,
                &mut buckets(&[(1.0, 50.0), (2.0, 90.0), (INF, 100.0)]),
            )
        };
        assert_eq!(of(0.0, 1.0), 0.5);
        assert_eq!(of(0.5, 1.5), 0.45);
        assert_eq!(of(-INF, INF), 1.0);
        assert_eq!(of(2.0, INF), 0.1);
        assert_eq!(of(2.0, 1.0), 0.0);
        assert!(of(f64::NAN, 1.0).is_nan());
    }
}
