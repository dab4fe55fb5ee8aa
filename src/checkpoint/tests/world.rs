//! Runs a seeded trace of requests against the rooms and records acknowledged data in the model.

use std::sync::Arc;

use fastrand::Rng;
use parking_lot::Mutex;

use super::model::{self, Existence, Model, Request, Row, answer};
use crate::bucket::{Digest, Ingest, Ingested};
use crate::catalog::{
    Bytes, Command, Field, FieldType, NewBucket, NewSource, Organization, PasswordHash, Plan,
};
use crate::catalog::{SchemaMode, SourceSettings, SourceStatus, User};
use crate::checkpoint::Rooms;
use crate::clock::{Clock, DAY_NS, ManualClock, SECOND_NS};
use crate::ids::ObjectId;

pub(super) const START_NS: i64 = 1_700_000_000 * SECOND_NS;
pub(super) const ORGANIZATION: u64 = 1;

pub(super) use super::live::{Failure, RunningRooms, home, id, in_system, layout};
pub(super) use super::record::ingest;

pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) clock: Arc<ManualClock>,
    /// Shared with readers of the disk while a step is in progress.
    pub(super) model: Arc<Mutex<Model>>,
    next: u64,
    /// Whether some ingests have idempotency keys, which cause runs in the ledger.
    pub(super) keys: bool,
    /// Rows of each ingest; random if `None`.
    pub(super) rows: Option<u32>,
    /// Deleted buckets whose directories still exist.
    removals: Vec<u32>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        World {
            rng: Rng::with_seed(seed),
            clock: Arc::new(ManualClock::new(START_NS)),
            model: Arc::default(),
            next: ORGANIZATION,
            keys: true,
            rows: None,
            removals: Vec::new(),
        }
    }

    /// Continues from a recovered state.
    pub(super) fn skip_to(&mut self, model: Model, now_ns: i64) {
        // Values and ids that differ from those of the earlier trace.
        self.next += 1 << 20;
        self.clock.advance(now_ns - self.clock.now_ns());
        *self.model.lock() = model;
    }

    pub(super) fn next_id(&mut self) -> ObjectId {
        self.next += 1;
        id(self.next)
    }

    /// Creates an organization with two buckets of two sources each, two rules, and a webhook.
    pub(super) async fn set_up(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        let at_ns = self.clock.now_ns();
        let organization = Organization {
            id: id(ORGANIZATION),
            name: "o".into(),
            plan: Plan::Enterprise,
            invitations: Vec::new(),
            created_at_ns: at_ns,
            updated_at_ns: at_ns,
        };
        let password = PasswordHash {
            memory_kib: 1,
            passes: 1,
            lanes: 1,
            salt: Bytes([1; 16]),
            hash: Bytes([2; 32]),
        };
        let user = User::new(self.next_id(), organization.id, "a@b", "a", password, at_ns);
        rooms
            .journal
            .commit(Command::SignedUp { organization, user })
            .await?;
        for _ in 0..2 {
            self.create_bucket(rooms).await?;
            let bucket = self.model.lock().buckets.last().map(|bucket| bucket.id);
            for _ in 0..2 {
                self.create_source(rooms, bucket).await?;
            }
            self.create_rule(rooms).await?;
        }
        self.create_webhook(rooms).await
    }

    /// Runs one random step; most are ingests.
    pub(super) async fn step(&mut self, live: &mut RunningRooms) -> Result<(), Failure> {
        match self.rng.u8(0..100) {
            0..30 => {
                let ingests = if self.rng.u8(0..6) == 0 {
                    self.rng.usize(2..6)
                } else {
                    1
                };
                self.ingest(&live.rooms, ingests).await
            }
            30..44 => self.entry(&live.rooms).await,
            44..50 => self.repeat(&live.rooms).await,
            50..72 => live.checkpoint().map_err(Failure::Checkpoint),
            72..78 => {
                let bucket = self.pick_bucket();
                self.create_source(&live.rooms, bucket).await
            }
            78..83 => self.delete_source(&live.rooms).await,
            83..86 => self.create_bucket(&live.rooms).await,
            86..88 => self.delete_bucket(&live.rooms).await,
            88..91 => self.change_retention(&live.rooms).await,
            91..93 => self.delete_points(live).await,
            93..95 => {
                self.remove_deleted(live);
                Ok(())
            }
            _ => {
                self.clock.advance(self.rng.i64(1..DAY_NS));
                Ok(())
            }
        }
    }

    /// Removes the directory of one deleted bucket, if any is left.
    pub(super) fn remove_deleted(&mut self, live: &mut RunningRooms) {
        if let Some(ordinal) = self.removals.pop() {
            // A remaining directory is removed by the next start.
            let _ = live.task.remove_bucket(ordinal);
        }
    }

    pub(super) fn pick_bucket(&mut self) -> Option<ObjectId> {
        let model = self.model.lock();
        let existing = model
            .buckets
            .iter()
            .filter(|bucket| bucket.existence == Existence::Exists);
        self.rng
            .choice(existing.map(|bucket| bucket.id).collect::<Vec<_>>())
    }

    pub(super) async fn create_bucket(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        let (bucket_id, days) = (self.next_id(), self.rng.u32(3..20));
        let bucket = model::Bucket {
            id: bucket_id,
            ordinal: None,
            existence: Existence::MaybeCreated,
            retention_days: vec![days],
        };
        let index = {
            let mut model = self.model.lock();
            model.buckets.push(bucket);
            model.buckets.len() - 1
        };
        let bucket = NewBucket {
            id: bucket_id,
            organization_id: id(ORGANIZATION),
            name: format!("b{}", self.next).into(),
            description: None,
            retention_days: days,
            created_at_ns: self.clock.now_ns(),
        };
        rooms.journal.commit(Command::BucketCreated { bucket }).await?;
        let ordinal = rooms
            .catalog
            .read(|catalog| catalog.bucket(bucket_id).map(|it| it.ordinal));
        let bucket = &mut self.model.lock().buckets[index];
        (bucket.ordinal, bucket.existence) = (ordinal, Existence::Exists);
        Ok(())
    }

    pub(super) async fn create_source(
        &mut self,
        rooms: &Rooms,
        bucket: Option<ObjectId>,
    ) -> Result<(), Failure> {
        let Some(bucket_id) = bucket else { return Ok(()) };
        let source_id = self.next_id();
        let index = {
            let mut model = self.model.lock();
            model.sources.push(model::Source {
                id: source_id,
                bucket: bucket_id,
                ordinal: None,
                existence: Existence::MaybeCreated,
            });
            model.sources.len() - 1
        };
        let field = |name: &str, kind| Field {
            name: name.into(),
            kind,
            unit: None,
            description: None,
        };
        let settings = SourceSettings {
            name: format!("s{}", self.next).into(),
            kind: "sensor".into(),
            description: None,
            fields: vec![
                field("value", FieldType::Number),
                field("state", FieldType::String),
            ],
            schema_mode: SchemaMode::Strict,
            downsampling: false,
            status: SourceStatus::Active,
            dimensions: None,
            duplicates: Default::default(),
            expected_interval_seconds: None,
        };
        let created_at_ns = self.clock.now_ns();
        let source = NewSource {
            id: source_id,
            bucket_id,
            settings,
            metric_type: None,
            created_at_ns,
        };
        rooms.journal.commit(Command::SourceCreated { source }).await?;
        let ordinal = rooms
            .catalog
            .read(|catalog| catalog.source(source_id).map(|it| it.ordinal));
        let source = &mut self.model.lock().sources[index];
        (source.ordinal, source.existence) = (ordinal, Existence::Exists);
        Ok(())
    }

    fn rows(&mut self, sources: &[u32]) -> Vec<Row> {
        let count = match self.rows {
            Some(rows) => rows,
            None if self.rng.u8(0..12) == 0 => self.rng.u32(100..400),
            None => self.rng.u32(1..12),
        };
        let now_ns = self.clock.now_ns();
        (0..count)
            .map(|index| {
                self.next += 1;
                let late = self.rng.u8(0..4) == 0;
                let back_ns = if late {
                    self.rng.i64(0..2 * DAY_NS)
                } else {
                    i64::from(count - index) * SECOND_NS
                };
                let source = sources[self.rng.usize(0..sources.len())];
                Row {
                    source,
                    timestamp_ns: now_ns - back_ns,
                    value: self.next as u32,
                }
            })
            .collect()
    }

    /// A request for a random bucket with sources, recorded in the model, and its ingest.
    pub(super) fn new_request(
        &mut self,
        key: Option<Digest>,
        bucket: Option<ObjectId>,
    ) -> Option<(usize, ObjectId, Ingest)> {
        let bucket_id = bucket.or_else(|| self.pick_bucket())?;
        let (ordinal, sources) = {
            let model = self.model.lock();
            let exists = |source: &&model::Source| source.existence == Existence::Exists;
            let sources = model
                .sources
                .iter()
                .filter(exists)
                .filter(|source| source.bucket == bucket_id);
            let sources: Vec<u32> = sources.filter_map(|source| source.ordinal).collect();
            (
                model
                    .buckets
                    .iter()
                    .find(|bucket| bucket.id == bucket_id)?
                    .ordinal?,
                sources,
            )
        };
        if sources.is_empty() {
            return None;
        }
        let rows = self.rows(&sources);
        let at_ns = self.clock.now_ns();
        let ingest = ingest(ordinal, &rows, key, at_ns);
        let request = Request {
            bucket: ordinal,
            rows,
            key,
            at_ns,
            acknowledged: None,
        };
        let mut model = self.model.lock();
        model.requests.push(request);
        Some((model.requests.len() - 1, bucket_id, ingest))
    }

    /// Sends concurrent requests.
    pub(super) async fn ingest(&mut self, rooms: &Rooms, count: usize) -> Result<(), Failure> {
        let mut under_way = Vec::new();
        for _ in 0..count {
            let key = (self.rng.u8(0..3) == 0 && self.keys).then(|| self.rng.u128(..).to_le_bytes());
            let Some((index, bucket_id, ingest)) = self.new_request(key, None) else {
                continue;
            };
            let Some(bucket) = rooms.catalog.read(|catalog| catalog.bucket(bucket_id).cloned()) else {
                continue;
            };
            let buckets = rooms.buckets.clone();
            under_way.push((
                index,
                actix::spawn(async move { buckets.ingest(&bucket, ingest).await }),
            ));
        }
        let mut outcome = Ok(());
        for (index, under_way) in under_way {
            match under_way.await.expect("an ingest does not panic") {
                Ok(Ingested::Stored { first_sequence }) => {
                    self.model.lock().requests[index].acknowledged = Some(first_sequence);
                }
                Ok(other) => panic!("a new request was answered {other:?}"),
                Err(error) => outcome = Err(error.into()),
            }
        }
        outcome
    }

    /// Sends a request with a key again.
    async fn repeat(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        let known: Vec<(u32, Digest)> = self
            .model
            .lock()
            .requests
            .iter()
            .filter_map(|it| Some((it.bucket, it.key?)))
            .collect();
        let Some((ordinal, key)) = self.rng.choice(known) else {
            return Ok(());
        };
        let Some(bucket) = rooms
            .catalog
            .read(|catalog| catalog.bucket_by_ordinal(ordinal).cloned())
        else {
            return Ok(());
        };
        let last = {
            let model = self.model.lock();
            let with_key = |request: &&Request| (request.bucket, request.key) == (ordinal, Some(key));
            model.requests.iter().rev().find(with_key).cloned()
        };
        let Some(Request {
            acknowledged: Some(first),
            at_ns,
            ..
        }) = last
        else {
            return Ok(());
        };
        let Some((index, _, ingest)) = self.new_request(Some(key), Some(bucket.id)) else {
            return Ok(());
        };
        match rooms.buckets.ingest(&bucket, ingest).await? {
            Ingested::Replayed(found) => {
                assert_eq!(&*found.body, answer(ordinal, first), "the answer given before");
                assert!(
                    at_ns > self.clock.now_ns() - DAY_NS,
                    "a key is forgotten after 24 hours"
                );
                self.model.lock().requests.remove(index);
            }
            Ingested::Stored { first_sequence } => {
                assert!(
                    at_ns <= self.clock.now_ns() - DAY_NS,
                    "a key is remembered for 24 hours"
                );
                self.model.lock().requests[index].acknowledged = Some(first_sequence);
            }
            other => panic!("a repeated request was answered {other:?}"),
        }
        Ok(())
    }

    pub(super) async fn delete_source(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        let picked = {
            let model = self.model.lock();
            let exists = |index: &usize| model.sources[*index].existence == Existence::Exists;
            let existing: Vec<usize> = (0..model.sources.len()).filter(exists).collect();
            self.rng
                .choice(existing)
                .map(|index| (index, model.sources[index].clone()))
        };
        let Some((index, source)) = picked else {
            return Ok(());
        };
        let bucket = rooms
            .catalog
            .read(|catalog| catalog.bucket(source.bucket).cloned());
        let (Some(bucket), Some(ordinal)) = (bucket, source.ordinal) else {
            return Ok(());
        };
        self.model.lock().sources[index].existence = Existence::MaybeDeleted;
        let command = Command::SourceDeleted { source_id: source.id };
        let sources = [ordinal];
        rooms
            .buckets
            .delete(&bucket, Some(ordinal), &sources, command)
            .await?;
        self.model.lock().sources[index].existence = Existence::Deleted;
        Ok(())
    }

    pub(super) async fn delete_bucket(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        let Some(bucket_id) = self.pick_bucket() else {
            return Ok(());
        };
        let Some(bucket) = rooms.catalog.read(|catalog| catalog.bucket(bucket_id).cloned()) else {
            return Ok(());
        };
        let set = |existence: Existence| {
            let mut model = self.model.lock();
            let bucket = model.buckets.iter_mut().find(|bucket| bucket.id == bucket_id);
            bucket.expect("picked from there").existence = existence;
            if existence == Existence::Deleted {
                let inside = model
                    .sources
                    .iter_mut()
                    .filter(|source| source.bucket == bucket_id);
                inside.for_each(|source| source.existence = Existence::Deleted);
            }
        };
        set(Existence::MaybeDeleted);
        let command = Command::BucketDeleted { bucket_id };
        rooms.buckets.delete(&bucket, None, &[], command).await?;
        set(Existence::Deleted);
        self.removals.push(bucket.ordinal);
        Ok(())
    }

    async fn change_retention(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        let Some(bucket_id) = self.pick_bucket() else {
            return Ok(());
        };
        let days = self.rng.u32(2..20);
        let may_be = |change: &dyn Fn(&mut Vec<u32>)| {
            let mut model = self.model.lock();
            let bucket = model.buckets.iter_mut().find(|bucket| bucket.id == bucket_id);
            change(&mut bucket.expect("picked from there").retention_days);
        };
        may_be(&|retention_days| retention_days.push(days));
        let name = rooms
            .catalog
            .read(|catalog| catalog.bucket(bucket_id).map(|bucket| bucket.name.clone()));
        let command = Command::BucketUpdated {
            bucket_id,
            name: name.expect("it exists"),
            description: None,
            retention_days: days,
            at_ns: self.clock.now_ns(),
            next_sequence: None,
            deliveries: Vec::new(),
            fan_out: None,
        };
        rooms.journal.commit(command).await?;
        may_be(&|retention_days| *retention_days = vec![days]);
        Ok(())
    }

    /// Asserts that readers see the state of the model.
    pub(super) async fn check_live(&self, live: &RunningRooms) {
        let now_ns = self.clock.now_ns();
        let (entries, ledger) = (self.model.lock().entries.clone(), &live.rooms.ledger);
        let catalog = &live.rooms.catalog;
        catalog.read(|catalog| entries.check(catalog, ledger, now_ns));
        for (_, handle) in live.rooms.buckets.running() {
            let (model, catalog) = (self.model.lock().clone(), live.rooms.catalog.clone());
            let checked = handle.with(move |state| {
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    catalog.read(|catalog| model.check_bucket(catalog, state, now_ns));
                }))
            });
            if let Err(panic) = checked.await.expect("the actor answers") {
                std::panic::resume_unwind(panic);
            }
        }
    }
}
