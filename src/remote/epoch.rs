//! Taking an epoch: a number that no other writer of the shard has, so that no two of them ever give an object the same
//! name.

use objects::{Bytes, Existing, Listed, ObjectError, ObjectStore};
use serde::{Deserialize, Serialize};

use super::error::RemoteError;
use super::names::{Epoch, Object, ShardNames};
use crate::{checked_file, random};

const MAGIC: &[u8; 8] = b"TWEPOC01";

/// Tries, each of which fails only if another writer starts at the same moment.
const TRIES_MAX: u32 = 100;

/// Where the epoch of a writer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epochs {
    /// The object store: each start takes the next one.
    Taken,
    /// The caller, who sees to it that no other writer has it: in a cluster, the log store.
    Given(Epoch),
}

/// The object of an epoch, for people.
#[derive(Serialize, Deserialize)]
struct Marker {
    at_ns: i64,
    program: String,
    /// Distinguishes this marker from that of another writer, when the answer to its put was lost.
    random: u64,
}

/// The highest epoch in a list of a shard's objects; 0 if there is none.
pub(super) fn highest(names: ShardNames, listed: &[Listed]) -> Epoch {
    let epochs = listed
        .iter()
        .filter_map(|object| match names.parse(&object.name)? {
            Object::Epoch(epoch) => Some(epoch),
            Object::File(file) => Some(file.epoch),
            Object::Root(root) => Some(root.epoch),
        });
    epochs.max().unwrap_or(0)
}

/// Takes the epoch after the highest one: creates its object, which fails if another writer has just done so.
///
/// # Errors
/// The object store fails, or others take one epoch after the other.
pub(super) fn take(
    store: &dyn ObjectStore,
    names: ShardNames,
    highest: Epoch,
    now_ns: i64,
) -> Result<Epoch, RemoteError> {
    let marker = Marker {
        at_ns: now_ns,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        random: u64::from_le_bytes(random::bytes()?),
    };
    let content = checked_file::encode(MAGIC, &rmp_serde::to_vec_named(&marker)?);
    let content = Bytes::from(content);
    for epoch in (highest + 1..).take(TRIES_MAX as usize) {
        let name = names.name(Object::Epoch(epoch));
        match store.put(&name, content.clone(), Existing::SameBytes) {
            Ok(()) => return Ok(epoch),
            Err(ObjectError::Exists(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(RemoteError::Epochs(TRIES_MAX))
}
