//! Decimal mantissas: a double that was written as a decimal is stored as an integer and a power of ten, if that
//! reproduces the double exactly. Integers compress to a fraction of the size of doubles.
//!
//! `m / 10^d` is correctly rounded (IEEE 754 division of two exactly represented numbers), so it is the same double
//! that parsing the decimal text gives, as long as `|m| ≤ 2^53` and `d ≤ 22` (Clinger, "How to read floating point
//! numbers accurately", 1990).

use crate::rows::NOT_DECIMAL;

/// Larger mantissas are not tried: up to here `value × 10^d`, with its two roundings, is within half a unit of the
/// mantissa.
const MANTISSA_MAX: f64 = (1u64 << 51) as f64;

/// Adding this to a double below 2^51 and subtracting it again rounds to the nearest integer, because doubles of the
/// size of the sum are spaced by one. Not every x86-64 processor has the rounding instruction, and without it rounding
/// is a function call for each value.
const TO_INTEGER: f64 = 1.5 * (1u64 << 52) as f64;

const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// 10 to the power of `decimals`. Above 22, where mantissas are not exact, NaN, so that no mantissa is accepted.
#[inline]
pub(crate) fn power(decimals: u8) -> f64 {
    POWERS.get(usize::from(decimals)).copied().unwrap_or(f64::NAN)
}

/// The integer `m` below 2^51 with `m / scale == value`, bit by bit, if there is one.
#[inline]
pub(crate) fn mantissa(value: f64, scale: f64) -> Option<i64> {
    let scaled = (value * scale + TO_INTEGER) - TO_INTEGER;
    let mantissa = scaled as i64;
    // Compared after the conversion to an integer, so that −0 is not mistaken for 0.
    let fits = scaled.abs() <= MANTISSA_MAX && self::value(mantissa, scale).to_bits() == value.to_bits();
    fits.then_some(mantissa)
}

/// The double of a mantissa.
#[inline]
pub(crate) fn value(mantissa: i64, scale: f64) -> f64 {
    mantissa as f64 / scale
}

/// The doubles of mantissas.
pub(crate) fn values(mantissas: &[i64], decimals: u8) -> Vec<f64> {
    let scale = power(decimals);
    // Added to the bits of `TO_INTEGER`, an integer m below 2^51 gives the double `TO_INTEGER + m`, because doubles of that
    // size are spaced by one. Unlike the conversion instruction, this is vectorized on every x86-64 processor.
    let outside = mantissas.iter().fold(0, |outside, mantissa| {
        outside | mantissa.wrapping_add(1 << 51) as u64 >> 52
    });
    if outside != 0 {
        return mantissas.iter().map(|mantissa| value(*mantissa, scale)).collect();
    }
    let double =
        |mantissa: &i64| f64::from_bits(TO_INTEGER.to_bits().wrapping_add_signed(*mantissa)) - TO_INTEGER;
    mantissas
        .iter()
        .map(|mantissa| double(mantissa) / scale)
        .collect()
}

/// Decimal places that are looked for in a double whose text is not known. Sensors have few; a double that is no such
/// decimal costs one multiplication and one division for each.
pub(crate) const SOUGHT_DECIMALS_MAX: u8 = 6;

/// The least number of decimal places with which a double is written, or [`NOT_DECIMAL`] if it needs more than six.
#[inline]
pub fn decimals_of(value: f64) -> u8 {
    let mut decimals = 0..=SOUGHT_DECIMALS_MAX;
    let found = decimals.find(|decimals| mantissa(value, power(*decimals)).is_some());
    found.unwrap_or(NOT_DECIMAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_doubles_are_those_of_their_shortest_texts() {
        for (value, decimals) in [
            (0.0, 0),
            (42.0, 0),
            (-7.5, 1),
            (20.15, 2),
            (0.1, 1),
            (-3.000001, 6),
            (1e15, 0),
            (0.1 + 0.2, NOT_DECIMAL),
            (1.0 / 3.0, NOT_DECIMAL),
            (-0.0, NOT_DECIMAL),
            (1e-7, NOT_DECIMAL),
            (1e300, NOT_DECIMAL),
            (f64::NAN, NOT_DECIMAL),
            (f64::INFINITY, NOT_DECIMAL),
        ] {
            assert_eq!(decimals_of(value), decimals, "{value}");
        }
    }

    #[test]
    fn decimals_round_trip_bit_for_bit() {
        for (text, decimals) in [
            ("20.15", 2),
            ("0.1", 1),
            ("-3.000001", 6),
            ("123456789.25", 2),
            ("0", 0),
            ("1e3", 0),
        ] {
            let double: f64 = text.parse().unwrap();
            let m = mantissa(double, power(decimals)).unwrap();
            assert_eq!(value(m, power(decimals)).to_bits(), double.to_bits(), "{text}");
        }
    }

    #[test]
    fn many_mantissas_give_the_doubles_of_each() {
        let limit = 1i64 << 51;
        let within = [0, 1, -1, 12_345_678_901, limit - 1, 1 - limit, -limit];
        let beyond = [limit, limit + 1, -limit - 1, i64::MIN, i64::MAX];
        // Each beyond the limit also by itself: it must not be taken for one within.
        let sets: Vec<&[i64]> = beyond.chunks(1).chain([&within[..], &beyond[..]]).collect();
        for (decimals, mantissas) in
            (0..=22).flat_map(|decimals| sets.iter().map(move |set| (decimals, *set)))
        {
            let each = mantissas.iter().map(|m| value(*m, power(decimals)).to_bits());
            let many = values(mantissas, decimals).into_iter().map(f64::to_bits);
            assert!(many.eq(each), "{mantissas:?} with {decimals} decimals");
        }
    }

    #[test]
    fn doubles_that_are_not_decimals_are_refused() {
        for (double, decimals) in [
            (-0.0, 1),
            (0.1 + 0.2, 1),
            (1e300, 0),
            (1.0 / 3.0, 15),
            (f64::MIN_POSITIVE, 22),
            (1.5, 0),
        ] {
            assert_eq!(
                mantissa(double, power(decimals)),
                None,
                "{double} with {decimals} decimals"
            );
        }
        assert_eq!(mantissa(1.0, power(23)), None);
    }
}
