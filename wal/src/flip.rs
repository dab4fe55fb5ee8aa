//! Finds a single flipped bit in bytes whose checksum is known.
//!
//! CRC-32 (IEEE) is linear, and its polynomial is primitive: a flipped bit changes the checksum by a value that depends
//! only on its distance from the end, and no two distances below 2³² − 1 bits share a value. The difference between the
//! stored checksum and that of the bytes therefore identifies the bit. Other damage looks like a single flipped bit
//! only by chance, with a probability of bits / 2³².

/// Maximum number of bytes under one checksum that are searched. Beyond it, 1 in 500 other damages would look like a
/// flipped bit.
pub const FLIP_BYTES_MAX: usize = 1 << 20;

/// The polynomial of CRC-32 (IEEE), bit-reversed.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// The position of one bit in a byte sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flip {
    /// Index of the byte.
    pub offset: usize,
    /// Mask of the bit within the byte.
    pub mask: u8,
}

impl Flip {
    /// The bit with this number; bit 0 is the least significant bit of the first byte.
    pub const fn of_bit(number: usize) -> Self {
        Self {
            offset: number / 8,
            mask: 1 << (number % 8),
        }
    }

    /// The bit that must be flipped so that the bytes have this checksum; `None` if there is none, or if there are more
    /// than [`FLIP_BYTES_MAX`] bytes.
    pub fn by_checksum(bytes: &[u8], checksum: u32) -> Option<Self> {
        let difference = crc32fast::hash(bytes) ^ checksum;
        if bytes.len() > FLIP_BYTES_MAX || difference == 0 {
            return None;
        }
        let mut of_bit = 1_u32;
        for offset in (0..bytes.len()).rev() {
            for bit in (0..8).rev() {
                of_bit = (of_bit >> 1) ^ (POLYNOMIAL * (of_bit & 1));
                if of_bit == difference {
                    return Some(Self::of_bit(offset * 8 + bit));
                }
            }
        }
        None
    }

    /// The first bit that must be flipped for `is_sound` to hold. Tries every bit, so it is meant for headers.
    pub fn by_trial<const N: usize>(bytes: &[u8; N], is_sound: impl Fn(&[u8; N]) -> bool) -> Option<Self> {
        (0..N * 8).map(Self::of_bit).find(|flip| {
            let mut turned = *bytes;
            flip.turn(&mut turned);
            is_sound(&turned)
        })
    }

    /// The same bit, relative to a start that lies `bytes` bytes earlier.
    #[must_use]
    pub fn behind(self, bytes: usize) -> Self {
        Self {
            offset: self.offset + bytes,
            ..self
        }
    }

    /// Flips the bit.
    pub fn turn(self, bytes: &mut [u8]) {
        bytes[self.offset] ^= self.mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_located_by_the_checksum() {
        let whole: Vec<u8> = (0..700_u32).map(|byte| ((byte * 151) >> 3) as u8).collect();
        let checksum = crc32fast::hash(&whole);
        assert_eq!(Flip::by_checksum(&whole, checksum), None, "none flipped");
        for bit in 0..whole.len() * 8 {
            let flip = Flip::of_bit(bit);
            let mut damaged = whole.clone();
            flip.turn(&mut damaged);
            assert_eq!(Flip::by_checksum(&damaged, checksum), Some(flip));
        }
    }

    #[test]
    fn other_damage_is_not_mistaken_for_a_flipped_bit() {
        let whole: Vec<u8> = (0..700_u32).map(|byte| ((byte * 151) >> 3) as u8).collect();
        let checksum = crc32fast::hash(&whole);
        for at in 0..whole.len() - 1 {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x18;
            assert_eq!(Flip::by_checksum(&damaged, checksum), None, "two bits at {at}");
        }
        assert_eq!(Flip::by_checksum(&[0; 700], checksum), None);
        assert_eq!(Flip::by_checksum(&[], checksum), None);
    }

    #[test]
    fn inputs_beyond_the_limit_are_not_searched() {
        let mut bytes = vec![0; FLIP_BYTES_MAX + 1];
        let checksum = crc32fast::hash(&bytes);
        bytes[FLIP_BYTES_MAX] = 1;
        assert_eq!(Flip::by_checksum(&bytes, checksum), None);
        let checksum = crc32fast::hash(&bytes[1..]);
        bytes[FLIP_BYTES_MAX] = 0;
        let flip = Flip::by_checksum(&bytes[1..], checksum).unwrap();
        assert_eq!((flip.offset, flip.mask), (FLIP_BYTES_MAX - 1, 1));
    }

    #[test]
    fn a_flipped_bit_of_a_header_is_located_by_trial() {
        let is_sound = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) == 0x0102_0304;
        let flip = Flip::by_trial(&0x0102_0314_u32.to_le_bytes(), is_sound);
        assert_eq!(
            flip,
            Some(Flip {
                offset: 0,
                mask: 0x10
            })
        );
        assert_eq!(Flip::by_trial(&[0; 4], is_sound), None);
    }
}
