//! Damage by flipped bits: how it is reported and repaired.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::Disk;
use disk::sim::{Crash, SimDisk};

use super::super::check;
use super::directory::{damage_byte, data_dir, directory, fork, layout, points, run, with_suffix};
use crate::checkpoint::{BlocksVersion, Manifest, SegmentsVersion, open};

#[test]
fn a_sound_directory_is_summarized_and_not_altered() {
    let disk = directory();
    let before = disk.files();
    let (whole, report) = run(&disk, false);
    assert!(whole, "{report}");
    assert_eq!(disk.files(), before);
    for expected in [
        "sound",
        "\"cellar\"",
        "2 segments",
        "80 points",
        "200 points, those in the log included",
        "ledger: 4 runs",
        "catalog: 1 organizations, 1 buckets",
    ] {
        assert!(report.contains(expected), "{expected:?} is not in: {report}");
    }
    assert!(run(&disk, true).0);
    assert_eq!(disk.files(), before, "there is nothing to repair");
}

/// Every byte of every file: damage is reported, and the check alters nothing.
#[test]
fn a_flipped_bit_is_reported_by_file_and_nothing_is_altered() {
    let disk = directory();
    let mut unreported: Vec<(PathBuf, usize)> = Vec::new();
    for (path, bytes) in disk
        .files()
        .into_iter()
        .filter(|(path, _)| !path.ends_with("LOCK"))
    {
        for offset in (0..bytes.len()).step_by(bytes.len().div_ceil(150)) {
            let corrupted = fork(&disk);
            corrupted.flip_bit(&path, offset as u64, (offset % 8) as u8);
            let before = corrupted.files();
            let (whole, report) = run(&corrupted, false);
            assert_eq!(corrupted.files(), before, "{} at {offset}", path.display());
            if whole {
                unreported.push((path.clone(), offset));
            } else {
                assert!(
                    report.contains(&*path.to_string_lossy()),
                    "{} at {offset}: {report}",
                    path.display()
                );
            }
        }
    }
    // After the last frame is preallocated room, whose content does not matter.
    let log = with_suffix(&disk, ".log").pop().unwrap();
    let frames_end = wal::whole_bytes(&disk, &log).unwrap().unwrap() as usize;
    let is_room = |(path, offset): &(PathBuf, usize)| *path == log && *offset >= frames_end;
    assert!(unreported.iter().all(is_room), "{unreported:?}");
}

/// A server starts on a repaired directory. A flipped bit in a block loses that block; elsewhere it loses nothing.
#[test]
fn repairing_any_single_bit_loses_at_most_a_block() {
    let disk = directory();
    let all = points(&fork(&disk)).unwrap();
    assert_eq!(all, 200);
    let files = disk.files().into_iter();
    for (path, bytes) in files.filter(|(path, _)| !path.ends_with("LOCK")) {
        for offset in (0..bytes.len()).step_by(bytes.len().div_ceil(60)) {
            repair_flipped(&disk, &path, &bytes, offset, all);
        }
    }
}

fn repair_flipped(disk: &SimDisk, path: &Path, bytes: &[u8], offset: usize, all: u64) {
    let corrupted = fork(disk);
    corrupted.flip_bit(path, offset as u64, (offset % 8) as u8);
    if run(&fork(&corrupted), false).0 {
        return;
    }
    let mut damaged = bytes.to_vec();
    damaged[offset] ^= 1 << (offset % 8);
    let (whole, report) = run(&corrupted, true);
    let at = format!("{} at {offset}: {report}", path.display());
    assert!(whole, "{at}");
    let repaired = corrupted.files();
    let left = points(&corrupted).unwrap_or_else(|error| panic!("{error}: {at}"));
    if path.extension().is_some_and(|it| it == "segment") {
        assert!(left >= all - 20, "one block at most: {left} points left, {at}");
        assert!(left == all || report.contains("lost"), "{left} points left, {at}");
    } else {
        assert_eq!(left, all, "{at}");
        assert_eq!(repaired[path], bytes, "{at}");
    }
    let kept = corrupted.files().into_values().any(|kept| kept == damaged);
    assert!(kept, "the damaged bytes are kept aside: {at}");
    // Data written after the repair survives the next start.
    let (whole, report) = run(&corrupted.crash(Crash::KINDS[1]), false);
    assert!(whole, "{at} {report}");
}

/// A sector of any file: the repair reports exactly what is lost, and never changes the catalog.
#[test]
fn repairing_any_single_sector_restarts_and_reports_the_loss() {
    let disk = directory();
    for (path, bytes) in disk.files() {
        if path.ends_with("LOCK") {
            continue;
        }
        for offset in (0..bytes.len()).step_by(512) {
            let corrupted = fork(&disk);
            corrupted.edit(&path, |bytes| {
                let end = bytes.len().min(offset + 512);
                bytes[offset..end].fill(0xA5);
            });
            let (whole, report) = run(&corrupted, true);
            let at = format!("{} at {offset}: {report}", path.display());
            if !whole {
                assert!(report.contains("the catalog cannot be repaired"), "{at}");
                assert!(path.extension().is_some_and(|it| it == "run"), "{at}");
                continue;
            }
            let left = points(&corrupted).unwrap_or_else(|error| panic!("{error}: {at}"));
            assert!(left == 200 || report.contains("lost"), "{left} points left, {at}");
        }
    }
}

/// Regression: a flipped bit of the version made it look like the manifest of a newer program, which is not repaired.
#[test]
fn a_manifest_with_a_damaged_magic_is_rewritten() {
    let disk = directory();
    let data_dir_path = layout().data_dir;
    let path = Manifest::path(&data_dir_path);
    let newest = Manifest::read(&disk, &data_dir_path).unwrap().unwrap();
    let with_short_entries = Manifest {
        blocks: BlocksVersion::PACKED,
        ..newest.clone()
    };
    let with_packed_blocks = Manifest {
        segments_version: SegmentsVersion::FIRST,
        ..with_short_entries.clone()
    };
    let oldest = Manifest {
        blocks: BlocksVersion::FIRST,
        ..with_packed_blocks.clone()
    };
    let mut with_dead_blocks = oldest.clone();
    // No block begins there.
    with_dead_blocks.set_dead(newest.segments[0], &std::iter::once(0..1).collect());
    for (magic, manifest) in [
        (b"TWMANI02", oldest),
        (b"TWMANI03", with_dead_blocks),
        (b"TWMANI04", with_packed_blocks),
        (b"TWMANI05", with_short_entries),
        (b"TWMANI06", newest),
    ] {
        manifest.write(&disk, &data_dir_path).unwrap();
        let whole_manifest = disk.files().remove(&path).unwrap();
        assert!(whole_manifest.starts_with(magic));
        for bit in 0..64 {
            let corrupted = fork(&disk);
            corrupted.flip_bit(&path, bit / 8, (bit % 8) as u8);
            let (whole, report) = run(&corrupted, true);
            assert!(whole && report.contains("turned back"), "bit {bit}: {report}");
            assert_eq!(corrupted.files()[&path], whole_manifest, "bit {bit}");
            assert_eq!(points(&corrupted).unwrap(), 200, "bit {bit}");
        }
    }
    // Files of another version are left unchanged.
    let newer = fork(&disk);
    let mut content = disk.files().remove(&path).unwrap().split_off(20);
    content[0] += 1;
    content.extend_from_slice(b"\xa3new\x01");
    let mut bytes = b"TWMANI07".to_vec();
    bytes.extend_from_slice(&(content.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&content).to_le_bytes());
    bytes.extend_from_slice(&content);
    newer.put(&path, &bytes);
    let error = check(&data_dir(&newer), true, &(), &mut Vec::new()).unwrap_err();
    assert!(error.contains("newer program"), "{error}");
    assert_eq!(newer.files()[&path], bytes);
}

/// One block is damaged: the others of its segment stay.
#[test]
fn a_damaged_block_loses_its_own_points_only() {
    let disk = directory();
    let segment = with_suffix(&disk, ".segment").remove(0);
    disk.flip_bit(&segment, 60, 3);
    let (whole, report) = run(&disk, false);
    assert!(!whole && report.contains("20 points of source 0"), "{report}");
    assert!(
        points(&fork(&disk)).is_ok(),
        "a server starts on it: only queries of the block fail"
    );
    let (whole, report) = run(&disk, true);
    assert!(
        whole && report.contains("lost") && report.contains("20 points of source 0"),
        "{report}"
    );
    assert_eq!(points(&disk).unwrap(), 180);
}

/// Damage to the index of a segment loses no point: each block is preceded by a head that identifies it.
#[test]
fn a_truncated_segment_keeps_its_points() {
    let disk = directory();
    let segment = with_suffix(&disk, ".segment").remove(0);
    let bytes = disk.files().remove(&segment).unwrap();
    let within_the_entries = bytes.len() - 80;
    for cut in [bytes.len() - 1, within_the_entries] {
        let corrupted = fork(&disk);
        corrupted.edit(&segment, |bytes| bytes.truncate(cut));
        let (whole, report) = run(&corrupted, true);
        assert!(whole, "{report}");
        assert_eq!(points(&corrupted).unwrap(), 200, "{report}");
    }
    let corrupted = fork(&disk);
    corrupted.edit(&segment, |bytes| bytes.truncate(60));
    let (whole, report) = run(&corrupted, true);
    assert!(
        whole && report.contains("lost") && report.contains("of bucket 1"),
        "{report}"
    );
    assert!(points(&corrupted).unwrap() < 200);
}

/// One entry of a history is damaged: the others stay.
#[test]
fn a_damaged_entry_loses_itself_only() {
    let disk = directory();
    let runs = with_suffix(&disk, ".run");
    let history = |disk: &SimDisk| {
        let mut runs = with_suffix(disk, ".run").into_iter();
        runs.find(|path| disk.files()[path][8] == 1).unwrap()
    };
    damage_byte(&disk, &history(&disk), 20);
    let (whole, report) = run(&disk, false);
    assert!(
        !whole && report.contains("1 entries of histories of rules"),
        "{report}"
    );
    let (whole, report) = run(&disk, true);
    assert!(whole && report.contains("lost 1 entries"), "{report}");
    let (whole, report) = run(&disk, false);
    assert!(
        whole && report.contains(&format!("ledger: {} runs", runs.len())),
        "{report}"
    );
    // Nothing can be recovered from a run with a damaged footer.
    let run_file = history(&disk);
    let end = disk.len(&run_file).unwrap();
    damage_byte(&disk, &run_file, end - 1);
    assert!(points(&fork(&disk)).unwrap_err().contains("tidewatch check"));
    let (whole, report) = run(&disk, true);
    assert!(
        whole && report.contains("all entries of a run of histories of rules are lost"),
        "{report}"
    );
    assert_eq!(points(&disk).unwrap(), 200);
}

/// The header of a run is restored by the checksum of the footer: damage to it loses nothing, in any stream.
#[test]
fn a_run_with_a_damaged_header_keeps_all_entries() {
    let disk = directory();
    for path in with_suffix(&disk, ".run") {
        let corrupted = fork(&disk);
        damage_byte(&corrupted, &path, 8);
        let (whole, report) = run(&corrupted, true);
        assert!(whole && report.contains("nothing of it is lost"), "{report}");
        assert_eq!(points(&corrupted).unwrap(), 200);
    }
}

/// Records covered by the manifest are cut off the log; later records with the same sequences must not be skipped.
#[test]
fn records_written_after_a_log_was_cut_survive_a_restart() {
    let disk = directory();
    let log = with_suffix(&disk, ".log").pop().unwrap();
    let read = |disk: &SimDisk| Manifest::read(disk, &layout().data_dir).unwrap().unwrap();
    // Simulates a bucket checkpoint as the last operation before the crash, and a damaged end of the log.
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let opened = open(&port, &layout()).unwrap_or_else(|error| panic!("{error}"));
    let covered = opened.tail.last;
    drop(opened);
    let mut manifest = read(&disk);
    manifest.buckets.get_mut(&1).unwrap().covered = covered;
    manifest.catalog_covered = covered;
    manifest.write(&disk, &layout().data_dir).unwrap();
    disk.edit(&log, |bytes| bytes.truncate(bytes.len() - 10));
    let (whole, report) = run(&disk, false);
    assert!(!whole && report.contains("manifest"), "{report}");
    assert!(points(&fork(&disk)).is_err());
    let (whole, report) = run(&disk, true);
    assert!(whole, "{report}");
    assert!(read(&disk).buckets[&1].covered < covered && read(&disk).catalog_covered < covered);
    points(&disk).unwrap();
}
