//! Damaged, missing and truncated objects: an error that names them, and nothing in the directory.

use std::sync::Arc;

use disk::sim::SimDisk;
use objects::sim::SimObjects;
use objects::{Bytes, ObjectStore};

use super::super::world::{RunningRooms, World, in_system, layout};
use super::{all_checkpoints, publisher_options, start, try_restore};
use crate::checkpoint::tests::seed;
use crate::progress::tests::Heard;
use crate::remote::{Choice, Publisher, RemoteError, THE_SHARD, checkpoints, verify};

/// A store with a checkpoint.
fn published() -> SimObjects {
    let (store, disk) = (SimObjects::default(), SimDisk::new(1));
    let mut world = World::new(seed());
    in_system(async {
        let mut live = start(&store, &disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        world.ingest(&live.rooms, 8).await.unwrap();
        live.checkpoint().unwrap();
        live.stop();
    });
    store
}

#[test]
fn a_damaged_or_missing_object_is_named_and_nothing_is_left() {
    let store = published();
    let newest = all_checkpoints(&store).remove(0);
    let progress = Heard::new();
    verify(&store, "sim", THE_SHARD, Choice::Newest, &progress).unwrap();
    progress.assert_all();
    let mut rng = fastrand::Rng::with_seed(seed());
    for file in &newest.root.files {
        let bytes = store.objects()[&file.object].to_vec();
        let mut flipped = bytes.clone();
        flipped[rng.usize(0..bytes.len())] ^= 1 << rng.u8(0..8);
        let longer = [&bytes[..], b"x"].concat();
        for (what, damaged) in [
            ("flipped", Some(flipped)),
            ("truncated", Some(bytes[..bytes.len() - 1].to_vec())),
            ("empty", Some(Vec::new())),
            ("missing", None),
        ] {
            store.damage(&file.object, damaged.map(Bytes::from));
            let (disk, error) = try_restore(&store, &newest).err().expect(what);
            assert!(matches!(error, RemoteError::Faults(..)), "{what}: {error}");
            let message = error.to_string();
            assert!(
                message.contains(&file.local) && message.contains(&file.object),
                "{what}: {message}"
            );
            assert!(disk.files().is_empty(), "{what}: {:?}", disk.files().keys());
            let verified = verify(&store, "sim", THE_SHARD, Choice::Newest, &());
            assert!(matches!(verified, Err(RemoteError::Faults(..))), "{what}");
        }
        // What follows the stored length is not read.
        store.damage(&file.object, Some(Bytes::from(longer)));
        assert!(try_restore(&store, &newest).is_ok());
        store.damage(&file.object, Some(Bytes::from(bytes)));
    }
    assert!(newest.root.files.len() > 1);
    assert!(try_restore(&store, &newest).is_ok());
}

#[test]
fn a_damaged_root_is_named_and_others_are_still_there() {
    let store = published();
    let objects = store.objects();
    let is_root = |name: &&String| name.ends_with(".root");
    let name = objects.keys().rfind(is_root).unwrap().clone();
    let whole = objects[&name].clone();
    for end in 0..whole.len() {
        store.damage(&name, Some(whole.slice(..end)));
        let found = checkpoints(&store, THE_SHARD).unwrap().next().unwrap();
        assert!(
            matches!(found, Err(RemoteError::DamagedRoot(..))),
            "{end}: {found:?}"
        );
    }
    for at in 0..whole.len() {
        let mut flipped = whole.to_vec();
        flipped[at] ^= 4;
        store.damage(&name, Some(Bytes::from(flipped)));
        let found = checkpoints(&store, THE_SHARD).unwrap().next().unwrap();
        let error = found.expect_err("it is damaged").to_string();
        assert!(error.contains("1-1"), "{at}: {error}");
    }
    // A copy under a later name does not pass for a checkpoint of its own.
    store.damage(&name, Some(whole.clone()));
    let copy = name.replace("00001.root", "00002.root");
    store.damage(&copy, Some(whole));
    let found = checkpoints(&store, THE_SHARD).unwrap();
    let found: Vec<bool> = found.map(|checkpoint| checkpoint.is_ok()).collect();
    assert_eq!(found, [false, true]);
}

#[test]
fn a_checkpoint_is_chosen_by_name_and_by_time() {
    let store = published();
    let newest = all_checkpoints(&store).remove(0);
    let chosen = |choice| verify(&store, "sim", THE_SHARD, choice, &());
    let at_ns = newest.root.at_ns;
    for choice in [
        Choice::Newest,
        Choice::Named(newest.name),
        Choice::At(at_ns),
        Choice::At(at_ns + 1),
    ] {
        assert_eq!(chosen(choice).unwrap(), newest);
    }
    for choice in [Choice::At(at_ns - 1), Choice::Named("7-7".parse().unwrap())] {
        let missing = chosen(choice);
        assert!(
            matches!(missing, Err(RemoteError::NoSuchCheckpoint(..))),
            "{missing:?}"
        );
    }
    let empty = verify(&SimObjects::default(), "sim", THE_SHARD, Choice::Newest, &());
    assert!(matches!(empty, Err(RemoteError::Empty(_))));
}

/// A full disk during the restore leaves nothing, and says so.
#[test]
fn a_restore_to_a_full_disk_leaves_nothing() {
    let store = published();
    let newest = all_checkpoints(&store).remove(0);
    let whole = try_restore(&store, &newest).unwrap_or_else(|(_, error)| panic!("{error}"));
    for budget in (0..whole.used_bytes()).step_by(97) {
        let disk = SimDisk::new(3);
        disk::Disk::create_dir_all(&disk, &super::layout().data_dir).unwrap();
        disk.set_budget_bytes(Some(budget));
        let error = super::restore_to(&store, &newest, &disk, &super::layout(), &()).expect_err("it is full");
        assert!(
            disk.files().is_empty(),
            "{budget}: {error}: {:?}",
            disk.files().keys()
        );
    }
}

/// A copy of a damaged file would be restored instead of an earlier, whole one.
#[test]
fn a_damaged_local_file_is_not_published() {
    let (store, disk) = (SimObjects::default(), SimDisk::new(1));
    let mut world = World::new(seed());
    in_system(async {
        let started = RunningRooms::start(Arc::new(disk.clone()), Arc::clone(&world.clock));
        let mut live = started.unwrap_or_else(|error| panic!("{error}"));
        world.set_up(&live.rooms).await.unwrap();
        world.ingest(&live.rooms, 8).await.unwrap();
        live.checkpoint().unwrap();
        let manifest = live.task.manifest.clone();
        live.stop();
        let options = publisher_options(Arc::new(store.clone()), &disk, &world.clock);
        let mut publisher = Publisher::new(options);
        for path in manifest.files(&layout()).into_keys() {
            let at = disk.files()[&path].len() as u64 / 2;
            disk.flip_bit(&path, at, 3);
            let offer = publisher.offer(&manifest).unwrap();
            let refused = publisher.publish(&offer, &|| true).expect_err("it is damaged");
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(refused.to_string().contains(&name), "{refused}");
            assert!(store.list("shards/00000/roots").unwrap().is_empty());
            disk.flip_bit(&path, at, 3);
        }
        let offer = publisher.offer(&manifest).unwrap();
        publisher.publish(&offer, &|| true).unwrap();
        assert_eq!(all_checkpoints(&store).len(), 1);
    });
}
