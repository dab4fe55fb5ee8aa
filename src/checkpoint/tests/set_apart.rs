//! One bucket fails, and the others continue.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use disk::sim::{Crash, Fault, Operation, SimDisk};
use wal::SyncPolicy;

use super::live::{Rooms, panic_in, points_in, rooms_of, store_in};
use super::seed;
use super::world::{RunningRooms, World, home, in_system};
use crate::checkpoint::start::start_local;
use crate::clock::Clock;

const FAILING: u32 = 2;

const PATIENCE: Duration = Duration::from_secs(60);

fn start(disk: &SimDisk, world: &World) -> RunningRooms {
    RunningRooms::start(Arc::new(disk.clone()), Arc::clone(&world.clock))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn files(disk: &SimDisk, dir: &str) -> Vec<PathBuf> {
    disk.files()
        .into_keys()
        .filter(|path| path.starts_with(dir))
        .collect()
}

/// The entries of the bucket in a segment are damaged: the server starts, and its records in the log survive trimming.
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
        let segment = files(&disk, "data/segments").pop().unwrap();
        // Its entries end where the table begins, as stored in the trailer.
        let content = &disk.files()[&segment];
        let (_, trailer) = content.split_last_chunk::<24>().unwrap();
        let entry = u64::from_le_bytes(*trailer.first_chunk().unwrap()) - 4;
        disk.flip_bit(&segment, entry, 1);

        let mut live = start(&disk, &world);
        let reasons = live.rooms.buckets.all_set_apart();
        assert!(reasons[&FAILING].contains("segment"), "{reasons:?}");
        assert_eq!(points_in(&rooms_of(&live), FAILING).await, None);
        for round in 1..=3 {
            store_in(&rooms_of(&live), 1, now_ns, 0, 10).await;
            live.checkpoint().unwrap();
            assert_eq!(
                points_in(&rooms_of(&live), 1).await,
                Some(10 * round),
                "the others go on"
            );
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
        assert_eq!(
            points_in(&rooms_of(&live), FAILING).await,
            None,
            "set apart again"
        );
        live.stop();
        disk.flip_bit(&segment, entry, 1);
        let mut live = start(&disk, &world);
        assert_eq!(points_in(&rooms_of(&live), FAILING).await, Some(130));
        assert_eq!(points_in(&rooms_of(&live), 1).await, Some(30));
        live.checkpoint().unwrap();
        assert_eq!(files(&disk, "data/carried"), [] as [PathBuf; 0]);
        live.stop();
        let live = start(&disk.crash(Crash::KINDS[1]), &world);
        assert_eq!(points_in(&rooms_of(&live), FAILING).await, Some(130));
        live.stop();
    });
}

/// Regression: rows of a panicked actor were skipped by the next checkpoint and trimmed from the log.
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
        panic_in(&rooms_of(&live), FAILING).await;
        let deadline = Instant::now() + Duration::from_secs(60);
        while live.rooms.buckets.load().memory_bytes > 0 {
            assert!(Instant::now() < deadline, "its memory is released");
            std::thread::yield_now();
        }
        for round in 1..=3 {
            store_in(&rooms_of(&live), 1, now_ns, 0, 10).await;
            live.checkpoint().unwrap();
            assert_eq!(
                points_in(&rooms_of(&live), 1).await,
                Some(10 * round),
                "the others go on"
            );
        }
        assert_eq!(points_in(&rooms_of(&live), FAILING).await, None);
        live.stop();
        let live = start(&disk.crash(Crash::KINDS[1]), &world);
        assert_eq!(points_in(&rooms_of(&live), FAILING).await, Some(100));
        live.stop();
    });
}

/// Regression: records carried for a failed checkpoint counted as carried though no manifest named them: they were
/// removed with the next unused file, and the log was trimmed.
#[test]
fn records_carried_for_a_failed_checkpoint_are_carried_again() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        let now_ns = world.clock.now_ns();
        store_in(&rooms_of(&live), FAILING, now_ns, 0, 100).await;
        live.checkpoint().unwrap();
        store_in(&rooms_of(&live), 1, now_ns, 0, 10).await;
        store_in(&rooms_of(&live), FAILING, now_ns, 0, 30).await;
        panic_in(&rooms_of(&live), FAILING).await;
        // The directory exists already, so that the segment itself cannot be written.
        disk.fail(Operation::Create, 2, Fault::Full { bytes: 0 });
        live.checkpoint().unwrap_err();
        live.on_thread(|task| task.remove_unnamed());
        live.checkpoint().unwrap();
        assert_eq!(files(&disk, "data/carried").len(), 1);
        live.stop();
        let live = start(&disk.crash(Crash::KINDS[1]), &world);
        assert_eq!(points_in(&rooms_of(&live), FAILING).await, Some(130));
        assert_eq!(points_in(&rooms_of(&live), 1).await, Some(10));
        live.stop();
    });
}

/// Regression: these files were never removed.
#[test]
fn the_next_checkpoint_removes_partial_carried_files_of_a_crash() {
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

/// Regression: its directory was removed like that of a deleted bucket.
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
        panic_in(&rooms_of(&live), FAILING).await;
        live.on_thread(|task| {
            task.checkpoint().unwrap();
            let merged = job.run(&AtomicBool::new(false));
            task.finish_merge(merged);
        });
        assert_eq!(
            points_in(&rooms_of(&live), FAILING).await,
            None,
            "it is set apart"
        );
        live.stop();
        let live = start(&disk.crash(Crash::KINDS[0]), &world);
        assert_eq!(points_in(&rooms_of(&live), FAILING).await, Some(stored));
        live.stop();
    });
}

/// Regression: an actor that had panicked counted as stopped, and no checkpoint was ordered.
#[test]
fn a_panic_orders_the_checkpoint_that_sets_the_bucket_apart() {
    let seed = seed();
    let mut world = World::new(seed);
    in_system(async {
        let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
        let started = start_local(home(Arc::new(SimDisk::new(seed)), clock), SyncPolicy::Always).await;
        let live = started.unwrap_or_else(|error| panic!("{error}"));
        world.set_up(&live).await.unwrap();
        let rooms = Rooms {
            catalog: live.catalog.clone(),
            journal: live.journal.clone(),
            buckets: live.buckets.clone(),
        };
        panic_in(&rooms, FAILING).await;
        let began = Instant::now();
        while rooms.buckets.load().set_apart == 0 {
            assert!(began.elapsed() < PATIENCE, "no checkpoint was ordered");
            tokio::task::yield_now().await;
        }
        live.checkpointer.close().await.unwrap();
    });
}
