//! All steps except sending points: each is recorded in the model according to the answer of the rooms.

use std::path::PathBuf;
use std::sync::Arc;

use disk::sim::SimDisk;
use fastrand::Rng;

use super::super::live::{Rooms, rooms_of};
use super::super::world::{RunningRooms, World};
use super::super::{live::Failure, model as plain};
use super::model::{Bucket, Condition, Model, Sent, Source, UncertainChange};
use crate::catalog::{self, Command};
use crate::clock::{Clock, DAY_NS, MINUTE_NS, SECOND_NS};
use crate::error::{ErrorKind, ServiceError};

/// The clock stays between 2001 and 2128.
const CLOCK_NS: std::ops::Range<i64> = 1_000_000_000 * SECOND_NS..5_000_000_000 * SECOND_NS;

#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) rounds: u64,
    pub(super) operations: u64,
    pub(super) crashes: u64,
    pub(super) checkpoints: u64,
    pub(super) merges: u64,
    pub(super) refused: u64,
    pub(super) set_apart: u64,
    pub(super) comparisons: u64,
    pub(super) rows: u64,
}

pub(super) struct Storm {
    pub(super) world: World,
    pub(super) model: Model,
    pub(super) counts: Counts,
    pub(super) disk: SimDisk,
    /// Whether the disk may refuse anything until the end of the process.
    pub(super) failing: bool,
    /// Whether the disk is full until there is room again.
    pub(super) full: bool,
    /// During a checkpoint: the expiry time by which it may delete.
    pub(super) deletes_at_ns: Option<i64>,
    /// Manifests with a flipped bit.
    pub(super) damaged: Vec<PathBuf>,
    /// Deleted buckets whose directories still exist.
    removals: Vec<u32>,
    /// Number of rows sent so far, and so the value of the last.
    pub(super) rows: u32,
    /// The difference of the clock from its undisturbed time.
    skew_ns: i64,
}

impl Storm {
    pub(super) fn new(seed: u64) -> Self {
        Storm {
            world: World::new(seed),
            model: Model::default(),
            counts: Counts::default(),
            disk: SimDisk::new(seed),
            failing: false,
            full: false,
            deletes_at_ns: None,
            damaged: Vec::new(),
            removals: Vec::new(),
            rows: 0,
            skew_ns: 0,
        }
    }

    pub(super) fn rng(&mut self) -> &mut Rng {
        &mut self.world.rng
    }

    pub(super) fn now_ns(&self) -> i64 {
        self.world.clock.now_ns()
    }

    fn pick(&mut self) -> Option<usize> {
        let existing = self.model.existing();
        self.rng().choice(existing)
    }

    /// One step between checkpoints.
    pub(super) async fn step(&mut self, live: &mut RunningRooms) -> Result<(), ServiceError> {
        let rooms = rooms_of(live);
        match self.rng().u8(0..100) {
            0..8 => self.create(live).await,
            8..10 => {
                if let Some(ordinal) = self.removals.pop() {
                    // A remaining directory is removed by the next start.
                    let _ = live.task.remove_bucket(ordinal);
                }
                Ok(())
            }
            10 => {
                self.panic(&rooms).await;
                Ok(())
            }
            11 => {
                self.block_files();
                Ok(())
            }
            _ => self.work(&rooms).await,
        }
    }

    /// One step that may occur during a checkpoint.
    pub(super) async fn work(&mut self, rooms: &Rooms) -> Result<(), ServiceError> {
        self.counts.operations += 1;
        let Some(index) = self.pick() else { return Ok(()) };
        match self.rng().u8(0..100) {
            0..34 => self.send_some(rooms, index).await,
            34..37 => self.send_many(rooms, index).await,
            37..45 => self.repeat(rooms, index).await,
            45..55 => self.backfill(rooms, index).await,
            55..57 => self.extend_daily(rooms, index).await,
            57..65 => {
                let days = self.rng().u32(1..40);
                self.retain(rooms, index, days).await
            }
            65..70 => self.shrink_and_grow(rooms, index).await,
            70..75 => self.delete_source(rooms, index).await,
            75..77 => self.delete_bucket(rooms, index).await,
            77..85 => {
                self.step_clock();
                Ok(())
            }
            _ => {
                self.pass_time();
                Ok(())
            }
        }
    }

    fn step_clock(&mut self) {
        let by_ns = match self.rng().u8(0..8) {
            0..4 => -self.skew_ns,
            4 => self.rng().i64(-100..100) * SECOND_NS,
            5 => self.rng().i64(-100..100) * 60 * MINUTE_NS,
            6 => self.rng().i64(-60..60) * DAY_NS,
            _ => self.rng().i64(-20..20) * 365 * DAY_NS,
        };
        if CLOCK_NS.contains(&(self.now_ns() + by_ns)) {
            self.world.clock.step(by_ns);
            self.skew_ns += by_ns;
        }
    }

    pub(super) fn pass_time(&mut self) {
        let by_ns = match self.rng().u8(0..8) {
            0..2 => self.rng().i64(1..3_600) * SECOND_NS,
            2..7 => self.rng().i64(60..1_800) * MINUTE_NS,
            _ => self.rng().i64(1..20) * DAY_NS,
        };
        if CLOCK_NS.contains(&(self.now_ns() + by_ns)) {
            self.world.clock.advance(by_ns);
        }
    }

    /// The bucket in the form that the service has.
    pub(super) fn bucket(&self, rooms: &Rooms, index: usize) -> Arc<catalog::Bucket> {
        let id = self.model.buckets[index].id;
        let bucket = rooms.catalog.read(|catalog| catalog.bucket(id).cloned());
        bucket.expect("an acknowledged bucket is there")
    }

    /// Asserts that a refusal is expected; returns it.
    pub(super) fn refused(&mut self, index: usize, error: ServiceError) -> ServiceError {
        self.counts.refused += 1;
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
        let condition = self.model.buckets[index].condition;
        assert!(
            self.failing || self.full || condition != Condition::Healthy,
            "bucket {index}: {error:?}"
        );
        error
    }

    /// The least and greatest possible number of points of some sources.
    fn points(&self, index: usize, sources: &[u32]) -> std::ops::RangeInclusive<u64> {
        let bucket = &self.model.buckets[index];
        let (now_ns, mut least, mut most) = (self.now_ns(), 0, 0);
        for request in &bucket.requests {
            for row in request.rows.iter().filter(|row| sources.contains(&row.source)) {
                let shows = bucket.must_be_visible(row, now_ns);
                let stored = matches!(request.sent, Sent::Stored(_));
                least += u64::from(stored && shows == Some(true));
                most += u64::from((stored || request.sent == Sent::Unknown) && shows != Some(false));
            }
        }
        least..=most
    }

    async fn delete_source(&mut self, rooms: &Rooms, index: usize) -> Result<(), ServiceError> {
        let sources = &self.model.buckets[index].sources;
        let live: Vec<usize> = (0..sources.len()).filter(|it| sources[*it].exists).collect();
        let Some(source) = self.rng().choice(live) else {
            return Ok(());
        };
        let Source { id, ordinal, .. } = self.model.buckets[index].sources[source];
        let ordinal = ordinal.expect("it exists");
        let expected = self.points(index, &[ordinal]);
        let bucket = self.bucket(rooms, index);
        let command = Command::SourceDeleted { source_id: id };
        match rooms
            .buckets
            .delete(&bucket, Some(ordinal), &[ordinal], command)
            .await
        {
            Ok(points) => assert!(expected.contains(&points), "{points} deleted, not {expected:?}"),
            Err(error) => {
                self.model
                    .uncertain_changes
                    .push(UncertainChange::Source(index, source));
                return Err(self.refused(index, error));
            }
        }
        self.model.acknowledged();
        self.model.buckets[index].sources[source].exists = false;
        Ok(())
    }

    async fn delete_bucket(&mut self, rooms: &Rooms, index: usize) -> Result<(), ServiceError> {
        let bucket = self.bucket(rooms, index);
        let sources = self.model.buckets[index].live_sources();
        let expected = self.points(index, &sources);
        let command = Command::BucketDeleted { bucket_id: bucket.id };
        match rooms.buckets.delete(&bucket, None, &sources, command).await {
            Ok(points) => assert!(expected.contains(&points), "{points} deleted, not {expected:?}"),
            Err(error) => {
                self.model.uncertain_changes.push(UncertainChange::Bucket(index));
                return Err(self.refused(index, error));
            }
        }
        self.model.acknowledged();
        let gone = &mut self.model.buckets[index];
        gone.exists = false;
        gone.requests.clear();
        self.removals.push(bucket.ordinal);
        Ok(())
    }

    /// Creates a bucket with a source.
    pub(super) async fn create_bucket(&mut self, live: &RunningRooms) -> Result<usize, ServiceError> {
        let created = self.world.create_bucket(&live.rooms).await;
        self.add_bucket_to_model();
        let index = self.model.buckets.len() - 1;
        self.created(index, created, UncertainChange::Bucket(index))?;
        self.create_source(live, index).await?;
        Ok(index)
    }

    /// Creates a bucket with a source, or another source.
    async fn create(&mut self, live: &RunningRooms) -> Result<(), ServiceError> {
        self.counts.operations += 1;
        let few = self.model.existing().len() < 4;
        match self.pick() {
            Some(index) if !few || self.rng().bool() => self.create_source(live, index).await,
            _ => self.create_bucket(live).await.map(drop),
        }
    }

    async fn create_source(&mut self, live: &RunningRooms, index: usize) -> Result<(), ServiceError> {
        let id = self.model.buckets[index].id;
        let created = self.world.create_source(&live.rooms, Some(id)).await;
        let source = {
            let plain = self.world.model.lock();
            let made = plain.sources.last().expect("just made");
            Source {
                id: made.id,
                ordinal: made.ordinal,
                exists: made.existence == plain::Existence::Exists,
            }
        };
        let sources = &mut self.model.buckets[index].sources;
        sources.push(source);
        let uncertain = UncertainChange::Source(index, sources.len() - 1);
        self.created(index, created, uncertain)
    }

    fn created(
        &mut self,
        index: usize,
        outcome: Result<(), Failure>,
        uncertain: UncertainChange,
    ) -> Result<(), ServiceError> {
        match outcome {
            Ok(()) => {
                self.model.acknowledged();
                Ok(())
            }
            Err(Failure::Service(error)) => {
                assert!(self.failing || self.full, "a creation is refused: {error:?}");
                self.model.uncertain_changes.push(uncertain);
                Err(self.refused(index, error))
            }
            Err(Failure::Checkpoint(error)) => panic!("{error}"),
        }
    }

    /// Adds the last bucket of the world to the model.
    fn add_bucket_to_model(&mut self) {
        let plain = self.world.model.lock();
        let made = plain.buckets.last().expect("just made");
        self.model.buckets.push(Bucket {
            id: made.id,
            ordinal: made.ordinal,
            exists: made.existence == plain::Existence::Exists,
            days: made.retention_days[0],
            sources: Vec::new(),
            requests: Vec::new(),
            condition: Condition::Healthy,
        });
    }

    /// Adds all buckets of a new world to the model.
    pub(super) fn add_world_to_model(&mut self) {
        let plain = self.world.model.lock().clone();
        for made in &plain.buckets {
            let sources = plain.sources.iter().filter(|source| source.bucket == made.id);
            let source = |made: &plain::Source| Source {
                id: made.id,
                ordinal: made.ordinal,
                exists: made.existence == plain::Existence::Exists,
            };
            self.model.buckets.push(Bucket {
                id: made.id,
                ordinal: made.ordinal,
                exists: made.existence == plain::Existence::Exists,
                days: made.retention_days[0],
                sources: sources.map(source).collect(),
                requests: Vec::new(),
                condition: Condition::Healthy,
            });
        }
    }

    /// A bucket's actor panics.
    async fn panic(&mut self, rooms: &Rooms) {
        let Some(index) = self.pick() else { return };
        if self.model.buckets[index].condition != Condition::Healthy {
            return;
        }
        let handle = rooms.buckets.handle(&self.bucket(rooms, index));
        // `resume_unwind` prints no message.
        let panics = |_: &mut crate::bucket::BucketState| std::panic::resume_unwind(Box::new("on purpose"));
        let result: Result<(), _> = handle.expect("it has no trouble").with(panics).await;
        result.expect_err("it is gone");
        self.model.buckets[index].condition = Condition::SetApart;
        self.counts.set_apart += 1;
    }

    /// Creates files under the names of a bucket's next files, so that these cannot be written.
    fn block_files(&mut self) {
        let Some(index) = self.pick() else { return };
        let bucket = &mut self.model.buckets[index];
        let dir = format!("data/buckets/{:08}", bucket.ordinal.expect("it exists"));
        let files = self.disk.files();
        if bucket.condition != Condition::Healthy
            || !files.contains_key(&PathBuf::from(format!("{dir}/manifest")))
        {
            return;
        }
        for id in 1..400 {
            let path = PathBuf::from(format!("{dir}/{id:012}.segment"));
            if !files.contains_key(&path) {
                self.disk.put(&path, b"in the way");
            }
        }
        bucket.condition = Condition::FilesBlocked;
        self.counts.set_apart += 1;
    }
}
