//! Turns new points into `data.received` deliveries, as far as the webhooks' queues have room.

use std::sync::Arc;

use actix::{Handler, Message};

use super::actor::DeliveryActor;
use super::handle::Hold;
use super::points::NewPoints;
use super::recent::PER_WEBHOOK_MAX;
use super::schedule::{Class, ReceiverKey};
use crate::catalog::Webhook;

/// New points that webhooks may subscribe to.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Offered {
    pub(super) points: NewPoints,
    /// Their reservation in the mailbox.
    pub(super) hold: Hold,
}

impl Handler<Offered> for DeliveryActor {
    type Result = ();

    fn handle(&mut self, Offered { points, hold }: Offered, context: &mut Self::Context) {
        drop(hold);
        let webhooks = self.catalog(|catalog| points.subscribers(catalog));
        for webhook in webhooks {
            self.tell(&points, webhook);
        }
        self.go_on(context);
    }
}

impl DeliveryActor {
    /// Queues deliveries of new points to a webhook, up to what its queue can take.
    fn tell(&mut self, points: &NewPoints, webhook: Arc<Webhook>) {
        let receiver = ReceiverKey::Webhook(webhook.id);
        let (sources, now) = (points.rows.len(), self.now());
        let room = PER_WEBHOOK_MAX.saturating_sub(self.schedule.len_of(&receiver));
        let told = self.pace.take(webhook.id, sources, room, now);
        self.counters.dropped(sources - told);
        // If not all sources fit, start with a different source each time.
        let first = if told < sources { self.best_effort_made } else { 0 };
        self.best_effort_made = self.best_effort_made.wrapping_add(told);
        for index in (0..told).map(|index| first.wrapping_add(index) % sources) {
            // Skip a source that was deleted in the meantime.
            let Some(source) = self.catalog(|catalog| points.source(catalog, index).cloned()) else {
                continue;
            };
            if let Some(delivery) = points.delivery(index, &source, &webhook, &self.ids) {
                self.schedule
                    .add(delivery.id, receiver.clone(), Class::BestEffort, now);
                let dropped = self.recent.keep(delivery);
                self.counters.dropped(dropped.len());
                dropped.into_iter().for_each(|id| self.schedule.remove(id));
            }
        }
    }
}
