//! The members of a point besides `values`, which both bodies share: parsing, and messages for faults. Paths and
//! messages of faults are the same in both; a batch joins them into one text.

use std::fmt;

use crate::clock::SECOND_NS;
use crate::error::Detail;
use crate::ids::{MalformedId, ObjectId};
use crate::limits::METADATA_BYTES_MAX;

use super::BodyFault;
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

/// A member, as parsed so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Slot<T, F> {
    #[default]
    Absent,
    Good(T),
    /// A value of the wrong kind.
    Other(Kind),
    Bad(F),
}

impl<T: Copy, F> Slot<T, F> {
    pub(super) fn good(&self) -> Option<T> {
        match self {
            Self::Good(value) => Some(*value),
            _ => None,
        }
    }
}

impl<T, F: fmt::Display> Slot<T, F> {
    pub(super) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Slot<U, F> {
        match self {
            Self::Absent => Slot::Absent,
            Self::Good(value) => Slot::Good(convert(value)),
            Self::Other(kind) => Slot::Other(kind),
            Self::Bad(fault) => Slot::Bad(fault),
        }
    }

    /// Adds the fault, if there is one. The member must be of `kind` and may be absent unless `required`.
    pub(super) fn fault(&self, member: &str, kind: &str, required: bool, out: &mut Vec<Detail>) {
        match self {
            Self::Absent if required => out.push(detail(&[member], "is required".to_owned())),
            Self::Absent | Self::Good(_) => {}
            Self::Other(found) => out.push(detail(&[member], format!("must be {kind}, not {found}"))),
            Self::Bad(fault) => out.push(detail(&[member], fault.to_string())),
        }
    }
}

pub(super) type IdSlot = Slot<ObjectId, MalformedId>;
pub(super) type TimestampSlot = Slot<i64, TimestampFault>;
/// Start and end of the metadata.
pub(super) type MetadataSlot = Slot<(usize, usize), MetadataFault>;

/// The metadata is too long: its length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be at most {max} bytes as sent, not {0}", max = METADATA_BYTES_MAX)]
pub(super) struct MetadataFault(usize);

/// A fault with its path.
pub(super) fn detail(path: &[&str], message: String) -> Detail {
    Detail {
        path: path.iter().map(|name| (*name).to_owned()).collect(),
        message,
    }
}

/// Checks that the body is an object.
pub(super) fn check_object(scan: &mut Scanner<'_>) -> Result<(), BodyFault> {
    let found = scan.kind()?;
    if found == Kind::Object {
        return Ok(());
    }
    scan.skip_value(0)?;
    scan.end()?;
    let message = format!("the body must be an object, not {found}");
    Err(BodyFault::Faults(vec![detail(&[], message)]))
}

/// Parses an id. See [`Scanner::skip_value`] for `depth`.
pub(super) fn read_id(scan: &mut Scanner<'_>, buffer: &mut String, depth: u32) -> Result<IdSlot, Malformed> {
    Ok(match scan.kind()? {
        Kind::String => match scan.string()?.get(buffer).parse() {
            Ok(id) => Slot::Good(id),
            Err(fault) => Slot::Bad(fault),
        },
        other => skip_other(scan, other, depth)?,
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
) -> Result<TimestampSlot, Malformed> {
    Ok(match scan.kind()? {
        Kind::String => match timestamp::parse(scan.string()?.get(buffer)) {
            Ok(timestamp_ns) => Slot::Good(timestamp_ns),
            Err(fault) => Slot::Bad(fault),
        },
        Kind::Null => {
            scan.null()?;
            Slot::Absent
        }
        other => skip_other(scan, other, depth)?,
    })
}

/// Skips the metadata and returns its place; `null` counts as absent.
pub(super) fn read_metadata(scan: &mut Scanner<'_>, depth: u32) -> Result<MetadataSlot, Malformed> {
    match scan.kind()? {
        Kind::Object => {
            let start = scan.at();
            scan.skip_value(depth)?;
            Ok(match scan.at() - start {
                ..=METADATA_BYTES_MAX => Slot::Good((start, scan.at())),
                bytes => Slot::Bad(MetadataFault(bytes)),
            })
        }
        Kind::Null => {
            scan.null()?;
            Ok(Slot::Absent)
        }
        other => skip_other(scan, other, depth),
    }
}

/// Skips a value of another kind than the member must have.
pub(super) fn skip_other<T, F>(
    scan: &mut Scanner<'_>,
    kind: Kind,
    depth: u32,
) -> Result<Slot<T, F>, Malformed> {
    scan.skip_value(depth)?;
    Ok(Slot::Other(kind))
}

/// The fault of a point that is older than its route accepts.
pub(super) fn too_old(timestamp_ns: i64, oldest_ns: i64) -> Option<Detail> {
    (timestamp_ns < oldest_ns).then(|| {
        let oldest = crate::timestamp::format_timestamp_ns(oldest_ns.div_euclid(SECOND_NS) * SECOND_NS);
        detail(
            &["timestamp"],
            format!("is too old: the oldest accepted now is {}", oldest.as_str()),
        )
    })
}
