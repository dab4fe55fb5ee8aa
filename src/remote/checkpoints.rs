//! The checkpoints in an object store: listed, and chosen.

use objects::{ObjectError, ObjectStore};

use super::error::RemoteError;
use super::names::{Object, RootName, ShardNames};
use super::root::{ROOT_BYTES_MAX, Root};
use crate::timestamp::format_timestamp_ns;

/// Which checkpoint to restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The newest one.
    Newest,
    /// The newest one that was published at this time or before, in UTC nanoseconds by the clock of its server.
    At(i64),
    /// The one of this name.
    Named(RootName),
}

/// A checkpoint: its name, and its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub name: RootName,
    pub root: Root,
}

/// Reads the checkpoints of a shard, newest first. Each one is read when the iterator reaches it; one that does not read
/// is an error, and the next may read.
///
/// # Errors
/// The store cannot be listed.
pub fn checkpoints(
    store: &dyn ObjectStore,
    shard: u16,
) -> Result<impl Iterator<Item = Result<Checkpoint, RemoteError>> + '_, RemoteError> {
    let names = ShardNames(shard);
    let listed = store.list(&names.roots())?;
    let roots = listed
        .iter()
        .filter_map(|object| match names.parse(&object.name)? {
            Object::Root(root) => Some(root),
            _ => None,
        });
    let mut roots: Vec<RootName> = roots.collect();
    roots.sort_unstable();
    let newest_first = roots.into_iter().rev();
    Ok(newest_first.map(move |name| read(store, names, name)))
}

pub(super) fn read(
    store: &dyn ObjectStore,
    names: ShardNames,
    name: RootName,
) -> Result<Checkpoint, RemoteError> {
    let bytes = store.get(&names.name(Object::Root(name)), ROOT_BYTES_MAX)?;
    let root = Root::decode(&name.to_string(), &bytes)?;
    let is_its = (root.shard, root.epoch, root.number) == (names.0, name.epoch, name.number);
    match is_its {
        true => Ok(Checkpoint { name, root }),
        false => Err(RemoteError::DamagedRoot(
            name.to_string(),
            "it is a copy of another one".to_owned(),
        )),
    }
}

/// Chooses a checkpoint of a shard. `url` is for messages.
///
/// # Errors
/// There is no such checkpoint, or it does not read.
pub(super) fn choose(
    store: &dyn ObjectStore,
    url: &str,
    shard: u16,
    choice: Choice,
) -> Result<Checkpoint, RemoteError> {
    let missing = |what: String| RemoteError::NoSuchCheckpoint(url.to_owned(), what);
    match choice {
        Choice::Named(name) => match read(store, ShardNames(shard), name) {
            Err(RemoteError::Object(ObjectError::NotFound(_))) => Err(missing(format!("named {name}"))),
            read => read,
        },
        Choice::Newest => {
            let newest = checkpoints(store, shard)?.next();
            newest.unwrap_or_else(|| Err(RemoteError::Empty(url.to_owned())))
        }
        Choice::At(at_ns) => {
            for checkpoint in checkpoints(store, shard)? {
                let checkpoint = checkpoint?;
                if checkpoint.root.at_ns <= at_ns {
                    return Ok(checkpoint);
                }
            }
            Err(missing(format!(
                "of {} or before",
                format_timestamp_ns(at_ns).as_str()
            )))
        }
    }
}
