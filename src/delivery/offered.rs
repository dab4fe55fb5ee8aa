//! Turns new points into `data.received` deliveries, as far as the webhooks' queues have room.

use std::sync::Arc;

use actix::{Handler, Message};
use tokio::sync::OwnedSemaphorePermit;

use super::actor::DeliveryActor;
use super::points::{NewPoints, subscribers};
use super::recent::PER_WEBHOOK_MAX;
use super::schedule::{Class, ReceiverKey};
use crate::catalog::Webhook;

/// New points that webhooks may subscribe to.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Offered {
    pub(super) points: NewPoints,
    /// Their bytes in the mailbox.
    pub(super) reserved: OwnedSemaphorePermit,
}

impl Handler<Offered> for DeliveryActor {
    type Result = ();

    fn handle(&mut self, Offered { points, reserved }: Offered, context: &mut Self::Context) {
        drop(reserved);
        let webhooks: Vec<_> = self.catalog(|catalog| {
            let subscribers = subscribers(catalog, points.organization_id, points.bucket_id);
            subscribers.cloned().collect()
        });
        for webhook in webhooks {
            self.make_deliveries(&points, webhook);
        }
        self.go_on(context);
    }
}

impl DeliveryActor {
    /// Queues deliveries of new points to a webhook, up to what its queue can take.
    fn make_deliveries(&mut self, points: &NewPoints, webhook: Arc<Webhook>) {
        let receiver = ReceiverKey::Webhook(webhook.id);
        let (sources, now) = (points.rows.rows().len(), self.now());
        let room = PER_WEBHOOK_MAX.saturating_sub(self.schedule.len_of(&receiver));
        let made = self.pace.take(webhook.id, sources, room, now);
        self.shared.counters.dropped(sources - made);
        // If not all sources fit, start with a different source each time.
        let first = if made < sources { self.best_effort_made } else { 0 };
        self.best_effort_made = self.best_effort_made.wrapping_add(made);
        for index in (0..made).map(|index| first.wrapping_add(index) % sources) {
            // Skip a source that was deleted in the meantime.
            let Some(source) = self.catalog(|catalog| points.source(catalog, index).cloned()) else {
                continue;
            };
            if let Some(delivery) = points.delivery(index, &source, &webhook, &self.ids) {
                self.schedule
                    .add(delivery.id, receiver.clone(), Class::BestEffort, now);
                let dropped = self.shared.recent.keep(delivery);
                self.shared.counters.dropped(dropped.len());
                dropped.into_iter().for_each(|id| self.schedule.remove(id));
            }
        }
    }
}
