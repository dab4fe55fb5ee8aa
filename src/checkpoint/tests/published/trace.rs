//! A seeded trace over one object store and several disks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use disk::Disk;
use disk::sim::{Crash, SimDisk};
use fastrand::Rng;
use objects::sim::{Fault, SimObjects};

use super::super::crash::{check_image, recover};
use super::super::model::Model;
use super::super::seed;
use super::super::world::{Failure, World, in_system, layout};
use super::{all_checkpoints, restored, start};
use crate::checkpoint::{Manifest, Rooms, open};
use crate::clock::Clock;
use crate::remote::{Checkpoint, restore_to};

const STEPS: u32 = 220;
/// One call of the store of this many fails.
const FAULT_ONE_IN: u32 = 25;

/// What a trace met.
#[derive(Debug, Default)]
struct Met {
    checkpoints: usize,
    swept: u64,
    kills: u32,
    lost_disks: u32,
    failures: u32,
    merges: u64,
}

/// What each checkpoint must restore to, and when it was taken.
type Covered = HashMap<String, (Model, i64)>;

/// Everything that a root in the store names is there.
fn check_names(store: &SimObjects, checkpoints: &[Checkpoint]) {
    let objects = store.objects();
    for Checkpoint { name, root } in checkpoints {
        for file in &root.files {
            let stored = objects.get(&file.object).map(|bytes| bytes.len() as u64);
            assert_eq!(stored, Some(file.bytes), "{} of checkpoint {name}", file.object);
        }
    }
}

fn check_restored(store: &SimObjects, checkpoint: &Checkpoint, covered: &Covered) {
    let (model, now_ns) = &covered[&checkpoint.name.to_string()];
    check_image(&restored(store, checkpoint), model, *now_ns);
}

/// Everything that is known of the model is settled: what was not acknowledged is there or not.
fn settled(world: &World, disk: &SimDisk) -> (Model, i64) {
    let (mut model, now_ns) = (world.model.lock().clone(), world.clock.now_ns());
    model.settle(&recover(disk), now_ns);
    (model, now_ns)
}

async fn set_up(world: &mut World, rooms: &Rooms) {
    if rooms.catalog.read(|catalog| catalog.organizations().len()) == 0 {
        world.set_up(rooms).await.expect("the disk is whole");
    }
}

fn trace(seed: u64) -> Met {
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let store = SimObjects::default();
    let mut world = World::new(seed);
    let (mut met, mut covered) = (Met::default(), Covered::new());
    let mut disk = SimDisk::new(seed);
    in_system(async {
        let mut live = start(&store, &disk, &world);
        set_up(&mut world, &live.rooms).await;
        let mut now_ns = world.clock.now_ns();
        for _ in 0..STEPS {
            store.fail_at_random(rng.u64(..), FAULT_ONE_IN);
            let before = world.model.lock().clone();
            match world.step(&mut live).await {
                Ok(()) => {}
                Err(Failure::Checkpoint(_)) => met.failures += 1,
                Err(Failure::Service(error)) => panic!("the object store fails, not the disk: {error:?}"),
            }
            store.set_faults(|| Fault::None);
            store.advance(world.clock.now_ns() - now_ns);
            now_ns = world.clock.now_ns();
            let found = all_checkpoints(&store);
            check_names(&store, &found);
            for (age, checkpoint) in found.iter().enumerate() {
                let name = checkpoint.name.to_string();
                covered.entry(name).or_insert_with(|| {
                    met.checkpoints += 1;
                    // Of two in one step, the first was taken before points were deleted.
                    let is_newest = age == 0;
                    (
                        if is_newest {
                            world.model.lock().clone()
                        } else {
                            before.clone()
                        },
                        now_ns,
                    )
                });
            }
            match rng.u8(0..60) {
                0..2 => {
                    met.kills += 1;
                    met.merges += live.task.merges;
                    live.stop();
                    disk = disk.crash(rng.choice(Crash::KINDS).expect("there are several"));
                    let (model, _) = settled(&world, &disk);
                    *world.model.lock() = model;
                    live = start(&store, &disk, &world);
                }
                2 if !found.is_empty() => {
                    // What is behind the newest checkpoint is lost with the disk.
                    met.lost_disks += 1;
                    met.merges += live.task.merges;
                    live.stop();
                    disk = restored(&store, &found[0]);
                    let (model, _) = &covered[&found[0].name.to_string()];
                    world.skip_to(model.clone(), now_ns);
                    let (model, _) = settled(&world, &disk);
                    *world.model.lock() = model;
                    live = start(&store, &disk, &world);
                    set_up(&mut world, &live.rooms).await;
                }
                3..9 => {
                    if let Some(checkpoint) = rng.choice(&found) {
                        check_restored(&store, checkpoint, &covered);
                    }
                }
                _ => {}
            }
        }
        for checkpoint in all_checkpoints(&store) {
            check_restored(&store, &checkpoint, &covered);
        }
        assert_eq!(store.reused_names(), [""; 0], "no name is used twice");
        met.swept = store.counts().deletes;
        met.merges += live.task.merges;
        live.stop();
    });
    met
}

#[test]
fn every_checkpoint_restores_to_what_it_covered() {
    let first = seed();
    let met: Vec<Met> = (first..first + 12).map(trace).collect();
    for one in &met {
        println!("{one:?}");
    }
    let sum = |of: &dyn Fn(&Met) -> u64| met.iter().map(of).sum::<u64>();
    assert!(sum(&|met| met.checkpoints as u64) > 100, "the traces publish");
    assert!(sum(&|met| met.swept) > 50, "the traces sweep");
    assert!(sum(&|met| met.merges) > 0, "the traces merge");
    assert!(sum(&|met| u64::from(met.failures)) > 20, "the traces meet faults");
    assert!(
        sum(&|met| u64::from(met.kills.min(met.lost_disks))) > 0,
        "the traces lose processes and disks"
    );
}

/// The log of a restored directory begins after everything that its files cover.
#[test]
fn a_restored_directory_goes_on_with_the_next_record() {
    let (store, disk) = (SimObjects::default(), SimDisk::new(1));
    let mut world = World::new(seed());
    in_system(async {
        let mut live = start(&store, &disk, &world);
        set_up(&mut world, &live.rooms).await;
        for _ in 0..10 {
            world.ingest(&live.rooms, 3).await.unwrap();
        }
        live.checkpoint().unwrap();
        let model = world.model.lock().clone();
        world.ingest(&live.rooms, 3).await.unwrap();
        live.stop();
        let newest = &all_checkpoints(&store)[0];
        let (last, disk) = (newest.root.manifest.newest_covered(), restored(&store, newest));
        assert_eq!(recover(&disk).recovered.log.last, last);
        let manifest = Manifest::read(&disk, &layout().data_dir).unwrap().unwrap();
        assert_eq!((manifest.covered, manifest.catalog_covered), (last, last));
        let now_ns = world.clock.now_ns();
        world.skip_to(model, now_ns);
        let mut live = start(&store, &disk, &world);
        world.check_live(&live).await;
        world.ingest(&live.rooms, 1).await.unwrap();
        live.checkpoint().unwrap();
        let sequences: BTreeMap<_, _> = all_checkpoints(&store)
            .into_iter()
            .map(|it| (it.name, it.root.manifest.newest_covered()))
            .collect();
        assert_eq!(sequences.into_values().last(), Some(last + 1));
        live.stop();
        check_image(&disk, &world.model.lock(), now_ns);
    });
}

/// A start finds nothing, everything, or an unfinished restore.
#[test]
fn a_power_cut_during_a_restore_leaves_nothing_all_or_a_refusal() {
    let (store, disk) = (SimObjects::default(), SimDisk::new(1));
    let mut world = World::new(seed());
    in_system(async {
        let mut live = start(&store, &disk, &world);
        set_up(&mut world, &live.rooms).await;
        world.ingest(&live.rooms, 3).await.unwrap();
        live.checkpoint().unwrap();
        live.stop();
    });
    let newest = all_checkpoints(&store).remove(0);
    let (mut whole, mut refused) = (0, 0);
    for operation in 1.. {
        let to = SimDisk::new(operation);
        to.stop_at(operation);
        let created = to.create_dir_all(&layout().data_dir).is_ok();
        let done = created && restore_to(&store, &newest, &to, &layout(), &()).is_ok();
        for crash in Crash::KINDS {
            let image = to.crash(crash);
            let is_empty = image.files().is_empty();
            let port: Arc<dyn Disk> = Arc::new(image);
            match open(&port, &layout()) {
                Ok(_) if is_empty => assert!(!done),
                Ok(opened) => {
                    world.model.lock().check(&opened, world.clock.now_ns());
                    whole += 1;
                }
                Err(error) => {
                    assert!(!done && error.to_string().contains("RESTORING"), "{error}");
                    refused += 1;
                }
            }
        }
        if done {
            break;
        }
    }
    assert!(whole >= 6 && refused > 60, "{whole} whole, {refused} refused");
}
