//! Sums whose rounding errors are carried along, as Prometheus adds: Kahan's summation with Neumaier's change.

/// A running sum.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    sum: f64,
    rest: f64,
}

impl Sum {
    pub(crate) fn of(value: f64) -> Sum {
        Sum {
            sum: value,
            rest: 0.0,
        }
    }

    pub(crate) fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        if sum.is_infinite() {
            self.rest = 0.0;
        } else if self.sum.abs() >= value.abs() {
            self.rest += (self.sum - sum) + value;
        } else {
            self.rest += (value - sum) + self.sum;
        }
        self.sum = sum;
    }

    /// The sum of both.
    pub(crate) fn plus(mut self, other: Sum) -> Sum {
        self.add(other.sum);
        if self.sum.is_finite() {
            self.rest += other.rest;
        }
        self
    }

    pub(crate) fn total(self) -> f64 {
        if self.sum.is_infinite() {
            self.sum
        } else {
            self.sum + self.rest
        }
    }

    pub(crate) fn is_infinite(self) -> bool {
        self.sum.is_infinite()
    }

    fn times(self, factor: f64) -> Sum {
        Sum {
            sum: self.sum * factor,
            rest: self.rest * factor,
        }
    }
}

/// A running mean: of the sum, or incremental from the value on with which the sum would overflow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mean {
    /// The sum, or the mean when `is_incremental`.
    sum: Sum,
    count: f64,
    is_incremental: bool,
}

impl Mean {
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1.0;
        if self.count == 1.0 {
            self.sum = Sum::of(value);
            return;
        }
        if !self.is_incremental {
            let mut sum = self.sum;
            sum.add(value);
            if !sum.is_infinite() {
                self.sum = sum;
                return;
            }
            self.is_incremental = true;
            self.sum = self.sum.times(1.0 / (self.count - 1.0));
        }
        self.sum = self.sum.times((self.count - 1.0) / self.count);
        self.sum.add(value / self.count);
    }

    pub(crate) fn total(self) -> f64 {
        if self.is_incremental {
            self.sum.total()
        } else {
            self.sum.sum / self.count + self.sum.rest / self.count
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_survive_beside_large_ones() {
        let mut sum = Sum::default();
        for value in [1.0, 1e100, 1.0, -1e100] {
            sum.add(value);
        }
        assert_eq!(sum.total(), 2.0);
    }

    #[test]
    fn sums_of_parts_are_the_sum_of_all() {
        let mut left = Sum::of(1.0);
        left.add(1e100);
        let mut right = Sum::of(1.0);
        right.add(-1e100);
        assert_eq!(left.plus(right).total(), 2.0);
        assert_eq!(Sum::of(f64::INFINITY).plus(Sum::of(1.0)).total(), f64::INFINITY);
    }

    #[test]
    fn the_mean_of_values_whose_sum_overflows_is_finite() {
        let mut mean = Mean::default();
        for _ in 0..4 {
            mean.add(f64::MAX);
        }
        assert!((mean.total() / f64::MAX - 1.0).abs() < 1e-12);
    }
}
