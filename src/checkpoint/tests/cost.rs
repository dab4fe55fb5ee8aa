//! The cost of a checkpoint is independent of the number of buckets, and the number of files is independent of the
//! number of checkpoints.

use std::sync::Arc;

use disk::sim::{Fault, Operation, SimDisk};

use super::live::{rooms_of, store_in};
use super::seed;
use super::world::{RunningRooms, World, in_system};
use crate::clock::{Clock, SECOND_NS};

const BUCKETS: u32 = 60;

async fn with_buckets(world: &mut World, live: &RunningRooms) {
    world.set_up(&live.rooms).await.unwrap();
    let there = live
        .rooms
        .catalog
        .read(|catalog| catalog.buckets().count() as u32);
    for _ in there..BUCKETS {
        world.create_bucket(&live.rooms).await.unwrap();
        let created = world.model.lock().buckets.last().map(|bucket| bucket.id);
        world.create_source(&live.rooms, created).await.unwrap();
    }
}

/// Regression: eight syncs for each changed bucket took minutes with thousands of buckets.
#[test]
fn syncs_of_a_checkpoint_do_not_depend_on_the_number_of_buckets() {
    let disk = SimDisk::new(seed());
    let mut world = World::new(seed());
    in_system(async {
        let started = RunningRooms::start(Arc::new(disk.clone()), Arc::clone(&world.clock));
        let mut live = started.unwrap_or_else(|error| panic!("{error}"));
        with_buckets(&mut world, &live).await;
        live.on_thread(|task| task.checkpoint()).unwrap();
        let mut syncs = Vec::new();
        for touched in [1, BUCKETS] {
            for ordinal in 1..=touched {
                store_in(&rooms_of(&live), ordinal, world.clock.now_ns(), 0, 3).await;
            }
            let before = disk.count(Operation::Sync);
            live.on_thread(|task| task.checkpoint()).unwrap();
            syncs.push(disk.count(Operation::Sync) - before);
        }
        println!("{syncs:?} syncs");
        assert_eq!(syncs[0], syncs[1]);
        live.stop();
    });
}

/// The buckets that the next checkpoint queries; they stay marked as changed.
fn changed(live: &RunningRooms) -> Vec<u32> {
    let running = live.rooms.buckets.running().into_iter();
    let changed = running.filter(|(_, handle)| handle.take_changed());
    let mut ordinals: Vec<u32> = changed
        .map(|(ordinal, handle)| {
            handle.set_changed();
            ordinal
        })
        .collect();
    ordinals.sort_unstable();
    ordinals
}

/// Regression: each checkpoint queried ten thousand idle buckets.
#[test]
fn a_checkpoint_writes_changed_objects_and_a_failed_one_is_repeated() {
    let disk = SimDisk::new(seed());
    let mut world = World::new(seed());
    in_system(async {
        let started = RunningRooms::start(Arc::new(disk.clone()), Arc::clone(&world.clock));
        let mut live = started.unwrap_or_else(|error| panic!("{error}"));
        with_buckets(&mut world, &live).await;
        for ordinal in 1..=BUCKETS {
            store_in(&rooms_of(&live), ordinal, world.clock.now_ns(), 0, 3).await;
        }
        assert_eq!(changed(&live), (1..=BUCKETS).collect::<Vec<_>>());
        live.checkpoint().unwrap();
        assert_eq!(changed(&live), Vec::<u32>::new());
        for ordinal in [7, 3] {
            store_in(&rooms_of(&live), ordinal, world.clock.now_ns(), 0, 3).await;
        }
        disk.fail(Operation::Write, 1, Fault::Io);
        live.checkpoint().unwrap_err();
        assert_eq!(changed(&live), [3, 7]);
        live.checkpoint().unwrap();
        assert_eq!(changed(&live), Vec::<u32>::new());
        live.stop();
    });
}

/// Regression: with one map per file and bucket, a server with many buckets did not start again.
#[test]
fn the_number_of_files_is_bounded() {
    let disk = SimDisk::new(seed());
    let mut world = World::new(seed());
    let mut most = 0;
    in_system(async {
        for start in 0..3 {
            let started = RunningRooms::start(Arc::new(disk.clone()), Arc::clone(&world.clock));
            let mut live = started.unwrap_or_else(|error| panic!("{error}"));
            if start == 0 {
                with_buckets(&mut world, &live).await;
            }
            for _ in 0..20 {
                for ordinal in 1..=BUCKETS {
                    store_in(&rooms_of(&live), ordinal, world.clock.now_ns(), 0, 1).await;
                }
                world.clock.advance(SECOND_NS);
                live.checkpoint().unwrap();
                let files = disk.files();
                let sealed = files.keys().filter(|path| !path.starts_with("data/log")).count();
                most = most.max(sealed);
            }
            live.stop();
        }
    });
    println!("at most {most} files");
    assert!(most <= 20, "{most}");
}
