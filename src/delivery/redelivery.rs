//! Redelivery. It is decided by the actor, where attempts end, so that what is owed again is what became of the
//! delivery: no attempt falls out of its record, and it counts once.

use std::sync::Arc;

use actix::{AsyncContext, Context, Handler, Message};
use tokio::sync::oneshot;

use super::actor::{DeliveryActor, Ended, Queued};
use super::recent::Kept;
use crate::catalog::{Body, Command, Delivery, DeliveryStatus};
use crate::error::ServiceError;
use crate::ids::ObjectId;

/// The delivery, which is owed by now; `None` when it has changed since it was read, and is to be read again.
pub(super) type Redelivered = Result<Option<Delivery>, ServiceError>;

/// Sends a delivery once more, with a schedule of its own.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Redeliver {
    /// As the asker read it.
    pub known: Delivery,
    pub reply: oneshot::Sender<Redelivered>,
}

/// A redelivery on its way to the log.
#[derive(Default)]
pub(super) struct Requeuing {
    /// Attempts that ended meanwhile.
    pub ended: Vec<Ended>,
    /// Who asked for the same meanwhile.
    pub waiting: Vec<oneshot::Sender<Redelivered>>,
}

/// What the log made of a redelivery.
#[derive(Message)]
#[rtype(result = "()")]
struct Requeued {
    delivery: Delivery,
    /// What it was in memory, when it was best effort.
    taken: Option<Kept>,
    outcome: Result<(), ServiceError>,
    reply: oneshot::Sender<Redelivered>,
}

/// Has these read the delivery again.
pub(super) fn read_again(waiting: Vec<oneshot::Sender<Redelivered>>) {
    for reply in waiting {
        // Whoever asked may have gone.
        let _ = reply.send(Ok(None));
    }
}

impl Handler<Redeliver> for DeliveryActor {
    type Result = ();

    fn handle(&mut self, Redeliver { known, reply }: Redeliver, context: &mut Context<Self>) {
        let id = known.id;
        if let Some(waiting) = self.waiting_for_log(id) {
            return waiting.push(reply);
        }
        let taken = self.recent.take(id);
        let owed = self.catalog(|catalog| catalog.pending_delivery(id).cloned());
        let found = match (&taken, owed) {
            (Some(kept), _) => kept.as_counted(),
            (None, Some(owed)) => Arc::unwrap_or_clone(owed),
            (None, None) if known.status != DeliveryStatus::Pending => known,
            (None, None) => return read_again(vec![reply]),
        };
        // On its own from now on: its event may be told to nobody else any more.
        let Some(bytes) = found.body.sent_as(found.webhook_id) else {
            return read_again(vec![reply]);
        };
        let delivery = Delivery {
            tries: 0,
            next_attempt_at_ns: Some(self.now_ns()),
            body: Body::whole(bytes),
            ..found
        };
        self.requeuing.insert(id, Requeuing::default());
        let command = Command::DeliveriesQueued {
            deliveries: vec![delivery.clone()],
        };
        let requeued = |outcome| Requeued {
            delivery,
            taken,
            outcome,
            reply,
        };
        let slot = Arc::new(parking_lot::Mutex::new(Some(requeued)));
        let (for_completion, address) = (Arc::clone(&slot), context.address());
        let submitted = self.journal().submit_command(command, move |outcome| {
            if let Some(requeued) = for_completion.lock().take() {
                address.do_send(requeued(outcome.map_err(ServiceError::from)));
            }
        });
        if let Err(error) = submitted
            && let Some(requeued) = slot.lock().take()
        {
            context.notify(requeued(Err(error)));
        }
    }
}

impl Handler<Requeued> for DeliveryActor {
    type Result = ();

    fn handle(&mut self, requeued: Requeued, context: &mut Context<Self>) {
        let Requeued {
            delivery,
            taken,
            outcome,
            reply,
        } = requeued;
        let id = delivery.id;
        let Requeuing { ended, waiting } = self.requeuing.remove(&id).unwrap_or_default();
        if let (Err(_), Some(kept)) = (&outcome, taken) {
            self.recent.put_back(kept);
        }
        // In this order: the result of an attempt that was in flight ends nothing any more.
        for ended in ended {
            self.handle(ended, context);
        }
        read_again(waiting);
        let answer = outcome.map(|()| {
            self.handle(Queued(vec![id]), context);
            Some(Delivery {
                status: DeliveryStatus::Pending,
                ..delivery
            })
        });
        // Whoever asked may have gone.
        let _ = reply.send(answer);
    }
}

impl DeliveryActor {
    /// Who waits until the log has what it was given about a delivery.
    fn waiting_for_log(&mut self, id: ObjectId) -> Option<&mut Vec<oneshot::Sender<Redelivered>>> {
        if let Some(requeuing) = self.requeuing.get_mut(&id) {
            return Some(&mut requeuing.waiting);
        }
        self.unrecorded
            .get_mut(&id)
            .map(|unrecorded| &mut unrecorded.waiting)
    }
}
