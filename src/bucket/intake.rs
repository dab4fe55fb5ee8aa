//! Decides which ingests are numbered and submitted to the journal, in which order, and which have to wait.
//!
//! Mostly the thread that has parsed an ingest decides about it, so that the actor's thread need not be woken only to pass
//! it on. If the actor is busy, or files may have to be read, the actor decides. The actor holds the intake's lock while it
//! works, so that nobody else waits for its work.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use actix::{Addr, Message};
use tokio::sync::oneshot;

use super::actor::{Applied, BucketActor, respond};
use super::additions::{Additions, OfIngest, Refused};
use super::budget::Holds;
use super::handle::Changed;
use super::hold::{HoldReply, PointsHold};
use super::shared::SharedState;
use super::state::BucketState;
use super::waiting::Waiting;
use super::{Digest, Ingest, Ingested};
use crate::catalog::CatalogHandle;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::journal::JournalHandle;

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

/// An ingest that was submitted to the journal.
pub(super) struct Submitted {
    pub(super) first_sequence: u64,
    pub(super) rows: u32,
    /// Digest of its idempotency key.
    key: Option<Digest>,
    additions: OfIngest,
    number: u64,
}

/// What was found out when a submitted ingest was decided.
pub(super) struct Ended {
    /// Ingests with the same idempotency key that arrived in the meantime.
    pub(super) repeated: Option<(Digest, Vec<IngestReply>)>,
    /// The series for which ingests wait and of which none is in progress any more.
    pub(super) freed: Vec<u32>,
}

/// The ingests that are submitted and not ended, by their numbers. They end about in their order.
#[derive(Default)]
struct InProgress {
    /// The number of the oldest; that of the next one if there is none.
    oldest: u64,
    /// Whether it, and those after it, have ended.
    ended: VecDeque<bool>,
}

impl InProgress {
    /// The number of the next ingest.
    fn next(&self) -> u64 {
        self.oldest + self.ended.len() as u64
    }

    /// Begins the next one; returns its number.
    fn begin(&mut self) -> u64 {
        let number = self.next();
        self.ended.push_back(false);
        number
    }

    fn end(&mut self, number: u64) {
        if let Some(ended) = self.ended.get_mut((number - self.oldest) as usize) {
            *ended = true;
        }
        while self.ended.pop_front_if(|ended| *ended).is_some() {
            self.oldest += 1;
        }
    }
}

/// An idempotency key whose first request is in progress.
struct Pending {
    body: Digest,
    waiting: Vec<IngestReply>,
}

/// What the intake needs from other components.
pub(super) struct IntakeDependencies {
    pub(super) journal: JournalHandle,
    pub(super) catalog: CatalogHandle,
    /// Marks the bucket as changed for the next checkpoint.
    pub(super) changed: Changed,
    /// Number of series that the bucket may have.
    pub(super) series_max: u64,
}

/// Ingests between their arrival and the moment in which they are applied.
pub(super) struct Intake {
    state: SharedState,
    ordinal: u32,
    dependencies: IntakeDependencies,
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
    in_progress: InProgress,
    /// Who waits until no earlier ingest is in progress.
    holding: Vec<(u64, HoldReply, PointsHold)>,
    /// Ingests that were parsed before this number of releases may name series of before.
    released_at: u64,
}

/// The intake of one bucket, owned by its actor: whoever waits in it is told when the actor ends. Cheap to clone.
#[derive(Clone)]
pub(super) struct OwnedIntake(Arc<Mutex<Intake>>);

impl OwnedIntake {
    pub(super) fn new(intake: Intake) -> Self {
        OwnedIntake(Arc::new(Mutex::new(intake)))
    }

    pub(super) fn door(&self) -> IntakeDoor {
        IntakeDoor(Arc::downgrade(&self.0))
    }

    /// Exclusive access for the actor.
    pub(super) fn lock(&self) -> MutexGuard<'_, Intake> {
        let Ok(locked) = self.0.lock() else {
            unreachable!("BUG: a decision about an ingest panicked, so that the actor ends, too")
        };
        locked
    }
}

/// Access to a bucket's intake for those who send it ingests.
pub(super) struct IntakeDoor(Weak<Mutex<Intake>>);

impl IntakeDoor {
    /// Decides about an ingest on this thread, or leaves it to the actor. Does not wait for the actor.
    pub(super) fn take(&self, take: Take, actor: &Addr<BucketActor>) {
        let is_here = !take.ingest.may_need_files();
        let intake = is_here.then(|| self.0.upgrade()).flatten();
        match intake.as_deref().map(Mutex::try_lock) {
            Some(Ok(mut intake)) => _ = intake.submit(take, None, actor),
            // Also if the actor has ended, whose address drops what is sent, and if a panic has poisoned the lock, with which
            // the actor ends.
            _ => actor.do_send(take),
        }
    }
}

impl Intake {
    pub(super) fn new(state: SharedState, ordinal: u32, dependencies: IntakeDependencies) -> Self {
        Intake {
            state,
            ordinal,
            dependencies,
            pending: HashMap::new(),
            additions: Additions::default(),
            closed: HashMap::new(),
            parked: Vec::new(),
            waiting: Waiting::default(),
            in_progress: InProgress::default(),
            holding: Vec::new(),
            released_at: 0,
        }
    }

    /// Numbers an ingest and submits it to the journal, unless it is refused or has to wait. `waited_for`: the series that
    /// it has waited for. Returns the series that it waits for now.
    pub(super) fn submit(
        &mut self,
        take: Take,
        waited_for: Option<u32>,
        actor: &Addr<BucketActor>,
    ) -> Option<u32> {
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
        let number = self.in_progress.begin();
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
        let submitted = Submitted {
            first_sequence,
            rows: ingest.rows,
            key,
            additions,
            number,
        };
        let (actor, changed) = (actor.clone(), self.dependencies.changed.clone());
        let then = move |outcome| {
            actor.do_send(Applied {
                outcome,
                submitted,
                reply,
                holds,
                alone,
            });
            changed.set();
        };
        let journal = &self.dependencies.journal;
        journal.submit_ingest(ingest.record, Box::new(then));
        None
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

    /// Notes that a submitted ingest is durable, or was refused. The caller keeps the intake locked until it has
    /// [woken](Self::wake) those that wait, so that nobody begins to wait in between.
    pub(super) fn end(&mut self, submitted: Submitted, is_durable: bool) -> Ended {
        let mut freed = Vec::new();
        let (additions, waiting) = (&mut self.additions, &self.waiting);
        additions.end(&self.state.lock(), &submitted.additions, is_durable, |series| {
            if waiting.has(series) {
                freed.push(series);
            }
        });
        self.in_progress.end(submitted.number);
        let pending = submitted
            .key
            .and_then(|key| Some((key, self.pending.remove(&key)?)));
        Ended {
            repeated: pending.map(|(key, pending)| (key, pending.waiting)),
            freed,
        }
    }

    /// Decides again about the ingests that wait for a series of which none is in progress any more.
    pub(super) fn wake(&mut self, series: u32, actor: &Addr<BucketActor>) {
        while let Some(take) = self.waiting.take(series) {
            if self.submit(take, Some(series), actor) == Some(series) {
                break;
            }
        }
    }

    /// Parks ingests of a source, or of all of them, until it is opened.
    pub(super) fn close(&mut self, source: Option<u32>) {
        *self.closed.entry(source).or_insert(0) += 1;
    }

    /// Ends one [`close`](Self::close). Senders of parked ingests read the catalog again.
    pub(super) fn open(&mut self, source: Option<u32>) {
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

    /// Closes a source, and hands out the hold once no earlier ingest is in progress.
    pub(super) fn hold(&mut self, source: Option<u32>, reply: HoldReply, hold: PointsHold) {
        self.close(source);
        self.holding.push((self.in_progress.next(), reply, hold));
        self.hand_out();
    }

    /// Opens a source. Ingests that were parsed before this number of releases are parsed again.
    pub(super) fn release(&mut self, source: Option<u32>, released_at: Option<u64>) {
        if let Some(released_at) = released_at {
            self.released_at = released_at;
        }
        self.open(source);
    }

    /// Hands out the holds for which no earlier ingest is in progress any more.
    pub(super) fn hand_out(&mut self) {
        let oldest = self.in_progress.oldest;
        for (_, reply, hold) in self.holding.extract_if(.., |(before, ..)| *before <= oldest) {
            // If the sender is gone, the hold ends here.
            respond(reply, hold);
        }
    }

    /// How many series may be added, and how many the bucket may have.
    pub(super) fn room(&mut self, state: &BucketState, now_ns: i64) -> (u64, u64) {
        let series_max = self.dependencies.series_max;
        if self.additions.room(state, series_max) == 0 {
            let cutoff_ns = cutoff_ns(&self.dependencies.catalog, self.ordinal, now_ns);
            self.additions.count_expired(state, cutoff_ns, now_ns);
        }
        (self.additions.room(state, series_max), series_max)
    }
}

/// Points of a bucket before this time have expired.
fn cutoff_ns(catalog: &CatalogHandle, bucket: u32, now_ns: i64) -> i64 {
    catalog.read(|catalog| {
        let bucket = catalog.bucket_by_ordinal(bucket);
        bucket.map_or(i64::MIN, |bucket| bucket.retention_cutoff_ns(now_ns))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_ingest_in_progress_is_known_in_whatever_order_they_end() {
        let mut in_progress = InProgress::default();
        let numbers: Vec<u64> = (0..4).map(|_| in_progress.begin()).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        for (ended, oldest) in [(2, 0), (0, 1), (1, 3), (3, 4)] {
            in_progress.end(ended);
            assert_eq!(in_progress.oldest, oldest, "after {ended}");
        }
        assert_eq!(in_progress.next(), 4, "numbers are not used again");
        assert_eq!(in_progress.begin(), 4);
        assert_eq!(in_progress.oldest, 4);
        assert_eq!(in_progress.ended.len(), 1, "what has ended takes no memory");
    }
}
