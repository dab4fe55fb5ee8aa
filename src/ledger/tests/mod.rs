//! Tests of the ledger's files; the crash points of a checkpoint are tested in the room `checkpoint`.

mod answers;
mod fixture;
mod keyed;
mod model;
mod objects;
mod run;

use std::path::Path;
use std::sync::Arc;

use disk::Disk;
use disk::sim::SimDisk;

use super::writer::{Item, RunWriter};
use super::{LedgerError, LedgerFiles};
use crate::catalog::{EntryKey, Stream};
use crate::ids::ObjectId;

/// An entry: owner, time, id, whether it replaces an earlier version, payload.
type Written = (ObjectId, i64, ObjectId, bool, Vec<u8>);

fn try_open(disk: &SimDisk, named: &[u64]) -> Result<LedgerFiles, LedgerError> {
    LedgerFiles::open(Arc::new(disk.clone()) as Arc<dyn Disk>, Path::new("data"), named)
}

/// The files of these numbers.
fn open(disk: &SimDisk, named: &[u64]) -> LedgerFiles {
    try_open(disk, named).unwrap_or_else(|error| panic!("{error}"))
}

/// The id of this number, created in this second.
fn id(second: u32, number: u64) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&second.to_be_bytes());
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

fn encode(stream: Stream, entries: &[Written]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = RunWriter::new(&mut file, stream).unwrap();
    for (owner, at_ns, id, again, payload) in entries {
        let key = EntryKey {
            stream,
            owner: *owner,
            at_ns: *at_ns,
            id: *id,
        };
        let item = Item::new(key, *again, payload.as_slice());
        writer.push(&item).unwrap();
    }
    writer.finish().unwrap();
    file
}
