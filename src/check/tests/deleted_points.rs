//! Deleted points stay deleted through checks and repairs, as long as the manifest is there.

use std::path::Path;
use std::sync::Arc;

use disk::Disk;
use disk::sim::SimDisk;
use engine::{MergeError, PointFilter, RowFilters, SeriesRef, View};

use super::directory::{
    NOW_NS, POINTS, copy, damage_byte, fork, in_rooms, ingest, layout, points, run, with_suffix,
};
use crate::checkpoint::Manifest;
use crate::clock::SECOND_NS;
use crate::config::Config;

/// The first points of each batch.
struct Chosen;

const DELETED_SECONDS: i64 = 10;

impl PointFilter for Chosen {
    fn range_ns(&self) -> (i64, i64) {
        (i64::MIN, NOW_NS + (DELETED_SECONDS - 1) * SECOND_NS)
    }

    fn series(&self, _: &View) -> Result<Option<Vec<u32>>, MergeError> {
        Ok(None)
    }

    fn of_series(&self, _: SeriesRef, read: &mut dyn FnMut(&RowFilters<'_>)) {
        let (metadata, values) = (None, &[][..]);
        read(&RowFilters { metadata, values });
    }
}

/// All points of the second source.
struct SecondSource;

impl PointFilter for SecondSource {
    fn range_ns(&self) -> (i64, i64) {
        (i64::MIN, i64::MAX)
    }

    fn series(&self, _: &View) -> Result<Option<Vec<u32>>, MergeError> {
        Ok(Some(vec![1]))
    }

    fn of_series(&self, series: SeriesRef, read: &mut dyn FnMut(&RowFilters<'_>)) {
        Chosen.of_series(series, read);
    }
}

/// Two batches, both deletions, a third batch, and a checkpoint.
fn directory() -> SimDisk {
    let home = tempfile::tempdir().unwrap();
    let mut config = Config::defaults().unwrap();
    config.storage.data_dir = home.path().join("data");
    std::fs::create_dir(&config.storage.data_dir).unwrap();
    in_rooms(&config, async |rooms| {
        ingest(rooms, 1).await;
        rooms.checkpointer.checkpoint().await.unwrap();
        ingest(rooms, 2).await;
        let of_second = rooms.checkpointer.delete_points(1, Arc::new(SecondSource), None);
        assert_eq!(of_second.await.unwrap(), 2 * u64::from(POINTS));
        let first = rooms.checkpointer.delete_points(1, Arc::new(Chosen), None).await;
        assert_eq!(first.unwrap(), 2 * DELETED_SECONDS as u64);
        ingest(rooms, 3).await;
        rooms.checkpointer.close().await.unwrap();
    });
    let disk = SimDisk::new(1);
    copy(&config.storage.data_dir, Path::new("data"), &disk);
    disk
}

/// The later points of the first source in two batches, and all of the third batch.
const LEFT: u64 = 2 * (POINTS as u64 - DELETED_SECONDS as u64) + 2 * POINTS as u64;

#[test]
fn a_check_counts_no_deleted_points_and_alters_nothing() {
    let disk = directory();
    assert_eq!(points(&disk).unwrap(), LEFT);
    let before = disk.files();
    for repair in [false, true] {
        let (sound, report) = run(&disk, repair);
        assert!(sound && report.contains(&format!("{LEFT} points")), "{report}");
        assert_eq!(disk.files(), before);
    }
}

#[test]
fn a_repair_of_any_segment_brings_nothing_back() {
    let disk = directory();
    for segment in with_suffix(&disk, ".segment") {
        let length = disk.len(&segment).unwrap();
        for offset in (60..length - 60).step_by(97) {
            let damaged = fork(&disk);
            damage_byte(&damaged, &segment, offset);
            let (_, report) = run(&damaged, true);
            let left = points(&damaged).unwrap();
            assert!(
                left <= LEFT,
                "{left} points, offset {offset} of {}: {report}",
                segment.display()
            );
            assert!(run(&damaged, false).0, "offset {offset} of {}", segment.display());
        }
    }
}

/// Only the manifest knows of blocks that are dead as a whole. What was written anew is known by its sequences.
#[test]
fn a_rebuilt_manifest_loses_no_point_that_was_kept() {
    let disk = directory();
    disk.remove(&Manifest::path(&layout().data_dir)).unwrap();
    let (sound, report) = run(&disk, true);
    assert!(sound && report.contains("may be there again"), "{report}");
    let found = points(&disk).unwrap();
    assert!(found >= LEFT, "{found}: {report}");
}
