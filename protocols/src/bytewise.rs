//! Eight bytes of text looked at in one step, as the bytes of a word.
//!
//! Source: "Determine if a word has a byte equal to n" and "less than n" of the Bit Twiddling Hacks.

/// A word whose bytes are 1.
pub(crate) const ONES: u64 = u64::MAX / 255;
/// A word of the bytes' high bits.
pub(crate) const HIGHS: u64 = ONES << 7;

/// The high bits of the bytes that are `byte`. Of the bytes behind the first that is, others may be taken for it.
pub(crate) const fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ (ONES * byte as u64);
    difference.wrapping_sub(ONES) & !difference & HIGHS
}

/// The high bits of the bytes that are less than `limit`, which is at most 128, with the same reservation.
pub(crate) const fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * limit as u64) & !word & HIGHS
}
