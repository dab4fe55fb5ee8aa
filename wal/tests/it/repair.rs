//! Explicit repair: it cuts at the first damage, keeps the cut bytes, and reports the loss.

use std::sync::Arc;

use disk::Disk;
use disk::sim::{Crash, SimDisk};
use wal::{check, repair};

use crate::common::{OPTIONS, Records, commit, dir, file, long_log, try_open};

fn opens(disk: &SimDisk, from: u64) -> Records {
    let (mut log, _, records) = try_open(Arc::new(disk.clone()), OPTIONS, from).expect("repaired");
    let first = commit(&mut log, &[b"goes on"]);
    drop(log);
    let (.., again) = try_open(Arc::new(disk.clone()), OPTIONS, from).expect("repaired");
    assert_eq!(again.last(), Some(&(first, b"goes on".to_vec())));
    records
}

#[test]
fn a_sound_log_is_not_altered() {
    let disk = SimDisk::new(1);
    long_log(&disk, 2);
    disk.edit(&file(3), |bytes| bytes.extend_from_slice(b"torn"));
    let operations = disk.operations();
    let report = repair(&disk, dir(), 0).expect("repair");
    assert_eq!(
        (report.damage, report.last_sequence, report.lost_from),
        (None, 4, None)
    );
    assert_eq!(disk.operations(), operations);
}

#[test]
fn a_bad_frame_and_its_successors_are_cut_and_kept_aside() {
    let disk = SimDisk::new(1);
    let whole = long_log(&disk, 4);
    disk.flip_bit(&file(3), 300, 1);
    let before = disk.files();
    let report = repair(&disk, dir(), 0).expect("repair");
    assert_eq!(
        report.damage.map(|damage| (damage.path, damage.offset)),
        Some((file(3), 200))
    );
    assert_eq!(
        (report.last_sequence, report.lost_from, report.lost_to),
        (3, Some(4), Some(8))
    );
    let kept: Vec<_> = report
        .kept_aside
        .iter()
        .map(|path| disk.files()[path].clone())
        .collect();
    assert_eq!(kept, [7, 5, 3].map(|first| before[&file(first)].clone()));
    assert_eq!(opens(&disk, 0), whole[..3]);
}

#[test]
fn a_bad_header_or_missing_file_cuts_whole_files() {
    for damage in [
        |disk: &SimDisk| disk.flip_bit(&file(5), 20, 0),
        |disk: &SimDisk| {
            disk.remove(&file(3)).expect("remove");
        },
    ] {
        let disk = SimDisk::new(1);
        let whole = long_log(&disk, 4);
        damage(&disk);
        let report = repair(&disk, dir(), 0).expect("repair");
        assert_eq!(opens(&disk, 0), whole[..report.last_sequence as usize]);
        assert_eq!(report.lost_from, Some(report.last_sequence + 1));
    }
}

#[test]
fn a_log_with_missing_ends_continues_after_the_covered_sequence() {
    let late = SimDisk::new(1);
    long_log(&late, 3);
    late.remove(&file(1)).expect("remove");
    assert_eq!(repair(&late, dir(), 1).expect("repair").lost_to, Some(6));
    assert_eq!(opens(&late, 1), []);

    let early = SimDisk::new(1);
    long_log(&early, 3);
    let report = repair(&early, dir(), 9).expect("repair");
    assert_eq!((report.last_sequence, report.kept_aside.len()), (9, 3));
    assert_eq!(opens(&early, 9), []);

    let torn_at_birth = SimDisk::new(1);
    torn_at_birth.put(&file(1), b"");
    repair(&torn_at_birth, dir(), 9).expect("repair");
    assert_eq!(opens(&torn_at_birth, 9), []);
}

#[test]
fn an_interrupted_repair_is_repeatable_and_a_finished_one_durable() {
    // A frame followed by others in other files only; one followed by others in the same file; a header.
    for (path, offset, kept) in [(file(3), 300, 3), (file(3), 70, 2), (file(5), 20, 4)] {
        for stop_at in 1..20 {
            for crash in Crash::KINDS {
                let context = format!("{path:?} at {offset}, stop {stop_at}, {crash:?}");
                let disk = SimDisk::new(stop_at);
                let whole = long_log(&disk, 4);
                disk.flip_bit(&path, offset, 1);
                let before = disk.files();
                let disk = disk.crash(Crash::KINDS[0]);
                disk.stop_at(stop_at);
                let first = repair(&disk, dir(), 0);
                let disk = disk.crash(crash);
                if first.is_ok() {
                    let report = check(&disk, dir()).expect("readable");
                    assert!(
                        report.is_sound() && report.torn_tail.is_none(),
                        "{context}: {report:?}"
                    );
                }
                repair(&disk, dir(), 0).unwrap_or_else(|error| panic!("{context}: {error}"));
                let after = disk.files();
                for (path, bytes) in &before {
                    assert!(
                        after.values().any(|kept| kept == bytes),
                        "{context}: {path:?} is lost"
                    );
                }
                assert!(opens(&disk, 0) == whole[..kept], "{context}");
            }
        }
    }
}
