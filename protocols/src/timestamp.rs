//! The range of timestamps: nanoseconds since 1970 in 64 bits, cut to whole years.

use crate::Refusal;

/// 1678-01-01T00:00:00Z.
pub const TIMESTAMP_NS_MIN: i64 = -9_214_560_000_000_000_000;
/// 2261-12-31T23:59:59.999999999Z.
pub const TIMESTAMP_NS_MAX: i64 = 9_214_646_399_999_999_999;

/// A timestamp in units of `unit_ns` nanoseconds, as nanoseconds.
#[inline]
pub(crate) fn nanoseconds<'a>(timestamp: i64, unit_ns: i64) -> Result<i64, Refusal<'a>> {
    match timestamp.checked_mul(unit_ns) {
        Some(ns) if (TIMESTAMP_NS_MIN..=TIMESTAMP_NS_MAX).contains(&ns) => Ok(ns),
        _ => Err(Refusal::TimestampRange),
    }
}
