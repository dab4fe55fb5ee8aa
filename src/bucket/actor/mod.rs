//! The bucket's actor, which alone changes its state. It handles one message at a time. A record goes from `Take` to the
//! journal and comes back as `Applied`; the order of submission to the journal is the order in the log.
//!
//! Messages that go through the journal or the sealer threads are here and in `removal`, those that only need the state in
//! `request`.

mod removal;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use actix::{Actor, AsyncContext, Context, Handler, Message};
use engine::Sealed;
use tokio::sync::{OwnedMutexGuard, oneshot};

use super::additions::{Additions, OfIngest, Refused};
use super::budget::{Budget, Holds};
use super::handle::Changed;
use super::hold::{AskRoom, HoldPoints, HoldReply, PointsHold, ReleasePoints};
use super::registry::Inner;
use super::request::{Ask, Request};
use super::sealer::Sealer;
use super::shared::SharedState;
use super::state::BucketState;
use super::waiting::Waiting;
use super::{Digest, Ingest, Ingested};
use crate::catalog::CatalogHandle;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::journal::{Committed, JournalError, JournalHandle, Record};

pub(super) use removal::Delete;

pub(super) type IngestReply = oneshot::Sender<Result<Ingested, ServiceError>>;

/// An ingest to number and log.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Take {
    pub(super) ingest: Ingest,
    pub(super) reply: IngestReply,
    /// Its share of the byte limits, until it is applied or refused.
    pub(super) holds: Holds,
}

/// The journal's result for an ingest.
#[derive(Message)]
#[rtype(result = "()")]
struct Applied {
    outcome: Result<Committed, JournalError>,
    first_sequence: u64,
    key: Option<Digest>,
    reply: IngestReply,
    holds: Holds,
    additions: OfIngest,
    number: u64,
    alone: Option<Arc<OwnedMutexGuard<()>>>,
}

/// Rows that a sealer thread has compressed into blocks.
#[derive(Message)]
#[rtype(result = "()")]
struct RowsSealed(Sealed);

/// An idempotency key whose first request is in progress.
struct Pending {
    body: Digest,
    waiting: Vec<IngestReply>,
}

/// What the actor needs from other components.
pub(super) struct ActorDependencies {
    pub(super) journal: JournalHandle,
    pub(super) catalog: CatalogHandle,
    pub(super) sealer: Sealer,
    /// The memory of all buckets, which includes the store's unsaved bytes.
    pub(super) memory: Arc<Budget>,
    /// Marks the bucket as changed for the next checkpoint.
    pub(super) changed: Changed,
    /// Weak, to avoid a reference cycle: the registry holds the actor.
    pub(super) registry: Weak<Inner>,
    /// Number of series that the bucket may have.
    pub(super) series_max: u64,
}

pub(super) struct BucketActor {
    state: SharedState,
    ordinal: u32,
    dependencies: ActorDependencies,
    /// The unsaved bytes that were last reported.
    reported_bytes: u64,
    /// Whether the actor was stopped normally.
    stopped: bool,
    pending: HashMap<Digest, Pending>,
    /// What ingests in progress add to series.
    additions: Additions,
    /// Sources that are closed to ingests, by deletions and holds in progress; `None` is the whole bucket. Counted, because
    /// the client of a deletion may have disconnected and the same one may be requested again in the meantime.
    closed: HashMap<Option<u32>, u32>,
    /// Ingests that arrived while one of their sources was closed.
    parked: Vec<IngestReply>,
    /// Ingests that may repeat rows of others.
    waiting: Waiting<Take>,
    /// Number of ingests submitted so far, and the numbers of those in progress.
    submitted: u64,
    in_progress: BTreeSet<u64>,
    /// Who waits until no earlier ingest is in progress.
    holding: Vec<(u64, HoldReply, PointsHold)>,
    /// Ingests that were parsed before this number of releases may name series of before.
    released_at: u64,
}

impl BucketActor {
    pub(super) fn new(state: SharedState, dependencies: ActorDependencies) -> Self {
        let (ordinal, reported_bytes) = {
            let state = state.lock();
            (state.ordinal, state.unsaved_bytes())
        };
        dependencies.memory.change(0, reported_bytes);
        BucketActor {
            state,
            ordinal,
            dependencies,
            reported_bytes,
            stopped: false,
            pending: HashMap::new(),
            additions: Additions::default(),
            closed: HashMap::new(),
            parked: Vec::new(),
            waiting: Waiting::default(),
            submitted: 0,
            in_progress: BTreeSet::new(),
            holding: Vec::new(),
            released_at: 0,
        }
    }

    /// Parks ingests of a source, or of all of them, until it is opened.
    fn close(&mut self, source: Option<u32>) {
        *self.closed.entry(source).or_insert(0) += 1;
    }

    /// Ends one [`close`](Self::close). Senders of parked ingests read the catalog again.
    fn open(&mut self, source: Option<u32>) {
        if let Entry::Occupied(mut entry) = self.closed.entry(source) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
        for reply in self.parked.drain(..) {
            respond(reply, Ok(Ingested::SourceGone));
        }
    }

    /// Hands out the holds for which no earlier ingest is in progress any more.
    fn hand_out(&mut self) {
        let oldest = self.in_progress.first().copied().unwrap_or(u64::MAX);
        for (_, reply, hold) in self.holding.extract_if(.., |(before, ..)| *before <= oldest) {
            // If the sender is gone, the hold ends here.
            respond(reply, hold);
        }
    }

    /// Decides again about the ingests that wait for a series of which none is in progress any more.
    fn wake(&mut self, series: u32, context: &mut Context<Self>) {
        while let Some(take) = self.waiting.take(series) {
            if self.submit(take, Some(series), context) == Some(series) {
                break;
            }
        }
    }

    fn with_memory_reported<R>(&mut self, work: impl FnOnce(&mut BucketState) -> R) -> R {
        let mut state = self.state.lock();
        let done = work(&mut state);
        let now_bytes = state.store.unsaved().1;
        drop(state);
        let reported_bytes = std::mem::replace(&mut self.reported_bytes, now_bytes);
        self.dependencies.memory.change(reported_bytes, now_bytes);
        done
    }

    /// Hands rows that fill blocks to the sealer threads; the blocks come back as a message.
    fn seal_full(&mut self, context: &mut Context<Self>) {
        let seals = self.state.lock().store.take_seals();
        for seal in seals {
            let address = context.address();
            self.dependencies.sealer.seal(seal, move |sealed| {
                if let Some(sealed) = sealed {
                    address.do_send(RowsSealed(sealed));
                }
            });
        }
    }

    /// Answers an ingest whose idempotency key is known; `Err` returns the reply if the ingest should proceed.
    fn repeated(&mut self, ingest: &Ingest, reply: IngestReply) -> Result<(), IngestReply> {
        let Some((key, body)) = ingest.idempotency else {
            return Err(reply);
        };
        if let Some(pending) = self.pending.get_mut(&key) {
            if pending.body == body {
                pending.waiting.push(reply);
            } else {
                respond(reply, Ok(Ingested::KeyReused));
            }
            return Ok(());
        }
        let known = self.state.lock().idempotency.get(&key, ingest.now_ns);
        match known {
            Ok(Some(entry)) if entry.body == body => respond(reply, Ok(Ingested::Replayed(entry.answer))),
            Ok(Some(_)) => respond(reply, Ok(Ingested::KeyReused)),
            Ok(None) => return Err(reply),
            // It may have been stored before, and must not be stored twice.
            Err(error) => respond(reply, Err(ServiceError::internal(error))),
        }
        Ok(())
    }
}

/// Points of a bucket before this time have expired.
fn cutoff_ns(catalog: &CatalogHandle, bucket: u32, now_ns: i64) -> i64 {
    catalog.read(|catalog| {
        let bucket = catalog.bucket_by_ordinal(bucket);
        bucket.map_or(i64::MIN, |bucket| bucket.retention_cutoff_ns(now_ns))
    })
}

/// The receiver is gone if the client has disconnected.
fn respond<T>(reply: oneshot::Sender<T>, answer: T) {
    let _ = reply.send(answer);
}

impl Actor for BucketActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        // The handle enforces the limit, in bytes; a limit on the number of messages must not refuse what the bytes
        // allow.
        context.set_mailbox_capacity(usize::MAX >> 4);
        // Rows left from the replay of the log.
        self.seal_full(context);
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        self.stopped = true;
    }
}

impl Drop for BucketActor {
    fn drop(&mut self) {
        self.dependencies.memory.change(self.reported_bytes, 0);
        if !self.stopped
            && let Some(registry) = self.dependencies.registry.upgrade()
        {
            // It has panicked: the next checkpoint sets the bucket apart.
            registry.order_checkpoint();
        }
    }
}

impl Handler<Take> for BucketActor {
    type Result = ();

    fn handle(&mut self, message: Take, context: &mut Self::Context) {
        self.submit(message, None, context);
    }
}

impl BucketActor {
    /// Numbers an ingest and submits it to the journal, unless it is refused or has to wait. `waited_for`: the series that
    /// it has waited for. Returns the series that it waits for now.
    fn submit(&mut self, take: Take, waited_for: Option<u32>, context: &mut Context<Self>) -> Option<u32> {
        let Take {
            mut ingest,
            reply,
            holds,
        } = take;
        let Err(reply) = self.repeated(&ingest, reply) else {
            return None;
        };
        let is_closed = |source| self.closed.contains_key(&source);
        let mut sources = ingest.sources.iter().copied().map(Some);
        if !self.closed.is_empty() && (is_closed(None) || sources.any(is_closed)) {
            self.parked.push(reply);
            return None;
        }
        let catalog = &self.dependencies.catalog;
        let has_sources = catalog.read(|catalog| catalog.has_sources(self.ordinal, &ingest.sources));
        if !has_sources || ingest.releases < self.released_at {
            respond(reply, Ok(Ingested::SourceGone));
            return None;
        }
        let series_max = self.dependencies.series_max;
        let cutoff_ns = |now_ns| cutoff_ns(catalog, self.ordinal, now_ns);
        // Those that have waited do not wait for each other, only for what is in progress.
        let is_behind_others = |series| waited_for.is_none() && self.waiting.has(series);
        let mut state = self.state.lock();
        let admitted = self
            .additions
            .admit(&state, &mut ingest, series_max, cutoff_ns, is_behind_others);
        let additions = match admitted {
            Ok(additions) => additions,
            Err(Refused::With(answer)) => {
                respond(reply, answer);
                return None;
            }
            Err(Refused::Waits(series)) => {
                let take = Take { ingest, reply, holds };
                match waited_for == Some(series) {
                    true => self.waiting.put_back(series, take),
                    false => self.waiting.add(series, take),
                }
                return Some(series);
            }
        };
        let number = self.submitted;
        self.submitted += 1;
        self.in_progress.insert(number);
        let alone = ingest.alone.take();
        let first_sequence = state.next_sequence;
        // Also if the record is refused: a sequence may be skipped, but is never used twice.
        state.next_sequence += u64::from(ingest.rows);
        drop(state);
        let id = ObjectId::of_point(self.ordinal, first_sequence);
        ingest.record.number(first_sequence, &id.to_hex());
        let key = ingest.idempotency.map(|(key, _)| key);
        if let Some((key, body)) = ingest.idempotency {
            let waiting = Vec::new();
            self.pending.insert(key, Pending { body, waiting });
        }
        let (address, changed) = (context.address(), self.dependencies.changed.clone());
        let then = move |outcome| {
            address.do_send(Applied {
                outcome,
                first_sequence,
                key,
                reply,
                holds,
                additions,
                number,
                alone,
            });
            changed.set();
        };
        let journal = &self.dependencies.journal;
        journal.submit_ingest(ingest.record, Box::new(then));
        None
    }
}

impl Handler<Applied> for BucketActor {
    type Result = ();

    fn handle(&mut self, message: Applied, context: &mut Self::Context) {
        let Applied {
            outcome,
            first_sequence,
            key,
            reply,
            holds,
            additions,
            number,
            // Whoever compares next sees these rows.
            alone: _alone,
        } = message;
        let mut freed = Vec::new();
        self.additions
            .end(&self.state.lock(), &additions, outcome.is_ok(), |series| {
                freed.push(series)
            });
        self.in_progress.remove(&number);
        // Before the answer: a client that has its answer must not count against the limits any more.
        drop(holds);
        let pending = key.and_then(|key| Some((key, self.pending.remove(&key)?)));
        let waiting = pending.map(|(key, pending)| (key, pending.waiting));
        match outcome {
            Ok(Committed { sequence, record }) => {
                let Ok(Record::Ingest(view)) = Record::decode(&record) else {
                    unreachable!("BUG: the record is the ingest submitted above");
                };
                if let Err(error) = self.with_memory_reported(|state| state.apply(sequence, &view)) {
                    unreachable!("BUG: rows encoded by this program cannot be decoded: {error}");
                }
                if let Some(registry) = self.dependencies.registry.upgrade() {
                    registry
                        .newest_ingest_ns
                        .fetch_max(view.created_at_ns, Ordering::Relaxed);
                }
                respond(reply, Ok(Ingested::Stored { first_sequence }));
                self.seal_full(context);
                if let Some((key, waiting)) = waiting {
                    // It was just inserted.
                    let found = self.state.lock().idempotency.get(&key, view.created_at_ns);
                    let answer = found.ok().flatten().map(|entry| entry.answer);
                    for reply in waiting {
                        let replayed = answer.clone().map(Ingested::Replayed);
                        respond(reply, replayed.ok_or_else(|| JournalError::Closed.into()));
                    }
                }
            }
            Err(error) => {
                respond(reply, Err(error.clone().into()));
                let waiting = waiting.into_iter().flat_map(|(_, waiting)| waiting);
                waiting.for_each(|reply| respond(reply, Err(error.clone().into())));
            }
        }
        // After the rows are stored: those that wait are compared with them.
        freed.into_iter().for_each(|series| self.wake(series, context));
        self.hand_out();
    }
}

impl Handler<HoldPoints> for BucketActor {
    type Result = ();

    fn handle(&mut self, HoldPoints { source, reply }: HoldPoints, context: &mut Self::Context) {
        self.close(source);
        let hold = PointsHold::new(context.address(), source);
        self.holding.push((self.submitted, reply, hold));
        self.hand_out();
    }
}

impl Handler<ReleasePoints> for BucketActor {
    type Result = ();

    fn handle(&mut self, ReleasePoints(source): ReleasePoints, _: &mut Self::Context) {
        if let Some(registry) = self.dependencies.registry.upgrade() {
            self.released_at = registry.releases.fetch_add(1, Ordering::AcqRel) + 1;
        }
        self.open(source);
    }
}

impl Handler<AskRoom> for BucketActor {
    type Result = ();

    fn handle(&mut self, AskRoom { now_ns, reply }: AskRoom, _: &mut Self::Context) {
        let series_max = self.dependencies.series_max;
        let state = self.state.lock();
        if self.additions.room(&state, series_max) == 0 {
            let cutoff_ns = cutoff_ns(&self.dependencies.catalog, self.ordinal, now_ns);
            self.additions.count_expired(&state, cutoff_ns, now_ns);
        }
        respond(reply, (self.additions.room(&state, series_max), series_max));
    }
}

impl Handler<RowsSealed> for BucketActor {
    type Result = ();

    fn handle(&mut self, RowsSealed(sealed): RowsSealed, _: &mut Self::Context) {
        self.with_memory_reported(|state| state.store.finish_seal(sealed));
    }
}

impl<R: Request> Handler<Ask<R>> for BucketActor {
    type Result = ();

    fn handle(&mut self, Ask { request, reply }: Ask<R>, _: &mut Self::Context) {
        respond(reply, self.with_memory_reported(|state| request.answer(state)));
    }
}
