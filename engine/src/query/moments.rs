//! The spread of values around their mean, at any scale of normal doubles.

/// Number of values, their mean, and the sum of the squares of their differences from it.
///
/// The mean of values of which many digits are the same would lose the others to rounding. So it is kept as what it is
/// beyond the first value, from which the others differ by numbers of the size of their spread.
///
/// Squares of differences beyond 1e154 or below 1e-154 would leave the range of doubles. So differences are multiplied by
/// a power of two before they are squared, which is 1 unless they need another, and changes no digit of normal doubles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moments {
    count: f64,
    /// The first value, times [`QUARTER`].
    first: f64,
    /// The mean of the values times [`QUARTER`], beyond the first.
    mean: f64,
    squares: f64,
    /// A power of two.
    scale: f64,
}

/// So that no difference of two doubles overflows.
const QUARTER: f64 = 0.25;

/// Scaled differences up to this have squares of which 2^60 can be added up.
const GREATEST: f64 = power_of_two(480);

/// Scaled differences from this on have squares with all their digits.
const LEAST: f64 = power_of_two(-480);

/// Keeps a scale, and its inverse, in the range of doubles.
const EXPONENT_MAX: i64 = 1000;

const fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

impl Default for Moments {
    fn default() -> Self {
        Moments {
            count: 0.0,
            first: 0.0,
            mean: 0.0,
            squares: 0.0,
            scale: 1.0,
        }
    }
}

impl Moments {
    /// Adds a value (Welford, Note on a method for calculating corrected sums of squares and products, 1962).
    #[inline]
    pub(super) fn add(&mut self, value: f64) {
        let value = value * QUARTER;
        if self.count == 0.0 {
            self.first = value;
        }
        self.count += 1.0;
        let beyond = value - self.first;
        let off = beyond - self.mean;
        self.fit(off);
        self.mean += off / self.count;
        self.squares += off * self.scale * ((beyond - self.mean) * self.scale);
    }

    /// Adds other values (Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample
    /// variances, 1979).
    pub(super) fn absorb(&mut self, others: Moments) {
        if self.count == 0.0 {
            *self = others;
        } else if others.count > 0.0 {
            self.rescale(match (self.squares == 0.0, others.squares == 0.0) {
                (true, _) => others.scale,
                (_, true) => self.scale,
                _ => self.scale.min(others.scale),
            });
            self.squares += others.squares_at(self.scale);
            let count = self.count + others.count;
            let off = (others.first - self.first) + (others.mean - self.mean);
            self.fit(off);
            let scaled = off * self.scale;
            self.squares += scaled * scaled * (self.count / count) * others.count;
            self.mean += off * (others.count / count);
            self.count = count;
        }
    }

    /// The standard deviation of a sample; `None` for fewer than two values, or beyond the range of doubles.
    pub(super) fn stddev(&self) -> Option<f64> {
        let scaled = (self.squares / (self.count - 1.0)).sqrt();
        let stddev = scaled / self.scale / QUARTER;
        (self.count > 1.0 && stddev.is_finite()).then_some(stddev)
    }

    /// Makes the scale one at which a difference can be squared.
    #[inline]
    fn fit(&mut self, off: f64) {
        let scaled = (off * self.scale).abs();
        // Beside greater ones, the squares of small differences do not count.
        let vanishes = scaled < LEAST && self.squares == 0.0 && off != 0.0;
        if scaled > GREATEST || vanishes {
            let exponent = ((off.to_bits() >> 52) & 0x7ff) as i64 - 1023;
            self.rescale(power_of_two((-exponent).clamp(-EXPONENT_MAX, EXPONENT_MAX)));
        }
    }

    fn rescale(&mut self, scale: f64) {
        self.squares = self.squares_at(scale);
        self.scale = scale;
    }

    fn squares_at(&self, scale: f64) -> f64 {
        match self.squares {
            // The ratio of two scales may be infinite.
            0.0 => 0.0,
            squares => {
                let ratio = scale / self.scale;
                squares * ratio * ratio
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[f64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|&value| moments.add(value));
        moments
    }

    /// Adds all values one by one, and every first part to its rest.
    fn assert_stddev(values: &[f64], expected: f64) {
        let all = (0..=values.len()).map(|at| {
            let (first, rest) = values.split_at(at);
            let mut joined = moments(first);
            joined.absorb(moments(rest));
            joined
        });
        for found in all {
            let found = found.stddev().unwrap();
            let off = (found - expected).abs() / expected.abs().max(f64::MIN_POSITIVE);
            assert!(off < 1e-13, "{values:?}: {found:e} instead of {expected:e}");
        }
    }

    #[test]
    fn the_scale_of_values_changes_no_digit() {
        let values = [1.0, 2.0, 4.0, 8.0, 16.0, -3.5];
        let usual = moments(&values).stddev().unwrap();
        for exponent in [-980, -600, -500, 0, 500, 600, 1015] {
            let scale = power_of_two(exponent);
            assert_stddev(&values.map(|value| value * scale), usual * scale);
        }
    }

    #[test]
    fn values_that_differ_in_their_last_digits_have_the_deviation_of_these() {
        // Integers below 2^53, whose differences from the first one are exact.
        for base in [1e9, 1e12, 1e15] {
            let values: Vec<f64> = (0..40).map(|n| base + f64::from(n * n % 41)).collect();
            let small: Vec<f64> = values.iter().map(|value| value - base).collect();
            assert_stddev(&values, moments(&small).stddev().unwrap());
        }
        // An outlier first: all others have nearly the same distance from it.
        let mut values = vec![-1e9];
        values.extend((0..1_000).map(|n| 1e9 + f64::from(n) * 0.5));
        let mean = values.iter().sum::<f64>() / 1001.0;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        assert_stddev(&values, (squares / 1000.0).sqrt());
    }

    #[test]
    fn small_differences_are_seen_until_greater_ones_outweigh_them() {
        assert_stddev(&[0.0, 1e-200], 1e-200 / 2f64.sqrt());
        assert_stddev(&[0.0, 1e-200, 1e200], 1e200 / 3f64.sqrt());
        assert_stddev(&[1e200, 0.0, 1e-200], 1e200 / 3f64.sqrt());
        assert_stddev(&[0.0, 5e-324, 0.0, 5e-324, 1.0], 1.0 / 5f64.sqrt());
        assert_stddev(&[7.0, 7.0, 7.0], 0.0);
        assert_stddev(&[1e300, 1e300], 0.0);
    }

    #[test]
    fn the_greatest_doubles_have_a_deviation_unless_it_is_no_double() {
        assert_eq!(
            moments(&[f64::MAX, -f64::MAX]).stddev(),
            None,
            "f64::MAX times the root of 2"
        );
        assert_stddev(&[f64::MAX, -f64::MAX, 0.0], f64::MAX);
        let halves = [f64::MAX / 2.0, -f64::MAX / 2.0];
        assert_stddev(&halves, f64::MAX / 2f64.sqrt());
        assert_eq!(moments(&[1.0]).stddev(), None);
        assert_eq!(moments(&[]).stddev(), None);
    }
}
