//! The id that every answer carries as `X-Request-Id`, and that log lines about the request carry as well.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::{hex, random};

/// Digits of the longest id.
const DIGITS_MAX: usize = 32;

pub static REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Unique within a process, and almost certainly across processes.
#[derive(Clone, Copy, Debug)]
pub struct RequestId {
    process: u64,
    number: u64,
}

impl RequestId {
    pub fn next() -> Self {
        static PROCESS: OnceLock<u64> = OnceLock::new();
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        // If randomness is unavailable, ids are still unique within the process.
        let process = *PROCESS.get_or_init(|| random::bytes().map_or(0, u64::from_le_bytes));
        Self {
            process,
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Reads what another node has written.
    pub fn parse(text: &str) -> Option<Self> {
        let (process, number) = text.split_at_checked(16)?;
        Some(Self {
            process: u64::from_str_radix(process, 16).ok()?,
            number: u64::from_str_radix(number, 16).ok()?,
        })
    }

    /// Its text: 16 digits of the process and at least 8 of the number, and how many bytes of it are used.
    fn digits(self) -> ([u8; DIGITS_MAX], usize) {
        let mut digits = [0; DIGITS_MAX];
        hex::write(&self.process.to_be_bytes(), &mut digits[..16]);
        hex::write(&self.number.to_be_bytes(), &mut digits[16..]);
        let left_out = (self.number.leading_zeros() as usize / 4).min(8);
        digits.copy_within(16 + left_out.., 16);
        (digits, DIGITS_MAX - left_out)
    }

    /// Sets the `X-Request-Id` header.
    pub fn write(self, headers: &mut HeaderMap) {
        let (digits, length) = self.digits();
        // Always a valid header value: hexadecimal digits.
        if let Ok(id) = HeaderValue::from_bytes(&digits[..length]) {
            headers.insert(REQUEST_ID_HEADER.clone(), id);
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (digits, length) = self.digits();
        f.write_str(str::from_utf8(&digits[..length]).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written() {
        for (number, text) in [
            (0, "0123456789abcdef00000000"),
            (0xff, "0123456789abcdef000000ff"),
            (u64::from(u32::MAX), "0123456789abcdefffffffff"),
            (1 << 32, "0123456789abcdef100000000"),
            (u64::MAX, "0123456789abcdefffffffffffffffff"),
        ] {
            let id = RequestId {
                process: 0x0123_4567_89ab_cdef,
                number,
            };
            assert_eq!(id.to_string(), text);
            let mut headers = HeaderMap::new();
            id.write(&mut headers);
            assert_eq!(headers.get(&REQUEST_ID_HEADER).unwrap(), text);
            let read = RequestId::parse(text).unwrap();
            assert_eq!((read.process, read.number), (id.process, id.number));
        }
    }
}
