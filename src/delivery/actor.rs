//! The delivery actor: the only place where attempts start and end. Each delivery goes schedule → attempt → `Ended` →
//! record, then back to the schedule or done. Results of owed deliveries go to the log and come back as `Recorded`;
//! best-effort ones stay in memory.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::mem::take;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::handle::Shared;
use super::outgoing::{destination, receiver_key, request, retry_config};
use super::pace::Pace;
use super::points::NewPoints;
use super::recent::Kept;
use super::redelivery::{Redelivered, Requeuing, read_again};
use super::retry::{after, backoff, remaining};
use super::schedule::{Class, ReceiverKey, Schedule};
use super::transport::{Outcome, Transport};
use crate::catalog::{AfterAttempt, Attempt, AttemptMade, Catalog, Command, Delivery};
use crate::error::ServiceError;
use crate::ids::{ObjectId, ObjectIds};
use crate::journal::JournalError;

/// A slower answer does not prove that the receiver can take more requests at once.
const PROMPT: Duration = Duration::from_secs(5);
/// How often the totals of best-effort deliveries are made durable.
const COUNT_PERIOD: Duration = Duration::from_secs(60);
/// Wait before a result that the log refused is submitted again; doubled each time up to the maximum.
const RECORD_WAIT_MIN: Duration = Duration::from_secs(1);
const RECORD_WAIT_MAX: Duration = Duration::from_secs(30);
/// Minimum length at which the schedule is swept. Small schedules are never swept.
const SWEEP_LEN_MIN: usize = 4_096;
/// Maximum time between two looks at the schedule, even if nothing is due for longer.
const SLEEP_MAX: Duration = Duration::from_secs(3_600);

/// What callers of [`super::Deliveries`] request, and what attempts and the log report.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) enum DeliveryMessage {
    /// Deliveries to schedule, for the first time or again.
    Queued(Vec<ObjectId>),
    /// New points that webhooks may subscribe to, and their bytes in the mailbox.
    Offered(NewPoints, OwnedSemaphorePermit),
    /// Sends a delivery again, given as the caller read it, with a new retry schedule.
    Redeliver(Delivery, oneshot::Sender<Redelivered>),
    /// An attempt has ended.
    Ended(Ended),
    /// The log accepted or refused a result.
    Recorded(ObjectId, Result<(), JournalError>),
    /// The log accepted or refused a redelivery.
    Requeued {
        id: ObjectId,
        /// The best-effort delivery taken out of memory, if it was one.
        taken: Option<Kept>,
        outcome: Result<Delivery, ServiceError>,
        reply: oneshot::Sender<Redelivered>,
    },
    /// Stops starting attempts. Replies when those in flight have ended, or after `within` at the latest.
    Stop {
        within: Duration,
        reply: oneshot::Sender<()>,
    },
    /// Ends the actor.
    End,
}

/// An attempt that has ended.
pub(super) struct Ended {
    id: ObjectId,
    at_ns: i64,
    outcome: Outcome,
}

/// A result that is not in the log yet.
pub(super) struct Unrecorded {
    made: AttemptMade,
    /// When the next attempt is due.
    due: Duration,
    /// Whether the delivery was queued again in the meantime.
    again: bool,
    /// Callers that asked for a redelivery in the meantime.
    pub(super) waiting: Vec<oneshot::Sender<Redelivered>>,
}

pub(super) struct DeliveryActor {
    pub(super) shared: Arc<Shared>,
    transport: Rc<dyn Transport>,
    pub(super) ids: ObjectIds,
    pub(super) schedule: Schedule,
    pub(super) pace: Pace,
    /// Best-effort deliveries made so far; rotates which sources are dropped.
    pub(super) best_effort_made: usize,
    pub(super) unrecorded: HashMap<ObjectId, Unrecorded>,
    /// Those that the log refused. The first of them sets the timer that submits all again.
    refused: Vec<ObjectId>,
    pub(super) requeuing: HashMap<ObjectId, Requeuing>,
    /// Redelivered while an attempt was in flight. If that attempt fails, the delivery is due again at once.
    pub(super) redelivered: HashSet<ObjectId>,
    record_wait: Duration,
    /// Schedule length that triggers the next sweep.
    sweep_at: usize,
    /// Origin of the schedule's time.
    began: Instant,
    /// When the timer fires next.
    alarm: Option<Duration>,
    stopping: Option<oneshot::Sender<()>>,
    stopped: bool,
}

impl DeliveryActor {
    pub(super) fn new(shared: Arc<Shared>, transport: Rc<dyn Transport>, ids: ObjectIds) -> Self {
        Self {
            shared,
            transport,
            ids,
            schedule: Schedule::default(),
            pace: Pace::default(),
            best_effort_made: 0,
            unrecorded: HashMap::new(),
            refused: Vec::new(),
            requeuing: HashMap::new(),
            redelivered: HashSet::new(),
            record_wait: RECORD_WAIT_MIN,
            sweep_at: SWEEP_LEN_MIN,
            began: Instant::now(),
            alarm: None,
            stopping: None,
            stopped: false,
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn now_ns(&self) -> i64 {
        self.shared.clock.now_ns()
    }

    pub(super) fn catalog<R>(&self, look: impl FnOnce(&Catalog) -> R) -> R {
        self.shared.catalog.read(look)
    }

    /// Schedules the pending deliveries of an earlier process.
    fn take_over(&mut self) {
        let (now, now_ns) = (self.now(), self.now_ns());
        let owed: Vec<_> = self.catalog(|catalog| {
            let due = |delivery: &Arc<Delivery>| {
                let due_ns = delivery.next_attempt_at_ns.unwrap_or(now_ns);
                let wait = remaining(retry_config(catalog, delivery), delivery.tries, due_ns, now_ns);
                (delivery.id, now.saturating_add(wait))
            };
            catalog.pending_deliveries().map(due).collect()
        });
        owed.into_iter().for_each(|(id, due)| self.schedule_owed(id, due));
    }

    /// Schedules a delivery if it is still owed.
    fn schedule_owed(&mut self, id: ObjectId, due: Duration) {
        let receiver = self.catalog(|catalog| {
            let delivery = catalog.pending_delivery(id)?;
            Some(receiver_key(catalog, &self.shared.guard, delivery))
        });
        if let Some(receiver) = receiver {
            self.schedule.add(id, receiver, Class::Owed, due);
        }
    }

    /// Schedules a delivery that is in memory only.
    pub(super) fn schedule_best_effort(&mut self, delivery: &Delivery, due: Duration) {
        let receiver = ReceiverKey::Webhook(delivery.receiver.owner());
        self.schedule.add(delivery.id, receiver, Class::BestEffort, due);
    }

    /// Removes deliveries that are no longer owed because their webhook was deleted or they were given up. Otherwise
    /// they would stay until they are due, which may be years. The cost is amortized: a sweep waits until the schedule
    /// doubled.
    fn sweep(&mut self) {
        if self.schedule.len() < self.sweep_at {
            return;
        }
        let is_gone = |id: &ObjectId| {
            self.shared.recent.get(*id).is_none()
                && self.catalog(|catalog| catalog.pending_delivery(*id).is_none())
        };
        let gone: Vec<ObjectId> = self.schedule.ids().filter(is_gone).collect();
        gone.into_iter().for_each(|id| self.schedule.remove(id));
        self.sweep_at = (2 * self.schedule.len()).max(SWEEP_LEN_MIN);
    }

    /// Starts every attempt that may start now, sets the timer for the rest, and completes a pending stop.
    pub(super) fn go_on(&mut self, context: &mut Context<Self>) {
        if self.stopping.is_none() && !self.stopped {
            while let Some(id) = self.schedule.next(self.now()) {
                self.start(id, context);
            }
            self.set_alarm(context);
        }
        let mut stats = self.shared.stats.lock();
        stats.pending = (self.schedule.len() + self.unrecorded.len()) as u64;
        stats.in_flight = self.schedule.in_flight() as u64;
        drop(stats);
        if self.stopping.is_some() && self.schedule.in_flight() == 0 && self.unrecorded.is_empty() {
            self.finish();
        }
    }

    fn set_alarm(&mut self, context: &mut Context<Self>) {
        let Some(due) = self.schedule.next_due() else {
            return;
        };
        if self.alarm.is_some_and(|alarm| alarm <= due) {
            return;
        }
        let now = self.now();
        let due = due.min(now + SLEEP_MAX);
        self.alarm = Some(due);
        context.run_later(due.saturating_sub(now), move |actor, context| {
            if actor.alarm == Some(due) {
                actor.alarm = None;
                actor.go_on(context);
            }
        });
    }

    fn start(&mut self, id: ObjectId, context: &mut Context<Self>) {
        let at_ns = self.now_ns();
        let delivery = self.shared.recent.start(id);
        let delivery = delivery.or_else(|| self.catalog(|catalog| catalog.pending_delivery(id).cloned()));
        let found = delivery.and_then(|delivery| {
            let destination = self.catalog(|catalog| destination(catalog, &delivery.receiver))?;
            request(&delivery, destination, at_ns)
        });
        let Some(request) = found else {
            // The receiver was deleted in the meantime, and its deliveries with it.
            self.shared.recent.forget(id);
            self.schedule.ended(id, None);
            return;
        };
        let attempt = match request {
            Ok(request) => self.transport.attempt(request),
            Err(error) => {
                let answer = Err(error);
                let took = Duration::ZERO;
                Box::pin(ready(Outcome { answer, took }))
            }
        };
        let address = context.address();
        // A separate task, because the actor's context would poll all attempts whenever one makes progress.
        actix::spawn(async move {
            let outcome = attempt.await;
            address.do_send(DeliveryMessage::Ended(Ended { id, at_ns, outcome }));
        });
    }

    /// Schedules deliveries, for the first time or again.
    pub(super) fn queue(&mut self, ids: &[ObjectId], context: &mut Context<Self>) {
        for id in ids {
            match self.unrecorded.get_mut(id) {
                Some(unrecorded) => unrecorded.again = true,
                None => self.schedule_owed(*id, self.now()),
            }
        }
        self.sweep();
        self.go_on(context);
    }

    pub(super) fn ended(&mut self, ended: Ended, context: &mut Context<Self>) {
        if let Some(requeuing) = self.requeuing.get_mut(&ended.id) {
            return requeuing.ended.push(ended);
        }
        let Ended { id, at_ns, outcome } = ended;
        self.shared.stats.lock().count(&outcome);
        self.schedule
            .ended(id, Some(outcome.answer.is_ok() && outcome.took < PROMPT));
        let attempt = Attempt {
            at_ns,
            status_code: outcome.answer.as_ref().ok().copied(),
            error: outcome.error().map(Into::into),
            duration_ms: u32::try_from(outcome.took.as_millis()).unwrap_or(u32::MAX),
        };
        if let Some(delivery) = self.shared.recent.get(id) {
            let (then, due) = self.decide(&delivery, &outcome);
            self.shared.recent.end(id, attempt, then);
            if let AfterAttempt::Retry(_) = then {
                self.schedule_best_effort(&delivery, due);
            }
        } else if let Some(delivery) = self.catalog(|catalog| catalog.pending_delivery(id).cloned()) {
            let (then, due) = self.decide(&delivery, &outcome);
            let made = AttemptMade {
                delivery_id: id,
                attempt,
                then,
            };
            let unrecorded = Unrecorded {
                made,
                due,
                again: false,
                waiting: Vec::new(),
            };
            self.unrecorded.insert(id, unrecorded);
            self.record(id, context);
        }
        self.redelivered.remove(&id);
        self.go_on(context);
    }

    /// What follows an attempt, and when the next one is due.
    fn decide(&self, delivery: &Delivery, outcome: &Outcome) -> (AfterAttempt, Duration) {
        let (now, now_ns) = (self.now(), self.now_ns());
        if outcome.is_success() {
            return (AfterAttempt::Delivered, now);
        }
        if self.redelivered.contains(&delivery.id) {
            // Whoever asked for the redelivery was promised an attempt after that.
            return (AfterAttempt::Retry(now_ns), now);
        }
        let retry = self.catalog(|catalog| retry_config(catalog, delivery));
        match backoff(retry, delivery.tries.saturating_add(1)) {
            Some(wait) => (AfterAttempt::Retry(after(now_ns, wait)), now.saturating_add(wait)),
            None => (AfterAttempt::Failed, now),
        }
    }

    /// Submits a result to the log.
    fn record(&mut self, id: ObjectId, context: &mut Context<Self>) {
        let Some(unrecorded) = self.unrecorded.get(&id) else {
            return;
        };
        let command = Command::AttemptMade {
            made: unrecorded.made.clone(),
        };
        let address = context.address();
        self.shared.journal.submit_command(command, move |outcome| {
            address.do_send(DeliveryMessage::Recorded(id, outcome));
        });
    }

    fn recorded(&mut self, id: ObjectId, outcome: Result<(), JournalError>, context: &mut Context<Self>) {
        if let Err(error) = outcome {
            self.refused.push(id);
            return self.record_later(&error, context);
        }
        self.record_wait = RECORD_WAIT_MIN;
        if let Some(unrecorded) = self.unrecorded.remove(&id) {
            let is_retry = matches!(unrecorded.made.then, AfterAttempt::Retry(_));
            let retried = is_retry && !unrecorded.again;
            self.schedule_owed(id, if retried { unrecorded.due } else { self.now() });
            read_again(unrecorded.waiting);
        }
        self.go_on(context);
    }

    /// Retries later because the log refused a result. The request itself is not sent again for that.
    fn record_later(&mut self, error: &JournalError, context: &mut Context<Self>) {
        if self.refused.len() > 1 {
            return;
        }
        tracing::warn!(%error, "the log refuses results of deliveries; they are kept in memory and retried");
        let wait = self.record_wait;
        self.record_wait = (2 * wait).min(RECORD_WAIT_MAX);
        context.run_later(wait, |actor, context| {
            let refused = take(&mut actor.refused);
            refused.into_iter().for_each(|id| actor.record(id, context));
        });
    }

    /// Makes the totals of best-effort deliveries durable. `then` runs in any case.
    fn count(&self, then: impl FnOnce() + Send + 'static) {
        let exists = |id| self.catalog(|catalog| catalog.webhook(id).is_some());
        let counts = self.shared.recent.take_uncounted(exists);
        if counts.is_empty() {
            return then();
        }
        let command = Command::DeliveriesCounted {
            counts: counts.clone(),
        };
        let shared = Arc::clone(&self.shared);
        self.shared.journal.submit_command(command, move |outcome| {
            if outcome.is_err() {
                shared.recent.give_back(counts);
            }
            then();
        });
    }

    fn finish(&mut self) {
        let Some(reply) = self.stopping.take() else {
            return;
        };
        self.stopped = true;
        let (in_flight, unrecorded) = (self.schedule.in_flight(), self.unrecorded.len());
        if in_flight + unrecorded > 0 {
            tracing::info!(
                in_flight,
                unrecorded,
                "unfinished deliveries continue after the next start"
            );
        }
        self.count(move || {
            // The caller may be gone.
            let _ = reply.send(());
        });
    }
}

impl Actor for DeliveryActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        self.take_over();
        self.go_on(context);
        context.run_interval(COUNT_PERIOD, |actor, _| actor.count(|| {}));
    }
}

impl Handler<DeliveryMessage> for DeliveryActor {
    type Result = ();

    fn handle(&mut self, message: DeliveryMessage, context: &mut Self::Context) {
        match message {
            DeliveryMessage::Queued(ids) => self.queue(&ids, context),
            DeliveryMessage::Offered(points, reserved) => {
                drop(reserved);
                self.notify(&points, context);
            }
            DeliveryMessage::Redeliver(known, reply) => self.redeliver(known, reply, context),
            DeliveryMessage::Ended(ended) => self.ended(ended, context),
            DeliveryMessage::Recorded(id, outcome) => self.recorded(id, outcome, context),
            DeliveryMessage::Requeued {
                id,
                taken,
                outcome,
                reply,
            } => self.requeued(id, taken, outcome, reply, context),
            DeliveryMessage::Stop { within, reply } => {
                self.stopping = Some(reply);
                context.run_later(within, |actor, _| actor.finish());
                self.go_on(context);
            }
            DeliveryMessage::End => context.stop(),
        }
    }
}
