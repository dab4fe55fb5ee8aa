//! A bucket that is set apart: its carried records are published, too.

use disk::sim::SimDisk;
use objects::sim::SimObjects;

use super::super::live::{panic_in, points_in, rooms_of, store_in};
use super::super::world::{World, in_system};
use super::{all_checkpoints, restored, start};
use crate::checkpoint::tests::seed;
use crate::clock::Clock;

const FAILING: u32 = 2;

#[test]
fn carried_records_are_published_and_restored() {
    let (store, disk) = (SimObjects::default(), SimDisk::new(1));
    let mut world = World::new(seed());
    in_system(async {
        let mut live = start(&store, &disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        let now_ns = world.clock.now_ns();
        store_in(&rooms_of(&live), FAILING, now_ns, 0, 100).await;
        live.checkpoint().unwrap();
        store_in(&rooms_of(&live), FAILING, now_ns, 0, 30).await;
        panic_in(&rooms_of(&live), FAILING).await;
        live.checkpoint().unwrap();
        assert_eq!(points_in(&rooms_of(&live), FAILING).await, None);
        live.stop();
        let newest = &all_checkpoints(&store)[0];
        let carried = newest
            .root
            .files
            .iter()
            .filter(|file| file.local.starts_with("carried/"));
        assert_eq!(carried.count(), 1);
        let live = start(&store, &restored(&store, newest), &world);
        assert_eq!(points_in(&rooms_of(&live), FAILING).await, Some(130));
        live.stop();
    });
}
