//! The bucket's actor, which alone changes its points. It handles one message at a time. A record goes from the intake to
//! the journal and comes back as `Applied`; the order of submission to the journal is the order in the log.
//!
//! Messages that go through the journal or the sealer threads are here and in `removal`, those that only need the state in
//! `request`.

mod removal;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use actix::fut::ready;
use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message};
use engine::Sealed;
use tokio::sync::{OwnedMutexGuard, oneshot};

use super::Ingested;
use super::budget::{Budget, Holds};
use super::handle::Changed;
use super::hold::{AskRoom, HoldPoints, PointsHold, ReleasePoints};
use super::intake::{IngestReply, OwnedIntake, Submitted, Take};
use super::registry::Inner;
use super::request::{Ask, Request};
use super::sealer::Sealer;
use super::shared::SharedState;
use super::state::BucketState;
use crate::journal::{Committed, JournalError, JournalHandle, Record};

pub(super) use removal::Delete;

/// Answers wait for others until so many rows are stored.
const ANSWERED_TOGETHER_ROWS_MAX: u64 = 256;

/// The journal's result for an ingest.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Applied {
    pub(super) outcome: Result<Committed, JournalError>,
    pub(super) submitted: Submitted,
    pub(super) reply: IngestReply,
    pub(super) holds: Holds,
    pub(super) alone: Option<Arc<OwnedMutexGuard<()>>>,
}

/// Rows that a sealer thread has compressed into blocks.
#[derive(Message)]
#[rtype(result = "()")]
struct RowsSealed(Sealed);

/// What the actor needs from other components.
pub(super) struct ActorDependencies {
    pub(super) journal: JournalHandle,
    pub(super) sealer: Sealer,
    /// The memory of all buckets, which includes the store's unsaved bytes.
    pub(super) memory: Arc<Budget>,
    /// Marks the bucket as changed for the next checkpoint.
    pub(super) changed: Changed,
    /// Weak, to avoid a reference cycle: the registry holds the actor.
    pub(super) registry: Weak<Inner>,
}

pub(super) struct BucketActor {
    state: SharedState,
    ordinal: u32,
    intake: OwnedIntake,
    dependencies: ActorDependencies,
    /// The unsaved bytes that were last reported.
    reported_bytes: u64,
    /// Ingests that are applied, with the sequence of their first row, and not answered yet.
    stored: Vec<(IngestReply, u64)>,
    /// The number of their rows.
    stored_rows: u64,
    /// Whether they are answered when no message is left.
    will_answer: bool,
}

impl BucketActor {
    pub(super) fn new(state: SharedState, intake: OwnedIntake, dependencies: ActorDependencies) -> Self {
        let (ordinal, reported_bytes) = {
            let state = state.lock();
            (state.ordinal, state.unsaved_bytes())
        };
        dependencies.memory.change(0, reported_bytes);
        BucketActor {
            state,
            ordinal,
            intake,
            dependencies,
            reported_bytes,
            stored: Vec::new(),
            stored_rows: 0,
            will_answer: false,
        }
    }

    /// Answers an ingest of so many rows, together with others: the threads of those who wait are woken once for a group of
    /// the journal rather than for each record. Other [`work`](Self::work) is done after the answers.
    fn answer_stored(
        &mut self,
        reply: IngestReply,
        first_sequence: u64,
        rows: u32,
        context: &mut Context<Self>,
    ) {
        self.stored.push((reply, first_sequence));
        self.stored_rows += u64::from(rows);
        if !self.will_answer {
            self.will_answer = true;
            let answer = |(), actor: &mut Self, _: &mut Context<Self>| {
                actor.will_answer = false;
                actor.answer_all_stored();
            };
            context.spawn(ready(()).map(answer));
        }
    }

    fn answer_all_stored(&mut self) {
        for (reply, first_sequence) in self.stored.drain(..) {
            respond(reply, Ok(Ingested::Stored { first_sequence }));
        }
        self.stored_rows = 0;
    }

    /// Does what is not part of an ingest. Holds the intake, so that nobody waits for it, as `intake` describes.
    fn work<R>(&mut self, work: impl FnOnce(&mut BucketState) -> R) -> R {
        self.answer_all_stored();
        let intake = self.intake.clone();
        let _busy = intake.lock();
        self.with_memory_reported(work)
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
}

/// The receiver is gone if the client has disconnected.
pub(super) fn respond<T>(reply: oneshot::Sender<T>, answer: T) {
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
}

impl Drop for BucketActor {
    fn drop(&mut self) {
        self.answer_all_stored();
        self.dependencies.memory.change(self.reported_bytes, 0);
        // Its context stops it even if it has panicked, so `stopped` would tell nothing.
        if std::thread::panicking()
            && let Some(registry) = self.dependencies.registry.upgrade()
        {
            // The checkpoint sets the bucket apart.
            registry.order_checkpoint();
        }
    }
}

impl Handler<Take> for BucketActor {
    type Result = ();

    fn handle(&mut self, message: Take, context: &mut Self::Context) {
        self.answer_all_stored();
        self.intake.lock().submit(message, None, &context.address());
    }
}

impl Handler<Applied> for BucketActor {
    type Result = ();

    fn handle(&mut self, message: Applied, context: &mut Self::Context) {
        let Applied {
            outcome,
            submitted,
            reply,
            holds,
            // Whoever compares next sees these rows.
            alone: _alone,
        } = message;
        let intake = self.intake.clone();
        // Until the rows are stored: whoever is admitted in between would find them neither in progress nor stored.
        let mut intake = intake.lock();
        let (first_sequence, rows) = (submitted.first_sequence, submitted.rows);
        if self.stored_rows + u64::from(rows) > ANSWERED_TOGETHER_ROWS_MAX {
            self.answer_all_stored();
        }
        let ended = intake.end(submitted, outcome.is_ok());
        // Before the answer: a client that has its answer must not count against the limits any more.
        drop(holds);
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
                self.answer_stored(reply, first_sequence, rows, context);
                self.seal_full(context);
                if let Some((key, waiting)) = ended.repeated {
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
                let waiting = ended.repeated.into_iter().flat_map(|(_, waiting)| waiting);
                waiting.for_each(|reply| respond(reply, Err(error.clone().into())));
            }
        }
        // After the rows are stored: those that wait are compared with them.
        for series in ended.freed {
            intake.wake(series, &context.address());
        }
        intake.hand_out();
    }
}

impl Handler<HoldPoints> for BucketActor {
    type Result = ();

    fn handle(&mut self, HoldPoints { source, reply }: HoldPoints, context: &mut Self::Context) {
        let hold = PointsHold::new(context.address(), source);
        self.intake.lock().hold(source, reply, hold);
    }
}

impl Handler<ReleasePoints> for BucketActor {
    type Result = ();

    fn handle(&mut self, ReleasePoints(source): ReleasePoints, _: &mut Self::Context) {
        let registry = self.dependencies.registry.upgrade();
        let released_at = registry.map(|registry| registry.releases.fetch_add(1, Ordering::AcqRel) + 1);
        self.intake.lock().release(source, released_at);
    }
}

impl Handler<AskRoom> for BucketActor {
    type Result = ();

    fn handle(&mut self, AskRoom { now_ns, reply }: AskRoom, _: &mut Self::Context) {
        self.answer_all_stored();
        let room = self.intake.lock().room(&self.state.lock(), now_ns);
        respond(reply, room);
    }
}

impl Handler<RowsSealed> for BucketActor {
    type Result = ();

    fn handle(&mut self, RowsSealed(sealed): RowsSealed, _: &mut Self::Context) {
        self.work(|state| state.store.finish_seal(sealed));
    }
}

impl<R: Request> Handler<Ask<R>> for BucketActor {
    type Result = ();

    fn handle(&mut self, Ask { request, reply }: Ask<R>, _: &mut Self::Context) {
        respond(reply, self.work(|state| request.answer(state)));
    }
}
