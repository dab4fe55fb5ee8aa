//! The end of a round: working disks, a correct clock, and enough time. Expired data must then be gone from the disk.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use disk::Disk;

use super::super::live::rooms_of;
use super::super::world::Live;
use super::model::Trouble;
use super::steps::Storm;
use super::{Hook, checkpoint, look, repair, start};
use crate::bucket::BucketState;
use crate::clock::{DAY_NS, MINUTE_NS};

/// More than the rows that only carry the time take.
const LEFT_BYTES: usize = 16 << 10;

/// Segments and files of answers, with their bytes.
fn files(storm: &Storm) -> BTreeMap<PathBuf, usize> {
    let counts = |ending: &OsStr| ending == "segment" || ending == "answers";
    // A crash of the simulated disk may lose a directory and keep the files in it, which are then unreachable.
    let found = |path: &Path| {
        path.parent()
            .is_some_and(|dir| storm.disk.exists(dir).expect("it is whole"))
    };
    let mut files = storm.disk.files();
    files.retain(|path, _| path.extension().is_some_and(counts) && found(path));
    files
        .into_iter()
        .map(|(path, bytes)| (path, bytes.len()))
        .collect()
}

/// A checkpoint of a whole disk.
async fn checkpointed(storm: Storm, live: &mut Live) -> Storm {
    let (mut storm, outcome) = checkpoint(storm, live, &Hook::default()).await;
    outcome.expect("the disk is whole");
    storm.counts.checkpoints += 1;
    storm
}

/// Rows that a bucket's store holds, whether they are seen or not.
async fn held(storm: &Storm, live: &Live, index: usize) -> u64 {
    let bucket = &storm.model.buckets[index];
    let sources: Vec<u32> = bucket.sources.iter().filter_map(|it| it.ordinal).collect();
    let id = bucket.id;
    let bucket = live.rooms.catalog.read(|catalog| catalog.bucket(id).cloned());
    let handle = live
        .rooms
        .buckets
        .handle(&bucket.expect("it exists"))
        .expect("it has no trouble");
    let count = move |state: &mut BucketState| {
        let points = |source: &u32| state.store.stats(*source, i64::MIN).expect("stats").points;
        sources.iter().map(points).sum()
    };
    handle.with(count).await.expect("it answers")
}

pub(super) async fn end(mut storm: Storm) -> Storm {
    (storm.ill, storm.full) = (false, false);
    storm.disk = storm.disk.crash(disk::sim::Crash::KINDS[0]);
    repair(&mut storm, true);
    let mut live = start(&storm, storm.disk.clone()).unwrap_or_else(|error| panic!("{error}"));
    let rooms = rooms_of(&live);
    look::settle(&mut storm.model, &rooms);
    super::look(&mut storm, &rooms).await;
    for bucket in &storm.model.buckets {
        assert_eq!(bucket.trouble, Trouble::None);
    }
    // Twice: what was carried on is in the log no more, and in segments then.
    storm = checkpointed(storm, &mut live).await;
    storm = checkpointed(storm, &mut live).await;
    let carried = storm.disk.files();
    let carried = carried.keys().find(|path| path.starts_with("data/carried"));
    assert_eq!(carried, None, "records are carried on of no bucket");
    let before: usize = files(&storm).values().sum();

    let requests = storm.model.buckets.iter().flat_map(|bucket| &bucket.requests);
    let times = requests.flat_map(|it| it.rows.iter().map(|row| row.timestamp_ns).chain([it.at_ns]));
    // Also requests to buckets that are gone were taken by some clock.
    let latest_ns = times
        .chain(storm.model.newest_sent_ns())
        .max()
        .unwrap_or(0)
        .max(storm.now_ns());
    let days = storm.model.buckets.iter().map(|bucket| bucket.days).max();
    let kept_ns = i64::from(days.unwrap_or(0) + 2) * DAY_NS;
    storm.world.clock.advance(latest_ns - storm.now_ns() + kept_ns);
    super::look(&mut storm, &rooms).await;
    let existing = storm.model.existing();
    // Nothing is deleted while no record agrees with the clock. Not into the other buckets: rows of now would be merged
    // with those that have expired, and keep them until they are merged again.
    let telling = storm.create_bucket(&live).await.expect("the disk is whole");
    for _ in 0..3 {
        storm.send_one(&rooms, telling).await.expect("the disk is whole");
        storm = checkpointed(storm, &mut live).await;
        storm.world.clock.advance(61 * MINUTE_NS);
    }
    // The last of them puts the last merge in force, which may have been written before anything was deleted.
    for _ in 0..2 {
        storm = checkpointed(storm, &mut live).await;
    }
    super::look(&mut storm, &rooms).await;
    for index in &existing {
        let held = held(&storm, &live, *index).await;
        assert_eq!(
            held, 0,
            "what has expired is in memory or in segments: bucket {index}"
        );
    }
    let left = files(&storm);
    let after: usize = left.values().sum();
    assert!(
        after <= LEFT_BYTES,
        "{before} bytes of files became {after}: {left:?}"
    );
    live.stop();
    storm
}
