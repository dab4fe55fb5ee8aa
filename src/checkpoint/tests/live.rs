//! The rooms with state, running over the test's disk; the test takes their checkpoints.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use actix::System;
use disk::Disk;
use engine::Cache;
use wal::LogOptions;

use super::model::Row;
use super::record::ingest;
use crate::bucket::{BucketPoolOptions, Buckets};
use crate::catalog::{Bucket, CatalogHandle};
use crate::checkpoint::Rooms as AllRooms;
use crate::checkpoint::merging::Merged;
use crate::checkpoint::open::open_with;
use crate::checkpoint::start::{Home, RoomsOptions, assemble};
use crate::checkpoint::task::Task;
use crate::checkpoint::{CheckpointError, HeldElsewhere, Layout, OpenError, PoolOptions, Pools};
use crate::clock::{Clock, ManualClock, SECOND_NS};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::journal::{Journal, JournalHandle, JournalOptions, LocalShard, THE_SHARD};

/// The data directory on the simulated disk.
pub(crate) fn layout() -> Layout {
    Layout::of(Path::new("data"))
}

pub(crate) fn options() -> RoomsOptions {
    RoomsOptions {
        journal: JournalOptions {
            queue_bytes_max: 1 << 20,
            tail_bytes_max: 1 << 30,
        },
        checkpoint_bytes: 1 << 30,
    }
}

/// Rooms on this disk, with pools of their own.
pub(crate) fn home(disk: Arc<dyn Disk>, clock: Arc<dyn Clock>) -> Home {
    let pools = Pools::start(PoolOptions {
        buckets: BucketPoolOptions {
            mailbox_bytes_max: 1 << 20,
            memory_bytes_max: 1 << 30,
            cache_bytes_max: 1 << 20,
            series_max: 1_000,
            threads: 1,
        },
        checkpoints: 1,
        recoveries: 1,
    });
    Home {
        disk,
        layout: layout(),
        pools: pools.expect("threads start"),
        clock,
        options: options(),
        publish: None,
    }
}

/// Runs a future in its own actix system.
pub(crate) fn in_system<R>(work: impl Future<Output = R>) -> R {
    let system = System::new();
    let result = system.block_on(work);
    System::current().stop();
    system.run().expect("the system ends");
    result
}

pub(super) fn id(number: u64) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

/// Running rooms whose checkpoints the test takes.
pub(super) struct RunningRooms {
    pub(super) rooms: AllRooms,
    pub(super) task: Task,
    /// A merge that was written and is not in force yet.
    merged: Option<Merged>,
    /// Whether the next merge waits for another checkpoint.
    waits: bool,
}

impl RunningRooms {
    pub(super) fn start(disk: Arc<dyn Disk>, clock: Arc<ManualClock>) -> Result<Self, OpenError> {
        Self::start_with(disk, LogOptions::default(), clock)
    }

    pub(super) fn start_with(
        disk: Arc<dyn Disk>,
        log: LogOptions,
        clock: Arc<ManualClock>,
    ) -> Result<Self, OpenError> {
        let mut log = LocalShard::new(Arc::clone(&disk), layout().log_dir(), log);
        let opened = open_with(
            &disk,
            &layout(),
            &mut log,
            Cache::new(1 << 20),
            &HeldElsewhere::new(),
        )?;
        let journal = Journal::start(log.into_log().expect("it was replayed")).expect("a thread starts");
        let (rooms, _, task) = assemble(opened, &journal, THE_SHARD, home(disk, clock));
        Ok(RunningRooms::of(rooms, task))
    }

    pub(super) fn of(rooms: AllRooms, task: Task) -> Self {
        RunningRooms {
            rooms,
            task,
            merged: None,
            waits: false,
        }
    }

    /// Takes a checkpoint and merges, on a thread that may block. Every other merge takes effect only after the next
    /// checkpoint, and after the steps until then.
    pub(super) fn checkpoint(&mut self) -> Result<(), CheckpointError> {
        let (overtaken, mut waits) = (self.merged.take(), self.waits);
        let (outcome, merged, waits) = self.on_thread(move |task| {
            let outcome = task.checkpoint();
            overtaken.into_iter().for_each(|merged| task.finish_merge(merged));
            while let Some(job) = task.begin_merge() {
                let merged = job.run(&AtomicBool::new(false));
                waits = !waits;
                if waits {
                    return (outcome, Some(merged), waits);
                }
                task.finish_merge(merged);
            }
            (outcome, None, waits)
        });
        (self.merged, self.waits) = (merged, waits);
        outcome
    }

    /// Lets a merge that was written take effect.
    pub(super) fn end_merge(&mut self) {
        if let Some(merged) = self.merged.take() {
            self.on_thread(|task| task.finish_merge(merged));
        }
    }

    pub(super) fn on_thread<R: Send>(&mut self, work: impl FnOnce(&mut Task) -> R + Send) -> R {
        let task = &mut self.task;
        std::thread::scope(|scope| {
            scope
                .spawn(|| work(task))
                .join()
                .expect("a checkpoint does not panic")
        })
    }

    /// Ends the journal's thread, even if the disk refuses everything.
    pub(super) fn stop(mut self) {
        let _ = self.task.journal.close();
    }
}

#[derive(Debug)]
pub(super) enum Failure {
    Service(ServiceError),
    Checkpoint(CheckpointError),
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        Failure::Service(error)
    }
}

/// The rooms that receive points and changes of retention.
#[derive(Clone)]
pub(super) struct Rooms {
    pub(super) catalog: CatalogHandle,
    pub(super) journal: JournalHandle,
    pub(super) buckets: Buckets,
}

pub(super) fn rooms_of(live: &RunningRooms) -> Rooms {
    Rooms {
        catalog: live.rooms.catalog.clone(),
        journal: live.rooms.journal.clone(),
        buckets: live.rooms.buckets.clone(),
    }
}

/// An existing bucket.
pub(super) fn bucket(rooms: &Rooms, ordinal: u32) -> Arc<Bucket> {
    rooms
        .catalog
        .read(|catalog| catalog.bucket_by_ordinal(ordinal).cloned())
        .expect("it exists")
}

/// Stores rows of the bucket's first source, a second apart, the first of this age.
pub(super) async fn store_in(rooms: &Rooms, ordinal: u32, now_ns: i64, age_ns: i64, count: u32) {
    for first in (0..count).step_by(1_000) {
        let row = |value: u32| Row {
            source: 0,
            timestamp_ns: now_ns - age_ns + i64::from(value) * SECOND_NS,
            value,
        };
        let rows: Vec<Row> = (first..count.min(first + 1_000)).map(row).collect();
        let bucket = bucket(rooms, ordinal);
        let stored = rooms
            .buckets
            .ingest(&bucket, ingest(ordinal, &rows, None, now_ns));
        stored.await.unwrap();
    }
}

/// Points of the bucket's first source; `None` where the bucket answers 503.
pub(super) async fn points_in(rooms: &Rooms, ordinal: u32) -> Option<u64> {
    let bucket = bucket(rooms, ordinal);
    rooms.buckets.point_count(&bucket, &[0]).await.ok()
}

/// Has the bucket's actor panic, which ends it.
pub(super) async fn panic_in(rooms: &Rooms, ordinal: u32) {
    let handle = rooms.buckets.handle(&bucket(rooms, ordinal)).unwrap();
    handle.with(|_| panic!("on purpose")).await.unwrap_err();
}
