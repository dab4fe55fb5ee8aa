//! The bytes on disk. The fixture was written by format version 1, which stays readable; the writer must still produce
//! the same bytes.

use std::path::Path;

use disk::StdDisk;
use disk::sim::SimDisk;
use wal::{FORMAT_VERSION, check};

use crate::common::{commit, dir, file, open};

const FIXTURES: [(u64, &[u8]); 2] = [
    (1, include_bytes!("../fixtures/v1/00000000000000000001.log")),
    (4, include_bytes!("../fixtures/v1/00000000000000000004.log")),
];

const RECORDS: [&[u8]; 5] = [
    b"first",
    b"",
    b"third, after an empty one",
    b"in the second file",
    &[0, 0xF7, 0xFF],
];

fn write_fixture(disk: &SimDisk) {
    let (mut log, _, _) = open(disk);
    commit(&mut log, &RECORDS[..2]);
    commit(&mut log, &RECORDS[2..3]);
    log.rotate().expect("rotate");
    commit(&mut log, &RECORDS[3..]);
    log.close().expect("close");
}

#[test]
fn the_fixture_of_version_1_is_read() {
    let disk = SimDisk::new(1);
    for (first, bytes) in FIXTURES {
        disk.put(&file(first), bytes);
    }
    let (log, recovery, records) = open(&disk);
    assert!(records.iter().map(|(_, payload)| payload.as_slice()).eq(RECORDS));
    assert_eq!((log.last_sequence(), recovery.torn_tail), (5, None));
}

#[test]
fn the_writer_produces_the_fixture() {
    assert_eq!(
        FORMAT_VERSION, 1,
        "a new version gets its own fixture; this one stays readable"
    );
    let disk = SimDisk::new(1);
    write_fixture(&disk);
    let written = disk.files();
    assert_eq!(written.len(), FIXTURES.len());
    for (first, bytes) in FIXTURES {
        assert_eq!(written[&file(first)], bytes, "file {first}");
    }
}

#[test]
fn the_fixture_is_sound_on_the_real_disk() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1");
    let report = check(&StdDisk, &fixtures).expect("readable");
    assert!(report.is_sound());
    assert_eq!(
        (report.files.len(), report.records, report.ignored.len()),
        (2, 5, 0)
    );
    assert_eq!(dir().file_name().and_then(|name| name.to_str()), Some("log"));
}
