//! Preallocated room after the last frame: zeros that the next frames overwrite.

use std::sync::Arc;

use disk::Disk;
use disk::sim::{Crash, Operation, SimDisk};
use wal::check;

use crate::common::{OPTIONS, commit, dir, file, open, try_open};

/// Payload, record header, frame header.
const FRAME_BYTES: u64 = 20 + 4 + 32;
const SMALL: &[u8] = &[7; 20];

#[test]
fn small_frames_do_not_lengthen_the_file_and_cost_one_write_and_one_sync() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    commit(&mut log, &[SMALL]);
    let bytes = disk.len(&file(1)).expect("length");
    assert_eq!(bytes, log.tail_bytes() + OPTIONS.room_bytes);
    let operations = disk.operations();
    let fit = OPTIONS.room_bytes / FRAME_BYTES;
    for _ in 0..fit {
        commit(&mut log, &[SMALL]);
    }
    assert_eq!(disk.operations() - operations, 2 * fit);
    assert_eq!(disk.len(&file(1)).expect("length"), bytes);
    let syncs = disk.count(Operation::Sync);
    commit(&mut log, &[SMALL]);
    assert_eq!(
        disk.count(Operation::Sync) - syncs,
        1,
        "new room is synced with the frame"
    );
    assert_eq!(
        disk.len(&file(1)).expect("length"),
        log.tail_bytes() + OPTIONS.room_bytes
    );
}

#[test]
fn a_large_frame_preallocates_nothing() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    commit(&mut log, &[&[1; 200]]);
    assert_eq!(disk.len(&file(1)).expect("length"), log.tail_bytes());
}

#[test]
fn preallocated_room_is_not_a_torn_tail_and_is_cut_at_opening() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    for _ in 0..3 {
        commit(&mut log, &[SMALL]);
    }
    let bytes = log.tail_bytes();
    drop(log);
    for crash in Crash::KINDS {
        let found = disk.crash(crash);
        let report = check(&found, dir()).expect("readable");
        assert_eq!(
            (report.is_sound(), report.torn_tail, report.records),
            (true, None, 3)
        );
        let (_, recovery, records) = open(&found);
        assert_eq!((recovery.torn_tail, records.len()), (None, 3), "{crash:?}");
        assert_eq!(found.len(&file(1)).expect("length"), bytes, "{crash:?}");
    }
}

#[test]
fn sealed_and_closed_files_end_at_their_last_frame() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    commit(&mut log, &[SMALL]);
    let sealed = log.tail_bytes();
    log.rotate().expect("rotate");
    commit(&mut log, &[SMALL]);
    let closed = log.tail_bytes() - sealed + 32;
    log.close().expect("close");
    for crash in Crash::KINDS {
        let found = disk.crash(crash);
        assert_eq!(found.len(&file(1)).expect("length"), sealed, "{crash:?}");
        assert_eq!(found.len(&file(2)).expect("length"), closed, "{crash:?}");
    }
}

/// Zeros at the end of a sealed file are damage, so they must be removed before the next file exists.
#[test]
fn a_crash_while_starting_a_file_is_not_damage() {
    for steps in 1..=6 {
        let disk = SimDisk::new(steps);
        let (mut log, _, _) = open(&disk);
        commit(&mut log, &[SMALL]);
        disk.stop_at(disk.operations() + steps);
        assert!(log.rotate().is_err(), "six operations");
        for crash in Crash::KINDS {
            for _ in 0..20 {
                let found = disk.crash(crash);
                let opened = try_open(Arc::new(found), OPTIONS, 0);
                let (_, _, records) =
                    opened.unwrap_or_else(|error| panic!("step {steps}, {crash:?}: {error}"));
                assert_eq!(records.len(), 1);
            }
        }
    }
}

#[test]
fn a_full_disk_accepts_exactly_the_frames_that_fit() {
    for bytes in 0..FRAME_BYTES {
        let disk = SimDisk::new(bytes);
        let (mut log, _, _) = open(&disk);
        // The first frame is written, and a part of its room.
        disk.set_budget_bytes(Some(disk.used_bytes() + 3 * FRAME_BYTES + bytes));
        for _ in 0..3 {
            commit(&mut log, &[SMALL]);
        }
        let error = log.append(&[SMALL]).expect_err("no space");
        assert!(error.is_full(), "{bytes} bytes: {error}");
        disk.set_budget_bytes(None);
        commit(&mut log, &[SMALL]);
        commit(&mut log, &[SMALL]);
        log.rotate().expect("rotate");
        commit(&mut log, &[SMALL]);
        for crash in Crash::KINDS {
            let (_, recovery, records) = open(&disk.crash(crash));
            assert_eq!((recovery.torn_tail, records.len()), (None, 6), "{crash:?}");
        }
    }
}
