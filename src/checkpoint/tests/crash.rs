//! Power cuts of every kind at every operation that alters the disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use disk::Disk;
use disk::sim::{Crash, SimDisk};
use parking_lot::Mutex;

use super::hooked_disk::HookedDisk;
use super::model::Model;
use super::world::{RunningRooms, World, in_system, layout};
use super::{exhaustive, seed};
use crate::catalog::{CatalogHandle, Stream};
use crate::checkpoint::{Opened, open};
use crate::clock::{Clock, ManualClock};
use crate::ledger::Ledger;

const STEPS: usize = 150;

pub(super) fn recover(disk: &SimDisk) -> Opened {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    match open(&disk, &layout()) {
        Ok(opened) => opened,
        Err(error) => panic!("the directory does not open: {error}"),
    }
}

/// Acknowledged data is present after recovery, and again after another crash right afterwards.
pub(super) fn check_image(image: &SimDisk, model: &Model, now_ns: i64) {
    model.check(&recover(image), now_ns);
    let again = image.crash(Crash::KINDS[1]);
    model.check(&recover(&again), now_ns);
}

/// An image of a disk, and its expected content.
struct Moment {
    image: SimDisk,
    model: Model,
    now_ns: i64,
    name: String,
}

#[derive(Default)]
struct Results {
    operations: usize,
    images: usize,
    failures: Vec<String>,
    moments: Vec<Moment>,
}

fn cut_power(seen: &mut Results, disk: &SimDisk, model: &Model, now_ns: i64) {
    let operation = seen.operations;
    seen.operations += 1;
    let all = exhaustive();
    for (index, crash) in Crash::KINDS.into_iter().enumerate() {
        if !all && operation % Crash::KINDS.len() != index && operation % 5 != index {
            continue;
        }
        seen.images += 1;
        let image = disk.crash(crash);
        let name = format!("operation {operation}, {crash:?}");
        if (operation + index).is_multiple_of(if all { 10 } else { 40 }) {
            let (image, model) = (image.crash(Crash::KINDS[0]), model.clone());
            seen.moments.push(Moment {
                image,
                model,
                now_ns,
                name: name.clone(),
            });
        }
        let checked = catch_unwind(AssertUnwindSafe(|| check_image(&image, model, now_ns)));
        if let Err(panic) = checked {
            let message = panic.downcast_ref::<String>().cloned();
            seen.failures.push(format!(
                "{name}: {}",
                message.unwrap_or_else(|| "a panic".to_owned())
            ));
        }
    }
}

#[test]
fn a_power_cut_at_any_operation_loses_no_acknowledged_data() {
    let first = seed();
    let merges: u64 = (first..first + if exhaustive() { 20 } else { 4 })
        .map(power_cuts)
        .sum();
    assert!(merges > 0, "the traces merge segments");
}

/// Runs the trace of a seed; returns the number of merges.
fn power_cuts(seed: u64) -> u64 {
    println!("seed {seed}");
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    let seen: Arc<Mutex<Results>> = Arc::default();
    // A read in the middle of the trace.
    let reader: Arc<OnceLock<(CatalogHandle, Ledger)>> = Arc::default();
    let hooked_disk = {
        let (seen, model, clock) = (
            Arc::clone(&seen),
            Arc::clone(&world.model),
            Arc::clone(&world.clock),
        );
        let reader = Arc::clone(&reader);
        // The model is read first and unlocked before the check, which takes long while the trace continues.
        HookedDisk::new(disk.clone(), move |disk| {
            let model = model.lock().clone();
            let now_ns = clock.now_ns();
            cut_power(&mut seen.lock(), disk, &model, now_ns);
            if let Some((catalog, ledger)) = reader.get() {
                let read = || catalog.read(|catalog| model.entries.check(catalog, ledger, now_ns));
                if let Err(panic) = catch_unwind(AssertUnwindSafe(read)) {
                    let message = panic.downcast_ref::<String>().cloned();
                    let failure = format!("a reader: {}", message.unwrap_or_else(|| "a panic".to_owned()));
                    seen.lock().failures.push(failure);
                }
            }
        })
    };
    let merges = in_system(async {
        let mut live = RunningRooms::start(Arc::new(hooked_disk), Arc::clone(&world.clock))
            .unwrap_or_else(|error| panic!("{error}"));
        let rooms = (live.rooms.catalog.clone(), live.rooms.ledger.clone());
        assert!(reader.set(rooms).is_ok());
        world.set_up(&live.rooms).await.expect("the disk is whole");
        for _ in 0..STEPS {
            world.step(&mut live).await.expect("the disk is whole");
        }
        world.check_live(&live).await;
        let runs = live.rooms.ledger.stats().runs;
        assert!(
            runs <= 2 * Stream::ALL.len() as u64,
            "{runs} small runs are not merged"
        );
        let merges = live.task.merges;
        live.stop();
        merges
    });
    let Results {
        operations,
        images,
        failures,
        moments,
    } = std::mem::take(&mut *seen.lock());
    println!(
        "{operations} operations, {images} images, {merges} merges, went on from {}",
        moments.len()
    );
    assert!(
        failures.is_empty(),
        "{} failed, the first: {}",
        failures.len(),
        failures[0]
    );
    for moment in moments {
        let gone_on = catch_unwind(AssertUnwindSafe(|| {
            continue_trace(&moment.image, moment.model, moment.now_ns, seed)
        }));
        if let Err(panic) = gone_on {
            println!("going on from {} of seed {seed}", moment.name);
            std::panic::resume_unwind(panic);
        }
    }
    merges
}

/// Recovers, continues the trace, takes a checkpoint, crashes again, and recovers twice.
pub(super) fn continue_trace(image: &SimDisk, mut model: Model, now_ns: i64, seed: u64) {
    model.settle(&recover(image), now_ns);
    // Another seed, so that keys differ from those of the trace before.
    let mut world = World::new(seed ^ 0x5eed);
    world.skip_to(model, now_ns);
    in_system(async {
        let clock: Arc<ManualClock> = Arc::clone(&world.clock);
        let mut live =
            RunningRooms::start(Arc::new(image.clone()), clock).unwrap_or_else(|error| panic!("{error}"));
        if live.rooms.catalog.read(|catalog| catalog.organizations().len()) == 0 {
            world.set_up(&live.rooms).await.expect("the disk is whole");
        }
        world.check_live(&live).await;
        for _ in 0..8 {
            world.step(&mut live).await.expect("the disk is whole");
        }
        live.checkpoint().expect("the disk is whole");
        world.ingest(&live.rooms, 1).await.expect("the disk is whole");
        live.stop();
    });
    for crash in Crash::KINDS {
        check_image(&image.crash(crash), &world.model.lock(), world.clock.now_ns());
    }
}
