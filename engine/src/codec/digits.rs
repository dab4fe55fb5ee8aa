//! Digits of bases that are no powers of two: as many as fit into a byte are written as one number. Five digits of base 3
//! take 8 bits instead of 10. Readers look the digits of a number up, which takes no division.

/// Numbers that stand for digits of a base.
pub(super) struct Digits {
    base: u64,
    /// Digits of a number.
    count: usize,
    /// Bits of a number, at most eight.
    width: u32,
    /// The digits of each number, the first in the lowest byte. Above the greatest number, the last digit is too great.
    table: [u64; NUMBERS],
}

/// How many numbers a byte holds.
const NUMBERS: usize = 1 << u8::BITS;

/// All bases of which digits that share a byte take fewer bits than each by itself.
static ALL: [Digits; 6] = [
    Digits::new(3, 5),
    Digits::new(5, 3),
    Digits::new(6, 3),
    Digits::new(9, 2),
    Digits::new(10, 2),
    Digits::new(11, 2),
];

impl Digits {
    const fn new(base: u64, count: usize) -> Self {
        let greatest = base.pow(count as u32) - 1;
        let mut table = [0; NUMBERS];
        let mut number = 0;
        while number < NUMBERS {
            let mut rest = number as u64;
            let mut place = 0;
            while place < count {
                let is_last = place == count - 1;
                let digit = if is_last { rest } else { rest % base };
                table[number] |= digit << (u8::BITS as usize * place);
                rest /= base;
                place += 1;
            }
            number += 1;
        }
        Digits {
            base,
            count,
            width: u64::BITS - greatest.leading_zeros(),
            table,
        }
    }

    /// For digits below `base`; `None` if they are not written as digits.
    pub fn of(base: u64) -> Option<&'static Self> {
        ALL.iter().find(|digits| digits.base == base)
    }

    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bits of a number.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// How many numbers so many digits take.
    pub fn numbers(&self, digits: usize) -> usize {
        digits.div_ceil(self.count)
    }

    /// The number of some digits, at most as many as one stands for.
    pub fn number(&self, digits: &[u64]) -> u64 {
        let more = |number: u64, digit: &u64| number * self.base + digit;
        digits.iter().rev().fold(0, more)
    }

    /// Digits of a number.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Fills `values` with the values of the digits in `bits`, which has all their numbers.
    pub fn unpack(&self, bits: &[u8], values: &mut [i64], value_of: impl Fn(u64) -> i64) {
        match self.count {
            5 => self.unpack_each::<5>(bits, values, value_of),
            3 => self.unpack_each::<3>(bits, values, value_of),
            _ => self.unpack_each::<2>(bits, values, value_of),
        }
    }

    fn unpack_each<const COUNT: usize>(
        &self,
        bits: &[u8],
        values: &mut [i64],
        value_of: impl Fn(u64) -> i64,
    ) {
        let width = self.width as usize;
        let mask = u8::MAX >> (u8::BITS - self.width);
        let digits = |word: u64| self.table[usize::from(word as u8 & mask)];
        // The bits of this many numbers begin with a byte.
        let word_at = |index: usize| {
            let bytes = bits.get(index / WORD_NUMBERS * width..).unwrap_or_default();
            let word = bytes.first_chunk().copied().unwrap_or_else(|| {
                let mut last = [0; size_of::<u64>()];
                last[..bytes.len()].copy_from_slice(bytes);
                last
            });
            u64::from_le_bytes(word) >> (index % WORD_NUMBERS * width)
        };
        let (whole, rest) = values.as_chunks_mut::<COUNT>();
        let numbers = whole.len();
        for (index, whole) in whole.chunks_mut(WORD_NUMBERS).enumerate() {
            let mut word = word_at(index * WORD_NUMBERS);
            for values in whole {
                fill(values, digits(word), &value_of);
                word >>= width;
            }
        }
        fill(rest, digits(word_at(numbers)), &value_of);
    }
}

/// How many numbers are taken from one word.
const WORD_NUMBERS: usize = 8;

fn fill(values: &mut [i64], mut digits: u64, value_of: impl Fn(u64) -> i64) {
    for value in values {
        *value = value_of(digits % NUMBERS as u64);
        digits /= NUMBERS as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_every_base_has_its_digits() {
        for digits in &ALL {
            assert!(Digits::of(digits.base).is_some_and(|found| std::ptr::eq(found, digits)));
            let numbers = digits.base.pow(digits.count as u32);
            assert!(numbers <= 1 << digits.width && digits.width <= u8::BITS);
            for number in 0..numbers {
                let mut values = vec![0; digits.count];
                let bits = [number as u8];
                digits.unpack(&bits, &mut values, |digit| digit as i64);
                assert!(values.iter().all(|value| (*value as u64) < digits.base));
                let values: Vec<u64> = values.iter().map(|value| *value as u64).collect();
                assert_eq!(digits.number(&values), number);
            }
        }
    }

    #[test]
    fn digits_of_other_bases_would_gain_nothing_in_a_byte() {
        for base in 2..1_000 {
            let alone = u64::BITS - (base - 1_u64).leading_zeros();
            let gains = |count: usize| {
                let numbers = base
                    .checked_pow(count as u32)
                    .filter(|numbers| *numbers <= NUMBERS as u64);
                numbers.is_some_and(|numbers| {
                    let width = u64::BITS - (numbers - 1).leading_zeros();
                    width < alone * count as u32
                })
            };
            let pays = (2..=8).any(gains);
            assert_eq!(Digits::of(base).is_some(), pays, "base {base}");
        }
    }
}
