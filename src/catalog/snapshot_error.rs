//! Errors of reading a catalog from disk.

use super::object_key::ObjectKey;
use crate::ids::ObjectId;

/// A catalog that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are not a snapshot, or it is damaged.
    #[error("catalog snapshot is malformed: {0}")]
    Malformed(rmp_serde::decode::Error),
    /// Written by a newer program.
    #[error(
        "catalog snapshot has version {found}, this program reads up to {known}: start the newer program"
    )]
    UnknownVersion {
        /// The version that was found.
        found: u32,
        /// The greatest version that this program reads.
        known: u32,
    },
    /// A source refers to a schema that was not written with it.
    #[error("catalog snapshot lacks the schema of data source {source_id}")]
    MissingSchema { source_id: ObjectId },
    /// The content of an object is damaged.
    #[error("catalog: {key} is malformed: {cause}")]
    MalformedObject {
        key: ObjectKey,
        /// What is wrong with its content.
        cause: rmp_serde::decode::Error,
    },
    /// An object of a kind that only a newer program knows.
    #[error("catalog: this program does not know {key}: start the newer program")]
    UnknownKind { key: ObjectKey },
    /// The content of an object belongs to another object.
    #[error("catalog: another object stands in the place of {key}")]
    Misplaced { key: ObjectKey },
    /// An object does not follow the previous one in order of the keys.
    #[error("catalog: {key} comes out of order, or twice")]
    OutOfOrder { key: ObjectKey },
    /// There is no root.
    #[error("catalog: the root is missing")]
    NoRoot,
    /// An object that another one needs is missing.
    #[error("catalog: {what} {id} is missing, which {needed_by} needs")]
    Missing {
        /// The kind of object.
        what: &'static str,
        id: ObjectId,
        /// The object that needs it.
        needed_by: ObjectKey,
    },
    /// The ordinal of an object is greater than the last one assigned.
    #[error("catalog: {key} has an ordinal that was not given yet")]
    OrdinalNotGiven { key: ObjectKey },
    /// Another object of the same owner has this ordinal.
    #[error("catalog: {key} has the ordinal of another object")]
    OrdinalTaken { key: ObjectKey },
}
