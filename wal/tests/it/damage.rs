//! Bit rot, missing files and truncation: refused with file and offset, or a torn tail; never a wrong payload.

use std::sync::Arc;

use disk::Disk;
use disk::sim::{Crash, SimDisk};
use wal::{Damage, DamageKind, LogError, Sequence};

use crate::common::{OPTIONS, Records, commit, dir, file, long_log, open, small_log, try_open};

/// Opens a log that must be refused and left unaltered.
fn refused(disk: &SimDisk, from: Sequence) -> Damage {
    let before = disk.files();
    let opened = try_open(Arc::new(disk.clone()), OPTIONS, from);
    assert!(disk.files() == before, "a refused log was altered");
    match opened {
        Err(LogError::Damaged(damage)) => *damage,
        Err(other) => panic!("refused for another reason: {other}"),
        Ok((log, ..)) => panic!("opened, up to record {}", log.last_sequence()),
    }
}

fn copy(disk: &SimDisk) -> SimDisk {
    let copy = SimDisk::new(0);
    for (path, bytes) in disk.files() {
        copy.put(&path, &bytes);
    }
    copy
}

#[test]
fn a_flipped_bit_is_detected_or_cuts_the_last_frame_only() {
    let disk = SimDisk::new(1);
    let ends = small_log(&disk);
    let (_, _, whole) = open(&disk);
    let last_frame = ends[2];
    for offset in 0..ends[3] {
        for bit in 0..8 {
            let damaged = copy(&disk);
            damaged.flip_bit(&file(1), offset, bit);
            if offset < last_frame {
                let damage = refused(&damaged, 0);
                let frame = ends.iter().rfind(|end| **end <= offset).copied().unwrap_or(0);
                assert_eq!(
                    (damage.path, damage.offset),
                    (file(1), frame),
                    "byte {offset}, bit {bit}"
                );
            } else {
                let (_, recovery, records) = open(&damaged);
                assert_eq!(
                    recovery.torn_tail.map(|tail| tail.offset),
                    Some(last_frame),
                    "byte {offset}"
                );
                assert_eq!(records, whole[..3], "byte {offset}, bit {bit}");
            }
        }
    }
}

#[test]
fn after_a_close_a_flipped_bit_in_the_last_frame_is_detected_too() {
    let disk = SimDisk::new(1);
    let ends = small_log(&disk);
    open(&disk).0.close().expect("close");
    // The bytes written by `close` are durable.
    let disk = disk.crash(Crash::KINDS[1]);
    let (log, recovery, records) = open(&copy(&disk));
    assert_eq!(
        (log.last_sequence(), recovery.torn_tail, records.len()),
        (6, None, 6)
    );
    for offset in 0..ends[3] {
        let damaged = copy(&disk);
        damaged.flip_bit(&file(1), offset, 0);
        refused(&damaged, 0);
    }
}

#[test]
fn a_flipped_bit_in_an_earlier_file_is_refused() {
    let disk = SimDisk::new(1);
    long_log(&disk, 3);
    for (path, bytes) in [(file(1), disk.len(&file(1))), (file(3), disk.len(&file(3)))] {
        for offset in 0..bytes.expect("length") {
            let damaged = copy(&disk);
            damaged.flip_bit(&path, offset, (offset % 8) as u8);
            assert_eq!(refused(&damaged, 0).path, path, "byte {offset}");
        }
    }
}

#[test]
fn truncating_the_last_file_keeps_exactly_the_complete_frames() {
    let disk = SimDisk::new(1);
    let ends = small_log(&disk);
    let (_, _, whole) = open(&disk);
    let records_at = [0, 2, 3, 6];
    for length in 0..=ends[3] {
        let cut = copy(&disk);
        cut.edit(&file(1), |bytes| bytes.truncate(length as usize));
        let frames = ends.iter().rposition(|end| *end <= length);
        let expected = frames.map_or(0, |frames| records_at[frames]);
        let (mut log, recovery, records) = open(&cut);
        assert_eq!(records, whole[..expected], "length {length}");
        assert_eq!(
            recovery.torn_tail.is_none(),
            ends.contains(&length),
            "length {length}"
        );
        let first = commit(&mut log, &[b"new", b"newer"]);
        assert_eq!(first, expected as u64 + 1);
        drop(log);
        for _ in 0..2 {
            let (_, recovery, records) = open(&cut);
            assert_eq!(recovery.torn_tail, None, "length {length}");
            assert_eq!(
                records.last(),
                Some(&(first + 1, b"newer".to_vec())),
                "length {length}"
            );
        }
    }
}

#[test]
fn truncating_the_last_of_several_files_keeps_the_complete_frames() {
    let disk = SimDisk::new(1);
    let whole = long_log(&disk, 2);
    let last = disk.len(&file(3)).expect("length");
    for length in 0..last {
        let cut = copy(&disk);
        cut.edit(&file(3), |bytes| bytes.truncate(length as usize));
        let (mut log, _, records) = open(&cut);
        let expected = if length >= 64 + 32 + 4 + 100 { 3 } else { 2 };
        assert_eq!(records, whole[..expected], "length {length}");
        commit(&mut log, &[b"new"]);
        drop(log);
        assert_eq!(open(&cut).2.len(), expected + 1, "length {length}");
    }
}

#[test]
fn truncation_of_an_earlier_file_is_refused() {
    let disk = SimDisk::new(1);
    long_log(&disk, 3);
    for length in 0..disk.len(&file(3)).expect("length") {
        let cut = copy(&disk);
        cut.edit(&file(3), |bytes| bytes.truncate(length as usize));
        let damage = refused(&cut, 0);
        assert!(
            damage.path == file(3) || damage.path == file(5),
            "length {length}: {damage}"
        );
    }
}

#[test]
fn garbage_after_the_last_frame_is_a_torn_tail_and_zeros_are_not() {
    let disk = SimDisk::new(1);
    let ends = small_log(&disk);
    let frame = disk.files()[&file(1)][ends[1] as usize..ends[2] as usize].to_vec();
    let garbage: Vec<Vec<u8>> = vec![
        vec![0; 1],
        vec![0; 100_000],
        vec![0xF7; 700_000],
        b"\xF7TWF".repeat(100_000),
        // A copy of an earlier frame at another offset.
        frame.repeat(3),
    ];
    for tail in garbage {
        let torn = copy(&disk);
        torn.edit(&file(1), |bytes| {
            bytes.truncate(ends[3] as usize);
            bytes.extend_from_slice(&tail);
        });
        let (_, recovery, records) = open(&torn);
        let garbage = tail.iter().any(|byte| *byte != 0);
        assert_eq!(
            recovery.torn_tail.map(|torn| torn.bytes),
            garbage.then_some(tail.len() as u64)
        );
        assert_eq!(records.len(), 6);
        assert_eq!(torn.files()[&file(1)].len() as u64, ends[3]);
    }
}

#[test]
fn a_zeroed_sector_is_a_torn_tail_only_in_the_last_frame() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    commit(&mut log, &[&[1; 2_000]]);
    let last_frame = log.tail_bytes();
    commit(&mut log, &[&[2; 1_900]]);
    for sector in 0..disk.len(&file(1)).expect("length") / 512 {
        let torn = copy(&disk);
        torn.edit(&file(1), |bytes| bytes[sector as usize * 512..][..512].fill(0));
        if sector * 512 >= last_frame {
            let (_, recovery, records) = open(&torn);
            assert_eq!(recovery.torn_tail.map(|tail| tail.offset), Some(last_frame));
            assert_eq!(records, [(1, vec![1; 2_000])]);
        } else {
            refused(&torn, 0);
        }
    }
}

#[test]
fn a_bad_frame_followed_by_written_bytes_is_damage() {
    let disk = SimDisk::new(1);
    let ends = small_log(&disk);
    disk.flip_bit(&file(1), ends[3] - 1, 0);
    for (behind, torn) in [(&[0; 300_000][..], true), (b"\0\0\0x", false)] {
        let disk = copy(&disk);
        disk.edit(&file(1), |bytes| bytes.extend_from_slice(behind));
        if torn {
            assert_eq!(open(&disk).1.torn_tail.map(|tail| tail.offset), Some(ends[2]));
        } else {
            assert_eq!(refused(&disk, 0).offset, ends[2]);
        }
    }
}

#[test]
fn a_missing_file_is_refused() {
    let disk = SimDisk::new(1);
    let whole = long_log(&disk, 4);
    for missing in [3, 5] {
        let holed = copy(&disk);
        holed.remove(&file(missing)).expect("remove");
        let damage = refused(&holed, 0);
        assert_eq!((damage.path, damage.sequence), (file(missing + 2), missing));
        assert_eq!(damage.kind, DamageKind::MissingFile { found: missing + 2 });
    }
    let begun_late = copy(&disk);
    begun_late.remove(&file(1)).expect("remove");
    for from in [0, 1] {
        let damage = refused(&begun_late, from);
        assert_eq!(
            (damage.sequence, damage.kind),
            (from + 1, DamageKind::MissingFile { found: 3 })
        );
    }
    let (_, _, records) = try_open(Arc::new(begun_late), OPTIONS, 2).expect("the rest is whole");
    assert_eq!(records, whole[2..]);
}

#[test]
fn a_log_shorter_than_what_was_read_from_it_is_refused() {
    let disk = SimDisk::new(1);
    let damage = refused(&disk, 5);
    assert_eq!(
        (damage.sequence, damage.kind),
        (1, DamageKind::EndsEarly { covered: 5 })
    );
    long_log(&disk, 2);
    assert_eq!(refused(&disk, 5).kind, DamageKind::EndsEarly { covered: 5 });
    let (_, recovery, records) = try_open(Arc::new(disk.clone()), OPTIONS, 4).expect("all is covered");
    assert_eq!((recovery.records, records), (0, Records::new()));
}

#[test]
fn files_of_another_log_or_order_are_refused() {
    let (disk, other) = (SimDisk::new(1), SimDisk::new(2));
    long_log(&disk, 3);
    let (mut log, _, _) = open(&other);
    commit(&mut log, &[b"other", b"records"]);
    log.rotate().expect("rotate");
    commit(&mut log, &[b"of the same", b"numbers"]);

    let mixed = copy(&disk);
    mixed.put(&file(1), &other.files()[&file(1)]);
    let damage = refused(&mixed, 0);
    assert_eq!(damage.path, file(3));
    assert!(
        matches!(
            damage.kind,
            DamageKind::Predecessor {
                expected: 1,
                found: 1,
                ..
            }
        ),
        "{damage}"
    );

    let renamed = copy(&disk);
    renamed.rename(&file(5), &file(7)).expect("rename");
    assert!(matches!(refused(&renamed, 0).kind, DamageKind::Header(_)));
}

#[test]
fn a_later_format_version_is_refused_and_not_called_damage() {
    let disk = SimDisk::new(1);
    small_log(&disk);
    disk.edit(&file(1), |bytes| {
        bytes[8] = 2;
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    });
    let before = disk.files();
    let opened = try_open(Arc::new(disk.clone()), OPTIONS, 0).map(drop);
    assert!(matches!(
        opened,
        Err(LogError::UnsupportedVersion {
            found: 2,
            supported: 1,
            ..
        })
    ));
    assert!(disk.files() == before);
}

#[test]
fn foreign_and_temporary_files_are_kept_and_ignored() {
    let disk = SimDisk::new(1);
    small_log(&disk);
    let foreign = [
        "notes.txt",
        "snapshot.tmp",
        "1.log",
        "00000000000000000001.log.cut",
        "00000000000000000000.log",
    ];
    for name in foreign {
        disk.put(&dir().join(name), b"not ours");
    }
    let (mut log, _, records) = open(&disk);
    assert_eq!(records.len(), 6);
    commit(&mut log, &[b"more"]);
    log.rotate().expect("rotate");
    log.trim(7).expect("trim");
    assert!(
        foreign
            .iter()
            .all(|name| disk.files()[&dir().join(name)] == b"not ours")
    );
}
