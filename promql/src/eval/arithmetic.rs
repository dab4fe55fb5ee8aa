//! Operators between two numbers.

use crate::expr::BinaryOp;

/// The result of an operator between numbers. Of a comparison it is the left number, and none when it does not hold.
pub(super) fn apply(op: BinaryOp, left: f64, right: f64) -> Option<f64> {
    let holds = match op {
        BinaryOp::Add => return Some(left + right),
        BinaryOp::Sub => return Some(left - right),
        BinaryOp::Mul => return Some(left * right),
        BinaryOp::Div => return Some(left / right),
        BinaryOp::Mod => return Some(left % right),
        BinaryOp::Pow => return Some(left.powf(right)),
        BinaryOp::Atan2 => return Some(left.atan2(right)),
        BinaryOp::Equal => left == right,
        BinaryOp::NotEqual => left != right,
        BinaryOp::Greater => left > right,
        BinaryOp::Less => left < right,
        BinaryOp::GreaterOrEqual => left >= right,
        BinaryOp::LessOrEqual => left <= right,
        // They are between vectors only.
        BinaryOp::And | BinaryOp::Or | BinaryOp::Unless => false,
    };
    holds.then_some(left)
}

/// The result with `bool`: whether a comparison holds, as a number.
pub(super) fn apply_bool(op: BinaryOp, left: f64, right: f64) -> f64 {
    if apply(op, left, right).is_some() {
        1.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_those_of_floating_point() {
        assert_eq!(apply(BinaryOp::Mod, -5.0, 3.0), Some(-2.0));
        assert_eq!(apply(BinaryOp::Div, 1.0, 0.0), Some(f64::INFINITY));
        assert_eq!(apply(BinaryOp::Pow, 2.0, 10.0), Some(1024.0));
        assert_eq!(apply(BinaryOp::Atan2, 0.0, -1.0), Some(std::f64::consts::PI));
        assert_eq!(apply(BinaryOp::Greater, 2.0, 1.0), Some(2.0));
        assert_eq!(apply(BinaryOp::Greater, 1.0, 2.0), None);
        assert_eq!(apply(BinaryOp::Equal, f64::NAN, f64::NAN), None);
        assert!(apply(BinaryOp::NotEqual, f64::NAN, f64::NAN).is_some_and(f64::is_nan));
        assert_eq!(apply_bool(BinaryOp::LessOrEqual, 1.0, 1.0), 1.0);
        assert_eq!(apply_bool(BinaryOp::Less, 1.0, 1.0), 0.0);
    }
}
