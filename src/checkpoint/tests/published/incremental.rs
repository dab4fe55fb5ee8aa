//! What a publish costs follows what has changed, and a restart or a restore uploads nothing again.

use disk::sim::{Crash, SimDisk};
use objects::sim::{Counts, SimObjects};

use super::super::world::{RunningRooms, World, in_system};
use super::{all_checkpoints, restored, start};

/// What a call of `work` put.
fn puts_of(store: &SimObjects, work: impl FnOnce()) -> u64 {
    let before = store.counts().puts;
    work();
    store.counts().puts - before
}

async fn fill(world: &mut World, live: &mut RunningRooms, checkpoints: u32) {
    for _ in 0..checkpoints {
        world.ingest(&live.rooms, 20).await.unwrap();
        live.checkpoint().unwrap();
    }
}

#[test]
fn a_restart_uploads_only_its_epoch_and_a_root() {
    let (store, disk) = (SimObjects::default(), SimDisk::new(1));
    let mut world = World::new(7);
    in_system(async {
        let mut live = start(&store, &disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        fill(&mut world, &mut live, 6).await;
        // The last merge may have changed the manifest.
        live.checkpoint().unwrap();
        live.stop();
        let killed = disk.crash(Crash::KINDS[1]);
        let mut live = start(&store, &killed, &world);
        let puts = puts_of(&store, || live.checkpoint().unwrap());
        assert_eq!(puts, 2, "an epoch and a root");
        live.stop();

        let newest = &all_checkpoints(&store)[0];
        assert_eq!(newest.name.epoch, 2);
        assert!(
            newest
                .root
                .files
                .iter()
                .all(|file| file.object.contains("/00000000000000000001/"))
        );
        let mut live = start(&store, &restored(&store, newest), &world);
        let puts = puts_of(&store, || live.checkpoint().unwrap());
        assert_eq!(puts, 2, "a restored directory knows its objects");
        live.stop();

        // A directory that knows nothing, such as a backup that was restored.
        let other = restored(&store, newest);
        disk::Disk::remove(&other, &super::layout().data_dir.join("published")).unwrap();
        let mut live = start(&store, &other, &world);
        let puts = puts_of(&store, || live.checkpoint().unwrap());
        assert_eq!(puts, 2 + newest.root.files.len() as u64);
        live.stop();
    });
}

/// A file with the name and the length of one that was published is another file nevertheless.
#[test]
fn a_foreign_file_is_not_taken_for_one_that_was_published() {
    let (store, disk) = (SimObjects::default(), SimDisk::new(1));
    let mut world = World::new(7);
    in_system(async {
        let mut live = start(&store, &disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        fill(&mut world, &mut live, 1).await;
        live.stop();
        // Another history of the same length, whose directory claims to be the first one.
        let (elsewhere, foreign) = (SimObjects::default(), SimDisk::new(2));
        let mut other = World::new(8);
        let mut live = start(&elsewhere, &foreign, &other);
        other.set_up(&live.rooms).await.unwrap();
        fill(&mut other, &mut live, 1).await;
        live.stop();
        let note = super::layout().data_dir.join("published");
        let claim = disk::Disk::read(&disk, &note).unwrap();
        disk::replace_file(&foreign, &note, &claim).unwrap();
        let mut live = start(&store, &foreign, &other);
        live.checkpoint().unwrap();
        live.stop();
        let newest = &all_checkpoints(&store)[0];
        let now_ns = crate::clock::Clock::now_ns(&*other.clock);
        super::super::crash::check_image(&restored(&store, newest), &other.model.lock(), now_ns);
    });
}

/// What a publish after one more batch costs, on top of this many checkpoints.
fn cost_behind(checkpoints: u32) -> Counts {
    let (store, disk) = (SimObjects::default(), SimDisk::new(1));
    let mut world = World::new(7);
    world.rows = Some(500);
    in_system(async {
        let mut live = start(&store, &disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        fill(&mut world, &mut live, checkpoints).await;
        live.checkpoint().unwrap();
        let before = store.counts();
        world.rows = Some(10);
        world.ingest(&live.rooms, 1).await.unwrap();
        live.checkpoint().unwrap();
        live.stop();
        let after = store.counts();
        Counts {
            puts: after.puts - before.puts,
            put_bytes: after.put_bytes - before.put_bytes,
            ..Counts::default()
        }
    })
}

#[test]
fn a_publish_costs_what_has_changed() {
    let (small, large) = (cost_behind(2), cost_behind(20));
    println!("{small:?} behind little, {large:?} behind ten times as much");
    assert!(large.puts <= 6, "{large:?}");
    assert!(
        large.put_bytes < 2 * small.put_bytes + 4_096,
        "{small:?}, {large:?}"
    );
}
