//! Redelivery. The actor decides it, because attempts end there: the delivery is requeued in its latest state, so no
//! attempt is missing from its record and it counts once.

use std::sync::Arc;

use actix::{AsyncContext, Context};
use tokio::sync::oneshot;

use super::actor::{DeliveryActor, DeliveryMessage, Ended};
use super::recent::Kept;
use crate::catalog::{Body, Command, Delivery, DeliveryStatus};
use crate::error::ServiceError;
use crate::ids::ObjectId;

/// The delivery, which is owed now. `None` if it has changed since it was read and must be read again.
pub(super) type Redelivered = Result<Option<Delivery>, ServiceError>;

/// A redelivery that is not in the log yet.
#[derive(Default)]
pub(super) struct Requeuing {
    /// Attempts that ended in the meantime.
    pub ended: Vec<Ended>,
    /// Callers that asked for the same redelivery in the meantime.
    pub waiting: Vec<oneshot::Sender<Redelivered>>,
}

/// Tells these callers to read the delivery again.
pub(super) fn read_again(waiting: Vec<oneshot::Sender<Redelivered>>) {
    for reply in waiting {
        // The caller may be gone.
        let _ = reply.send(Ok(None));
    }
}

impl DeliveryActor {
    /// See [`DeliveryMessage::Redeliver`].
    pub(super) fn redeliver(
        &mut self,
        known: Delivery,
        reply: oneshot::Sender<Redelivered>,
        context: &mut Context<Self>,
    ) {
        let id = known.id;
        if let Some(waiting) = self.waiting_for_log(id) {
            return waiting.push(reply);
        }
        let taken = self.shared.recent.take(id);
        let owed = self.catalog(|catalog| catalog.pending_delivery(id).cloned());
        let found = match (&taken, owed) {
            (Some(kept), _) => kept.as_counted(),
            (None, Some(owed)) => Arc::unwrap_or_clone(owed),
            (None, None) if known.status != DeliveryStatus::Pending => known,
            (None, None) => return read_again(vec![reply]),
        };
        // The delivery needs its own copy of the body, because no other delivery of the event may be left.
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
        let address = context.address();
        self.shared.journal.submit_command(command, move |outcome| {
            address.do_send(DeliveryMessage::Requeued {
                id,
                taken,
                outcome: outcome.map(|()| delivery).map_err(ServiceError::from),
                reply,
            });
        });
    }

    /// See [`DeliveryMessage::Requeued`].
    pub(super) fn requeued(
        &mut self,
        id: ObjectId,
        taken: Option<Kept>,
        outcome: Result<Delivery, ServiceError>,
        reply: oneshot::Sender<Redelivered>,
        context: &mut Context<Self>,
    ) {
        let Requeuing { ended, waiting } = self.requeuing.remove(&id).unwrap_or_default();
        if let (Err(_), Some(kept)) = (&outcome, taken) {
            self.shared.recent.put_back(kept);
        }
        if outcome.is_ok() && self.schedule.is_in_flight(id) {
            self.redelivered.insert(id);
        }
        // Before it is queued: the delivery must not be in flight any more to be scheduled at once.
        for ended in ended {
            self.ended(ended, context);
        }
        read_again(waiting);
        if outcome.is_err()
            && let Some(delivery) = self.shared.recent.get(id)
            && delivery.status == DeliveryStatus::Pending
            && !self.schedule.contains(id)
        {
            // It came due while the log was asked, and was not found.
            self.schedule_best_effort(&delivery, self.now());
            self.go_on(context);
        }
        let answer = outcome.map(|delivery| {
            self.queue(&[id], context);
            Some(Delivery {
                status: DeliveryStatus::Pending,
                ..delivery
            })
        });
        // The caller may be gone.
        let _ = reply.send(answer);
    }

    /// The callers that wait for a pending log record about this delivery, if there is one.
    fn waiting_for_log(&mut self, id: ObjectId) -> Option<&mut Vec<oneshot::Sender<Redelivered>>> {
        if let Some(requeuing) = self.requeuing.get_mut(&id) {
            return Some(&mut requeuing.waiting);
        }
        self.unrecorded
            .get_mut(&id)
            .map(|unrecorded| &mut unrecorded.waiting)
    }
}
