//! Short columns of integers: differences of a fixed width in bits, or as digits of a base (`digits`). A pco chunk describes
//! the distribution of its numbers, which for a few hundred of them takes as many bytes as it saves, and tables have to be
//! built from it for each column that is read: most of the time of reading a short one.

use super::digits::Digits;
use crate::EngineError;
use crate::bytes::{Reader, put_signed, put_varint};

/// Longer columns are left to pco.
pub(super) const PACKED_ROWS_MAX: usize = 1_024;
/// The values, their differences, or the differences of these. For sensor series, higher orders do not pay.
pub(super) const ORDER_MAX: usize = 2;
/// A value that begins at any bit of a byte is within eight bytes.
const WIDTH_MAX: u32 = 57;
const WORD_BYTES: usize = size_of::<u64>();

/// How multiples are written.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Each with this number of bits.
    Bits(u32),
    /// As digits of a base.
    Digits(&'static Digits),
}

/// How a column is packed: the differences of some order, as multiples of a factor above the least of them.
pub(super) struct Packing {
    order: usize,
    form: Form,
    factor: u64,
    least: i64,
    /// What precedes the bits.
    head: Vec<u8>,
    /// Number of differences.
    count: usize,
}

impl Form {
    /// The shortest one for multiples up to `greatest`; `None` if they need too many bits.
    fn of(greatest: u64) -> Option<Self> {
        if let Some(digits) = greatest.checked_add(1).and_then(Digits::of) {
            return Some(Form::Digits(digits));
        }
        let width = u64::BITS - greatest.leading_zeros();
        (width <= WIDTH_MAX).then_some(Form::Bits(width))
    }

    /// Its width or its base.
    fn parameter(self) -> u8 {
        match self {
            Form::Bits(width) => width as u8,
            Form::Digits(digits) => digits.base() as u8,
        }
    }

    /// Bytes of so many multiples.
    fn bytes(self, count: usize) -> usize {
        match self {
            Form::Bits(width) => bytes_of(count, width),
            Form::Digits(digits) => bytes_of(digits.numbers(count), digits.width()),
        }
    }
}

impl Packing {
    /// For the differences of a column whose order is the number of `firsts`: the first value, and the first of the
    /// differences of each lower order. `None` if the differences are too far apart, or if there are none.
    pub fn of(firsts: &[i64], differences: &[i64]) -> Option<Self> {
        let (least, greatest) = (*differences.iter().min()?, *differences.iter().max()?);
        let range = greatest.wrapping_sub(least) as u64;
        let above = differences.iter().map(|value| value.wrapping_sub(least) as u64);
        let factor = factor_of(above);
        let form = Form::of(range / factor)?;
        let order = firsts.len();
        let mut head = vec![order as u8, form.parameter()];
        put_varint(&mut head, factor);
        firsts.iter().for_each(|first| put_signed(&mut head, *first));
        put_signed(&mut head, least);
        Some(Packing {
            order,
            form,
            factor,
            least,
            head,
            count: differences.len(),
        })
    }

    pub fn factor(&self) -> u64 {
        self.factor
    }

    pub fn form(&self) -> Form {
        self.form
    }

    /// Size, in bytes.
    pub fn bytes(&self) -> usize {
        self.head.len() + self.form.bytes(self.count)
    }

    /// Appends the column that this is a packing of.
    pub fn encode(&self, out: &mut Vec<u8>, values: &[i64]) {
        out.extend_from_slice(&self.head);
        let mut differences = values.to_vec();
        for _ in 0..self.order {
            differences = differences_of(&differences);
        }
        let multiple = |value: &i64| value.wrapping_sub(self.least) as u64 / self.factor;
        let multiples = differences.iter().map(multiple);
        match self.form {
            Form::Bits(width) => pack(out, width, multiples),
            Form::Digits(digits) => {
                let multiples: Vec<u64> = multiples.collect();
                let numbers = multiples.chunks(digits.count()).map(|chunk| digits.number(chunk));
                pack(out, digits.width(), numbers);
            }
        }
    }
}

/// Appends numbers of a width in bits.
fn pack(out: &mut Vec<u8>, width: u32, numbers: impl Iterator<Item = u64>) {
    let (mut word, mut filled) = (0u128, 0);
    for number in numbers {
        word |= u128::from(number) << filled;
        filled += width;
        if filled >= u64::BITS {
            out.extend_from_slice(&(word as u64).to_le_bytes());
            word >>= u64::BITS;
            filled -= u64::BITS;
        }
    }
    let rest = filled.div_ceil(u8::BITS) as usize;
    out.extend_from_slice(&word.to_le_bytes()[..rest]);
}

/// The differences between neighbours, which wrap around.
pub(super) fn differences_of(values: &[i64]) -> Vec<i64> {
    let pairs = values.windows(2);
    pairs.map(|pair| pair[1].wrapping_sub(pair[0])).collect()
}

/// Decodes `count` values of a fixed width in bits from the rest of the reader.
pub(super) fn decode_packed(reader: &mut Reader<'_>, count: usize) -> Result<Vec<i64>, EngineError> {
    let form = |width: u8| (u32::from(width) <= WIDTH_MAX).then_some(Form::Bits(width.into()));
    decode(reader, count, form)
}

/// Decodes `count` values that are digits of a base from the rest of the reader.
pub(super) fn decode_digits(reader: &mut Reader<'_>, count: usize) -> Result<Vec<i64>, EngineError> {
    decode(reader, count, |base| Digits::of(base.into()).map(Form::Digits))
}

fn decode(
    reader: &mut Reader<'_>,
    count: usize,
    form_of: impl Fn(u8) -> Option<Form>,
) -> Result<Vec<i64>, EngineError> {
    let (order, form) = (usize::from(reader.byte()?), form_of(reader.byte()?));
    let Some(form) = form.filter(|_| order <= ORDER_MAX && order < count) else {
        return Err(reader.corrupt("an order, and a width or a base of packed integers"));
    };
    let factor = reader.varint()?;
    let mut firsts = [0; ORDER_MAX];
    for first in &mut firsts[..order] {
        *first = reader.signed()?;
    }
    let least = reader.signed()?;
    let (bits, packed) = (reader.rest(), count - order);
    if bits.len() != form.bytes(packed) {
        return Err(reader.corrupt("as many packed integers as rows"));
    }
    let mut values = vec![0; count];
    values[..order].copy_from_slice(&firsts[..order]);
    let value_of = |multiple: u64| least.wrapping_add(multiple.wrapping_mul(factor) as i64);
    match form {
        Form::Bits(width) => unpack(bits, width as usize, &mut values[order..], value_of),
        Form::Digits(digits) => digits.unpack(bits, &mut values[order..], value_of),
    }
    for first in (0..order).rev() {
        let mut value = values[first];
        for difference in &mut values[first + 1..] {
            value = value.wrapping_add(*difference);
            *difference = value;
        }
    }
    Ok(values)
}

/// How many values are taken from one word.
const WORD_VALUES: usize = 4;
/// The greatest width at which a word holds that many: they begin at bit 0 or 4 of a byte, and 4 + 4 × 15 = 64.
const WORD_VALUES_WIDTH_MAX: usize = 15;

/// Fills `values` with values of a width in bits.
fn unpack(bits: &[u8], width: usize, values: &mut [i64], value_of: impl Fn(u64) -> i64) {
    let mask = (1 << width) - 1;
    let word_at = |bytes: &[u8], at: usize| {
        let word = bytes.get(at / 8..)?.first_chunk()?;
        Some(u64::from_le_bytes(*word) >> (at % 8))
    };
    let mut done = 0;
    if width <= WORD_VALUES_WIDTH_MAX {
        for values in values.as_chunks_mut::<WORD_VALUES>().0 {
            let Some(mut word) = word_at(bits, done * width) else {
                break;
            };
            for value in values {
                *value = value_of(word & mask);
                word >>= width;
            }
            done += WORD_VALUES;
        }
    }
    while let Some(value) = values.get_mut(done)
        && let Some(word) = word_at(bits, done * width)
    {
        *value = value_of(word & mask);
        done += 1;
    }
    // The rest begins within the last seven bytes, where no whole word can be read.
    let mut end = [0; 2 * WORD_BYTES];
    let start = done * width / 8;
    let last = &bits[start..];
    end[..last.len()].copy_from_slice(last);
    for (index, value) in (done..).zip(&mut values[done..]) {
        *value = value_of(word_at(&end, index * width - start * 8).unwrap_or(0) & mask);
    }
}

/// Bytes of this many values of a width in bits.
fn bytes_of(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// What all values are multiples of; 1 if all are zero.
fn factor_of(values: impl Iterator<Item = u64>) -> u64 {
    let mut factor = 0;
    for value in values {
        factor = common_divisor(value, factor);
        if factor == 1 {
            break;
        }
    }
    factor.max(1)
}

/// Euclid's algorithm: one division if `one` is a multiple of `other`.
fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(order: usize, values: &[i64]) -> (Form, Vec<u8>) {
        let (mut firsts, mut differences) = (Vec::new(), values.to_vec());
        for _ in 0..order {
            firsts.push(differences[0]);
            differences = differences_of(&differences);
        }
        let packing = Packing::of(&firsts, &differences).unwrap();
        let mut out = Vec::new();
        packing.encode(&mut out, values);
        assert_eq!(out.len(), packing.bytes());
        (packing.form(), out)
    }

    fn unpacked(form: Form, bytes: &[u8], count: usize) -> Result<Vec<i64>, EngineError> {
        let reader = &mut Reader::new(bytes, "packed integers");
        match form {
            Form::Bits(_) => decode_packed(reader, count),
            Form::Digits(_) => decode_digits(reader, count),
        }
    }

    /// A column whose differences of this order are multiples below a number. Returns how they are written.
    fn round_trip(random: &mut fastrand::Rng, below: u64, order: usize, count: usize) -> Form {
        let factor = 1 + random.u64(..i64::MAX as u64 / below);
        let least = random.i64(i64::MIN..=0);
        let above = (0..count).map(|_| random.u64(..below) * factor);
        let mut values: Vec<i64> = above.map(|above| least.wrapping_add(above as i64)).collect();
        for first in (0..order).rev() {
            for index in first + 1..count {
                values[index] = values[index].wrapping_add(values[index - 1]);
            }
        }
        let (form, bytes) = packed(order, &values);
        assert_eq!(unpacked(form, &bytes, count).unwrap(), values);
        assert!(unpacked(form, &bytes[..bytes.len() - 1], count).is_err());
        // With a width of 0, there are no bits that could be too few.
        assert!(bytes[1] == 0 || unpacked(form, &bytes, count + 8).is_err());
        form
    }

    #[test]
    fn every_width_order_and_length_round_trips() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for width in 0..=WIDTH_MAX {
            for count in [1, 2, 3, 7, 8, 9, 63, 64, 65, 200] {
                for order in 0..=ORDER_MAX.min(count - 1) {
                    round_trip(&mut random, 1 << width, order, count);
                }
            }
        }
    }

    #[test]
    fn digits_of_every_base_order_and_length_round_trip() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for base in [3, 5, 6, 9, 10, 11] {
            for count in (1..40).chain([500, 501, 502, 503, 504]) {
                for order in 0..=ORDER_MAX.min(count - 1) {
                    let form = round_trip(&mut random, base, order, count);
                    // Short columns may lack the least digit or the greatest.
                    let is_of_base = matches!(form, Form::Digits(digits) if digits.base() == base);
                    assert!(
                        is_of_base || count < 500,
                        "base {base}, order {order}, {count} values"
                    );
                }
            }
        }
    }

    #[test]
    fn a_walk_of_three_steps_takes_eight_bits_for_five_values() {
        let walk: Vec<i64> = (0..1_001)
            .scan(50, |level, at| {
                *level += at * 7 % 3 - 1;
                Some(*level)
            })
            .collect();
        let (_, bytes) = packed(1, &walk);
        assert_eq!(
            bytes.len(),
            5 + 1_000 / 5,
            "order, base, factor, first value, least"
        );
    }

    #[test]
    fn multiples_of_a_factor_need_only_their_own_bits() {
        let late_ms = |index: i64| index * 37 % 200;
        let times: Vec<i64> = (0..500)
            .map(|at| 1_700_000_000_000_000_000 + late_ms(at) * 1_000_000)
            .collect();
        assert!(packed(0, &times).1.len() < 500 + 20);
    }

    #[test]
    fn differences_that_are_too_far_apart_are_not_packed() {
        assert!(Packing::of(&[], &[0, 1, i64::MAX]).is_none());
        assert!(Packing::of(&[], &[i64::MIN, i64::MAX, 0]).is_none());
        assert!(Packing::of(&[], &[]).is_none());
        let (form, bytes) = packed(1, &[i64::MIN, i64::MAX, i64::MIN]);
        assert_eq!(unpacked(form, &bytes, 3).unwrap(), [i64::MIN, i64::MAX, i64::MIN]);
    }

    #[test]
    fn damaged_bytes_are_refused() {
        for (values, faults) in [
            ([5, 9, 2, 4], [(0, 3), (0, 200), (1, 58), (1, 255)]),
            ([5, 4, 6, 4], [(0, 3), (0, 200), (1, 4), (1, 255)]),
        ] {
            let (form, good) = packed(usize::from(values[1] == 9), &values);
            assert!(unpacked(form, &[], 4).is_err());
            for (at, byte) in faults {
                let mut bad = good.clone();
                bad[at] = byte;
                assert!(unpacked(form, &bad, 4).is_err());
            }
            assert!(unpacked(form, &good, 100).is_err());
        }
    }
}
