//! Numbers of the length that agents send, in a fraction of the time that the standard library needs for any number.

use crate::bytewise::{HIGHS, ONES};

/// Digits of which every number is a double.
const EXACT_DIGITS: usize = 15;
/// Powers of ten, which are doubles.
const POWERS: [f64; EXACT_DIGITS + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// A number of at most 15 digits, with or without a sign and a point: the quotient of two doubles, so rounded only once.
/// `None` is any other text, also of numbers.
#[inline]
pub(super) fn short_number(token: &[u8]) -> Option<f64> {
    let (negative, digits) = match token {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, token),
    };
    if digits.len() > EXACT_DIGITS + 1 {
        return None;
    }
    let (mut mantissa, mut count, mut fraction) = (0u64, 0, None);
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {
                mantissa = mantissa * 10 + u64::from(byte - b'0');
                count += 1;
            }
            b'.' if fraction.is_none() => fraction = Some(count),
            _ => return None,
        }
    }
    if count == 0 || count > EXACT_DIGITS {
        return None;
    }
    let number = mantissa as f64 / POWERS[count - fraction.unwrap_or(count)];
    Some(if negative { -number } else { number })
}

/// Digits that fit 64 bits in any case.
const UNCHECKED_DIGITS: usize = 18;

/// A 64-bit integer.
#[inline]
pub(super) fn integer(token: &[u8]) -> Option<i64> {
    let (head, tail) = token.split_at(token.len().min(UNCHECKED_DIGITS));
    let mut value = 0;
    let mut rest = head;
    while let Some((eight, behind)) = rest.split_first_chunk::<8>() {
        let Some(digits) = eight_digits(*eight) else {
            return any_integer(token);
        };
        (value, rest) = (value * 100_000_000 + digits, behind);
    }
    for &byte in rest {
        if !byte.is_ascii_digit() {
            return any_integer(token);
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    match tail {
        [] if head.is_empty() => None,
        [] => Some(value),
        // The usual length of a timestamp in nanoseconds.
        [last @ b'0'..=b'9'] => value.checked_mul(10)?.checked_add(i64::from(last - b'0')),
        _ => any_integer(token),
    }
}

/// The number that eight digits are, added up in pairs instead of one after the other.
#[inline]
const fn eight_digits(bytes: [u8; 8]) -> Option<i64> {
    let word = u64::from_le_bytes(bytes);
    let digits = word.wrapping_sub(ONES * b'0' as u64);
    // Bytes below `0` borrow; of bytes above `9` the sum has the high bit.
    if (digits | word | digits.wrapping_add(ONES * 0x76)) & HIGHS != 0 {
        return None;
    }
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some(((fours * 10_000 + (fours >> 32)) & 0xffff_ffff) as i64)
}

#[cold]
fn any_integer(token: &[u8]) -> Option<i64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{any_integer, integer, short_number};

    const SPELLINGS: &[u8] = b"0123456789012345678901234567890123456789.-+e";

    #[test]
    fn short_numbers_are_what_the_standard_library_reads() {
        let seed = std::env::var("PROTOCOLS_SEED").map_or(7, |seed| seed.parse().unwrap());
        println!("PROTOCOLS_SEED={seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut short = 0;
        for _ in 0..200_000 {
            let length = random.usize(0..20);
            let text: String = (0..length)
                .map(|_| char::from(SPELLINGS[random.usize(..SPELLINGS.len())]))
                .collect();
            if let Some(number) = short_number(text.as_bytes()) {
                short += 1;
                assert_eq!(
                    text.parse::<f64>().map(f64::to_bits),
                    Ok(number.to_bits()),
                    "{text}"
                );
            }
            assert_eq!(integer(text.as_bytes()), any_integer(text.as_bytes()), "{text}");
        }
        assert!(short > 10_000, "{short}");
    }

    #[test]
    fn integers_end_at_64_bits() {
        for text in [
            "9223372036854775807",
            "-9223372036854775808",
            "0009223372036854775807",
            "+1",
            "0",
        ] {
            assert_eq!(integer(text.as_bytes()), text.parse().ok(), "{text}");
        }
        for text in [
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
            "",
            "-",
            "1 ",
        ] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }
}
