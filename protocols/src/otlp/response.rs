//! Answers to an export, encoded as the request was.

use super::Encoding;
use crate::json::{write_integer, write_string};

/// What was not stored of a request that could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialSuccess<'a> {
    /// Data points that were refused.
    pub rejected_data_points: u64,
    /// Why.
    pub error_message: &'a str,
}

/// The message `ExportMetricsServiceResponse`. `partialSuccess` is left out when everything was stored.
pub fn success(encoding: Encoding, partial: Option<PartialSuccess<'_>>) -> Vec<u8> {
    let mut body = Vec::new();
    match (encoding, partial) {
        (Encoding::Protobuf, None) => {}
        (Encoding::Protobuf, Some(partial)) => {
            let mut message = Vec::new();
            write_number(1, partial.rejected_data_points, &mut message);
            write_bytes(2, partial.error_message.as_bytes(), &mut message);
            write_bytes(1, &message, &mut body);
        }
        (Encoding::Json, None) => body.extend_from_slice(b"{}"),
        (Encoding::Json, Some(partial)) => {
            // A 64-bit integer is a string in the JSON of protobuf.
            body.extend_from_slice(b"{\"partialSuccess\":{\"rejectedDataPoints\":\"");
            write_integer(partial.rejected_data_points.cast_signed(), &mut body);
            body.extend_from_slice(b"\",\"errorMessage\":");
            write_string(partial.error_message.as_bytes(), &mut body);
            body.extend_from_slice(b"}}");
        }
    }
    body
}

/// The message `google.rpc.Status` with a text, which is the body of every answer of 400 and above.
pub fn status(encoding: Encoding, message: &str) -> Vec<u8> {
    let mut body = Vec::new();
    match encoding {
        Encoding::Protobuf => write_bytes(2, message.as_bytes(), &mut body),
        Encoding::Json => {
            body.extend_from_slice(b"{\"message\":");
            write_string(message.as_bytes(), &mut body);
            body.push(b'}');
        }
    }
    body
}

/// Appends a field with an integer; 0 is the default, which is left out.
pub(super) fn write_number(number: u32, value: u64, message: &mut Vec<u8>) {
    if value != 0 {
        write_varint(u64::from(number << 3), message);
        write_varint(value, message);
    }
}

/// Appends a field with a string or a message.
pub(super) fn write_bytes(number: u32, bytes: &[u8], message: &mut Vec<u8>) {
    write_varint(u64::from(number << 3 | 2), message);
    write_varint(bytes.len() as u64, message);
    message.extend_from_slice(bytes);
}

pub(super) fn write_varint(mut value: u64, message: &mut Vec<u8>) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}
