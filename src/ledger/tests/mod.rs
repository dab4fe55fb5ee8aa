//! The ledger's files by themselves; the crash points of a checkpoint are tested with the room `checkpoint`.

mod answers;
mod fixture;
mod objects;
mod run;
mod twin;

use super::writer::{Item, RunWriter};
use crate::catalog::{EntryKey, Stream};
use crate::ids::ObjectId;

/// An entry as the tests write it: owner, moment, id, whether it was put before, payload.
type Written = (ObjectId, i64, ObjectId, bool, Vec<u8>);

/// The id of this number, made in this second.
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
        let item = Item::new(key, *again, payload);
        writer.push(&item).unwrap();
    }
    writer.finish().unwrap();
    file
}
