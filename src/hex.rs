//! Bytes as lowercase hexadecimal digits.

/// The two digits of a byte.
const fn pair(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]
}

/// Writes the digits of as many bytes as `digits` has pairs.
pub fn write(bytes: &[u8], digits: &mut [u8]) {
    for (digits, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        digits.copy_from_slice(&pair(*byte));
    }
}

/// The digits as text.
pub fn text(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| pair(*byte))
        .map(char::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_lowercase_digits() {
        let bytes = [0, 9, 0x0a, 0xf0, 0xff];
        assert_eq!(text(&bytes), "00090af0ff");
        assert_eq!(text(&[]), "");
        let mut digits = [0; 10];
        write(&bytes, &mut digits);
        assert_eq!(&digits, b"00090af0ff");
    }
}
