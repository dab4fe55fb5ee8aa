//! Several writers of one prefix, and objects that somebody else deletes.

use disk::sim::SimDisk;
use objects::sim::SimObjects;

use super::super::crash::check_image;
use super::super::world::{RunningRooms, World, in_system};
use super::{all_checkpoints, restored, start, try_restore};
use crate::clock::{Clock, DAY_NS, HOUR_NS};

/// Runs of a small ledger: up to six of the catalog before they are merged, and one or two of each other stream.
const RUNS_MAX: usize = 12;

fn pass(store: &SimObjects, worlds: &[&World], nanoseconds: i64) {
    store.advance(nanoseconds);
    worlds.iter().for_each(|world| world.clock.advance(nanoseconds));
}

async fn change(world: &mut World, live: &mut RunningRooms) {
    world.ingest(&live.rooms, 2).await.unwrap();
    live.checkpoint().unwrap();
}

/// Regression: what was merged after the checkpoint of a hand-over was lost with it, so that each owner left more files.
#[test]
fn a_shard_that_is_handed_over_often_has_few_files() {
    let (store, mut disk) = (SimObjects::default(), SimDisk::new(1));
    let mut world = World::new(7);
    in_system(async {
        let mut runs = Vec::new();
        for owner in 0..40 {
            let mut live = start(&store, &disk, &world);
            if owner == 0 {
                world.set_up(&live.rooms).await.unwrap();
            }
            change(&mut world, &mut live).await;
            live.stop();
            let newest = all_checkpoints(&store).remove(0);
            let files = newest.root.files.iter();
            runs.push(files.filter(|file| file.object.ends_with(".run")).count());
            disk = restored(&store, &newest);
        }
        let most = runs.iter().max().copied().unwrap_or_default();
        assert!(most <= RUNS_MAX, "{runs:?}");
        check_image(&disk, &world.model.lock(), world.clock.now_ns());
    });
}

/// A server that goes on after its directory was restored elsewhere deletes nothing of the other one's.
#[test]
fn only_the_writer_with_the_highest_epoch_deletes() {
    let (store, disk) = (SimObjects::default(), SimDisk::new(1));
    let mut world = World::new(7);
    in_system(async {
        let mut live = start(&store, &disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        change(&mut world, &mut live).await;
        let newest = all_checkpoints(&store).remove(0);
        let mut other = World::new(8);
        other.skip_to(world.model.lock().clone(), world.clock.now_ns());
        let copy = restored(&store, &newest);
        let mut live_copy = start(&store, &copy, &other);
        change(&mut other, &mut live_copy).await;
        for _ in 0..12 {
            pass(&store, &[&world, &other], DAY_NS);
            change(&mut world, &mut live).await;
        }
        assert_eq!(store.counts().deletes, 0, "the earlier writer deletes nothing");
        change(&mut other, &mut live_copy).await;
        assert!(store.counts().deletes > 0, "the later one does");
        assert_eq!(store.reused_names(), [""; 0]);
        let of = |epoch| {
            let found = all_checkpoints(&store);
            found.into_iter().find(|it| it.name.epoch == epoch).unwrap()
        };
        for (epoch, world) in [(1, &world), (2, &other)] {
            let image = restored(&store, &of(epoch));
            check_image(&image, &world.model.lock(), world.clock.now_ns());
        }
        live.stop();
        live_copy.stop();
    });
}

/// Somebody else deletes an object that is needed: it is noticed within an hour, and uploaded again.
#[test]
fn an_object_that_is_gone_is_uploaded_again() {
    let (store, disk) = (SimObjects::default(), SimDisk::new(1));
    let mut world = World::new(7);
    in_system(async {
        let mut live = start(&store, &disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        change(&mut world, &mut live).await;
        let newest = all_checkpoints(&store).remove(0);
        let gone = newest.root.files[0].object.clone();
        assert!(gone.ends_with(".run"), "a file that stays: {gone}");
        store.damage(&gone, None);
        pass(&store, &[&world], 2 * HOUR_NS);
        change(&mut world, &mut live).await;
        assert!(try_restore(&store, &all_checkpoints(&store)[0]).is_err());
        change(&mut world, &mut live).await;
        let newest = all_checkpoints(&store).remove(0);
        check_image(
            &restored(&store, &newest),
            &world.model.lock(),
            world.clock.now_ns(),
        );
        live.stop();
    });
}
