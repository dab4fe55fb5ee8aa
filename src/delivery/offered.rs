//! What is offered becomes deliveries, as far as the webhooks' queues can take them: `data.received`.

use std::sync::Arc;

use actix::{Handler, Message};

use super::actor::DeliveryActor;
use super::handle::Hold;
use super::points::NewPoints;
use super::recent::PER_WEBHOOK_MAX;
use super::schedule::{Class, ReceiverKey};
use crate::catalog::Webhook;

/// Points that webhooks may hear of.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Offered {
    pub(super) points: NewPoints,
    /// Their bytes of the mailbox's bound.
    pub(super) hold: Hold,
}

impl Handler<Offered> for DeliveryActor {
    type Result = ();

    fn handle(&mut self, Offered { points, hold }: Offered, context: &mut Self::Context) {
        drop(hold);
        let webhooks = self.catalog(|catalog| points.hearers(catalog));
        for webhook in webhooks {
            self.tell(&points, webhook);
        }
        self.go_on(context);
    }
}

impl DeliveryActor {
    /// Has a webhook told of new points, as far as its queue can take them.
    fn tell(&mut self, points: &NewPoints, webhook: Arc<Webhook>) {
        let receiver = ReceiverKey::Webhook(webhook.id);
        let (sources, now) = (points.rows.len(), self.now());
        let room = PER_WEBHOOK_MAX.saturating_sub(self.schedule.len_of(&receiver));
        let told = self.pace.take(webhook.id, sources, room, now);
        self.counters.dropped(sources - told);
        // Where not all sources can be told of, the first is another one each time.
        let first = if told < sources { self.tellings } else { 0 };
        self.tellings = self.tellings.wrapping_add(told);
        for index in (0..told).map(|index| first.wrapping_add(index) % sources) {
            // A source that has been deleted meanwhile is not told of.
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
