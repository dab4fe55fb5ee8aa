//! Carried records of a bucket that was set apart.

use std::sync::Arc;

use disk::Disk;
use disk::sim::{Crash, SimDisk};
use wal::Sequence;

use super::directory::{damage_byte, directory, layout, points, run, with_suffix};
use crate::bucket::CarriedDir;
use crate::checkpoint::Manifest;
use crate::journal::{Record, RecordError};

/// The ingests of the log are in a carried file, and the log begins after them.
fn set_apart() -> SimDisk {
    let disk = directory();
    let (log, data_dir) = (layout().log_dir(), layout().data_dir);
    let mut manifest = Manifest::read(&disk, &data_dir).unwrap().unwrap();
    let last = wal::check(&disk, &log).unwrap().last_sequence;
    let mut records: Vec<(Sequence, Vec<u8>)> = Vec::new();
    let mut each = |sequence: Sequence, bytes: &[u8]| {
        if matches!(Record::decode(bytes)?, Record::Ingest(_)) {
            records.push((sequence, bytes.to_vec()));
        }
        Ok::<_, RecordError>(())
    };
    wal::records(&disk, &log, (manifest.covered, last), &mut each).unwrap();
    let mut writer = CarriedDir::of(&data_dir)
        .writer(&disk)
        .map(|writer| (writer, 0))
        .unwrap();
    for (sequence, record) in &records {
        writer.0.push(1, *sequence, record).unwrap();
        writer.1 += 1;
    }
    assert_eq!(writer.1, 3);
    writer.0.finish().unwrap();
    for path in wal::files(&disk, &log).unwrap() {
        disk.remove(&path).unwrap();
    }
    disk.sync_dir(&log).unwrap();
    wal::repair(&disk, &log, last).unwrap();
    (manifest.covered, manifest.catalog_covered) = (last, last);
    manifest.carried = vec![(1, records[0].0)];
    manifest.write(&disk, &data_dir).unwrap();
    disk.crash(Crash::KINDS[0])
}

#[test]
fn carried_records_are_cut_at_their_first_damage() {
    let disk = set_apart();
    assert_eq!(points(&disk.crash(Crash::KINDS[0])).unwrap(), 200);
    assert!(run(&disk, false).0);
    let path = with_suffix(&disk, ".records").remove(0);
    let bytes = disk.len(&path).unwrap();
    for (offset, left) in [(10, 80), (bytes / 2, 120), (bytes - 1, 200)] {
        let damaged = disk.crash(Crash::KINDS[0]);
        damage_byte(&damaged, &path, offset);
        let (whole, report) = run(&damaged, false);
        assert!(!whole && report.contains(&*path.to_string_lossy()), "{report}");
        let (whole, report) = run(&damaged, true);
        assert!(whole && report.contains("lost"), "{report}");
        assert_eq!(points(&damaged).unwrap(), left, "{report}");
        assert_eq!(with_suffix(&damaged, ".records.damaged").len(), 1);
    }
    disk.remove(&path).unwrap();
    let (whole, report) = run(&disk, true);
    assert!(whole && report.contains("lost"), "{report}");
    assert_eq!(points(&disk).unwrap(), 80);
}

/// A rebuilt manifest names the carried records that its segments do not contain.
#[test]
fn a_rebuilt_manifest_names_carried_records() {
    let disk = set_apart();
    damage_byte(&disk, &Manifest::path(&layout().data_dir), 40);
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let (whole, report) = run(&disk, true);
    assert!(whole && report.contains("made anew"), "{report}");
    assert_eq!(points(&disk).unwrap(), 200, "{report}");
    let manifest = Manifest::read(&*port, &layout().data_dir).unwrap().unwrap();
    assert_eq!(manifest.carried.len(), 1);
}
