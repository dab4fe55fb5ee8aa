//! The format of a root, and who publishes what.

mod take_over;

use std::path::Path;

use objects::sim::{Fault, SimObjects};
use objects::{Bytes as ObjectBytes, Existing, ObjectStore};

use super::epoch::{highest, take};
use super::error::RemoteError;
use super::names::{Object, RootName, ShardNames};
use super::root::{FileEntry, Root, ends, sha256};
use crate::checkpoint::{BlocksVersion, BucketMark, Manifest, SegmentsVersion};

const NAMES: ShardNames = ShardNames(0);

fn root() -> Root {
    let file = |local: &str, object: &str, content: &[u8]| FileEntry {
        local: local.to_owned(),
        object: object.to_owned(),
        bytes: content.len() as u64,
        sha256: sha256(content),
        ends: ends(content),
    };
    let mark = BucketMark {
        covered: 40,
        next_sequence: 1_000,
        ingested_at_ns: Some(1_795_313_400_000_000_000),
    };
    Root {
        at_ns: 1_795_313_460_000_000_000,
        program: "0.1.0".to_owned(),
        shard: 0,
        epoch: 3,
        number: 12,
        manifest: Manifest {
            covered: 41,
            catalog_covered: 42,
            next_segment: 8,
            segments: vec![7],
            runs: vec![2],
            buckets: [(1, mark)].into(),
            blocks: BlocksVersion::FIRST,
            segments_version: SegmentsVersion::FIRST,
            ..Manifest::default()
        },
        files: vec![
            file(
                "ledger/000000000002.run",
                "shards/00000/files/00000000000000000003/00000000000000000005.run",
                b"run",
            ),
            file(
                "segments/000000000007.segment",
                "shards/00000/files/00000000000000000002/00000000000000000009.segment",
                b"segment",
            ),
        ],
    }
}

/// `TIDEWATCH_WRITE_FIXTURES=1` writes the file again, which is right only for a new version.
fn assert_is_read(fixture: &str, expected: &Root) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(fixture);
    if std::env::var_os("TIDEWATCH_WRITE_FIXTURES").is_some() {
        std::fs::write(&path, expected.encode().unwrap()).unwrap();
    }
    let fixture = std::fs::read(&path).unwrap();
    assert_eq!(Root::decode("3-12", &fixture).unwrap(), *expected);
    assert_eq!(
        expected.encode().unwrap(),
        fixture,
        "this program writes the same"
    );
}

#[test]
fn a_root_of_version_1_is_read() {
    assert_is_read("root-1.bin", &root());
}

/// Its manifest has dead blocks.
#[test]
fn a_root_of_version_2_is_read() {
    let mut root = root();
    root.manifest
        .set_dead(7, &[8..20, 300..90_000].into_iter().collect());
    assert_is_read("root-2.bin", &root);
}

/// Its manifest has blocks of version 2.
#[test]
fn a_root_of_version_3_is_read() {
    let mut root = root();
    root.manifest.blocks = BlocksVersion::PACKED;
    assert_is_read("root-3.bin", &root);
}

/// Its manifest has segments of version 4.
#[test]
fn a_root_of_version_4_is_read() {
    let mut root = root();
    root.manifest.blocks = BlocksVersion::PACKED;
    root.manifest.segments_version = SegmentsVersion::default();
    assert_is_read("root-4.bin", &root);
}

/// Its manifest has blocks of version 3.
#[test]
fn a_root_of_version_5_is_read() {
    let mut root = root();
    root.manifest.note_written_segment();
    assert_is_read("root-5.bin", &root);
}

/// The checksum does not cover the magic, and versions differ by one bit.
#[test]
fn a_root_with_the_magic_of_another_version_is_damaged() {
    for version in [b"02", b"03", b"04", b"05"] {
        let mut other = root().encode().unwrap();
        other[6..8].copy_from_slice(version);
        let error = Root::decode("3-12", &other).expect_err("its manifest is of version 1");
        assert!(matches!(error, RemoteError::DamagedRoot(..)), "{error}");
    }
}

#[test]
fn a_later_version_is_named() {
    let mut later = root().encode().unwrap();
    later[6..8].copy_from_slice(b"06");
    let error = Root::decode("3-12", &later).expect_err("it is of version 6");
    assert!(matches!(error, RemoteError::Version(_, 6)), "{error}");
}

#[test]
fn both_ends_of_a_file_identify_it() {
    let long: Vec<u8> = (0..20_000u32).map(|at| (at % 251) as u8).collect();
    for at in [0, 4_095, 20_000 - 4_096, 19_999] {
        let mut other = long.clone();
        other[at] ^= 1;
        assert_ne!(ends(&other), ends(&long), "byte {at}");
    }
    assert_ne!(ends(b"a"), ends(b"b"));
}

/// No two starts get the same epoch, whatever the store answers.
#[test]
fn epochs_are_taken_once() {
    for seed in 0..50 {
        let store = SimObjects::default();
        let mut taken = Vec::new();
        for start in 0..20 {
            store.fail_at_random(seed * 100 + start, 3);
            let listed = match store.list(&NAMES.epochs()) {
                Ok(listed) => listed,
                Err(_) => continue,
            };
            taken.extend(take(&store, NAMES, highest(NAMES, &listed), 0).ok());
            store.set_faults(|| Fault::None);
        }
        assert!(taken.is_sorted_by(|a, b| a < b), "seed {seed}: {taken:?}");
        assert!(taken.len() > 5, "seed {seed}: {taken:?}");
    }
}

/// A writer that listed before another took its epoch takes the next one.
#[test]
fn a_late_writer_takes_the_next_epoch() {
    let store = SimObjects::default();
    assert_eq!(take(&store, NAMES, 0, 0).unwrap(), 1);
    assert_eq!(take(&store, NAMES, 0, 0).unwrap(), 2);
    // Roots count, too: their epochs' markers may have been swept.
    let root = NAMES.name(Object::Root(RootName { epoch: 9, number: 1 }));
    store.put(&root, ObjectBytes::new(), Existing::Refuse).unwrap();
    let listed = store.list(&NAMES.all()).unwrap();
    assert_eq!(take(&store, NAMES, highest(NAMES, &listed), 0).unwrap(), 10);
}
