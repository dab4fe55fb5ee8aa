//! One bucket that fails, and the others that go on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use wal::disk::Disk;
use wal::disk::sim::{Crash, SimDisk};

use super::live::{rooms_of, store_in};
use super::model::Existence;
use super::seed;
use super::world::{Live, World, in_system};
use crate::clock::Clock;

const FAILING: u32 = 2;
const SOURCE: u32 = 0;

fn start(disk: &SimDisk, world: &World) -> Live {
    Live::start(Arc::new(disk.clone()), Arc::clone(&world.clock)).unwrap_or_else(|error| panic!("{error}"))
}

fn files(disk: &SimDisk, dir: &str) -> Vec<PathBuf> {
    disk.files()
        .into_keys()
        .filter(|path| path.starts_with(dir))
        .collect()
}

/// Points of the source in the bucket; `None` where the bucket answers 503.
async fn points(live: &Live, ordinal: u32) -> Option<u64> {
    let bucket = live
        .rooms
        .catalog
        .read(|catalog| catalog.bucket_by_ordinal(ordinal).cloned())?;
    live.rooms.buckets.point_count(&bucket, &[SOURCE]).await.ok()
}

/// Its manifest rots: the server starts, and what the log holds of the bucket survives any number of trimmed logs.
#[test]
fn a_bucket_that_does_not_open_is_set_apart_and_loses_nothing() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        let now_ns = world.clock.now_ns();
        store_in(&rooms_of(&live), FAILING, now_ns, 0, 100).await;
        live.checkpoint().unwrap();
        store_in(&rooms_of(&live), FAILING, now_ns, 0, 30).await;
        live.stop();
        let manifest = Path::new("data/buckets/00000002/manifest");
        disk.flip_bit(manifest, 30, 1);

        let mut live = start(&disk, &world);
        let reasons = live.rooms.buckets.all_set_apart();
        assert!(reasons[&FAILING].contains("manifest"), "{reasons:?}");
        assert_eq!(points(&live, FAILING).await, None);
        for round in 1..=3 {
            store_in(&rooms_of(&live), 1, now_ns, 0, 10).await;
            live.checkpoint().unwrap();
            assert_eq!(points(&live, 1).await, Some(10 * round), "the others go on");
            assert_eq!(live.rooms.buckets.load().set_apart, 1);
        }
        assert_eq!(
            files(&disk, "data/carried").len(),
            1,
            "the log has dropped what is there"
        );
        live.stop();

        let disk = disk.crash(Crash::KINDS[1]);
        let live = start(&disk, &world);
        assert_eq!(points(&live, FAILING).await, None, "set apart again");
        live.stop();
        disk.flip_bit(manifest, 30, 1);
        let mut live = start(&disk, &world);
        assert_eq!(points(&live, FAILING).await, Some(130));
        assert_eq!(points(&live, 1).await, Some(30));
        live.checkpoint().unwrap();
        assert_eq!(files(&disk, "data/carried"), [] as [PathBuf; 0]);
        live.stop();
        let live = start(&disk.crash(Crash::KINDS[1]), &world);
        assert_eq!(points(&live, FAILING).await, Some(130));
        live.stop();
    });
}

/// One bucket whose files cannot be written kept the log of all from being trimmed, until no write was taken.
#[test]
fn a_bucket_whose_checkpoints_fail_is_set_apart_and_loses_nothing() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        let now_ns = world.clock.now_ns();
        store_in(&rooms_of(&live), FAILING, now_ns, 0, 100).await;
        live.checkpoint().unwrap();
        // The names that its next segments would get are taken.
        let taken = |id: u64| PathBuf::from(format!("data/buckets/00000002/{id:012}.segment"));
        (2..30).for_each(|id| disk.put(&taken(id), b"in the way"));
        store_in(&rooms_of(&live), FAILING, now_ns, 0, 30).await;
        for _ in 0..2 {
            live.checkpoint().unwrap_err();
            assert_eq!(points(&live, FAILING).await, Some(130), "it may pass");
        }
        live.checkpoint().unwrap();
        assert_eq!(points(&live, FAILING).await, None);
        store_in(&rooms_of(&live), 1, now_ns, 0, 10).await;
        live.checkpoint().unwrap();
        assert_eq!(points(&live, 1).await, Some(10));
        live.stop();
        let disk = disk.crash(Crash::KINDS[1]);
        let mut live = start(&disk, &world);
        assert_eq!(points(&live, FAILING).await, Some(130));
        live.checkpoint().unwrap();
        live.stop();
        let live = start(&disk.crash(Crash::KINDS[1]), &world);
        assert_eq!(points(&live, FAILING).await, Some(130));
        live.stop();
    });
}

/// The rows of an actor that panicked once were skipped by the next checkpoint, and trimmed from the log.
#[test]
fn a_bucket_whose_actor_panicked_is_set_apart_and_loses_nothing() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        let now_ns = world.clock.now_ns();
        store_in(&rooms_of(&live), FAILING, now_ns, 0, 100).await;
        let bucket = live
            .rooms
            .catalog
            .read(|catalog| catalog.bucket_by_ordinal(FAILING).cloned());
        let handle = live.rooms.buckets.handle(&bucket.unwrap()).unwrap();
        handle.with(|_| panic!("on purpose")).await.unwrap_err();
        let deadline = Instant::now() + Duration::from_secs(60);
        while live.rooms.buckets.load().memory_bytes > 0 {
            assert!(Instant::now() < deadline, "its memory is given back");
            std::thread::yield_now();
        }
        for round in 1..=3 {
            store_in(&rooms_of(&live), 1, now_ns, 0, 10).await;
            live.checkpoint().unwrap();
            assert_eq!(points(&live, 1).await, Some(10 * round), "the others go on");
        }
        assert_eq!(points(&live, FAILING).await, None);
        live.stop();
        let live = start(&disk.crash(Crash::KINDS[1]), &world);
        assert_eq!(points(&live, FAILING).await, Some(100));
        live.stop();
    });
}

/// They stayed for good.
#[test]
fn what_a_crash_left_of_carried_records_goes_with_the_next_checkpoint() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        disk.put(
            Path::new("data/carried/00000002-00000000000000000064.tmp"),
            b"half",
        );
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        live.checkpoint().unwrap();
        assert_eq!(files(&disk, "data/carried"), [] as [PathBuf; 0]);
        live.stop();
    });
}

/// Its directory was once removed, as that of a deleted bucket is.
#[test]
fn a_bucket_that_is_set_apart_during_a_merge_keeps_its_files() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        let now_ns = world.clock.now_ns();
        let (mut stored, mut begun) = (0, None);
        while begun.is_none() {
            assert!(stored < 1_000, "segments are merged in time");
            store_in(&rooms_of(&live), FAILING, now_ns, 0, 10).await;
            stored += 10;
            begun = live.on_thread(|task| {
                task.checkpoint().unwrap();
                task.begin_merge()
            });
        }
        let job = begun.expect("begun");
        let bucket = live
            .rooms
            .catalog
            .read(|catalog| catalog.bucket_by_ordinal(FAILING).cloned());
        let handle = live.rooms.buckets.handle(&bucket.unwrap()).unwrap();
        handle.with(|_| panic!("on purpose")).await.unwrap_err();
        live.on_thread(|task| {
            task.checkpoint().unwrap();
            let merged = job.run(&AtomicBool::new(false));
            task.finish_merge(merged);
        });
        assert_eq!(points(&live, FAILING).await, None, "it is set apart");
        live.stop();
        let live = start(&disk.crash(Crash::KINDS[0]), &world);
        assert_eq!(points(&live, FAILING).await, Some(stored));
        live.stop();
    });
}

/// A directory that is removed is one bucket's matter, all of them at once are not.
#[test]
fn a_missing_volume_stops_the_start() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        store_in(&rooms_of(&live), FAILING, world.clock.now_ns(), 0, 1).await;
        live.checkpoint().unwrap();
        live.stop();
        assert!(
            world
                .model
                .lock()
                .buckets
                .iter()
                .all(|it| it.existence == Existence::Exists)
        );
        disk.remove_dir_all(Path::new("data/buckets")).unwrap();
        let refused = Live::start(Arc::new(disk.clone()), Arc::clone(&world.clock));
        let message = refused.err().expect("it is refused").to_string();
        assert!(message.contains("data/buckets"), "{message}");
    });
}

/// A bucket that was set apart before it had a manifest met its leftover segment at each start, and was taken for one
/// whose manifest is lost.
#[test]
fn a_bucket_that_was_set_apart_without_a_manifest_opens_again() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        let now_ns = world.clock.now_ns();
        store_in(&rooms_of(&live), FAILING, now_ns, 0, 50).await;
        let bucket = live
            .rooms
            .catalog
            .read(|catalog| catalog.bucket_by_ordinal(FAILING).cloned());
        let handle = live.rooms.buckets.handle(&bucket.unwrap()).unwrap();
        // The segment that its first checkpoint wrote, and no manifest named.
        let segment = handle.with(|state| {
            let mut segment = Vec::new();
            state.begin_checkpoint().unwrap().write(&mut segment).unwrap();
            segment
        });
        let segment = segment.await.unwrap();
        handle.with(|_| panic!("on purpose")).await.unwrap_err();
        live.checkpoint().unwrap();
        assert_eq!(points(&live, FAILING).await, None);
        live.stop();
        let disk = disk.crash(Crash::KINDS[1]);
        disk.put(Path::new("data/buckets/00000002/000000000001.segment"), &segment);
        let live = start(&disk, &world);
        assert_eq!(points(&live, FAILING).await, Some(50));
        live.stop();
    });
}
