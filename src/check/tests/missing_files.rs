//! Missing files: reported, rebuilt where another file has the same data, removed from the manifest only by a repair.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::Disk;
use disk::sim::{Crash, SimDisk};

use super::super::check;
use super::directory::{
    damage_byte, data_dir, directory, directory_without_checkpoint, fork, id, layout, points, run, run_rooms,
    with_suffix,
};
use crate::catalog::Stream;
use crate::checkpoint::{Manifest, open};
use crate::config::Config;

/// Regression: a partial restore was reported as sound, and the next start removed its buckets.
#[test]
fn segments_without_a_catalog_are_reported_and_kept() {
    let disk = directory();
    disk.remove_dir_all(&layout().log_dir()).unwrap();
    disk.remove(&Manifest::path(&layout().data_dir)).unwrap();
    for path in with_suffix(&disk, ".run") {
        disk.remove(&path).unwrap();
    }
    let before = disk.files();
    for repair in [false, true] {
        let (whole, report) = run(&disk, repair);
        assert!(!whole && report.contains("data/manifest is missing"), "{report}");
        assert_eq!(disk.files(), before, "there is nothing to repair it from");
    }
}

/// While the log is complete, the manifest is redundant: a checkpoint was interrupted before it trimmed the log.
#[test]
fn a_manifest_lost_before_the_log_was_trimmed_costs_nothing() {
    let disk = directory_without_checkpoint();
    let whole = points(&fork(&disk)).unwrap();
    checkpoint_until(&disk, &["data/segments", "data/ledger", "data"]);
    let manifest = Manifest::path(&layout().data_dir);
    let corrupted = fork(&disk);
    corrupted.remove(&manifest).unwrap();
    let (sound, report) = run(&corrupted, false);
    assert!(sound, "{report}");
    assert_eq!(points(&corrupted).unwrap(), whole);
    damage_byte(&disk, &manifest, 40);
    assert!(!run(&disk, false).0);
    let (sound, report) = run(&disk, true);
    assert!(sound && report.contains("nothing is lost"), "{report}");
    assert_eq!(points(&disk).unwrap(), whole);
    // A damaged log contains less than the files.
    corrupted.edit(&with_suffix(&corrupted, ".log")[0], |bytes| {
        let middle = bytes.len() / 4;
        bytes[middle..].fill(7);
    });
    let (sound, report) = run(&corrupted, true);
    assert!(sound && report.contains("made anew"), "{report}");
    assert_eq!(points(&corrupted).unwrap(), whole);
}

/// Regression: a server with sound files did not start because of a few damaged bytes, and no repair existed.
#[test]
fn rebuilding_a_lost_manifest_loses_and_doubles_no_point() {
    let disk = directory();
    let whole = points(&fork(&disk)).unwrap();
    let manifest = Manifest::path(&layout().data_dir);
    let damages: [&dyn Fn(&SimDisk); 3] = [
        &|disk| damage_byte(disk, &manifest, 40),
        &|disk| disk.edit(&manifest, |bytes| bytes.clear()),
        &|disk| disk.remove(&manifest).unwrap(),
    ];
    for damage in damages {
        // Includes a checkpoint interrupted before its manifest: its files have the same records as the log.
        for cut_short in [false, true] {
            let corrupted = fork(&disk);
            if cut_short {
                checkpoint_until(&corrupted, &["data/segments", "data/ledger"]);
            }
            let before = entries(&corrupted);
            damage(&corrupted);
            let (sound, report) = run(&corrupted, false);
            assert!(
                !sound && report.contains(&*manifest.to_string_lossy()),
                "{report}"
            );
            let (sound, report) = run(&corrupted, true);
            assert!(sound && report.contains("made anew"), "{report}");
            assert_eq!(points(&corrupted).unwrap(), whole, "{report}");
            assert_eq!(entries(&corrupted), before, "{report}");
            // The files of the interrupted checkpoint were copied without a sync, so a crash would remove them.
            if !cut_short {
                let (sound, report) = run(&corrupted.crash(Crash::KINDS[1]), false);
                assert!(sound, "{report}");
            }
        }
    }
}

/// Number of verdicts after a start, which are also in an interrupted checkpoint.
fn entries(disk: &SimDisk) -> u64 {
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let opened = open(&port, &layout()).unwrap_or_else(|error| panic!("{error}"));
    let view = opened
        .ledger
        .ledger()
        .view(&opened.catalog, Stream::History, id(6));
    view.count(i64::MIN).unwrap()
}

/// Copies the files of the next checkpoint in these directories.
fn checkpoint_until(disk: &SimDisk, dirs: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    for (path, bytes) in disk.files() {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let mut config = Config::defaults().unwrap();
    config.storage.data_dir = home.path().join("data");
    run_rooms(&config, &[], true);
    for dir in dirs {
        for entry in std::fs::read_dir(home.path().join(dir)).unwrap() {
            let entry = entry.unwrap();
            let to = Path::new(dir).join(entry.file_name());
            // Files that were removed after the manifest was written are kept.
            if entry.path().is_file() && !disk.exists(&to).unwrap() {
                disk.put(&to, &std::fs::read(entry.path()).unwrap());
            }
        }
    }
}

#[test]
fn missing_segments_are_reported_and_only_repair_drops_them() {
    let disk = directory();
    disk.remove_dir_all(Path::new("data/segments")).unwrap();
    let (sound, report) = run(&disk, false);
    assert!(!sound && report.contains("is missing"), "{report}");
    let (sound, report) = run(&disk, true);
    assert!(sound && report.contains("lost"), "{report}");
    // The records of the log are present.
    assert_eq!(points(&disk).unwrap(), 120, "{report}");
}

#[test]
fn an_empty_directory_is_not_sound() {
    let disk = SimDisk::new(1);
    disk.create_dir_all(Path::new("data")).unwrap();
    let (_, report) = run(&disk, false);
    assert!(report.contains("empty") && !report.contains("sound"), "{report}");
}

#[test]
fn missing_files_are_reported_and_repaired_where_possible() {
    let disk = directory();
    for path in disk.files().into_keys().filter(|path| !path.ends_with("LOCK")) {
        let corrupted = fork(&disk);
        corrupted.remove(&path).unwrap();
        let before = corrupted.files();
        let (whole, report) = run(&corrupted, false);
        assert!(!whole, "without {}: {report}", path.display());
        assert_eq!(corrupted.files(), before);
        let (whole, report) = run(&corrupted, true);
        if whole {
            points(&corrupted).unwrap_or_else(|error| panic!("{error}: {report}"));
            assert!(report.contains("lost"), "without {}: {report}", path.display());
        } else {
            assert!(
                report.contains("restore a backup"),
                "without {}: {report}",
                path.display()
            );
        }
    }
}

/// A repair may be killed at any operation: the next one completes it, and nothing else is lost.
#[test]
fn an_interrupted_repair_is_finished_by_the_next() {
    let disk = directory();
    let manifest = Manifest::path(&layout().data_dir);
    let mut damaged: Vec<(PathBuf, u64)> = vec![(manifest, 40)];
    for suffix in [".segment", ".run"] {
        damaged.extend(with_suffix(&disk, suffix).into_iter().map(|path| (path, 60)));
    }
    let end = disk.len(&damaged[1].0).unwrap();
    damaged.push((damaged[1].0.clone(), end - 1));
    let once_and_twice = damaged.iter().flat_map(|it| [(it, false), (it, true)]);
    for ((path, offset), is_one_bit) in once_and_twice {
        let corrupted = fork(&disk);
        match is_one_bit {
            true => corrupted.flip_bit(path, *offset, 3),
            false => damage_byte(&corrupted, path, *offset),
        }
        let repaired = fork(&corrupted);
        let (sound, report) = run(&repaired, true);
        if !sound {
            continue;
        }
        let left = points(&repaired).unwrap();
        for operation in 1.. {
            let killed = fork(&corrupted);
            killed.stop_at(killed.operations() + operation);
            let done = check(&data_dir(&killed), true, &(), &mut std::io::sink());
            for crash in Crash::KINDS {
                let image = killed.crash(crash);
                let at = format!("{} at operation {operation}, {crash:?}", path.display());
                let (sound, again) = run(&image, true);
                assert!(sound, "{at}: {again}");
                assert_eq!(points(&image).unwrap(), left, "{at}: {report} {again}");
            }
            if done.is_ok() {
                break;
            }
        }
    }
}
