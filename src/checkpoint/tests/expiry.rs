//! Deletion of expired rows by checkpoints while retention and clock change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use disk::Disk;
use disk::sim::{Crash, SimDisk};
use parking_lot::Mutex;

use super::hooked_disk::HookedDisk;
use super::live::{Rooms, bucket, rooms_of, store_in};
use super::model::Row;
use super::record::ingest;
use super::seed;
use super::world::{RunningRooms, START_NS, World, in_system};
use crate::bucket::BucketState;
use crate::catalog::{Bucket, Command};
use crate::checkpoint::expiry::CONFIRMED_AFTER_NS;
use crate::clock::{Clock, DAY_NS, ManualClock};

const SOURCE: u32 = 0;
/// More than fill a block.
const BACKFILLED: u32 = 9_000;

type Hook = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "segment")
}

/// A disk that runs the hook once, while a segment is being written.
fn disk_with_hook(disk: SimDisk) -> (HookedDisk, Hook) {
    let hook = Hook::default();
    let taken = Arc::clone(&hook);
    let hooked_disk = HookedDisk::new(disk, move |disk| {
        if disk.files().keys().any(|path| is_segment(path)) {
            // The lock is released first: the hook itself uses the disk.
            let hook = taken.lock().take();
            hook.into_iter().for_each(|hook| hook());
        }
    });
    (hooked_disk, hook)
}

fn any_bucket(rooms: &Rooms) -> Arc<Bucket> {
    bucket(rooms, 1)
}

async fn retain(rooms: &Rooms, now_ns: i64, days: u32) {
    let bucket = any_bucket(rooms);
    let command = Command::BucketUpdated {
        bucket_id: bucket.id,
        name: bucket.name.clone(),
        description: None,
        retention_days: days,
        at_ns: now_ns,
        next_sequence: Some(rooms.buckets.next_sequence(&bucket).await.unwrap()),
        deliveries: Vec::new(),
        fan_out: None,
    };
    rooms.journal.commit(command).await.unwrap();
}

async fn store(rooms: &Rooms, now_ns: i64, age_ns: i64, count: u32) {
    store_in(rooms, 1, now_ns, age_ns, count).await;
}

/// Number of rows in the store, including expired ones, and whether any block is not in a segment yet.
async fn stored_rows(rooms: &Rooms) -> (u64, bool) {
    let handle = rooms.buckets.handle(&any_bucket(rooms)).unwrap();
    let count_rows = |state: &mut BucketState| {
        let (rows, bytes) = state.store.unsaved();
        let points = state.store.stats(SOURCE, i64::MIN).unwrap().points;
        // Unsealed rows would take a timestamp, a sequence and a number each.
        (points, rows > 0 && bytes < rows * 24)
    };
    handle.with(count_rows).await.unwrap()
}

/// Takes two checkpoints far enough apart that the next one may delete.
async fn advance_until_deletion(live: &mut RunningRooms, clock: &ManualClock) {
    live.checkpoint().unwrap();
    clock.advance(CONFIRMED_AFTER_NS);
    store(&rooms_of(live), clock.now_ns(), 0, 1).await;
    live.checkpoint().unwrap();
}

fn start(disk: impl Disk, world: &World) -> RunningRooms {
    RunningRooms::start(Arc::new(disk), Arc::clone(&world.clock)).unwrap_or_else(|error| panic!("{error}"))
}

/// Regression: the checkpoint used the retention of its beginning: rows admitted meanwhile by a longer retention were
/// deleted with the next block that was sealed.
#[test]
fn rows_admitted_by_longer_retention_during_a_checkpoint_are_kept() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let (hooked_disk, hook) = disk_with_hook(disk.clone());
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(hooked_disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        retain(&rooms_of(&live), world.clock.now_ns(), 1).await;
        advance_until_deletion(&mut live, &world.clock).await;
        let before = stored_rows(&rooms_of(&live)).await.0;
        store(&rooms_of(&live), world.clock.now_ns(), 0, 10).await;
        let (rooms, clock) = (rooms_of(&live), Arc::clone(&world.clock));
        *hook.lock() = Some(Box::new(move || {
            let backfill = async {
                retain(&rooms, clock.now_ns(), 30).await;
                store(&rooms, clock.now_ns(), 10 * DAY_NS, BACKFILLED).await;
                let deadline = Instant::now() + Duration::from_secs(60);
                while !stored_rows(&rooms).await.1 {
                    assert!(Instant::now() < deadline, "a full head is sealed");
                    std::thread::yield_now();
                }
            };
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(backfill);
        }));
        live.checkpoint().unwrap();
        assert!(hook.lock().is_none(), "the backfill ran during the checkpoint");
        let expected = before + 10 + u64::from(BACKFILLED);
        assert_eq!(stored_rows(&rooms_of(&live)).await.0, expected);
        live.checkpoint().unwrap();
        live.stop();
        let live = start(disk.crash(Crash::KINDS[1]), &world);
        assert_eq!(stored_rows(&rooms_of(&live)).await.0, expected, "after a restart");
        live.stop();
    });
}

/// Regression: a clock that was wrong during one checkpoint deleted everything.
#[test]
fn a_clock_that_is_wrong_for_a_checkpoint_deletes_nothing() {
    let seed = seed();
    for step_ns in [40 * DAY_NS, -40 * DAY_NS, 4_000 * DAY_NS] {
        let disk = SimDisk::new(seed);
        let mut world = World::new(seed);
        in_system(async {
            let mut live = start(disk.clone(), &world);
            world.set_up(&live.rooms).await.unwrap();
            retain(&rooms_of(&live), START_NS, 3).await;
            store(&rooms_of(&live), START_NS, DAY_NS, 1_000).await;
            advance_until_deletion(&mut live, &world.clock).await;
            let expected = stored_rows(&rooms_of(&live)).await.0;
            world.clock.step(step_ns);
            // The same if the log's timestamps are as wrong as the clock.
            store(&rooms_of(&live), world.clock.now_ns(), -step_ns.abs(), 1).await;
            for _ in 0..3 {
                live.checkpoint().unwrap();
            }
            world.clock.step(-step_ns);
            live.checkpoint().unwrap();
            assert_eq!(
                stored_rows(&rooms_of(&live)).await.0,
                expected + 1,
                "after {step_ns}"
            );
            live.stop();
            let live = start(disk.crash(Crash::KINDS[1]), &world);
            assert_eq!(
                stored_rows(&rooms_of(&live)).await.0,
                expected + 1,
                "after {step_ns} and a restart"
            );
            live.stop();
        });
    }
}

#[test]
fn rows_expired_at_two_checkpoints_an_hour_apart_are_deleted() {
    let seed = seed();
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(SimDisk::new(seed), &world);
        world.set_up(&live.rooms).await.unwrap();
        retain(&rooms_of(&live), START_NS, 3).await;
        store(&rooms_of(&live), START_NS, DAY_NS, 1_000).await;
        live.checkpoint().unwrap();
        world.clock.advance(4 * DAY_NS);
        store(&rooms_of(&live), world.clock.now_ns(), 0, 1).await;
        live.checkpoint().unwrap();
        assert_eq!(
            stored_rows(&rooms_of(&live)).await.0,
            1_001,
            "expired at one checkpoint only"
        );
        world.clock.advance(CONFIRMED_AFTER_NS);
        live.checkpoint().unwrap();
        assert_eq!(stored_rows(&rooms_of(&live)).await.0, 1);
        live.stop();
    });
}

/// Sequences of refused points are reused after a restart. Regression: a change of retention counted them as used and
/// hid the new points with those sequences, although they were acknowledged.
#[test]
fn rows_that_reuse_sequences_of_refused_ones_are_visible() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let live = start(disk.clone(), &world);
        world.set_up(&live.rooms).await.unwrap();
        let rooms = rooms_of(&live);
        retain(&rooms, START_NS, 1).await;
        store(&rooms, START_NS, 0, 10).await;
        // The preallocated room of the log is too small for these rows.
        disk.set_budget_bytes(Some(disk.used_bytes()));
        let row = |value| Row {
            source: SOURCE,
            timestamp_ns: START_NS,
            value,
        };
        let many: Vec<Row> = (0..5_000).map(row).collect();
        let mut refused = 0;
        while refused == 0 {
            let ingest = ingest(1, &many, None, START_NS);
            let outcome = rooms.buckets.ingest(&any_bucket(&rooms), ingest).await;
            refused += u64::from(outcome.is_err());
        }
        disk.set_budget_bytes(None);
        let deadline = Instant::now() + Duration::from_secs(60);
        while rooms.journal.readiness().is_err() {
            assert!(Instant::now() < deadline, "the log has room again");
            std::thread::yield_now();
        }
        retain(&rooms, START_NS, 30).await;
        let image = disk.crash(Crash::KINDS[1]);
        live.stop();
        let live = start(image, &world);
        let rooms = rooms_of(&live);
        let points = async || {
            rooms
                .buckets
                .point_count(&any_bucket(&rooms), &[SOURCE])
                .await
                .unwrap()
        };
        let before = points().await;
        store(&rooms, START_NS, 10 * DAY_NS, 100).await;
        assert_eq!(points().await, before + 100);
        live.stop();
    });
}

/// Regression: the file stayed until the bucket was written to again.
#[test]
fn merging_an_entirely_expired_segment_leaves_no_file() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(disk.clone(), &world);
        world.set_up(&live.rooms).await.unwrap();
        let rooms = rooms_of(&live);
        let mut begun = None;
        while begun.is_none() {
            store(&rooms, START_NS, 0, 10).await;
            begun = live.on_thread(|task| {
                task.checkpoint().unwrap();
                task.begin_merge()
            });
        }
        let job = begun.expect("begun");
        let merged = live.on_thread(|_| job.run(&AtomicBool::new(false)));
        let bucket = any_bucket(&rooms);
        let source_id = world.model.lock().sources[0].id;
        let deletion = Command::SourceDeleted { source_id };
        rooms
            .buckets
            .delete(&bucket, Some(SOURCE), &[SOURCE], deletion)
            .await
            .unwrap();
        live.on_thread(|task| {
            task.checkpoint().unwrap();
            task.finish_merge(merged);
        });
        let left: Vec<PathBuf> = disk.files().into_keys().filter(|path| is_segment(path)).collect();
        assert_eq!(left, [] as [PathBuf; 0]);
        live.stop();
    });
}
