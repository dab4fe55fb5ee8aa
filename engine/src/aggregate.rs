//! The aggregate of a set of values: count, sum, least, greatest. Two can be put together, so a cell's answer is
//! the same whether it came from points, minutes, hours or whole blocks.

/// Count, sum, minimum and maximum. The sum carries the part that rounding would lose (Neumaier's variant of Kahan
/// summation, ZAMM 54, 1974), so that the order in which parts are put together does not show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aggregate {
    /// Values present.
    pub count: u64,
    sum: f64,
    carry: f64,
    /// Least value; infinite when there is none.
    pub min: f64,
    /// Greatest value; negative infinite when there is none.
    pub max: f64,
}

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

impl Aggregate {
    pub(crate) fn new(count: u64, sum: f64, min: f64, max: f64) -> Self {
        if count == 0 {
            Aggregate::default()
        } else {
            Aggregate {
                count,
                sum,
                carry: 0.0,
                min,
                max,
            }
        }
    }

    /// Of values that are no numbers.
    pub(crate) fn of_count(count: u64) -> Self {
        Aggregate::new(count, 0.0, 0.0, 0.0)
    }

    /// Adds one number.
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1;
        self.add_to_sum(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    #[inline]
    fn add_to_sum(&mut self, value: f64) {
        let sum = self.sum + value;
        let lost = if self.sum.abs() >= value.abs() {
            (self.sum - sum) + value
        } else {
            (value - sum) + self.sum
        };
        self.carry += lost;
        self.sum = sum;
    }

    /// Adds all that `other` holds.
    #[inline]
    pub fn merge(&mut self, other: &Aggregate) {
        self.count += other.count;
        self.add_to_sum(other.sum);
        self.carry += other.carry;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The sum, rounded once. Sums beyond the range of doubles are its greatest number: JSON has no infinity.
    pub fn sum(&self) -> f64 {
        let sum = self.sum + self.carry;
        if sum.is_finite() {
            return sum;
        }
        // The carry of an overflowed sum is not a number; the plain sum still has the sign.
        if self.sum.is_sign_negative() {
            f64::MIN
        } else {
            f64::MAX
        }
    }

    /// The mean; of no values, zero.
    pub fn avg(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let sum = self.sum + self.carry;
        if sum.is_finite() {
            return sum / self.count as f64;
        }
        // Beyond the doubles the extremes are within a factor of the truth that no sensor sees.
        self.min / 2.0 + self.max / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_parts_does_not_show() {
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
    fn overflow_stays_a_number() {
        let mut aggregate = Aggregate::default();
        aggregate.add(f64::MAX);
        aggregate.add(f64::MAX);
        assert_eq!(aggregate.sum(), f64::MAX);
        assert!(aggregate.avg().is_finite());
        let mut negative = Aggregate::default();
        negative.add(f64::MIN);
        negative.add(f64::MIN);
        negative.merge(&aggregate);
        assert!(negative.sum().is_finite() && negative.avg().is_finite());
    }
}
