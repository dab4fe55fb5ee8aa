//! Files that are missing: told, made anew where another file says the same, given up by repair alone.

use std::path::Path;
use std::sync::Arc;

use actix::System;
use wal::disk::Disk;
use wal::disk::sim::{Crash, SimDisk};

use super::directory::{NOW_NS, copy, directory, fork, layout, points, run, with_suffix};
use crate::checkpoint::start;
use crate::clock::ManualClock;
use crate::config::Config;

/// What is left of a partial restore was called sound, and its buckets were removed by the next start.
#[test]
fn buckets_without_a_catalog_are_told_and_kept() {
    let disk = directory();
    disk.remove_dir_all(&layout().log_dir()).unwrap();
    for path in [layout().catalog_path(), layout().mark_path()] {
        disk.remove(&path).unwrap();
    }
    let before = disk.files();
    for repair in [false, true] {
        let (whole, said) = run(&disk, repair);
        assert!(
            !whole && said.contains("data/buckets/00000001 holds a bucket"),
            "{said}"
        );
        assert_eq!(disk.files(), before, "there is nothing to repair it from");
    }
}

/// The mark can be told from the log: its loss costs nothing, and was once blamed on the log and not repaired.
#[test]
fn a_missing_mark_is_named_and_made_anew() {
    let disk = directory();
    let whole = points(&fork(&disk)).unwrap();
    disk.remove(&layout().mark_path()).unwrap();
    let (sound, said) = run(&disk, false);
    assert!(!sound && said.contains("data/checkpoint is missing"), "{said}");
    let refused = points(&fork(&disk)).unwrap_err();
    assert!(refused.contains("data/checkpoint is missing"), "{refused}");
    let (sound, said) = run(&disk, true);
    assert!(sound && said.contains("nothing is lost"), "{said}");
    assert_eq!(points(&disk).unwrap(), whole);
}

/// A server whose other buckets were whole did not start for want of 82 bytes, and nothing could be done about it.
#[test]
fn a_manifest_that_is_damaged_or_gone_is_made_anew_and_no_point_is_lost_or_doubled() {
    let disk = directory();
    let whole = points(&fork(&disk)).unwrap();
    let manifest = with_suffix(&disk, "manifest").remove(0);
    let damages: [&dyn Fn(&SimDisk); 3] = [
        &|disk| disk.flip_bit(&manifest, 40, 3),
        &|disk| disk.edit(&manifest, |bytes| bytes.clear()),
        &|disk| disk.remove(&manifest).unwrap(),
    ];
    for damage in damages {
        // Also where a checkpoint was cut short behind its segments: the log has these rows, too.
        for mark_behind in [false, true] {
            let rotten = fork(&disk);
            if mark_behind {
                cut_checkpoint_short(&rotten);
            }
            damage(&rotten);
            let (sound, said) = run(&rotten, false);
            assert!(!sound && said.contains(&*manifest.to_string_lossy()), "{said}");
            let (sound, said) = run(&rotten, true);
            assert!(sound && said.contains("made anew"), "{said}");
            assert_eq!(points(&rotten).unwrap(), whole, "{said}");
            // The checkpoint cut short was copied here, never synced: a crash would take it back.
            if !mark_behind {
                let (sound, said) = run(&rotten.crash(Crash::KINDS[1]), false);
                assert!(sound, "{said}");
            }
        }
    }
}

/// The rooms' next checkpoint, until its first manifest is in force.
fn cut_checkpoint_short(disk: &SimDisk) {
    let home = tempfile::tempdir().unwrap();
    let (data_dir, manifest) = (home.path().join("data"), "data/buckets/00000001/manifest");
    for (path, bytes) in disk.files() {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let mut config = Config::default();
    config.storage.data_dir = data_dir;
    let system = System::new();
    system.block_on(async {
        let clock = Arc::new(ManualClock::new(NOW_NS));
        let rooms = start(&config, clock)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        rooms.checkpointer.close().await.unwrap();
    });
    System::current().stop();
    system.run().unwrap();
    let bucket = Path::new(manifest).parent().unwrap();
    disk.remove_dir_all(bucket).unwrap();
    copy(&home.path().join(bucket), bucket, disk);
}

#[test]
fn a_bucket_whose_directory_is_gone_is_told_and_given_up_by_repair_alone() {
    let disk = directory();
    for dir in ["data/buckets/00000001", "data/buckets"] {
        let rotten = fork(&disk);
        rotten.remove_dir_all(Path::new(dir)).unwrap();
        let (sound, said) = run(&rotten, false);
        assert!(
            !sound && said.contains(dir) && said.contains("is missing"),
            "{said}"
        );
        let (sound, said) = run(&rotten, true);
        assert!(sound && said.contains("lost"), "{said}");
        // Those of the log are there: how many the last checkpoint left in it depends on when it came.
        let left = points(&rotten).unwrap();
        assert!((120..200).contains(&left), "{left} points left: {said}");
    }
}

#[test]
fn a_directory_without_anything_is_empty_and_not_sound() {
    let disk = SimDisk::new(1);
    disk.create_dir_all(Path::new("data")).unwrap();
    let (_, said) = run(&disk, false);
    assert!(said.contains("empty") && !said.contains("sound"), "{said}");
}

#[test]
fn missing_files_are_told_and_what_can_go_on_goes_on() {
    let disk = directory();
    for path in disk.files().into_keys().filter(|path| !path.ends_with("LOCK")) {
        let rotten = fork(&disk);
        rotten.remove(&path).unwrap();
        let before = rotten.files();
        let (whole, said) = run(&rotten, false);
        assert!(!whole, "without {}: {said}", path.display());
        assert_eq!(rotten.files(), before);
        let (whole, said) = run(&rotten, true);
        if whole {
            points(&rotten).unwrap_or_else(|error| panic!("{error}: {said}"));
            assert!(
                said.contains("lost") || said.contains("forgotten"),
                "without {}: {said}",
                path.display()
            );
        }
    }
}
