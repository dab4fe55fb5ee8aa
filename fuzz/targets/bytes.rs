//! Fixed-width integers at an offset, for the targets that correct checksums.

/// The integer of `N` bytes, at most 8, at an offset within the bytes.
pub fn number_at<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(number)
}

pub fn set_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}
