//! Omits each class of syncs: the tests of power cuts must detect it. One scenario of points, checkpoints, merges, new
//! log files, a full disk, carried records and starts after failed syncs runs over seeds, with power cuts of every kind
//! at each operation that alters the disk. Without omissions all acknowledged data is present; with any class omitted,
//! acknowledged data is missing or the start is refused.
//!
//! Two kinds of changes have no class: removals of segments, runs and carried records, which are not synced, since the
//! next checkpoint removes a file that reappears; and the directories themselves, which [`Disk::create_dir_all`] makes
//! durable.

mod disk;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::disk::Disk;
use ::disk::sim::{Crash, Fault, Operation, SimDisk};
use engine::Cache;
use parking_lot::Mutex;
use wal::{LogOptions, SyncPolicy};

use self::disk::{Class, OmittingDisk};
use super::crash::check_image;
use super::hooked_disk::HookedDisk;
use super::live::{bucket, panic_in, rooms_of};
use super::model::Model;
use super::world::{Failure, RunningRooms, World, home, in_system, layout};
use super::{exhaustive, seed};
use crate::checkpoint::HeldElsewhere;
use crate::checkpoint::open::open_with;
use crate::checkpoint::start::assemble;
use crate::clock::Clock;
use crate::journal::{Journal, LocalShard, THE_SHARD};

/// Small, so that checkpoints leave several log files, whose room is cut off.
const LOG: LogOptions = LogOptions {
    sync: SyncPolicy::Always,
    file_bytes_max: 6 << 10,
    frame_bytes_max: 1 << 20,
    room_bytes: 3_000,
};
/// Rounds of points, entries and a checkpoint.
const ROUNDS: usize = 6;
/// A bucket whose actor panics, so that its records are carried.
const FAILING: u32 = 2;
/// Not every seed detects every omission.
const SEEDS: u64 = 12;

/// The results of the power cuts of one run.
#[derive(Default)]
struct Results {
    moments: usize,
    images: usize,
    /// The first loss or refused start.
    found: Option<String>,
}

impl Results {
    /// Simulates a power cut now, of all kinds or of one kind in rotation.
    fn cut_power(&mut self, disk: &SimDisk, model: &Model, now_ns: i64, all_kinds: bool) {
        self.moments += 1;
        for (index, crash) in Crash::KINDS.into_iter().enumerate() {
            if self.found.is_some() || !(all_kinds || self.moments % Crash::KINDS.len() == index) {
                continue;
            }
            self.images += 1;
            let image = disk.crash(crash);
            let checked = catch_unwind(AssertUnwindSafe(|| check_image(&image, model, now_ns)));
            if let Err(panic) = checked {
                let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                let moment = self.moments;
                self.found = Some(format!("moment {moment}, {crash:?}: {message}"));
            }
        }
    }
}

struct Scenario {
    disk: SimDisk,
    world: World,
    seen: Arc<Mutex<Results>>,
    class: Option<Class>,
    /// Number of omitted syncs.
    left_out: Arc<AtomicU64>,
}

impl Scenario {
    fn new(seed: u64, class: Option<Class>) -> Self {
        Scenario {
            disk: SimDisk::new(seed),
            world: World::new(seed),
            seen: Arc::default(),
            class,
            left_out: Arc::default(),
        }
    }

    /// Starts the rooms on the files of the previous process, without a power cut. All that they have read counts as
    /// acknowledged from then on, because readers see it.
    fn start(&mut self) -> (RunningRooms, OmittingDisk) {
        let (seen, model, clock) = (
            Arc::clone(&self.seen),
            Arc::clone(&self.world.model),
            Arc::clone(&self.world.clock),
        );
        let (class, all_kinds) = (self.class, self.class.is_some() || exhaustive());
        let left_out = Arc::clone(&self.left_out);
        let hooked_disk = HookedDisk::new(self.disk.clone(), move |disk| {
            // Before the first omission, nothing can be missing.
            if class.is_none() || left_out.load(Ordering::SeqCst) > 0 {
                let model = model.lock().clone();
                seen.lock().cut_power(disk, &model, clock.now_ns(), all_kinds);
            }
        });
        let left_out = Arc::clone(&self.left_out);
        let left_out = OmittingDisk::new(Arc::new(hooked_disk), self.disk.clone(), class, left_out);
        let port: Arc<dyn Disk> = Arc::new(left_out.clone());
        let mut log = LocalShard::new(Arc::clone(&port), layout().log_dir(), LOG);
        let opened = open_with(
            &port,
            &layout(),
            &mut log,
            Cache::new(1 << 20),
            &HeldElsewhere::new(),
        );
        let opened = opened.unwrap_or_else(|error| panic!("{error}"));
        self.world.model.lock().settle(&opened, self.world.clock.now_ns());
        self.cut_power();
        let clock = Arc::clone(&self.world.clock) as Arc<dyn Clock>;
        let journal = Journal::start(log.into_log().expect("it was replayed")).expect("a thread starts");
        let (rooms, _, task) = assemble(opened, &journal, THE_SHARD, home(port, clock));
        (RunningRooms::of(rooms, task), left_out)
    }

    /// Simulates a power cut between two operations.
    fn cut_power(&self) {
        let model = self.world.model.lock().clone();
        let now_ns = self.world.clock.now_ns();
        self.seen.lock().cut_power(&self.disk, &model, now_ns, true);
    }

    fn stop(&self, live: RunningRooms) {
        live.stop();
        self.cut_power();
    }

    async fn run(&mut self) -> Result<(), Failure> {
        let (mut live, _) = self.start();
        self.world.set_up(&live.rooms).await?;
        for round in 0..ROUNDS {
            for _ in 0..4 {
                self.world.ingest(&live.rooms, 2).await?;
                self.world.entry(&live.rooms).await?;
            }
            if round > 0 {
                live.checkpoint().map_err(Failure::Checkpoint)?;
            }
        }
        let merges = live.task.merges;
        assert!(merges > 0, "segments are merged");
        self.fill(&live).await?;
        self.carry_records(&mut live).await?;
        self.stop(live);
        self.fail_sync(Class::LogFrame).await?;
        self.fail_sync(Class::LogName).await
    }

    /// Writes frames that fit on the disk only in part; smaller frames are written in their place.
    async fn fill(&mut self, live: &RunningRooms) -> Result<(), Failure> {
        for _ in 0..8 {
            // Several sectors of a frame that is longer than the next one, which also takes several.
            self.world.rows = Some(120);
            self.disk.fail(Operation::Write, 1, Fault::Full { bytes: 2_000 });
            let refused = self.world.ingest(&live.rooms, 1).await;
            refused.expect_err("its frame did not fit");
            self.world.rows = Some(50);
            self.world.ingest(&live.rooms, 1).await?;
        }
        self.world.rows = None;
        Ok(())
    }

    /// Ends the actor of a bucket, so that its records in the log are carried and the log is trimmed.
    async fn carry_records(&mut self, live: &mut RunningRooms) -> Result<(), Failure> {
        // Several log files, which are removed one after another.
        self.world.rows = Some(60);
        for _ in 0..8 {
            self.world.ingest(&live.rooms, 2).await?;
        }
        self.world.rows = None;
        let rooms = rooms_of(live);
        panic_in(&rooms, FAILING).await;
        live.checkpoint().map_err(Failure::Checkpoint)?;
        for _ in 0..2 {
            self.world
                .create_source(&live.rooms, Some(bucket(&rooms, FAILING).id))
                .await?;
        }
        Ok(())
    }

    /// Makes a sync fail and ends the process; the next process on the same machine can read data that may never reach
    /// the disk.
    async fn fail_sync(&mut self, class: Class) -> Result<(), Failure> {
        let (live, left_out) = self.start();
        left_out.fail_next(class);
        let mut acknowledged = 0;
        while self.world.create_bucket(&live.rooms).await.is_ok() {
            acknowledged += 1;
            assert!(acknowledged < 10_000, "no sync of {class:?}");
        }
        assert!(left_out.has_failed(), "it was {class:?} that failed");
        self.stop(live);
        let (mut live, _) = self.start();
        for _ in 0..3 {
            self.world.create_bucket(&live.rooms).await?;
        }
        live.checkpoint().map_err(Failure::Checkpoint)?;
        self.world.create_bucket(&live.rooms).await?;
        self.stop(live);
        Ok(())
    }
}

/// Runs the scenario of a seed; returns the first loss, the number of power cuts, and the number of omitted syncs.
fn power_cuts(seed: u64, class: Option<Class>) -> (Option<String>, usize, u64) {
    let mut scenario = Scenario::new(seed, class);
    in_system(async { scenario.run().await }).expect("the disk is whole but for the syncs that fail");
    let Results { images, found, .. } = std::mem::take(&mut *scenario.seen.lock());
    (found, images, scenario.left_out.load(Ordering::SeqCst))
}

#[test]
fn nothing_is_lost_when_no_sync_is_omitted() {
    let first = seed();
    for seed in first..first + if exhaustive() { SEEDS } else { 2 } {
        let (found, images, left_out) = power_cuts(seed, None);
        println!("seed {seed}: {images} power cuts");
        assert_eq!((found, left_out), (None, 0), "seed {seed}");
    }
}

/// One test instead of one per class, so that a failure names all classes that were not detected.
#[test]
fn omitting_any_class_of_syncs_is_detected() {
    let first = seed();
    let mut unnoticed = Vec::new();
    for class in Class::ALL {
        let (mut images, mut left_out) = (0, 0);
        let noticed = (first..first + SEEDS).find_map(|seed| {
            let (found, cut, skipped) = power_cuts(seed, Some(class));
            images += cut;
            left_out += skipped;
            Some((seed, found?))
        });
        assert!(left_out > 0, "{class:?} never came by");
        match noticed {
            Some((seed, found)) => {
                let found: String = found.chars().take(200).collect();
                println!("{class:?}: noticed with seed {seed} at power cut {images}: {found}");
            }
            None => unnoticed.push(class),
        }
    }
    assert!(
        unnoticed.is_empty(),
        "left out, and no power cut shows it: {unnoticed:?}"
    );
}
