//! Turns new points into `data.received` deliveries, as far as the webhooks' queues have room.

use actix::Context;

use super::actor::DeliveryActor;
use super::points::{NewPoints, subscribers};
use super::recent::PER_WEBHOOK_MAX;
use super::schedule::ReceiverKey;
use crate::catalog::Webhook;

impl DeliveryActor {
    /// Makes deliveries of new points that webhooks may subscribe to.
    pub(super) fn notify(&mut self, points: &NewPoints, context: &mut Context<Self>) {
        let webhooks: Vec<_> = self.catalog(|catalog| {
            let subscribers = subscribers(catalog, points.organization_id, points.bucket_id);
            subscribers.cloned().collect()
        });
        for webhook in &webhooks {
            self.make_deliveries(points, webhook);
        }
        self.go_on(context);
    }

    /// Queues deliveries of new points to a webhook, up to what its queue can take.
    fn make_deliveries(&mut self, points: &NewPoints, webhook: &Webhook) {
        let (sources, now) = (points.rows.rows().len(), self.now());
        let room = PER_WEBHOOK_MAX.saturating_sub(self.schedule.len_of(&ReceiverKey::Webhook(webhook.id)));
        let made = self.pace.take(webhook.id, sources, room, now);
        self.shared.stats.lock().dropped += (sources - made) as u64;
        // If not all sources fit, start with a different source each time.
        let first = if made < sources { self.best_effort_made } else { 0 };
        self.best_effort_made = self.best_effort_made.wrapping_add(made);
        for index in (0..made).map(|index| first.wrapping_add(index) % sources) {
            // Skip a source that was deleted in the meantime.
            let Some(source) = self.catalog(|catalog| points.source(catalog, index).cloned()) else {
                continue;
            };
            if let Some(delivery) = points.delivery(index, &source, webhook, &self.ids) {
                self.schedule_best_effort(&delivery, now);
                let dropped = self.shared.recent.keep(delivery);
                self.shared.stats.lock().dropped += dropped.len() as u64;
                dropped.into_iter().for_each(|id| self.schedule.remove(id));
            }
        }
    }
}
