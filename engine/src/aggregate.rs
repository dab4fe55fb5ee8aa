//! The aggregate of a set of values: count, sum, minimum, maximum. Aggregates can be merged, so a cell has the same
//! result whether it is computed from points, minutes, hours or whole blocks.

/// Count, sum, minimum and maximum.
///
/// The sum is a pair: a double, and the rounding error it accumulated (Neumaier, "Rundungsfehleranalyse einiger
/// Verfahren zur Summation endlicher Summen", ZAMM 54, 1974). For n values its error is at most 2⁻⁵³ of the sum, from
/// the final rounding to one double, plus n² · 2⁻¹⁰⁶ of the sum of the absolute values, in whatever order they are
/// merged.
///
/// An aggregate with an extreme of at least `LARGE` stores the pair divided by 2⁶⁴, so that no sum ever overflows: 2⁶⁴
/// values below `LARGE` sum to less than 2¹⁰²², and 2⁶⁴ doubles of any size divided by 2⁶⁴ to less than 2¹⁰²⁴. What the
/// division loses of the smallest doubles is far below the precision of a sum that includes such a large value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aggregate {
    /// Number of values.
    pub count: u64,
    sum: f64,
    carry: f64,
    /// Minimum; infinity if there are no values.
    pub min: f64,
    /// Maximum; negative infinity if there are no values.
    pub max: f64,
}

/// 2⁹⁵⁸: with extremes from here on, sums are stored divided.
const LARGE: f64 = f64::from_bits((1_023 + 958) << 52);
/// The factor for divided sums: 2⁻⁶⁴.
const DOWN: f64 = 1.0 / UP;
const UP: f64 = (1u128 << 64) as f64;

/// Number of independent partial sums: enough to keep a processor's adders busy.
const LANES: usize = 4;

impl Default for Aggregate {
    fn default() -> Self {
        Aggregate {
            count: 0,
            sum: 0.0,
            carry: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

/// Whether the sum of values with these extremes is stored divided; false for no values.
#[inline]
fn is_large(min: f64, max: f64) -> bool {
    max >= LARGE || min <= -LARGE
}

impl Aggregate {
    /// From a sum that fits into one double.
    pub(crate) fn new(count: u64, sum: f64, min: f64, max: f64) -> Self {
        let sum = if is_large(min, max) { sum * DOWN } else { sum };
        Aggregate::of_parts(count, (sum, 0.0), min, max)
    }

    /// From a sum and its carry as returned by [`Aggregate::parts`].
    pub(crate) fn of_parts(count: u64, (sum, carry): (f64, f64), min: f64, max: f64) -> Self {
        if count == 0 {
            Aggregate::default()
        } else {
            Aggregate {
                count,
                sum,
                carry,
                min,
                max,
            }
        }
    }

    /// For values that are not numbers.
    pub(crate) fn of_count(count: u64) -> Self {
        Aggregate::new(count, 0.0, 0.0, 0.0)
    }

    /// The stored sum: the nearest double and its error, both divided by 2⁶⁴ if an extreme is large.
    pub(crate) fn parts(&self) -> (f64, f64) {
        let sum = self.sum + self.carry;
        (sum, lost(self.sum, self.carry, sum))
    }

    /// Whether [`Aggregate::sum`] is exact, so that nothing is lost by storing that double.
    pub(crate) fn is_one_double(&self) -> bool {
        self.parts().1 == 0.0 && !self.is_beyond()
    }

    /// Whether the sum exceeds the range of doubles.
    pub(crate) fn is_beyond(&self) -> bool {
        self.is_large() && (self.parts().0 * UP).is_infinite()
    }

    /// The stored carry, without the normalization of [`Aggregate::parts`].
    pub(crate) fn carry(&self) -> f64 {
        self.carry
    }

    fn is_large(&self) -> bool {
        is_large(self.min, self.max)
    }

    /// Adds one number.
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1;
        let (min, max) = (self.min.min(value), self.max.max(value));
        if is_large(min, max) {
            self.add_divided(value * DOWN, 0.0);
        } else {
            self.add_to_sum(value);
        }
        (self.min, self.max) = (min, max);
    }

    /// Adds numbers: few one after the other, as the cells of small blocks have them, and many several in parallel,
    /// because each addition waits for the previous one.
    #[inline]
    pub(crate) fn add_all(&mut self, values: &[f64]) {
        if values.len() < 2 * LANES {
            self.add_few(values);
        } else {
            self.add_many(values);
        }
    }

    // Inlined, because a call takes as long as adding two values.
    #[inline(always)]
    fn add_few(&mut self, values: &[f64]) {
        let (mut min, mut max) = (self.min, self.max);
        let (mut sum, mut carry) = (self.sum, self.carry);
        for &value in values {
            min = if value < min { value } else { min };
            max = if value > max { value } else { max };
            let next = sum + value;
            carry += lost_evenly(sum, value, next);
            sum = next;
        }
        if is_large(min, max) {
            values.iter().for_each(|value| self.add(*value));
            return;
        }
        let count = self.count + values.len() as u64;
        *self = Aggregate {
            count,
            sum,
            carry,
            min,
            max,
        };
    }

    // Not inlined into loops over cells, most of which have few values.
    #[inline(never)]
    fn add_many(&mut self, values: &[f64]) {
        let (lanes, rest) = values.as_chunks::<LANES>();
        let mut extremes = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
        let (mut sums, mut carries) = ([0.0; LANES], [0.0; LANES]);
        for values in lanes {
            for lane in 0..LANES {
                let value = values[lane];
                let (min, max) = (extremes.0[lane], extremes.1[lane]);
                extremes.0[lane] = if value < min { value } else { min };
                extremes.1[lane] = if value > max { value } else { max };
                let sum = sums[lane] + value;
                carries[lane] += lost_evenly(sums[lane], value, sum);
                sums[lane] = sum;
            }
        }
        let min = extremes.0.into_iter().fold(self.min, f64::min);
        let max = extremes.1.into_iter().fold(self.max, f64::max);
        if is_large(min, max) {
            // A lane may have overflowed.
            values.iter().for_each(|value| self.add(*value));
            return;
        }
        self.count += (LANES * lanes.len()) as u64;
        for (sum, carry) in sums.into_iter().zip(carries) {
            self.add_to_sum(sum);
            self.carry += carry;
        }
        (self.min, self.max) = (min, max);
        self.add_few(rest);
    }

    #[inline]
    fn add_to_sum(&mut self, value: f64) {
        let sum = self.sum + value;
        self.carry += lost(self.sum, value, sum);
        self.sum = sum;
    }

    /// Adds to a sum that is stored divided from now on.
    #[cold]
    fn add_divided(&mut self, sum: f64, carry: f64) {
        if !self.is_large() {
            self.sum *= DOWN;
            self.carry *= DOWN;
        }
        self.add_to_sum(sum);
        self.carry += carry;
    }

    /// Adds all values of `other`.
    #[inline]
    pub fn merge(&mut self, other: &Aggregate) {
        self.count += other.count;
        let (min, max) = (self.min.min(other.min), self.max.max(other.max));
        if !is_large(min, max) {
            self.add_to_sum(other.sum);
            self.carry += other.carry;
        } else if other.is_large() {
            self.add_divided(other.sum, other.carry);
        } else {
            self.add_divided(other.sum * DOWN, other.carry * DOWN);
        }
        (self.min, self.max) = (min, max);
    }

    /// The sum, rounded once. Clamped to the range of doubles, because JSON has no infinity.
    pub fn sum(&self) -> f64 {
        self.shown(self.sum + self.carry)
    }

    /// The mean; zero if there are no values.
    pub fn avg(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.shown((self.sum + self.carry) / self.count as f64)
    }

    /// Converts a number from the scale of the stored sum.
    fn shown(&self, value: f64) -> f64 {
        if self.is_large() {
            (value * UP).clamp(f64::MIN, f64::MAX)
        } else {
            value
        }
    }
}

/// The exact rounding error of `sum`, the rounded value of `a + b`.
#[inline]
fn lost(a: f64, b: f64, sum: f64) -> f64 {
    if a.abs() >= b.abs() {
        (a - sum) + b
    } else {
        (b - sum) + a
    }
}

/// The same without a branch (Knuth, The Art of Computer Programming, volume 2, section 4.2.2, theorem B), which is
/// faster when several are computed in parallel.
#[inline]
fn lost_evenly(a: f64, b: f64, sum: f64) -> f64 {
    let of_b = sum - a;
    (a - (sum - of_b)) + (b - of_b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_merging_does_not_change_the_sum() {
        let values = [1e16, 1.0, -1e16, 0.1, 1e-3, 5.0];
        let mut whole = Aggregate::default();
        values.iter().for_each(|value| whole.add(*value));
        assert!((whole.sum() - 6.101).abs() < 1e-12, "{}", whole.sum());
        let mut parts = Aggregate::default();
        for chunk in values.rchunks(2) {
            let mut part = Aggregate::default();
            chunk.iter().for_each(|value| part.add(*value));
            parts.merge(&part);
        }
        assert!((parts.sum() - whole.sum()).abs() < 1e-12);
        assert_eq!((parts.count, parts.min, parts.max), (6, -1e16, 1e16));
    }

    #[test]
    fn sums_that_overflow_a_double_recover() {
        let of = |values: &[f64]| {
            let mut aggregate = Aggregate::default();
            values.iter().for_each(|value| aggregate.add(*value));
            aggregate
        };
        let whole = of(&[1.5e308, 1.5e308, -1.5e308, 0.0]);
        assert_eq!((whole.sum(), whole.avg()), (1.5e308, 3.75e307));
        let mut parts = of(&[1.5e308, 1.5e308]);
        assert_eq!((parts.sum(), parts.avg()), (f64::MAX, 1.5e308));
        parts.merge(&of(&[-1.5e308, 0.0]));
        assert_eq!((parts.sum(), parts.avg()), (1.5e308, 3.75e307));
        let mut small = of(&[f64::MAX, 1.0, f64::MAX]);
        small.merge(&of(&[-f64::MAX, -f64::MAX]));
        assert_eq!(small.sum(), 1.0);
        assert_eq!(of(&[f64::MIN, f64::MIN]).sum(), f64::MIN);
        assert_eq!(of(&[f64::MAX; 3]).avg(), f64::MAX);
        assert_eq!(of(&[f64::MAX]).sum(), f64::MAX);
    }

    #[test]
    fn an_aggregate_is_rebuilt_from_its_parts() {
        for values in [
            &[1e16, 1.0][..],
            &[f64::MAX, f64::MAX, 1.0],
            &[0.1, 0.2],
            &[1e300],
            &[],
        ] {
            let mut aggregate = Aggregate::default();
            values.iter().for_each(|value| aggregate.add(*value));
            let Aggregate { count, min, max, .. } = aggregate;
            let again = Aggregate::of_parts(count, aggregate.parts(), min, max);
            assert_eq!(again.parts(), aggregate.parts(), "{values:?}");
            if aggregate.is_one_double() {
                let again = Aggregate::new(count, aggregate.sum(), min, max);
                assert_eq!(again.parts(), aggregate.parts(), "{values:?}");
            }
            let carried = values.len() > 1;
            assert_eq!(aggregate.is_one_double(), !carried, "{values:?}");
        }
    }

    #[test]
    fn adding_values_in_bulk_equals_adding_them_singly() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..2_000 {
            let size = [1.0, 1e-300, 1e10, 1e300][random.usize(..4)];
            let values: Vec<f64> = (0..random.usize(..40))
                .map(|_| match random.u8(..8) {
                    0 => 0.0,
                    1 => -0.0,
                    2 => random.f64() * 1e16,
                    _ => (random.f64() - 0.5) * size,
                })
                .collect();
            let (mut one_by_one, mut together) = (Aggregate::default(), Aggregate::default());
            values.iter().for_each(|value| one_by_one.add(*value));
            let (first, second) = values.split_at(values.len() / 3);
            together.add_all(first);
            together.add_all(second);
            assert_eq!(together.count, one_by_one.count);
            assert_eq!((together.min, together.max), (one_by_one.min, one_by_one.max));
            let (one, other) = (one_by_one.sum(), together.sum());
            let off = (one - other).abs();
            assert!(off <= one.abs() * f64::EPSILON, "{one} and {other} of {values:?}");
        }
    }
}
