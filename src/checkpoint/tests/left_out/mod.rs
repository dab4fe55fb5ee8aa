//! Each class of sync left out: the tests of power cuts must notice. One scenario of points, checkpoints, merges, new log
//! files, a full disk, carried records and starts after failed syncs runs over seeds; at each operation that alters the disk the power
//! is cut in every kind. With nothing left out all that was acknowledged is there; with any one class left out something
//! acknowledged is missing, or the start is refused.
//!
//! What no class here stands for: the removals of segments, runs and carried records, which nothing syncs, since a file
//! that comes back is removed by the next checkpoint; and the directories themselves, which [`Disk::create_dir_all`]
//! makes last.

mod disk;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::disk::Disk;
use ::disk::sim::{Crash, Fault, Operation, SimDisk};
use engine::Cache;
use parking_lot::Mutex;
use wal::{LogOptions, SyncPolicy};

use self::disk::{Class, LeftOut};
use super::crash::check_image;
use super::model::Model;
use super::tap::Tap;
use super::world::{Failure, Live, World, in_system, layout, options};
use super::{exhaustive, seed};
use crate::checkpoint::open::open_with;
use crate::checkpoint::start::assemble;
use crate::clock::Clock;

/// So small that checkpoints leave several files of the log behind, with room that is cut off at their ends.
const LOG: LogOptions = LogOptions {
    sync: SyncPolicy::Always,
    file_bytes_max: 6 << 10,
    frame_bytes_max: 1 << 20,
    room_bytes: 3_000,
};
/// Rounds of points, entries and a checkpoint.
const ROUNDS: usize = 6;
/// A bucket whose actor ends, so that its records are carried on.
const FAILING: u32 = 2;
/// Where one seed does not show what is missing, another one does.
const SEEDS: u64 = 12;

/// What the power cuts of one run have shown.
#[derive(Default)]
struct Seen {
    moments: usize,
    images: usize,
    /// The first loss, or refused start.
    found: Option<String>,
}

impl Seen {
    /// Cuts the power now. Which kinds is a matter of turn where all are found whole.
    fn look(&mut self, disk: &SimDisk, model: &Model, now_ns: i64, all_kinds: bool) {
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

/// A run of the scenario.
struct Scenario {
    disk: SimDisk,
    world: World,
    seen: Arc<Mutex<Seen>>,
    class: Option<Class>,
    /// How many syncs.
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

    /// Starts the rooms on what the process before left, without a power cut. What they have read counts from then on,
    /// whether or not it was acknowledged: readers see it.
    fn start(&mut self) -> (Live, LeftOut) {
        let (seen, model, clock) = (
            Arc::clone(&self.seen),
            Arc::clone(&self.world.model),
            Arc::clone(&self.world.clock),
        );
        let (class, all_kinds) = (self.class, self.class.is_some() || exhaustive());
        let left_out = Arc::clone(&self.left_out);
        let tap = Tap::new(self.disk.clone(), move |disk| {
            // Until something is left out, nothing can be missing.
            if class.is_none() || left_out.load(Ordering::SeqCst) > 0 {
                let model = model.lock().clone();
                seen.lock().look(disk, &model, clock.now_ns(), all_kinds);
            }
        });
        let left_out = Arc::clone(&self.left_out);
        let left_out = LeftOut::new(Arc::new(tap), self.disk.clone(), class, left_out);
        let port: Arc<dyn Disk> = Arc::new(left_out.clone());
        let opened = open_with(&port, &layout(), LOG, Cache::new(1 << 20));
        let opened = opened.unwrap_or_else(|error| panic!("{error}"));
        self.world.model.lock().settle(&opened, self.world.clock.now_ns());
        self.look();
        let clock = Arc::clone(&self.world.clock) as Arc<dyn Clock>;
        let assembled = assemble(opened, port, layout(), options(), clock);
        let (rooms, _, task) = assembled.unwrap_or_else(|error| panic!("{error}"));
        (Live::of(rooms, task), left_out)
    }

    /// Cuts the power between two operations.
    fn look(&self) {
        let model = self.world.model.lock().clone();
        let now_ns = self.world.clock.now_ns();
        self.seen.lock().look(&self.disk, &model, now_ns, true);
    }

    fn stop(&self, live: Live) {
        live.stop();
        self.look();
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
        self.carry(&mut live).await?;
        self.stop(live);
        self.fail(Class::LogFrame).await?;
        self.fail(Class::LogName).await
    }

    /// The disk has room for a part of a frame only, again and again; smaller frames are written in its place.
    async fn fill(&mut self, live: &Live) -> Result<(), Failure> {
        for _ in 0..8 {
            // Several sectors of a frame that is longer than the next one, which has several, too.
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

    /// The actor of a bucket ends; what the log has of it is carried on, and the log trimmed.
    async fn carry(&mut self, live: &mut Live) -> Result<(), Failure> {
        // Several files of the log, which are dropped one behind the other.
        self.world.rows = Some(60);
        for _ in 0..8 {
            self.world.ingest(&live.rooms, 2).await?;
        }
        self.world.rows = None;
        let bucket = live
            .rooms
            .catalog
            .read(|catalog| catalog.bucket_by_ordinal(FAILING).cloned())
            .expect("it was made");
        let handle = live.rooms.buckets.handle(&bucket).expect("it runs");
        handle
            .with(|_| panic!("on purpose"))
            .await
            .expect_err("its actor is gone");
        live.checkpoint().map_err(Failure::Checkpoint)?;
        for _ in 0..2 {
            self.world.create_source(&live.rooms, Some(bucket.id)).await?;
        }
        Ok(())
    }

    /// A sync fails and the process ends; the next one, of the same machine, can read what may never reach the disk.
    async fn fail(&mut self, class: Class) -> Result<(), Failure> {
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

/// Runs the scenario of a seed; answers what the power cuts found, how many there were, and how much was left out.
fn power_cuts(seed: u64, class: Option<Class>) -> (Option<String>, usize, u64) {
    let mut scenario = Scenario::new(seed, class);
    in_system(async { scenario.run().await }).expect("the disk is whole but for the syncs that fail");
    let Seen { images, found, .. } = std::mem::take(&mut *scenario.seen.lock());
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
