//! The bucket's actor, the only owner of its state. It handles one message at a time. A record goes from `Take` to the
//! journal and comes back as `Applied`; the order of submission to the journal is the order in the log.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use actix::{Actor, AsyncContext, Context, Handler, Message};
use engine::Sealed;
use tokio::sync::oneshot;

use super::budget::Holds;
use super::handle::Changed;
use super::request::{Ask, Request};
use super::sealer::Sealer;
use super::state::{BucketState, SealTicket};
use super::{Digest, Ingest, Ingested};
use crate::catalog::Command;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::journal::{Committed, JournalError, JournalHandle, Record};

/// Whether all sources with these ordinals exist.
pub(super) type Known = Box<dyn Fn(&[u32]) -> bool + Send>;
pub(super) type IngestReply = oneshot::Sender<Result<Ingested, ServiceError>>;
type DeleteReply = oneshot::Sender<Result<u64, ServiceError>>;

/// An ingest to number and log.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Take {
    pub(super) ingest: Ingest,
    pub(super) reply: IngestReply,
    /// Its share of the byte limits, until it is applied or refused.
    pub(super) holds: Holds,
}

/// Deletes one source, or all of them with the bucket, in order with the ingests.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Delete {
    pub(super) source: Option<u32>,
    pub(super) command: Command,
    pub(super) reply: DeleteReply,
}

/// Rows that a sealer thread has compressed into blocks.
#[derive(Message)]
#[rtype(result = "()")]
struct RowsSealed {
    sealed: Sealed,
    ticket: SealTicket,
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
}

/// The journal's result for a deletion.
#[derive(Message)]
#[rtype(result = "()")]
struct Deleted {
    outcome: Result<(), JournalError>,
    source: Option<u32>,
    reply: DeleteReply,
}

/// An idempotency key whose first request is in progress.
struct Pending {
    body: Digest,
    waiting: Vec<IngestReply>,
}

/// What the actor needs from other components.
pub(super) struct ActorDependencies {
    pub(super) journal: JournalHandle,
    pub(super) sealer: Sealer,
    /// Whether all these sources exist in the current catalog.
    pub(super) known: Known,
    /// Called with the store's previous and new unsaved bytes when they change.
    pub(super) memory: Box<dyn Fn(u64, u64) + Send>,
    /// When the newest ingest of all buckets was received, UTC nanoseconds.
    pub(super) newest_ingest_ns: Arc<AtomicI64>,
    /// Marks the bucket as changed for the next checkpoint.
    pub(super) changed: Changed,
    /// Called when the bucket is deleted.
    pub(super) deleted: Box<dyn Fn() + Send>,
    /// Called when the actor is dropped without having been stopped: it has panicked.
    pub(super) failed: Box<dyn Fn() + Send>,
}

pub(super) struct BucketActor {
    state: BucketState,
    dependencies: ActorDependencies,
    /// The unsaved bytes that were last reported.
    reported_bytes: u64,
    /// Whether the actor was stopped normally.
    stopped: bool,
    pending: HashMap<Digest, Pending>,
    /// Deletions in progress, by source; `None` is the whole bucket. Counted, because the client of one may have
    /// disconnected and the same deletion may be requested again in the meantime.
    deleting: HashMap<Option<u32>, u32>,
    /// Ingests that arrived while one of their sources was being deleted.
    parked: Vec<IngestReply>,
}

impl BucketActor {
    pub(super) fn new(state: BucketState, dependencies: ActorDependencies) -> Self {
        let reported_bytes = state.store.unsaved().1;
        (dependencies.memory)(0, reported_bytes);
        BucketActor {
            state,
            dependencies,
            reported_bytes,
            stopped: false,
            pending: HashMap::new(),
            deleting: HashMap::new(),
            parked: Vec::new(),
        }
    }

    fn with_memory_reported(&mut self, work: impl FnOnce(&mut BucketState)) {
        work(&mut self.state);
        let now_bytes = self.state.store.unsaved().1;
        let reported_bytes = std::mem::replace(&mut self.reported_bytes, now_bytes);
        if reported_bytes != now_bytes {
            (self.dependencies.memory)(reported_bytes, now_bytes);
        }
    }

    /// Hands rows that fill blocks to the sealer threads; the blocks come back as a message.
    fn seal_full(&mut self, context: &mut Context<Self>) {
        for (seal, ticket) in self.state.take_seals() {
            let address = context.address();
            self.dependencies.sealer.seal(seal, move |sealed| {
                if let Some(sealed) = sealed {
                    address.do_send(RowsSealed { sealed, ticket });
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
        match self.state.idempotency.get(&key, ingest.now_ns) {
            Ok(Some(entry)) if entry.body == body => respond(reply, Ok(Ingested::Replayed(entry.answer))),
            Ok(Some(_)) => respond(reply, Ok(Ingested::KeyReused)),
            Ok(None) => return Err(reply),
            // It may have been stored before, and must not be stored twice.
            Err(error) => respond(reply, Err(ServiceError::internal(error))),
        }
        Ok(())
    }
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
        (self.dependencies.memory)(self.reported_bytes, 0);
        if !self.stopped {
            (self.dependencies.failed)();
        }
    }
}

impl Handler<Take> for BucketActor {
    type Result = ();

    fn handle(
        &mut self,
        Take {
            mut ingest,
            reply,
            holds,
        }: Take,
        context: &mut Self::Context,
    ) {
        let Err(reply) = self.repeated(&ingest, reply) else {
            return;
        };
        let being_deleted = !self.deleting.is_empty()
            && (self.deleting.contains_key(&None)
                || ingest
                    .sources
                    .iter()
                    .any(|s| self.deleting.contains_key(&Some(*s))));
        if being_deleted {
            self.parked.push(reply);
            return;
        }
        if !(self.dependencies.known)(&ingest.sources) {
            respond(reply, Ok(Ingested::SourceGone));
            return;
        }
        let first_sequence = self.state.next_sequence;
        let id = ObjectId::of_point(self.state.ordinal, first_sequence);
        ingest.record.number(first_sequence, &id.to_hex());
        let key = ingest.idempotency.map(|(key, _)| key);
        // Also if the record is refused: a sequence may be skipped, but is never used twice.
        self.state.next_sequence += u64::from(ingest.rows);
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
            });
            changed.set();
        };
        self.dependencies
            .journal
            .submit_ingest(ingest.record, Box::new(then));
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
        } = message;
        // Before the answer: a client that has its answer must not count against the limits any more.
        drop(holds);
        let pending = key.and_then(|key| Some((key, self.pending.remove(&key)?)));
        let waiting = pending.map(|(key, pending)| (key, pending.waiting));
        match outcome {
            Ok(Committed { sequence, record }) => {
                let Ok(Record::Ingest(view)) = Record::decode(&record) else {
                    unreachable!("BUG: the record is the ingest submitted above");
                };
                let mut applied = Ok(true);
                self.with_memory_reported(|state| applied = state.apply(sequence, &view));
                if let Err(error) = applied {
                    unreachable!("BUG: rows encoded by this program cannot be decoded: {error}");
                }
                self.dependencies
                    .newest_ingest_ns
                    .fetch_max(view.created_at_ns, Ordering::Relaxed);
                respond(reply, Ok(Ingested::Stored { first_sequence }));
                self.seal_full(context);
                if let Some((key, waiting)) = waiting {
                    // It was just inserted.
                    let found = self.state.idempotency.get(&key, view.created_at_ns);
                    let answer = found.ok().flatten().map(|entry| entry.answer);
                    for reply in waiting {
                        respond(reply, answer.clone().map(Ingested::Replayed).ok_or_else(stopped));
                    }
                }
            }
            Err(error) => {
                respond(reply, Err(error.clone().into()));
                let waiting = waiting.into_iter().flat_map(|(_, waiting)| waiting);
                waiting.for_each(|reply| respond(reply, Err(error.clone().into())));
            }
        }
    }
}

fn stopped() -> ServiceError {
    JournalError::Closed.into()
}

impl Handler<Delete> for BucketActor {
    type Result = ();

    fn handle(
        &mut self,
        Delete {
            source,
            command,
            reply,
        }: Delete,
        context: &mut Self::Context,
    ) {
        let (address, changed) = (context.address(), self.dependencies.changed.clone());
        *self.deleting.entry(source).or_insert(0) += 1;
        self.dependencies.journal.submit_command(command, move |outcome| {
            address.do_send(Deleted {
                outcome,
                source,
                reply,
            });
            changed.set();
        });
    }
}

impl Handler<Deleted> for BucketActor {
    type Result = ();

    fn handle(
        &mut self,
        Deleted {
            outcome,
            source,
            reply,
        }: Deleted,
        _: &mut Self::Context,
    ) {
        if let Entry::Occupied(mut entry) = self.deleting.entry(source) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
        match outcome {
            Ok(()) => {
                let mut points = 0;
                self.with_memory_reported(|state| {
                    points = match source {
                        Some(source) => state.store.remove_source(source),
                        None => state.store.remove_all(),
                    };
                });
                if source.is_none() {
                    // Here rather than where the answer is awaited: the client may have disconnected.
                    (self.dependencies.deleted)();
                }
                respond(reply, Ok(points));
            }
            Err(error) => respond(reply, Err(error.into())),
        }
        // Their senders read the catalog again and decide whether to retry.
        self.parked
            .drain(..)
            .for_each(|reply| respond(reply, Ok(Ingested::SourceGone)));
    }
}

impl Handler<RowsSealed> for BucketActor {
    type Result = ();

    fn handle(&mut self, RowsSealed { sealed, ticket }: RowsSealed, _: &mut Self::Context) {
        self.with_memory_reported(|state| state.finish_seal(sealed, &ticket));
    }
}

impl<R: Request> Handler<Ask<R>> for BucketActor {
    type Result = ();

    fn handle(&mut self, Ask { request, reply }: Ask<R>, _: &mut Self::Context) {
        self.with_memory_reported(|state| respond(reply, request.answer(state)));
    }
}
