//! Sums, means and extremes of windows that move on, in time that does not grow with the length of the windows.
//!
//! A window is split at a position: left of it every suffix is combined in advance, right of it one value is kept up to
//! date. When the window's begin passes the position, the suffixes of the current window are combined anew, so each
//! sample is combined twice. Nothing is ever subtracted, so no rounding errors or infinities stay behind.

use super::kahan::{Mean, Sum};

/// What is combined over a window.
pub(crate) trait Combined: Copy {
    fn of(value: f64) -> Self;
    /// `self` is of earlier samples than `later`.
    fn and(self, later: Self) -> Self;
}

impl Combined for Sum {
    fn of(value: f64) -> Sum {
        let mut sum = Sum::default();
        sum.add(value);
        sum
    }

    fn and(self, later: Sum) -> Sum {
        self.plus(later)
    }
}

/// The least value; NaN only when all are.
#[derive(Clone, Copy)]
pub(crate) struct Least(pub(crate) f64);

impl Combined for Least {
    fn of(value: f64) -> Least {
        Least(value)
    }

    fn and(self, later: Least) -> Least {
        if later.0 < self.0 || self.0.is_nan() {
            later
        } else {
            self
        }
    }
}

/// The greatest value; NaN only when all are.
#[derive(Clone, Copy)]
pub(crate) struct Greatest(pub(crate) f64);

impl Combined for Greatest {
    fn of(value: f64) -> Greatest {
        Greatest(value)
    }

    fn and(self, later: Greatest) -> Greatest {
        if later.0 > self.0 || self.0.is_nan() {
            later
        } else {
            self
        }
    }
}

/// Windows over one series; neither of their bounds ever moves back.
pub(crate) struct Sliding<'a, C> {
    values: &'a [f64],
    /// The combination of `begin + i .. split`, for each of these positions.
    suffixes: Vec<C>,
    begin: usize,
    split: usize,
    end: usize,
    right: Option<C>,
}

impl<'a, C: Combined> Sliding<'a, C> {
    pub(crate) fn new(values: &'a [f64]) -> Sliding<'a, C> {
        Sliding {
            values,
            suffixes: Vec::new(),
            begin: 0,
            split: 0,
            end: 0,
            right: None,
        }
    }

    /// The combination of the samples `begin..end`, of which there is at least one.
    pub(crate) fn window(&mut self, begin: usize, end: usize) -> C {
        if begin >= self.split {
            self.combine(begin, end);
        } else {
            for value in &self.values[self.end..end] {
                let value = C::of(*value);
                self.right = Some(self.right.map_or(value, |right| right.and(value)));
            }
            self.end = end;
        }
        let left = self.suffixes[begin - self.begin];
        self.right.map_or(left, |right| left.and(right))
    }

    fn combine(&mut self, begin: usize, end: usize) {
        self.suffixes.clear();
        let mut suffix: Option<C> = None;
        for value in self.values[begin..end].iter().rev() {
            let value = C::of(*value);
            let combined = suffix.map_or(value, |later| value.and(later));
            self.suffixes.push(combined);
            suffix = Some(combined);
        }
        self.suffixes.reverse();
        (self.begin, self.split, self.end, self.right) = (begin, end, end, None);
    }
}

/// The mean of values whose sum is known, incrementally when the sum overflows.
pub(crate) fn mean(sum: Sum, values: &[f64]) -> f64 {
    if !sum.is_infinite() {
        return sum.total() / values.len() as f64;
    }
    let mut mean = Mean::default();
    for value in values {
        mean.add(*value);
    }
    mean.total()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_windows_equal_windows_on_their_own() {
        let values: Vec<f64> = (0..200).map(|at| f64::from((at * 7919) % 101) - 50.0).collect();
        for length in [1, 3, 50] {
            for stride in [1, 2, 70] {
                let mut sums = Sliding::<Sum>::new(&values);
                let mut least = Sliding::<Least>::new(&values);
                let mut greatest = Sliding::<Greatest>::new(&values);
                for begin in (0..values.len() - length).step_by(stride) {
                    let window = &values[begin..begin + length];
                    assert_eq!(
                        sums.window(begin, begin + length).total(),
                        window.iter().sum::<f64>()
                    );
                    let expected = window.iter().copied().fold(f64::INFINITY, f64::min);
                    assert_eq!(least.window(begin, begin + length).0, expected);
                    let expected = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    assert_eq!(greatest.window(begin, begin + length).0, expected);
                }
            }
        }
    }

    #[test]
    fn an_infinity_leaves_with_its_sample() {
        let values = [1.0, f64::INFINITY, 2.0, 3.0];
        let mut sums = Sliding::<Sum>::new(&values);
        assert_eq!(sums.window(0, 2).total(), f64::INFINITY);
        assert_eq!(sums.window(1, 3).total(), f64::INFINITY);
        assert_eq!(sums.window(2, 4).total(), 5.0);
    }

    #[test]
    fn extremes_are_nan_only_when_all_values_are() {
        let values = [f64::NAN, 1.0, f64::NAN, f64::NAN];
        let mut least = Sliding::<Least>::new(&values);
        assert_eq!(least.window(0, 2).0, 1.0);
        assert_eq!(least.window(1, 3).0, 1.0);
        assert!(least.window(2, 4).0.is_nan());
    }
}
