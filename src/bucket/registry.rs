//! The registry of all buckets: starts actors on demand, limits what is queued for them, and sends them requests on
//! behalf of other modules.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use actix::Actor;
use engine::{Cache, ExpiredRows, View};
use foldhash::fast::RandomState;
use parking_lot::RwLock;
use tokio::sync::oneshot;

use super::actor::{ActorDependencies, BucketActor, Delete};
use super::budget::{Budget, Holds};
use super::damaged::DamagedBlocks;
use super::handle::{BucketHandle, Changed, HandleInner, IndexedView, gone};
use super::hold::{AskRoom, PointsHold};
use super::intake::{Intake, IntakeDependencies, OwnedIntake, Take};
use super::load::BucketsLoad;
use super::pool::BucketPool;
use super::request::{FindAnswer, NextSequence};
use super::shared::SharedState;
use super::state::BucketState;
use super::{Digest, Ingest, Ingested};
use crate::catalog::{Bucket, CatalogHandle, Command};
use crate::clock::Clock;
use crate::error::ServiceError;
use crate::journal::{Answer, JournalHandle};
use crate::ledger::Ledger;

/// All buckets of a shard. Cheap to clone.
#[derive(Clone)]
pub struct Buckets(Arc<Inner>);

/// What the buckets need from other modules.
pub struct Dependencies {
    /// Makes records durable.
    pub journal: JournalHandle,
    /// The catalog of existing objects.
    pub catalog: CatalogHandle,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Threads and memory.
    pub pool: Arc<BucketPool>,
    /// Older answers to idempotency keys, shared by new and replayed buckets.
    pub ledger: Ledger,
    /// Called to request a checkpoint: it frees memory, and sets apart a bucket that has failed.
    pub order_checkpoint: Box<dyn Fn() + Send + Sync>,
    /// Called with the ordinal of a deleted bucket.
    pub deleted: Box<dyn Fn(u32) + Send + Sync>,
    /// The damaged blocks found so far.
    pub damaged: DamagedBlocks,
}

pub(super) struct Inner {
    handles: RwLock<HashMap<u32, BucketHandle, RandomState>>,
    /// Buckets that are set apart, with the reason, by ordinal.
    set_apart: RwLock<BTreeMap<u32, String>>,
    dependencies: Dependencies,
    /// Size of the ingest that was last refused for lack of memory; 0 if there has been room since.
    no_room_for: AtomicU64,
    refused: AtomicU64,
    /// When the newest ingest of all buckets was received, UTC nanoseconds; `i64::MIN` before the first.
    pub(super) newest_ingest_ns: AtomicI64,
    /// See [`Buckets::releases`].
    pub(super) releases: AtomicU64,
}

/// Retry delay for requests to a bucket that is set apart: an operator has to repair it first.
const SET_APART_RETRY_SECONDS: u32 = 60;

fn saturated() -> ServiceError {
    ServiceError::unavailable("the server is saturated; send it again in a moment", 1)
}

impl Buckets {
    /// Creates the registry with the replayed states, and the buckets that are set apart with the reason.
    pub fn start(
        states: Vec<BucketState>,
        set_apart: BTreeMap<u32, String>,
        dependencies: Dependencies,
    ) -> Self {
        let newest_ingest_ns = states.iter().filter_map(|state| state.ingested_at_ns).max();
        let buckets = Buckets(Arc::new(Inner {
            handles: RwLock::default(),
            set_apart: RwLock::new(set_apart),
            dependencies,
            no_room_for: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            newest_ingest_ns: AtomicI64::new(newest_ingest_ns.unwrap_or(i64::MIN)),
            releases: AtomicU64::new(0),
        }));
        buckets.0.pool().add(&buckets.0);
        for state in states {
            let (ordinal, handle) = (state.ordinal, buckets.0.start_actor(state));
            buckets.0.handles.write().insert(ordinal, handle);
        }
        buckets
    }

    /// The handle of an existing bucket; starts its actor if it is not running.
    ///
    /// # Errors
    /// 404 if the catalog no longer has the bucket, 503 if it is set apart.
    pub fn handle(&self, bucket: &Bucket) -> Result<BucketHandle, ServiceError> {
        if let Some(handle) = self.0.handles.read().get(&bucket.ordinal) {
            return Ok(handle.clone());
        }
        let mut handles = self.0.handles.write();
        if let Some(handle) = handles.get(&bucket.ordinal) {
            return Ok(handle.clone());
        }
        if let Some(reason) = self.0.set_apart.read().get(&bucket.ordinal) {
            let text = "the bucket is set apart, as its files or its state failed; nothing acknowledged is lost, and the \
                        operator has to repair it and restart the server";
            let refused = ServiceError::unavailable(text, SET_APART_RETRY_SECONDS);
            return Err(refused.caused_by(reason.clone()));
        }
        if self.is_deleted(bucket) {
            return Err(ServiceError::not_found("bucket"));
        }
        let ledger = self.0.dependencies.ledger.clone();
        let state = BucketState::new(bucket.ordinal, self.cache().clone(), ledger);
        let state = state.map_err(ServiceError::internal)?;
        let handle = self.0.start_actor(state);
        handles.insert(bucket.ordinal, handle.clone());
        Ok(handle)
    }

    pub(super) fn is_set_apart(&self, bucket: &Bucket) -> bool {
        self.0.set_apart.read().contains_key(&bucket.ordinal)
    }

    pub(super) fn is_deleted(&self, bucket: &Bucket) -> bool {
        let catalog = &self.0.dependencies.catalog;
        catalog.read(|catalog| catalog.bucket(bucket.id).is_none())
    }

    /// Sets a bucket apart: until the next start it answers only with 503. Other buckets are not affected.
    pub fn set_apart(&self, ordinal: u32, reason: String) {
        let mut handles = self.0.handles.write();
        tracing::error!(ordinal, reason, "a bucket is set apart; the others go on");
        self.0.set_apart.write().insert(ordinal, reason);
        handles.remove(&ordinal);
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.0.dependencies.clock
    }

    /// The damaged blocks found so far.
    pub fn damaged(&self) -> &DamagedBlocks {
        &self.0.dependencies.damaged
    }

    /// Ordinals of the buckets that are set apart, with the reason.
    pub fn all_set_apart(&self) -> BTreeMap<u32, String> {
        self.0.set_apart.read().clone()
    }

    /// Ordinals and handles of the running actors.
    pub fn running(&self) -> Vec<(u32, BucketHandle)> {
        let handles = self.0.handles.read();
        let running = handles.iter().map(|(ordinal, handle)| (*ordinal, handle.clone()));
        running.collect()
    }

    /// Whether points would be accepted now. Checked before a body is read, so that refusing is cheap and the processor
    /// is left to the work that frees memory.
    ///
    /// # Errors
    /// 503 if the memory or the log is full.
    pub fn admit(&self) -> Result<(), ServiceError> {
        let refused = |error| {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            Err(error)
        };
        if self.0.pool().memory.is_full() {
            self.0.pool().order_checkpoints();
            return refused(saturated());
        }
        self.0.dependencies.journal.admit().or_else(refused)
    }

    /// Whether there is memory for points; false while the last refused ingest would be refused again.
    ///
    /// # Errors
    /// The reason why not.
    pub fn readiness(&self) -> Result<(), String> {
        let inner = &self.0;
        let wanted = inner.no_room_for.load(Ordering::Relaxed);
        let pool = inner.pool();
        let used = pool.memory.used();
        let has_room = used == 0 || used + wanted <= pool.options.memory_bytes_max;
        if has_room {
            inner.no_room_for.store(0, Ordering::Relaxed);
            return Ok(());
        }
        // A server that is not ready receives no points, which would otherwise request the checkpoint.
        pool.order_checkpoints();
        Err("the memory of points that no segment holds yet is full until a checkpoint is done".to_owned())
    }

    /// Reports that ingests are being refused because of overload.
    pub fn note_overload(&self) {
        self.0.dependencies.journal.note_overload();
    }

    /// Makes an ingest durable and visible. It is under way when this returns, and waiting for it needs little memory.
    ///
    /// # Errors
    /// 503 if the bucket, the memory or the log is full. 500 if the ingest has an idempotency key and it is unknown
    /// whether the key was used: nothing may be stored twice.
    pub fn ingest(
        &self,
        bucket: &Bucket,
        ingest: Ingest,
    ) -> impl Future<Output = Result<Ingested, ServiceError>> + use<> {
        let begun = self.begin(bucket, ingest);
        async move { begun?.await.unwrap_or_else(|_| Err(gone())) }
    }

    fn begin(
        &self,
        bucket: &Bucket,
        ingest: Ingest,
    ) -> Result<oneshot::Receiver<Result<Ingested, ServiceError>>, ServiceError> {
        self.admit()?;
        let handle = self.handle(bucket)?;
        let holds = self.hold(&handle, &ingest).ok_or_else(|| {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            saturated()
        })?;
        let (reply, answer) = oneshot::channel();
        let take = Take { ingest, reply, holds };
        handle.intake.take(take, &handle.address);
        Ok(answer)
    }

    /// How often points were held back and released: what they are split by, or which series exist, may have changed. Read
    /// before the catalog, so that an ingest that was parsed before is returned to its sender.
    pub fn releases(&self) -> u64 {
        self.0.releases.load(Ordering::Acquire)
    }

    /// Holds back new points of a source. All earlier ones are applied when this returns.
    ///
    /// # Errors
    /// 503 if the bucket is not available.
    pub async fn hold_source(&self, bucket: &Bucket, source: u32) -> Result<PointsHold, ServiceError> {
        let hold = self.handle(bucket)?.hold(Some(source));
        hold.await.map_err(|_| gone())
    }

    /// How many series may be added to a bucket, and how many it may have.
    ///
    /// # Errors
    /// 503 if the bucket is not available.
    pub async fn series_room(&self, bucket: &Bucket, now_ns: i64) -> Result<(u64, u64), ServiceError> {
        let (reply, room) = oneshot::channel();
        self.handle(bucket)?.address.do_send(AskRoom { now_ns, reply });
        room.await.map_err(|_| gone())
    }

    /// Reserves memory for the record and for its rows.
    fn hold(&self, handle: &BucketHandle, ingest: &Ingest) -> Option<Holds> {
        let record_bytes = ingest.record.size() as u64;
        let memory_bytes = record_bytes + ingest.memory_bytes as u64;
        let mailbox = handle.mailbox.hold(record_bytes)?;
        let pool = self.0.pool();
        let Some(memory) = pool.memory.hold(memory_bytes) else {
            self.0.no_room_for.store(memory_bytes, Ordering::Relaxed);
            pool.order_checkpoints();
            return None;
        };
        Some((mailbox, memory))
    }

    /// The stored answer for this idempotency key, with the digest of the request's body.
    ///
    /// # Errors
    /// 503 if the bucket is not available, 500 if the ledger's entry of the key cannot be read.
    pub async fn answered(
        &self,
        bucket: &Bucket,
        key: Digest,
    ) -> Result<Option<(Digest, Answer)>, ServiceError> {
        let now_ns = self.0.dependencies.clock.now_ns();
        let found = self.handle(bucket)?.ask(FindAnswer { key, now_ns }).await?;
        let found = found.map_err(ServiceError::internal)?;
        Ok(found.map(|entry| (entry.body, entry.answer)))
    }

    /// A view of the bucket's current content, for a reader on any thread. Its cost does not depend on the amount of data.
    ///
    /// # Errors
    /// 503 when the bucket is not available.
    pub fn view(&self, bucket: &Bucket) -> Result<View, ServiceError> {
        let view = self.handle(bucket)?.view()?;
        Ok(view.without(&self.expired_rows(bucket)))
    }

    /// The same with the index of the bucket's series, which has all series of the view.
    ///
    /// # Errors
    /// 503 when the bucket is not available.
    pub fn indexed_view(&self, bucket: &Bucket) -> Result<IndexedView, ServiceError> {
        let handle = self.handle(bucket)?;
        self.indexed(bucket, &handle, BucketHandle::view)
    }

    /// The same without waiting for the bucket's actor; `None` if that is not possible now.
    pub fn try_indexed_view(&self, bucket: &Bucket) -> Option<IndexedView> {
        let handle = self.0.handles.read().get(&bucket.ordinal).cloned()?;
        let view = |handle: &BucketHandle| handle.try_view().ok_or(());
        self.indexed(bucket, &handle, view).ok()
    }

    /// The view that `view` takes of a bucket, with the index.
    fn indexed<E>(
        &self,
        bucket: &Bucket,
        handle: &BucketHandle,
        view: impl FnOnce(&BucketHandle) -> Result<View, E>,
    ) -> Result<IndexedView, E> {
        let index = Arc::clone(handle.series());
        // Registered before the view is taken.
        let reader = index.reader();
        Ok(IndexedView {
            view: view(handle)?.without(&self.expired_rows(bucket)),
            index,
            reader,
        })
    }

    /// Rows that have expired although they are within the current retention.
    pub(super) fn expired_rows(&self, bucket: &Bucket) -> Arc<[ExpiredRows]> {
        expired_rows(bucket, self.0.dependencies.clock.now_ns())
    }

    /// The sequence that the bucket's next point gets.
    ///
    /// # Errors
    /// 503 when the bucket is not available.
    pub async fn next_sequence(&self, bucket: &Bucket) -> Result<u64, ServiceError> {
        self.handle(bucket)?.ask(NextSequence).await
    }

    /// Commits the command that deletes one source, or the whole bucket, in order with ingests; returns the number of
    /// points of `sources` before. The files of a bucket are deleted in the background.
    ///
    /// # Errors
    /// 503 if the bucket is not available or the log accepts no writes.
    pub async fn delete(
        &self,
        bucket: &Bucket,
        source: Option<u32>,
        sources: &[u32],
        command: Command,
    ) -> Result<u64, ServiceError> {
        let points = self.point_count(bucket, sources).await?;
        let handle = self.handle(bucket)?;
        let (reply, answer) = oneshot::channel();
        handle.address.do_send(Delete {
            source,
            command,
            reply,
        });
        answer.await.unwrap_or_else(|_| Err(gone()))?;
        Ok(points)
    }

    /// When the newest ingest was received, UTC nanoseconds; `None` before the first.
    pub fn newest_ingest_ns(&self) -> Option<i64> {
        let newest_ns = self.0.newest_ingest_ns.load(Ordering::Relaxed);
        (newest_ns > i64::MIN).then_some(newest_ns)
    }

    /// The cache of decoded block parts of all stores.
    pub fn cache(&self) -> &Cache {
        self.0.pool().cache()
    }

    /// Resource usage of the buckets. Visits each running actor's handle once.
    pub fn load(&self) -> BucketsLoad {
        let pool = self.0.pool();
        let mut load = BucketsLoad {
            actors: 0,
            set_apart: self.0.set_apart.read().len() as u64,
            memory_bytes: pool.memory.used(),
            memory_bytes_max: pool.options.memory_bytes_max,
            mailbox_bytes: 0,
            fullest_mailbox_bytes: 0,
            mailbox_bytes_max: pool.options.mailbox_bytes_max,
            cache_bytes: self.cache().bytes(),
            cache_bytes_max: self.cache().bytes_max(),
            damaged_blocks: self.damaged().count(),
            damaged_reads: self.damaged().reads(),
            refused: self.0.refused.load(Ordering::Relaxed),
        };
        for handle in self.0.handles.read().values() {
            let bytes = handle.mailbox_bytes();
            load.actors += 1;
            load.mailbox_bytes += bytes;
            load.fullest_mailbox_bytes = load.fullest_mailbox_bytes.max(bytes);
        }
        load
    }
}

/// Rows of a bucket that have expired at this moment although they are within its retention.
pub fn expired_rows(bucket: &Bucket, now_ns: i64) -> Arc<[ExpiredRows]> {
    let rows = bucket.expired_at(now_ns).map(|it| ExpiredRows {
        before_ns: it.before_ns,
        before_sequence: it.before_sequence,
    });
    rows.collect()
}

impl Inner {
    fn pool(&self) -> &BucketPool {
        &self.dependencies.pool
    }

    fn start_actor(self: &Arc<Self>, state: BucketState) -> BucketHandle {
        let changed = Changed::new();
        let dependencies = ActorDependencies {
            journal: self.dependencies.journal.clone(),
            sealer: self.pool().sealer.clone(),
            memory: Arc::clone(&self.pool().memory),
            changed: changed.clone(),
            registry: Arc::downgrade(self),
        };
        let of_intake = IntakeDependencies {
            journal: self.dependencies.journal.clone(),
            catalog: self.dependencies.catalog.clone(),
            changed: changed.clone(),
            series_max: self.pool().options.series_max,
        };
        let (series, ordinal) = (Arc::clone(&state.series), state.ordinal);
        let state = SharedState::new(state);
        let of_actor = OwnedIntake::new(Intake::new(state.clone(), ordinal, of_intake));
        let (intake, state_of_actor) = (of_actor.door(), state.clone());
        let arbiter = self.pool().arbiters().next();
        BucketHandle::new(HandleInner {
            address: BucketActor::start_in_arbiter(&arbiter, |_| {
                BucketActor::new(state_of_actor, of_actor, dependencies)
            }),
            state,
            intake,
            mailbox: Budget::new(self.pool().options.mailbox_bytes_max),
            changed,
            series,
            repeats: Arc::default(),
        })
    }

    pub(super) fn order_checkpoint(&self) {
        (self.dependencies.order_checkpoint)();
    }

    /// Forgets a deleted bucket.
    pub(super) fn forget(&self, ordinal: u32) {
        self.handles.write().remove(&ordinal);
        (self.dependencies.deleted)(ordinal);
    }
}
