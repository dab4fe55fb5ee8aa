//! The id that every answer carries as `X-Request-Id`, and that log lines about the request carry as well.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::random;

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

    /// Sets the `X-Request-Id` header.
    pub fn write(self, headers: &mut HeaderMap) {
        // Always a valid header value: hexadecimal digits.
        if let Ok(id) = HeaderValue::from_str(&self.to_string()) {
            headers.insert(REQUEST_ID_HEADER.clone(), id);
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:08x}", self.process, self.number)
    }
}
