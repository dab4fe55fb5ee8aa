//! A disk that is full or fails while the log writes: nothing is acknowledged that is not durable.

use std::error::Error;
use std::sync::Arc;

use disk::sim::{Crash, Fault, Keep, Operation, SimDisk};
use wal::{Log, LogError, LogOptions, SyncPolicy};

use crate::common::{OPTIONS, commit, file, open, try_open};

const NOTHING_KEPT: Crash = Crash {
    keep: Keep::None,
    torn: false,
};

/// Opens the log twice after every kind of crash, and expects these payloads.
fn check_crashes(disk: &SimDisk, payloads: &[&[u8]]) {
    for crash in Crash::KINDS {
        let found = disk.crash(crash);
        for _ in 0..2 {
            let (_, _, records) = open(&found);
            assert!(
                records
                    .iter()
                    .map(|(_, payload)| payload.as_slice())
                    .eq(payloads.iter().copied()),
                "{crash:?}"
            );
        }
    }
}

fn assert_poisoned(log: &mut Log) {
    assert!(matches!(log.append(&[b"x"]), Err(LogError::Poisoned { .. })));
    assert!(matches!(log.sync(), Err(LogError::Poisoned { .. })));
    assert!(matches!(log.trim(u64::MAX), Err(LogError::Poisoned { .. })));
    assert!(matches!(log.rotate(), Err(LogError::Poisoned { .. })));
    assert!(log.poisoned().is_some());
}

#[test]
fn a_full_disk_at_any_byte_of_a_frame_loses_and_invents_nothing() {
    let group: [&[u8]; 2] = [&[3; 700], b"end"];
    let frame_bytes = 32 + 4 + 700 + 4 + 3;
    let options = LogOptions {
        sync: SyncPolicy::Always,
        room_bytes: 0,
        ..OPTIONS
    };
    for room in 0..frame_bytes {
        let disk = SimDisk::new(room);
        let (mut log, _, _) = try_open(Arc::new(disk.clone()), options, 0).expect("open");
        commit(&mut log, &[b"before"]);
        let bytes = log.tail_bytes();
        disk.set_budget_bytes(Some(disk.used_bytes() + room));
        for _ in 0..2 {
            let error = log.append(&group).expect_err("no room");
            assert!(error.is_full(), "room {room}: {error}");
            assert_eq!(
                (log.last_sequence(), log.tail_bytes(), disk.used_bytes()),
                (1, bytes, bytes)
            );
        }
        // The cut is durable before anything else is written there.
        let (_, recovery, _) = open(&disk.crash(NOTHING_KEPT));
        assert_eq!(
            (recovery.last_sequence, recovery.torn_tail),
            (1, None),
            "room {room}"
        );
        assert_eq!(
            disk.crash(Crash::KINDS[5]).files()[&file(1)].len() as u64,
            bytes,
            "room {room}"
        );

        disk.set_budget_bytes(None);
        assert_eq!(commit(&mut log, &group), 2);
        check_crashes(&disk, &[b"before", group[0], group[1]]);
        drop(log);
        let (mut log, _, _) = open(&disk);
        commit(&mut log, &[b"after"]);
        check_crashes(&disk, &[b"before", group[0], group[1], b"after"]);
    }
}

#[test]
fn a_full_disk_while_starting_a_file_leaves_the_log_usable() {
    for bytes in 0..=64 {
        for operation in [Operation::Create, Operation::Write] {
            let disk = SimDisk::new(bytes);
            let (mut log, _, _) = open(&disk);
            let large = vec![1; OPTIONS.file_bytes_max as usize - 64 - 36];
            commit(&mut log, &[&large]);
            assert_eq!(
                log.tail_bytes(),
                OPTIONS.file_bytes_max,
                "a file may be exactly full"
            );
            disk.fail(operation, 1, Fault::Full { bytes });
            let error = log.append(&[b"next"]).expect_err("no room for a new file");
            assert!(error.is_full(), "{error}");
            assert_eq!(disk.files().len(), 1);
            assert_eq!(commit(&mut log, &[b"next"]), 2);
            assert_eq!(disk.files().len(), 2);
            check_crashes(&disk, &[&large, b"next"]);
        }
    }
}

/// Regression: too few descriptors at that moment ended writing until a restart.
#[test]
fn too_few_descriptors_while_starting_a_file_leave_the_log_usable() {
    for (operation, nth) in [(Operation::Create, 1), (Operation::Sync, 2)] {
        for times in 1..4 {
            let disk = SimDisk::new(times);
            let options = LogOptions {
                sync: SyncPolicy::Always,
                room_bytes: 0,
                ..OPTIONS
            };
            let (mut log, _, _) = try_open(Arc::new(disk.clone()), options, 0).expect("open");
            let large = vec![1; OPTIONS.file_bytes_max as usize - 64 - 36];
            commit(&mut log, &[&large]);
            for time in 0..times {
                // The first sync is of the new file, the second of its name, the next of the name of the removed file.
                let nth = if time == 0 { nth } else { 1 };
                disk.fail(operation, nth, Fault::Descriptors);
                let error = log.append(&[b"next"]).expect_err("no descriptor");
                assert!(error.is_passing() && !error.is_full(), "{error}");
                assert!(log.poisoned().is_none());
            }
            assert_eq!(commit(&mut log, &[b"next"]), 2);
            assert_eq!(disk.files().len(), 2);
            check_crashes(&disk, &[&large, b"next"]);
        }
    }
}

#[test]
fn too_few_descriptors_while_dropping_a_file_leave_the_log_usable() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    commit(&mut log, &[&[1; 3_000]]);
    commit(&mut log, &[&[2; 3_000]]);
    disk.fail(Operation::Sync, 1, Fault::Descriptors);
    let error = log.trim(1).expect_err("no descriptor");
    assert!(error.is_passing(), "{error}");
    assert_eq!(log.trim(1).expect("the next try goes on"), 1);
    commit(&mut log, &[b"next"]);
    for crash in Crash::KINDS {
        let (_, _, records) = try_open(Arc::new(disk.crash(crash)), OPTIONS, 1).expect("open");
        assert_eq!(records.len(), 2, "{crash:?}");
    }
}

/// If its removal were not durable, the file that could not be started would reappear after a crash, before records
/// that its predecessor received meanwhile.
#[test]
fn a_file_that_could_not_be_started_does_not_reappear() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    commit(&mut log, &[&[1; 3_000]]);
    disk.fail(Operation::Write, 1, Fault::Full { bytes: 10 });
    assert!(log.append(&[[2; 3_000]]).expect_err("no room").is_full());
    commit(&mut log, &[b"fits into the old file"]);
    for _ in 0..20 {
        check_crashes(&disk, &[&[1; 3_000], b"fits into the old file"]);
    }
}

#[test]
fn a_failed_cut_poisons_the_log() {
    for (operation, nth) in [(Operation::Truncate, 1), (Operation::Sync, 1)] {
        let disk = SimDisk::new(1);
        let (mut log, _, _) = open(&disk);
        commit(&mut log, &[b"before"]);
        disk.fail(Operation::Write, 1, Fault::Full { bytes: 20 });
        disk.fail(operation, nth, Fault::Io);
        assert!(matches!(log.append(&[b"lost"]), Err(LogError::Poisoned { .. })));
        assert_poisoned(&mut log);
        check_crashes(&disk, &[b"before"]);
        let (mut log, _, _) = open(&disk);
        commit(&mut log, &[b"after"]);
        check_crashes(&disk, &[b"before", b"after"]);
    }
}

#[test]
fn a_failed_write_poisons_the_log() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    commit(&mut log, &[b"before"]);
    disk.fail(Operation::Write, 1, Fault::Io);
    let error = log.append(&[b"lost"]).expect_err("the disk fails");
    assert!(matches!(error, LogError::Poisoned { .. }));
    let cause = error.source().expect("the first failure");
    assert!(cause.to_string().starts_with("cannot write "), "{cause}");
    assert_eq!(
        cause.source().map(|source| source.is::<std::io::Error>()),
        Some(true)
    );
    assert_poisoned(&mut log);
    check_crashes(&disk, &[b"before"]);
}

#[test]
fn a_failed_sync_ends_acknowledgement_and_loses_nothing_before_it() {
    for nth in 1..=50 {
        for fault in [Fault::Io, Fault::Full { bytes: 0 }] {
            let disk = SimDisk::new(nth);
            let (mut log, _, _) = open(&disk);
            disk.fail(Operation::Sync, nth, fault);
            let mut acknowledged = Vec::new();
            let mut failed = false;
            for number in 0..60_u8 {
                let payload = vec![number; 400];
                let result = log.append(&[&payload]).and_then(|_| log.sync());
                assert_eq!(
                    failed,
                    failed && result.is_err(),
                    "acknowledged after a failed sync"
                );
                match result {
                    Ok(()) => acknowledged.push(payload),
                    Err(error) => {
                        failed = true;
                        assert!(matches!(error, LogError::Poisoned { .. }), "sync {nth}: {error}");
                    }
                }
            }
            assert!(failed);
            assert_eq!(log.durable_sequence(), acknowledged.len() as u64);
            assert_poisoned(&mut log);
            let found = disk.crash(NOTHING_KEPT);
            let (_, _, records) = open(&found);
            assert!(
                records.into_iter().map(|(_, payload)| payload).eq(acknowledged),
                "sync {nth}"
            );
        }
    }
}

/// Linux marks pages whose write failed as clean: a restarted process reads the frame, appends
/// after it, and a power cut would leave a hole before acknowledged frames.
#[test]
fn a_restart_makes_frames_left_by_a_failed_sync_durable() {
    for nth in 1..=30 {
        let disk = SimDisk::new(nth);
        let (mut log, _, _) = open(&disk);
        disk.fail(Operation::Sync, nth, Fault::Io);
        let mut number = 0;
        while log.append(&[[number; 500]]).and_then(|_| log.sync()).is_ok() {
            number += 1;
        }
        drop(log);
        let (mut log, _, seen) = open(&disk);
        commit(&mut log, &[b"after the restart"]);
        let mut payloads: Vec<&[u8]> = seen.iter().map(|(_, payload)| payload.as_slice()).collect();
        payloads.push(b"after the restart");
        check_crashes(&disk, &payloads);
    }
}

#[test]
fn a_trim_that_fails_can_be_repeated_and_leaves_no_hole() {
    for (operation, nth) in [
        (Operation::Remove, 1),
        (Operation::Remove, 2),
        (Operation::Sync, 2),
    ] {
        let disk = SimDisk::new(1);
        crate::common::long_log(&disk, 5);
        let (mut log, _, _) = open(&disk);
        disk.fail(operation, nth, Fault::Io);
        log.trim(8).expect_err("the disk fails");
        for crash in Crash::KINDS {
            try_open(Arc::new(disk.crash(crash)), OPTIONS, 8).expect("no hole");
        }
        if operation == Operation::Remove {
            assert_eq!(log.trim(8).expect("again"), 5 - nth as usize);
        } else {
            assert_poisoned(&mut log);
        }
    }
}

#[test]
fn trimming_frees_a_full_disk() {
    let disk = SimDisk::new(1);
    crate::common::long_log(&disk, 4);
    let (mut log, _, _) = open(&disk);
    disk.set_budget_bytes(Some(disk.used_bytes()));
    assert!(log.append(&[b"more"]).expect_err("no room").is_full());
    assert_eq!(log.trim(8).expect("trim"), 4);
    commit(&mut log, &[b"more"]);
}
