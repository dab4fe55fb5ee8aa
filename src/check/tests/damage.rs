//! Bits that flipped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wal::disk::Disk;
use wal::disk::sim::{Crash, SimDisk};

use super::directory::{directory, fork, layout, points, run, with_suffix};
use crate::checkpoint::open;

#[test]
fn a_sound_directory_is_told_in_figures_and_left_as_it_is() {
    let disk = directory();
    let before = disk.files();
    let (whole, said) = run(&disk, false);
    assert!(whole, "{said}");
    assert_eq!(disk.files(), before);
    for expected in [
        "sound",
        "\"cellar\"",
        "2 segments",
        "80 points",
        "200 points, those in the log included",
        "0 answers",
        "ledger: 2 runs with 12 entries",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in: {said}");
    }
    assert!(run(&disk, true).0);
    assert_eq!(disk.files(), before, "there is nothing to repair");
}

/// Every byte of every file: what is damaged is told, and nothing is altered by telling.
#[test]
fn a_flipped_bit_is_told_by_file_and_nothing_is_altered() {
    let disk = directory();
    let mut untold: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (path, bytes) in disk
        .files()
        .into_iter()
        .filter(|(path, _)| !path.ends_with("LOCK"))
    {
        for offset in (0..bytes.len()).step_by(bytes.len().div_ceil(150)) {
            let rotten = fork(&disk);
            rotten.flip_bit(&path, offset as u64, (offset % 8) as u8);
            let before = rotten.files();
            let (whole, said) = run(&rotten, false);
            assert_eq!(rotten.files(), before, "{} at {offset}", path.display());
            if whole {
                *untold.entry(path.clone()).or_default() += 1;
            } else {
                assert!(
                    said.contains(&*path.to_string_lossy()),
                    "{} at {offset}: {said}",
                    path.display()
                );
            }
        }
    }
    // Its last frame cannot be told from a torn one: the log was not closed in order.
    let log = with_suffix(&disk, ".log").pop().unwrap();
    assert!(untold.keys().all(|path| *path == log), "{untold:?}");
}

/// A repair leaves a directory on which a server starts, and the points that it says are lost are those that are gone.
#[test]
fn a_repair_of_any_one_file_starts_again_and_says_what_is_lost() {
    let disk = directory();
    let all = points(&fork(&disk)).unwrap();
    assert_eq!(all, 200);
    for (path, bytes) in disk
        .files()
        .into_iter()
        .filter(|(path, _)| !path.ends_with("LOCK"))
    {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for offset in (0..bytes.len()).step_by(bytes.len().div_ceil(60)) {
            let rotten = fork(&disk);
            rotten.flip_bit(&path, offset as u64, (offset % 8) as u8);
            if run(&fork(&rotten), false).0 {
                continue;
            }
            let (whole, said) = run(&rotten, true);
            let at = format!("{} at {offset}: {said}", path.display());
            if name == "catalog.snapshot" {
                assert!(!whole && said.contains("cannot be repaired"), "{at}");
                continue;
            }
            assert!(whole, "{at}");
            let left = points(&rotten).unwrap_or_else(|error| panic!("{error}: {at}"));
            assert!(left == all || said.contains("lost"), "{left} points left, {at}");
            assert!(left >= all / 4, "{left} points left, {at}");
            let kept = rotten.files().into_values().any(|kept| {
                let mut damaged = bytes.clone();
                damaged[offset] ^= 1 << (offset % 8);
                kept == damaged
            });
            assert!(kept, "the damaged bytes are kept aside: {at}");
            // What a repaired directory takes from then on is there at the next start.
            assert!(run(&rotten.crash(Crash::KINDS[1]), false).0, "{at}");
        }
    }
}

/// One block is damaged: the others of its segment stay.
#[test]
fn a_damaged_block_costs_its_own_points_only() {
    let disk = directory();
    let segment = with_suffix(&disk, ".segment").remove(0);
    disk.flip_bit(&segment, 60, 3);
    let (whole, said) = run(&disk, false);
    assert!(!whole && said.contains("20 points of source 0"), "{said}");
    assert!(
        points(&fork(&disk)).is_ok(),
        "a server starts on it: only queries of the block fail"
    );
    let (whole, said) = run(&disk, true);
    assert!(
        whole && said.contains("lost") && said.contains("20 points of source 0"),
        "{said}"
    );
    assert_eq!(points(&disk).unwrap(), 180);
}

/// One entry of a history is damaged: the others stay.
#[test]
fn a_damaged_entry_costs_itself_only() {
    let disk = directory();
    let run_file = with_suffix(&disk, ".run").remove(0);
    disk.flip_bit(&run_file, 20, 3);
    let (whole, said) = run(&disk, false);
    assert!(
        !whole && said.contains("1 entries of histories of rules"),
        "{said}"
    );
    let (whole, said) = run(&disk, true);
    assert!(whole && said.contains("lost 1 entries"), "{said}");
    let (whole, said) = run(&disk, false);
    assert!(whole && said.contains("ledger: 2 runs with 11 entries"), "{said}");
    // Of a run whose footer is damaged nothing can be said.
    let run_file = with_suffix(&disk, ".run").remove(0);
    let end = disk.len(&run_file).unwrap();
    disk.flip_bit(&run_file, end - 1, 3);
    assert!(points(&fork(&disk)).unwrap_err().contains("tidewatch check"));
    let (whole, said) = run(&disk, true);
    assert!(whole && said.contains("all entries of a run are lost"), "{said}");
    assert_eq!(points(&disk).unwrap(), 200);
}

/// Records that a manifest covered are cut off the log; the records that get their sequences must not be taken for old.
#[test]
fn what_is_written_behind_a_cut_log_is_there_at_the_next_start() {
    let disk = directory();
    let log = with_suffix(&disk, ".log").pop().unwrap();
    let manifest_covers = |disk: &SimDisk| {
        let dir = crate::bucket::BucketDir::of(Path::new("data"), 1);
        dir.read_manifest(disk).unwrap().unwrap().covered
    };
    // As if the checkpoint of the bucket had been the last thing before the crash, and the log's end then rotted.
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let opened = open(&port, Arc::clone(&port), &layout()).unwrap_or_else(|error| panic!("{error}"));
    let covered = opened.log.last_sequence();
    drop(opened);
    let dir = crate::bucket::BucketDir::of(Path::new("data"), 1);
    let mut manifest = dir.read_manifest(&disk).unwrap().unwrap();
    manifest.covered = covered;
    dir.write_manifest(&disk, &manifest).unwrap();
    disk.edit(&log, |bytes| bytes.truncate(bytes.len() - 10));
    let (whole, said) = run(&disk, false);
    assert!(!whole && said.contains("manifest"), "{said}");
    assert!(points(&fork(&disk)).is_err());
    let (whole, said) = run(&disk, true);
    assert!(whole, "{said}");
    assert!(manifest_covers(&disk) < covered);
    points(&disk).unwrap();
}
