//! Writes numbers and strings as JSON directly into the buffer of an answer.

use engine::rows::Scalar;

/// Above this not every integer is a double, and all digits would suggest a precision that does not exist.
const INTEGER_MAX: f64 = (1u64 << 53) as f64;

/// Appends the shortest text that parses to `value`; integers without `.0`. Non-finite values, which are never stored,
/// are written as `null`, because JSON cannot represent them.
pub fn write_number(value: f64, out: &mut Vec<u8>) {
    let integer = value as i64;
    if value.abs() <= INTEGER_MAX && (integer as f64).to_bits() == value.to_bits() {
        out.extend_from_slice(itoa::Buffer::new().format(integer).as_bytes());
    } else if value.is_finite() {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(value);
        out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

/// Appends a value of a field.
#[inline]
pub fn write_scalar(value: Scalar<'_>, out: &mut Vec<u8>) {
    match value {
        Scalar::Number(number) => write_number(number, out),
        Scalar::Boolean(true) => out.extend_from_slice(b"true"),
        Scalar::Boolean(false) => out.extend_from_slice(b"false"),
        Scalar::Text(text) => write_string(text, out),
    }
}

/// Appends `value` in quotes with the minimum of escapes.
pub fn write_string(value: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut rest = value.as_bytes();
    while let Some(place) = rest
        .iter()
        .position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\')
    {
        out.extend_from_slice(&rest[..place]);
        let byte = rest[place];
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
        rest = &rest[place + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}
