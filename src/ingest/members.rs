//! The members of a point besides `values`, which both bodies share: parsing, and messages for faults. Paths and
//! messages of faults are the same in both; a batch joins them into one text.

use crate::clock::SECOND_NS;
use crate::error::{Detail, ServiceError};
use crate::ids::{MalformedId, ObjectId};
use crate::limits::{BATCH_ENTRIES_MAX, METADATA_BYTES_MAX};

use super::json::{Kind, Malformed, Scanner};
use super::timestamp::{self, TimestampFault};

/// The members of a point, in the order of the API documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    DataSourceId,
    Timestamp,
    Values,
    Metadata,
    Unknown,
}

impl Member {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "dataSourceId" => Self::DataSourceId,
            "timestamp" => Self::Timestamp,
            "values" => Self::Values,
            "metadata" => Self::Metadata,
            _ => Self::Unknown,
        }
    }
}

/// A member, as parsed so far; `None` if it is absent.
pub(super) type Slot<T> = Result<Option<T>, MemberFault>;
/// Start and end of the metadata.
pub(super) type MetadataSlot = Slot<(usize, usize)>;

/// Why the value of a member is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum MemberFault {
    #[error("must be {kind}, not {found}")]
    Kind { kind: &'static str, found: Kind },
    #[error(transparent)]
    Id(MalformedId),
    #[error(transparent)]
    Timestamp(TimestampFault),
    /// The metadata is too long: its length in bytes.
    #[error("must be at most {max} bytes as sent, not {0}", max = METADATA_BYTES_MAX)]
    Metadata(usize),
    #[error("must have at least one entry")]
    NoEntries,
    #[error("must have at most {max} entries, not {0}", max = BATCH_ENTRIES_MAX)]
    TooManyEntries(usize),
}

/// Adds the fault of a member, if there is one. It may be absent unless it is `required`.
pub(super) fn add_fault<T>(slot: &Slot<T>, member: &str, required: bool, out: &mut Vec<Detail>) {
    match slot {
        Ok(None) if required => out.push(Detail::at(&[member], "is required")),
        Ok(_) => {}
        Err(fault) => out.push(Detail::at(&[member], fault.to_string())),
    }
}

/// Checks that the body is an object.
pub(super) fn check_object(scan: &mut Scanner<'_>) -> Result<(), ServiceError> {
    let found = scan.kind()?;
    if found == Kind::Object {
        return Ok(());
    }
    scan.skip_value(0)?;
    scan.end()?;
    let message = format!("the body must be an object, not {found}");
    Err(ServiceError::faults(vec![Detail::at(&[], message)]))
}

/// Parses an id. See [`Scanner::skip_value`] for `depth`.
pub(super) fn read_id(
    scan: &mut Scanner<'_>,
    buffer: &mut String,
    depth: u32,
) -> Result<Slot<ObjectId>, Malformed> {
    Ok(match scan.kind()? {
        Kind::String => {
            let id = scan.string()?.get(buffer).parse();
            id.map(Some).map_err(MemberFault::Id)
        }
        found => skip_other(scan, "a string", found, depth)?,
    })
}

/// Parses a timestamp in the common form, if one comes next. Parsing also finds its end.
#[inline(always)]
pub(super) fn common_timestamp(scan: &mut Scanner<'_>) -> Option<i64> {
    let text = scan.rest().strip_prefix(b"\"")?;
    let (timestamp_ns, length) = timestamp::common_form(text)?;
    if text.get(length) != Some(&b'"') {
        return None;
    }
    scan.seek(scan.at() + length + 2);
    Some(timestamp_ns)
}

/// Parses a timestamp of any form; `null` counts as absent.
pub(super) fn read_timestamp(
    scan: &mut Scanner<'_>,
    buffer: &mut String,
    depth: u32,
) -> Result<Slot<i64>, Malformed> {
    Ok(match scan.kind()? {
        Kind::String => {
            let timestamp_ns = timestamp::parse(scan.string()?.get(buffer));
            timestamp_ns.map(Some).map_err(MemberFault::Timestamp)
        }
        Kind::Null => scan.null().map(|()| Ok(None))?,
        found => skip_other(scan, "an ISO 8601 string", found, depth)?,
    })
}

/// Skips the metadata and returns its place; `null` counts as absent.
pub(super) fn read_metadata(scan: &mut Scanner<'_>, depth: u32) -> Result<MetadataSlot, Malformed> {
    Ok(match scan.kind()? {
        Kind::Object => {
            let start = scan.at();
            scan.skip_value(depth)?;
            match scan.at() - start {
                ..=METADATA_BYTES_MAX => Ok(Some((start, scan.at()))),
                bytes => Err(MemberFault::Metadata(bytes)),
            }
        }
        Kind::Null => scan.null().map(|()| Ok(None))?,
        found => skip_other(scan, "an object", found, depth)?,
    })
}

/// Skips a value that is not of the `kind` that the member must have.
pub(super) fn skip_other<T>(
    scan: &mut Scanner<'_>,
    kind: &'static str,
    found: Kind,
    depth: u32,
) -> Result<Slot<T>, Malformed> {
    scan.skip_value(depth)?;
    Ok(Err(MemberFault::Kind { kind, found }))
}

/// The fault of a point that is older than its route accepts.
pub(super) fn too_old(timestamp_ns: i64, oldest_ns: i64) -> Option<Detail> {
    (timestamp_ns < oldest_ns).then(|| {
        let oldest = crate::timestamp::format_timestamp_ns(oldest_ns.div_euclid(SECOND_NS) * SECOND_NS);
        let message = format!("is too old: the oldest accepted now is {}", oldest.as_str());
        Detail::at(&["timestamp"], message)
    })
}
