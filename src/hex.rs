//! Bytes as lowercase hexadecimal digits.

/// The two digits of each byte.
static PAIRS: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < pairs.len() {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 15]];
        byte += 1;
    }
    pairs
};

/// In [`VALUES`], a character that is no lowercase hexadecimal digit.
const NO_DIGIT: u8 = 0xff;

/// The value of each character as a digit.
static VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut byte = 0;
    while byte < PAIRS.len() {
        values[PAIRS[byte][1] as usize] = byte as u8 & 15;
        byte += 1;
    }
    values
};

/// The two digits of a byte.
fn pair(byte: u8) -> [u8; 2] {
    PAIRS[usize::from(byte)]
}

/// Writes the digits of as many bytes as `digits` has pairs.
pub fn write(bytes: &[u8], digits: &mut [u8]) {
    for (digits, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        digits.copy_from_slice(&pair(*byte));
    }
}

/// Reads as many bytes as `digits` has pairs; `None` if a character is no lowercase hexadecimal digit.
pub fn read(digits: &[u8], bytes: &mut [u8]) -> Option<()> {
    let mut seen = 0;
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = [pair[0], pair[1]].map(|digit| VALUES[usize::from(digit)]);
        // All are looked at before the first is judged: ids are hardly ever malformed.
        seen |= high | low;
        *byte = high << 4 | low;
    }
    (seen <= 15).then_some(())
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

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        for byte in 0..=255 {
            let (mut digits, mut read_again) = ([0; 2], [0]);
            write(&[byte], &mut digits);
            assert_eq!(read(&digits, &mut read_again), Some(()));
            assert_eq!(read_again, [byte]);
            let is_digit = matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            for digits in [[byte, b'0'], [b'f', byte]] {
                assert_eq!(read(&digits, &mut [0]).is_some(), is_digit, "{digits:?}");
            }
        }
    }
}
