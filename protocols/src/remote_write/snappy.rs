//! Decompression of a body, bounded before it begins.

use crate::Unreadable;

/// Bytes that a byte of a Snappy block can become: a copy of 64 bytes takes three, and another of 11 takes two.
const EXPANSION_MAX: usize = 22;

/// Decompresses a Snappy block into `buffer`, which may be reused, and returns the message.
///
/// # Errors
/// The block announces more than `max` bytes, or it is not one.
pub fn decompress<'b>(body: &[u8], max: usize, buffer: &'b mut Vec<u8>) -> Result<&'b [u8], Unreadable> {
    let length = snap::raw::decompress_len(body)?;
    if length > max {
        return Err(Unreadable::TooLarge { max });
    }
    // A few bytes must not reserve as many as `max`.
    if length > body.len() * EXPANSION_MAX {
        return Err(Unreadable::SnappyLength(length));
    }
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    let length = snap::raw::Decoder::new().decompress(body, &mut buffer[..length])?;
    Ok(&buffer[..length])
}
