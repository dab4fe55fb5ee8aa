//! What is wrong with a catalog on disk.

use std::fmt;

use super::object_key::ObjectKey;
use crate::ids::ObjectId;

/// A catalog that cannot be read.
#[derive(Debug)]
pub enum SnapshotError {
    /// No snapshot, or damaged.
    Malformed(rmp_serde::decode::Error),
    /// Written by a newer program.
    UnknownVersion {
        /// The version it states.
        found: u32,
        /// The greatest version that this program reads.
        known: u32,
    },
    /// A source names a schema that was not written with it.
    MissingSchema { source_id: ObjectId },
    /// An object whose content is damaged.
    MalformedObject {
        /// The object.
        key: ObjectKey,
        /// What is wrong with its content.
        cause: rmp_serde::decode::Error,
    },
    /// An object of a kind that only a newer program knows.
    UnknownKind {
        /// The object.
        key: ObjectKey,
    },
    /// An object whose content is that of another object.
    Misplaced {
        /// The object.
        key: ObjectKey,
    },
    /// An object that does not come after the one before it, in order of the keys.
    OutOfOrder {
        /// The object.
        key: ObjectKey,
    },
    /// There is no root.
    NoRoot,
    /// An object that another one needs is not there.
    Missing {
        /// Which kind of object.
        what: &'static str,
        /// Which one.
        id: ObjectId,
        /// The object that needs it.
        needed_by: ObjectKey,
    },
    /// An object with an ordinal that, as the object that counts them says, was not given yet.
    OrdinalNotGiven {
        /// The object.
        key: ObjectKey,
    },
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(cause) => write!(f, "catalog snapshot is malformed: {cause}"),
            Self::UnknownVersion { found, known } => write!(
                f,
                "catalog snapshot has version {found}, this program reads up to {known}: start the newer program"
            ),
            Self::MissingSchema { source_id } => {
                write!(f, "catalog snapshot lacks the schema of data source {source_id}")
            }
            Self::MalformedObject { key, cause } => write!(f, "catalog: {key} is malformed: {cause}"),
            Self::UnknownKind { key } => {
                write!(
                    f,
                    "catalog: this program does not know {key}: start the newer program"
                )
            }
            Self::Misplaced { key } => write!(f, "catalog: another object stands in the place of {key}"),
            Self::OutOfOrder { key } => write!(f, "catalog: {key} comes out of order, or twice"),
            Self::NoRoot => f.write_str("catalog: the root is missing"),
            Self::Missing { what, id, needed_by } => {
                write!(f, "catalog: {what} {id} is missing, which {needed_by} needs")
            }
            Self::OrdinalNotGiven { key } => {
                write!(f, "catalog: {key} has an ordinal that was not given yet")
            }
        }
    }
}

impl std::error::Error for SnapshotError {}
