//! Functions from one value to one value.

/// `abs`, `clamp`, `sin` and the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Map {
    /// A function of the value alone.
    Plain(Plain),
    Clamp,
    ClampMin,
    ClampMax,
    /// To the nearest multiple of an optional number.
    Round,
}

/// The functions of the value alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    Abs,
    Ceil,
    Floor,
    Exp,
    Ln,
    Log2,
    Log10,
    Sqrt,
    Sgn,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Deg,
    Rad,
}

impl Map {
    pub(crate) fn named(name: &str) -> Option<Map> {
        let plain = match name {
            "clamp" => return Some(Map::Clamp),
            "clamp_min" => return Some(Map::ClampMin),
            "clamp_max" => return Some(Map::ClampMax),
            "round" => return Some(Map::Round),
            "abs" => Plain::Abs,
            "ceil" => Plain::Ceil,
            "floor" => Plain::Floor,
            "exp" => Plain::Exp,
            "ln" => Plain::Ln,
            "log2" => Plain::Log2,
            "log10" => Plain::Log10,
            "sqrt" => Plain::Sqrt,
            "sgn" => Plain::Sgn,
            "sin" => Plain::Sin,
            "cos" => Plain::Cos,
            "tan" => Plain::Tan,
            "asin" => Plain::Asin,
            "acos" => Plain::Acos,
            "atan" => Plain::Atan,
            "sinh" => Plain::Sinh,
            "cosh" => Plain::Cosh,
            "tanh" => Plain::Tanh,
            "asinh" => Plain::Asinh,
            "acosh" => Plain::Acosh,
            "atanh" => Plain::Atanh,
            "deg" => Plain::Deg,
            "rad" => Plain::Rad,
            _ => return None,
        };
        Some(Map::Plain(plain))
    }

    /// The result; none when there is none, as of `clamp` with bounds the wrong way round.
    ///
    /// `args` are the further arguments in their order.
    pub(crate) fn apply(self, value: f64, args: &[f64]) -> Option<f64> {
        match (self, args) {
            (Map::Plain(plain), _) => Some(plain.apply(value)),
            (Map::Clamp, [least, greatest, ..]) => clamp(value, *least, *greatest),
            (Map::ClampMin, [least, ..]) => clamp(value, *least, f64::INFINITY),
            (Map::ClampMax, [greatest, ..]) => clamp(value, f64::NEG_INFINITY, *greatest),
            (Map::Round, args) => {
                let inverse = 1.0 / args.first().unwrap_or(&1.0);
                Some((value * inverse + 0.5).floor() / inverse)
            }
            (Map::Clamp | Map::ClampMin | Map::ClampMax, _) => None,
        }
    }
}

impl Plain {
    fn apply(self, value: f64) -> f64 {
        match self {
            Plain::Abs => value.abs(),
            Plain::Ceil => value.ceil(),
            Plain::Floor => value.floor(),
            Plain::Exp => value.exp(),
            Plain::Ln => value.ln(),
            Plain::Log2 => value.log2(),
            Plain::Log10 => value.log10(),
            Plain::Sqrt => value.sqrt(),
            Plain::Sgn if value > 0.0 => 1.0,
            Plain::Sgn if value < 0.0 => -1.0,
            Plain::Sgn => value,
            Plain::Sin => value.sin(),
            Plain::Cos => value.cos(),
            Plain::Tan => value.tan(),
            Plain::Asin => value.asin(),
            Plain::Acos => value.acos(),
            Plain::Atan => value.atan(),
            Plain::Sinh => value.sinh(),
            Plain::Cosh => value.cosh(),
            Plain::Tanh => value.tanh(),
            Plain::Asinh => value.asinh(),
            Plain::Acosh => value.acosh(),
            Plain::Atanh => value.atanh(),
            Plain::Deg => value * 180.0 / std::f64::consts::PI,
            Plain::Rad => value * std::f64::consts::PI / 180.0,
        }
    }
}

fn clamp(value: f64, least: f64, greatest: f64) -> Option<f64> {
    (greatest >= least || least.is_nan() || greatest.is_nan()).then(|| go_max(least, go_min(greatest, value)))
}

/// The greater value as Go's `math.Max` has it: +Inf, then NaN, come before any other value.
fn go_max(left: f64, right: f64) -> f64 {
    if left == f64::INFINITY || right == f64::INFINITY {
        f64::INFINITY
    } else if left.is_nan() || right.is_nan() {
        f64::NAN
    } else {
        left.max(right)
    }
}

/// The lesser value as Go's `math.Min` has it: -Inf, then NaN, come before any other value.
fn go_min(left: f64, right: f64) -> f64 {
    -go_max(-left, -right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(name: &str, value: f64, args: &[f64]) -> Option<f64> {
        Map::named(name).unwrap().apply(value, args)
    }

    #[test]
    fn clamps_have_no_result_when_the_bounds_are_the_wrong_way_round() {
        assert_eq!(apply("clamp", 5.0, &[0.0, 3.0]), Some(3.0));
        assert_eq!(apply("clamp", 5.0, &[3.0, 0.0]), None);
        assert_eq!(apply("clamp_min", 5.0, &[7.0]), Some(7.0));
        assert_eq!(apply("clamp_max", 5.0, &[3.0]), Some(3.0));
        assert!(apply("clamp", f64::NAN, &[0.0, 1.0]).unwrap().is_nan());
        assert!(apply("clamp_max", 5.0, &[f64::NAN]).unwrap().is_nan());
    }

    #[test]
    fn rounding_is_to_the_nearest_multiple_and_up_at_half() {
        assert_eq!(apply("round", 2.5, &[]), Some(3.0));
        assert_eq!(apply("round", -2.5, &[]), Some(-2.0));
        assert_eq!(apply("round", 17.0, &[5.0]), Some(15.0));
        assert_eq!(apply("round", 0.27, &[0.1]), Some(0.3));
    }

    #[test]
    fn the_plain_functions_are_those_of_their_names() {
        let cases = [
            ("abs", -2.0, 2.0),
            ("ceil", 1.2, 2.0),
            ("floor", 1.8, 1.0),
            ("exp", 0.0, 1.0),
            ("ln", std::f64::consts::E, 1.0),
            ("log2", 8.0, 3.0),
            ("log10", 1000.0, 3.0),
            ("sqrt", 9.0, 3.0),
            ("sgn", -3.0, -1.0),
            ("sgn", 0.0, 0.0),
            ("deg", std::f64::consts::PI, 180.0),
            ("rad", 180.0, std::f64::consts::PI),
            ("sin", std::f64::consts::FRAC_PI_2, 1.0),
            ("cos", 0.0, 1.0),
            ("tan", 0.0, 0.0),
            ("asin", 1.0, std::f64::consts::FRAC_PI_2),
            ("acos", 1.0, 0.0),
            ("atan", 0.0, 0.0),
            ("sinh", 0.0, 0.0),
            ("cosh", 0.0, 1.0),
            ("tanh", 0.0, 0.0),
            ("asinh", 0.0, 0.0),
            ("acosh", 1.0, 0.0),
            ("atanh", 0.0, 0.0),
        ];
        for (name, value, expected) in cases {
            let result = apply(name, value, &[]).unwrap();
            assert!((result - expected).abs() < 1e-12, "{name}({value}) is {result}");
        }
        assert_eq!(apply("ln", 0.0, &[]), Some(f64::NEG_INFINITY));
        assert!(apply("sqrt", -1.0, &[]).unwrap().is_nan());
    }
}
