//! Random combinations of retention changes, backfills, deletions, clock changes, failing disks, panics, kills and
//! checkpoints, compared with a model of plain lists. The state seen by readers is compared every few steps and after
//! recoveries.
//!
//! A plain run takes a few rounds. `STORM_SECONDS=…` runs for that long with new seeds, each of which is printed;
//! `TIDEWATCH_SEED=…` starts with that seed.

mod compare;
mod end;
mod model;
mod requests;
mod steps;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use disk::Disk;
use disk::sim::{Crash, Fault, Operation};
use parking_lot::Mutex;

use self::model::Condition;
use self::steps::{Counts, Storm};
use super::hooked_disk::HookedDisk;
use super::live::{Rooms, rooms_of};
use super::world::{RunningRooms, in_system};
use crate::clock::Clock;

const ROUNDS: u64 = 3;
/// Steps of a round, without those during checkpoints.
const STEPS: u32 = 300;
/// Time limit for the server to detect that a disk has room again.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_storm_loses_nothing_and_revives_nothing() {
    let seconds = std::env::var("STORM_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let began = Instant::now();
    let mut counts = Counts::default();
    let mut seed = match seconds {
        Some(_) if std::env::var_os("TIDEWATCH_SEED").is_none() => fastrand::u64(..) >> 16,
        _ => super::seed(),
    };
    loop {
        println!("storm: TIDEWATCH_SEED={seed}");
        round(seed, &mut counts);
        let done = match seconds {
            Some(seconds) => began.elapsed() >= Duration::from_secs(seconds),
            None => counts.rounds >= ROUNDS,
        };
        if done {
            break;
        }
        seed += 1;
    }
    let Counts {
        rounds,
        operations,
        crashes,
        checkpoints,
        merges,
        refused,
        set_apart,
        comparisons,
        rows,
    } = counts;
    println!(
        "storm: {rounds} rounds, {operations} operations, {crashes} crashes, {checkpoints} checkpoints, {merges} merges, \
         {rows} rows sent, {refused} refusals, {set_apart} buckets in trouble, {comparisons} looks without a difference, {} s",
        began.elapsed().as_secs()
    );
}

fn round(seed: u64, counts: &mut Counts) {
    let mut storm = Storm::new(seed);
    storm.counts = *counts;
    let mut steps = STEPS;
    while steps > 0 {
        storm = in_system(run_process(storm, &mut steps));
        storm = crash(storm);
    }
    storm = in_system(end::end(storm));
    *counts = storm.counts;
    counts.rounds += 1;
}

/// Work that the checkpointer runs once, after a few disk operations.
#[derive(Clone, Default)]
struct Hook(Arc<Mutex<Option<Due>>>);

/// The number of operations before it, and the work.
type Due = (u32, Box<dyn FnOnce() + Send>);

impl Hook {
    fn before_operation(&self) {
        // Only the checkpointer's thread is unnamed; the log's thread must not wait for itself.
        if std::thread::current().name().is_some() {
            return;
        }
        let mut hook = self.0.lock();
        match &mut *hook {
            Some((left, _)) if *left > 0 => *left -= 1,
            _ => {
                let work = hook.take();
                // The lock is released first: the work itself uses the disk.
                drop(hook);
                work.into_iter().for_each(|(_, work)| work());
            }
        }
    }
}

fn start(storm: &Storm, disk: impl Disk) -> Result<RunningRooms, String> {
    RunningRooms::start(Arc::new(disk), Arc::clone(&storm.world.clock)).map_err(|error| error.to_string())
}

/// Runs the server until it is killed.
async fn run_process(mut storm: Storm, steps: &mut u32) -> Storm {
    let hook = Hook::default();
    let hooked_disk = {
        let hook = hook.clone();
        HookedDisk::new(storm.disk.clone(), move |_| hook.before_operation())
    };
    let started = start(&storm, hooked_disk);
    let mut live = match started {
        Ok(live) => live,
        Err(error) => {
            assert!(storm.failing, "the data directory does not open: {error}");
            storm.disk = storm.disk.crash(Crash::KINDS[1]);
            storm.counts.crashes += 1;
            return storm;
        }
    };
    let rooms = rooms_of(&live);
    if storm.model.buckets.is_empty() {
        set_up(&mut storm, &live).await;
    }
    compare::settle(&mut storm.model, &rooms);
    compare(&mut storm, &rooms).await;
    let mut full_for: Option<u32> = None;
    while *steps > 0 {
        *steps -= 1;
        let kind = storm.rng().u8(0..200);
        match kind {
            0..3 => break,
            3..6 => {
                let ahead = storm.rng().u64(1..120);
                storm.disk.stop_at(storm.disk.operations() + ahead);
                storm.failing = true;
            }
            6 => {
                let nth = storm.rng().u64(1..20);
                storm.disk.fail(Operation::Sync, nth, Fault::Io);
                storm.failing = true;
            }
            7..9 if full_for.is_none() => {
                let room = storm.rng().u64(0..20_000);
                storm.disk.set_budget_bytes(Some(storm.disk.used_bytes() + room));
                (storm.full, full_for) = (true, Some(storm.rng().u32(1..12)));
            }
            9..50 => {
                let outcome;
                (storm, outcome) = checkpoint(storm, &mut live, &hook).await;
                storm.counts.checkpoints += u64::from(outcome.is_ok());
            }
            _ => {
                // The model has recorded the meaning of a refusal.
                let _ = storm.step(&mut live).await;
            }
        }
        if let Some(left) = full_for {
            full_for = left.checked_sub(1);
            if full_for.is_none() {
                storm.disk.set_budget_bytes(None);
                storm.full = false;
                // A stopped disk has no room.
                if !storm.failing {
                    wait_for_room(&rooms);
                }
            }
        }
        if log_failed(&rooms) {
            assert!(storm.failing, "the log failed on a whole disk");
            break;
        }
        if storm.rng().u8(0..6) == 0 {
            compare(&mut storm, &rooms).await;
        }
    }
    storm.counts.merges += live.task.merges;
    let kind = storm.rng().choice(Crash::KINDS).expect("there are some");
    // The image is taken first: an orderly end would write more.
    let image = storm.disk.crash(kind);
    storm.disk.set_budget_bytes(None);
    live.stop();
    storm.disk = image;
    storm.counts.crashes += 1;
    storm
}

/// Whether the log has failed for a reason other than a full disk.
fn log_failed(rooms: &Rooms) -> bool {
    let not_ready = rooms.journal.readiness().err();
    not_ready.is_some_and(|why| !why.contains("the disk is full"))
}

/// Waits until the log has detected that the disk has room again.
fn wait_for_room(rooms: &Rooms) {
    let began = Instant::now();
    while let Err(why) = rooms.journal.readiness() {
        if !why.contains("the disk is full") {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{why}");
        std::thread::yield_now();
    }
}

async fn set_up(storm: &mut Storm, live: &RunningRooms) {
    storm.world.set_up(&live.rooms).await.expect("the disk is whole");
    storm.add_world_to_model();
}

async fn compare(storm: &mut Storm, rooms: &Rooms) {
    let now_ns = storm.now_ns();
    storm.counts.comparisons += 1;
    compare::compare(&mut storm.model, rooms, now_ns).await;
}

/// Takes a checkpoint and merges, sometimes with steps in the middle of them.
async fn checkpoint(mut storm: Storm, live: &mut RunningRooms, hook: &Hook) -> (Storm, Result<(), String>) {
    let (now_ns, monotonic_ns) = (storm.now_ns(), storm.world.clock.monotonic_ns());
    let deletes_at_ns = storm.model.deletes_at_ns(now_ns, monotonic_ns);
    storm.model.may_remove(deletes_at_ns);
    storm.deletes_at_ns = deletes_at_ns;
    let work = storm.rng().bool().then(|| storm.rng().u32(0..40));
    let slot = Arc::new(Mutex::new(Some(storm)));
    if let Some(operations) = work {
        let (slot, rooms) = (Arc::clone(&slot), rooms_of(live));
        let work = move || {
            let taken = slot.lock().take();
            let mut storm = taken.expect("no other thread takes it");
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.expect("a runtime").block_on(async {
                for _ in 0..storm.rng().u32(1..4) {
                    let _ = storm.work(&rooms).await;
                }
                compare(&mut storm, &rooms).await;
            });
            *slot.lock() = Some(storm);
        };
        *hook.0.lock() = Some((operations, Box::new(work)));
    }
    let outcome = live.checkpoint().map_err(|error| error.to_string());
    hook.0.lock().take();
    let taken = slot.lock().take();
    let mut storm = taken.expect("the work is done");
    // Applies the current retentions, too.
    storm.model.may_remove(deletes_at_ns);
    storm.deletes_at_ns = None;
    let mut buckets = storm.model.buckets.iter();
    let troubled = buckets.any(|bucket| bucket.condition != Condition::Healthy);
    if let Err(error) = &outcome {
        assert!(
            storm.failing || storm.full || troubled,
            "a checkpoint failed: {error}"
        );
    }
    (storm, outcome)
}

/// Creates the image for the next start: manifests may be damaged or repaired.
fn crash(mut storm: Storm) -> Storm {
    storm.model.restarted();
    (storm.failing, storm.full) = (false, false);
    repair(&mut storm, false);
    if storm.rng().u8(0..6) == 0 {
        let picked = {
            let existing = storm.model.existing();
            storm.rng().choice(existing)
        };
        if let Some(index) =
            picked.filter(|index| storm.model.buckets[*index].condition == Condition::Healthy)
        {
            let ordinal = storm.model.buckets[index].ordinal.expect("it exists");
            let manifest = PathBuf::from(format!("data/buckets/{ordinal:08}/manifest"));
            if storm.disk.files().contains_key(&manifest) {
                storm.disk.flip_bit(&manifest, 30, 1);
                storm.damaged.push(manifest);
                storm.model.buckets[index].condition = Condition::SetApart;
                storm.counts.set_apart += 1;
            }
        }
    }
    if storm.rng().u8(0..5) == 0 {
        // The disk fails again during recovery or soon after.
        let ahead = storm.rng().u64(1..30);
        storm.disk.stop_at(ahead);
        storm.failing = true;
    }
    storm
}

/// Repairs all or most damaged manifests; every other trouble ends with the process.
fn repair(storm: &mut Storm, all: bool) {
    for bucket in &mut storm.model.buckets {
        bucket.condition = Condition::Healthy;
    }
    let damaged = std::mem::take(&mut storm.damaged);
    for manifest in damaged {
        if all || storm.rng().u8(0..3) > 0 {
            storm.disk.flip_bit(&manifest, 30, 1);
            continue;
        }
        let of = |ordinal: Option<u32>| {
            ordinal.is_some_and(|it| manifest.starts_with(Path::new(&format!("data/buckets/{it:08}"))))
        };
        let mut buckets = storm.model.buckets.iter_mut();
        if let Some(bucket) = buckets.find(|bucket| of(bucket.ordinal)) {
            bucket.condition = Condition::SetApart;
        }
        storm.damaged.push(manifest);
    }
}
