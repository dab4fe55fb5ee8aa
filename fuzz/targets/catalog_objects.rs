//! All inputs of the catalog: objects of runs, commands and ingests of the log, whole snapshots of older programs, and
//! the manifest. Each is parsed or refused, and a parsed one round-trips.
//!
//! The first byte of an input selects its kind.

use std::path::Path;

use disk::sim::SimDisk;
use tidewatch::catalog::{Catalog, CatalogLoader, Command, Frozen, ObjectKey};
use tidewatch::checkpoint::{Manifest, flip_of_manifest};
use tidewatch::ids::ObjectId;
use tidewatch::journal::Record;

const KEY_BYTES: usize = 12 + 8 + 12;

pub fn check(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    match kind % 4 {
        0 => objects(rest),
        1 => record(rest),
        2 => snapshot(rest),
        _ => manifest(rest),
    }
}

/// Objects: for each its key, the length of its content in two bytes, and its content.
fn objects(mut data: &[u8]) {
    let mut loader = CatalogLoader::default();
    while let Some((key, rest)) = data.split_first_chunk::<KEY_BYTES>() {
        let Some((len, rest)) = rest.split_first_chunk() else {
            break;
        };
        let (content, rest) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*len))));
        data = rest;
        if let Err(error) = loader.push(&key_of(key), content) {
            assert!(!error.to_string().is_empty());
        }
    }
    if let Ok(catalog) = loader.finish() {
        check_round_trip(&catalog);
    }
}

fn key_of(bytes: &[u8; KEY_BYTES]) -> ObjectKey {
    let id = |at: usize| {
        let mut id = [0; 12];
        id.copy_from_slice(&bytes[at..at + 12]);
        ObjectId::from_bytes(id)
    };
    let mut place = [0; 8];
    place.copy_from_slice(&bytes[12..20]);
    ObjectKey {
        owner: id(0),
        place: i64::from_le_bytes(place),
        id: id(20),
    }
}

/// A checkpoint of a catalog loads as a catalog with the same checkpoint.
fn check_round_trip(catalog: &Catalog) {
    let written = |catalog: &Catalog| {
        let frozen = catalog.freeze();
        let changes = frozen.changes_since(&Frozen::default());
        changes.map(Result::unwrap).collect::<Vec<_>>()
    };
    let first = written(catalog);
    let mut loader = CatalogLoader::default();
    for change in &first {
        loader
            .push(&change.key, change.content.as_deref().unwrap())
            .unwrap();
    }
    assert_eq!(written(&loader.finish().unwrap()), first);
}

fn record(data: &[u8]) {
    match Record::decode(data) {
        Ok(Record::Command(command)) => {
            let written = command.encode().unwrap();
            let again = Command::decode(&written).unwrap();
            assert_eq!(again.encode().unwrap(), written);
        }
        Ok(Record::Ingest(view)) => assert!(view.encoded_rows.len() < data.len()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn snapshot(data: &[u8]) {
    match Catalog::decode(data) {
        Ok(snapshot) => drop(snapshot.catalog.freeze()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The content of a manifest in a frame of some version, or the whole file, by the first byte.
fn manifest(data: &[u8]) {
    let Some((frame, content)) = data.split_first() else {
        return;
    };
    let (disk, dir) = (SimDisk::new(1), Path::new("/data"));
    let mut file = Vec::new();
    if frame & 1 != 0 {
        let versions = [b"TWMANI02", b"TWMANI03", b"TWMANI04", b"TWMANI05", b"TWMANI06"];
        file.extend_from_slice(versions[usize::from(frame >> 1) % versions.len()]);
        file.extend_from_slice(&(content.len() as u64).to_le_bytes());
        file.extend_from_slice(&crc32fast::hash(content).to_le_bytes());
    }
    file.extend_from_slice(content);
    disk.put(&Manifest::path(dir), &file);
    if let Some(flip) = flip_of_manifest(&file) {
        flip.turn(&mut file);
        let mended = SimDisk::new(1);
        mended.put(&Manifest::path(dir), &file);
        assert!(Manifest::read(&mended, dir).unwrap().is_some());
    }
    match Manifest::read(&disk, dir) {
        Ok(Some(manifest)) => {
            manifest.write(&disk, dir).unwrap();
            assert_eq!(Manifest::read(&disk, dir).unwrap(), Some(manifest));
        }
        Ok(None) => panic!("the file is there"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
