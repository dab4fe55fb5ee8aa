//! Parses numbers: the nearest double, and the number of decimals in the text.

use engine::rows::NOT_DECIMAL;

use super::scan::{Malformed, Scanner};

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Up to here every integer is a double. One division of two exact doubles is correctly rounded, so it gives the double
/// nearest to the text (Clinger 1990). Beyond it the standard library's parser is used.
const EXACT_MAX: u64 = 1 << 53;

/// Mantissas below this have at most 15 digits.
const DECIMAL_BELOW: u64 = 1_000_000_000_000_000;

/// This many digits always fit in a u64.
const DIGITS_MAX: usize = 19;

/// A parsed number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// The nearest double; infinite if the text exceeds the range of doubles, which the caller must refuse.
    pub value: f64,
    /// Digits after the point as written, or [`NOT_DECIMAL`].
    pub decimals: u8,
}

impl Number {
    /// Whether the text exceeds the range of doubles.
    #[inline(always)]
    pub fn is_infinite(self) -> bool {
        // A decimal is always finite. Checked first, because the division for the double may not have finished yet.
        self.decimals == NOT_DECIMAL && self.value.is_infinite()
    }
}

impl Scanner<'_> {
    /// Parses the next number.
    #[inline(always)]
    pub fn number(&mut self) -> Result<Number, Malformed> {
        // The code is duplicated so that the position after the sign is predicted instead of computed.
        if self.bytes.get(self.at) == Some(&b'-') {
            self.common(self.at + 1, true)
        } else {
            self.common(self.at, false)
        }
    }

    #[inline(always)]
    fn common(&mut self, digits_from: usize, negative: bool) -> Result<Number, Malformed> {
        let (mut mantissa, mut at) = digits(self.bytes, digits_from, 0);
        let integers = at - digits_from;
        let mut decimals = 0;
        let mut after = self.bytes.get(at).copied().unwrap_or_default();
        if after == b'.' {
            let fraction_from = at + 1;
            (mantissa, at) = digits(self.bytes, fraction_from, mantissa);
            decimals = at - fraction_from;
            after = self.bytes.get(at).copied().unwrap_or_default();
            if decimals == 0 {
                return self.rarely();
            }
        }
        let leading_zero = integers != 1 && self.bytes.get(digits_from).is_none_or(|first| *first <= b'0');
        let common =
            !leading_zero && integers != 0 && after | 0x20 != b'e' && integers + decimals <= DIGITS_MAX;
        match POWERS.get(decimals) {
            Some(power) if common && mantissa <= EXACT_MAX => {
                self.at = at;
                Ok(exact(negative, mantissa, *power, decimals))
            }
            _ => self.rarely(),
        }
    }

    #[inline(always)]
    fn rarely(&mut self) -> Result<Number, Malformed> {
        let mut there = *self;
        let number = there.rare_number();
        self.at = there.at;
        number
    }

    /// The same with all checks, for numbers with an exponent, numbers too long for one division, and malformed
    /// numbers.
    #[cold]
    #[inline(never)]
    fn rare_number(&mut self) -> Result<Number, Malformed> {
        let start = self.at;
        let negative = self.eat(b"-");
        let digits_from = self.at;
        let (mut mantissa, integers) = self.digits(0, "expected a digit")?;
        if integers > 1 && self.bytes[digits_from] == b'0' {
            self.at = digits_from + 1;
            return Err(self.malformed("a number has no leading zeros"));
        }
        let mut decimals = 0;
        if self.eat(b".") {
            (mantissa, decimals) = self.digits(mantissa, "expected a digit behind the point")?;
        }
        let has_exponent = self.eat(b"e") || self.eat(b"E");
        if has_exponent {
            let _has_sign = self.eat(b"+") || self.eat(b"-");
            self.digits(0, "expected a digit of the exponent")?;
        }
        let text = self.slice(start, self.at);
        // Leading zeros do not count as digits of the mantissa. With few enough digits it has not overflowed.
        let digits = text.bytes().filter(u8::is_ascii_digit);
        let significant = digits.skip_while(|digit| *digit == b'0').count();
        match POWERS.get(decimals) {
            Some(power) if !has_exponent && significant <= DIGITS_MAX && mantissa <= EXACT_MAX => {
                Ok(exact(negative, mantissa, *power, decimals))
            }
            _ => Ok(Number {
                // The grammar of JSON numbers is a subset of what the standard library parses.
                value: text.parse().unwrap_or(f64::INFINITY),
                decimals: NOT_DECIMAL,
            }),
        }
    }

    /// Skips at least one digit. Returns `mantissa` with the digits appended, and their number.
    fn digits(&mut self, mantissa: u64, missing: &'static str) -> Result<(u64, usize), Malformed> {
        let (mantissa, end) = digits(self.bytes, self.at, mantissa);
        let count = end - self.at;
        self.at = end;
        match count {
            0 => Err(self.malformed(missing)),
            _ => Ok((mantissa, count)),
        }
    }
}

/// Appends the digits from `at` on to `mantissa`. Returns it and the end of the digits. Wraps if there are too many.
#[inline(always)]
fn digits(bytes: &[u8], mut at: usize, mut mantissa: u64) -> (u64, usize) {
    while let Some(byte) = bytes.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (mantissa, at)
}

/// `mantissa` is at most [`EXACT_MAX`], so it fits in an i64, which CPUs convert to doubles faster than a u64.
#[inline(always)]
fn exact(negative: bool, mantissa: u64, power: f64, decimals: usize) -> Number {
    let magnitude = mantissa as i64 as f64 / power;
    let stated = mantissa < DECIMAL_BELOW && !(negative && mantissa == 0);
    Number {
        value: if negative { -magnitude } else { magnitude },
        decimals: if stated { decimals as u8 } else { NOT_DECIMAL },
    }
}
