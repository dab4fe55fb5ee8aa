//! Numbers: text → the nearest double, and the decimals the text states.

use engine::rows::NOT_DECIMAL;

use super::scan::{Malformed, Scanner};

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Up to here every integer is a double. One division of two exact doubles is correctly rounded, hence gives the
/// double nearest to the text (Clinger 1990); beyond it the standard library's parser does.
const EXACT_MAX: u64 = 1 << 53;

/// Mantissas below this have at most 15 digits.
const DECIMAL_BELOW: u64 = 1_000_000_000_000_000;

/// Digits that surely fit an u64.
const DIGITS_MAX: usize = 19;

/// A number of the body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// The nearest double; infinite where the text is beyond all doubles, which is for the caller to refuse.
    pub value: f64,
    /// Digits behind the point as written, or [`NOT_DECIMAL`].
    pub decimals: u8,
}

impl Number {
    /// Whether the text is beyond all doubles.
    #[inline(always)]
    pub fn is_infinite(self) -> bool {
        // What is a decimal is finite; asked first, as the double may still be under division.
        self.decimals == NOT_DECIMAL && self.value.is_infinite()
    }
}

impl Scanner<'_> {
    /// Steps over the number that comes next.
    #[inline(always)]
    pub fn number(&mut self) -> Result<Number, Malformed> {
        // Twice the same code, so that the place behind the sign is guessed and not computed.
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

    /// The same with all the checks, for what has an exponent, is too long for one division, or is no number.
    #[cold]
    #[inline(never)]
    fn rare_number(&mut self) -> Result<Number, Malformed> {
        let start = self.at;
        let negative = self.bytes.get(start) == Some(&b'-');
        let digits_from = start + usize::from(negative);
        let mut mantissa;
        (mantissa, self.at) = digits(self.bytes, digits_from, 0);
        let integers = self.at - digits_from;
        if integers == 0 {
            return Err(self.malformed("expected a digit"));
        }
        if integers > 1 && self.bytes[digits_from] == b'0' {
            self.at = digits_from + 1;
            return Err(self.malformed("a number has no leading zeros"));
        }
        let mut decimals = 0;
        if self.bytes.get(self.at) == Some(&b'.') {
            let fraction_from = self.at + 1;
            (mantissa, self.at) = digits(self.bytes, fraction_from, mantissa);
            decimals = self.at - fraction_from;
            if decimals == 0 {
                return Err(self.malformed("expected a digit behind the point"));
            }
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.exponent()?;
            return Ok(Number {
                value: self.nearest(start),
                decimals: NOT_DECIMAL,
            });
        }
        match POWERS.get(decimals) {
            // Leading zeros are no digits of the mantissa, so it has not wrapped.
            Some(power) if self.significant(start) <= DIGITS_MAX && mantissa <= EXACT_MAX => {
                Ok(exact(negative, mantissa, *power, decimals))
            }
            _ => Ok(Number {
                value: self.nearest(start),
                decimals: NOT_DECIMAL,
            }),
        }
    }

    fn exponent(&mut self) -> Result<(), Malformed> {
        self.at += 1;
        if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
            self.at += 1;
        }
        let digits_from = self.at;
        (_, self.at) = digits(self.bytes, digits_from, 0);
        if self.at == digits_from {
            Err(self.malformed("expected a digit of the exponent"))
        } else {
            Ok(())
        }
    }

    /// Digits from the first that is not zero, of the number from `start` to here.
    fn significant(&self, start: usize) -> usize {
        let digits = self.bytes[start..self.at]
            .iter()
            .filter(|byte| byte.is_ascii_digit());
        digits.skip_while(|digit| **digit == b'0').count()
    }

    fn nearest(&self, start: usize) -> f64 {
        // What the grammar of JSON lets through is a subset of what the standard library reads.
        self.slice(start, self.at).parse().unwrap_or(f64::INFINITY)
    }
}

/// The digits from `at` on, behind those already in `mantissa`, and where they end; wraps where they are too many.
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

/// `mantissa` is at most [`EXACT_MAX`], hence also fits the signed integers that machines turn into doubles faster.
#[inline(always)]
fn exact(negative: bool, mantissa: u64, power: f64, decimals: usize) -> Number {
    let magnitude = mantissa as i64 as f64 / power;
    let stated = mantissa < DECIMAL_BELOW && !(negative && mantissa == 0);
    Number {
        value: if negative { -magnitude } else { magnitude },
        decimals: if stated { decimals as u8 } else { NOT_DECIMAL },
    }
}
