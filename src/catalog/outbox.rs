//! Webhooks and pending deliveries.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::body::EventBody;
use super::delivery::Delivery;
use super::owed::Owed;
use super::webhook::Webhook;
use crate::ids::ObjectId;

/// Webhooks by id and organization; pending deliveries by id and receiver.
#[derive(Default)]
pub(super) struct Outbox {
    webhooks: HashMap<ObjectId, WebhookEntry>,
    /// Oldest first.
    by_organization: HashMap<ObjectId, Vec<ObjectId>>,
    pending: HashMap<ObjectId, Arc<Delivery>>,
    /// Receiver's owner, time of creation, id.
    by_owner: BTreeSet<(ObjectId, i64, ObjectId)>,
    /// Counts of pending deliveries per organization.
    owed: Owed,
    /// Ordinal of the newest webhook.
    pub last_webhook_ordinal: u64,
}

pub(super) struct WebhookEntry {
    /// Position in the order of creation, among all webhooks.
    pub ordinal: u64,
    pub webhook: Arc<Webhook>,
}

impl Outbox {
    pub fn webhook(&self, id: ObjectId) -> Option<&Arc<Webhook>> {
        self.webhooks.get(&id).map(|entry| &entry.webhook)
    }

    /// Oldest first.
    pub fn webhooks_of(&self, organization_id: ObjectId) -> impl Iterator<Item = &WebhookEntry> {
        self.by_organization
            .get(&organization_id)
            .into_iter()
            .flatten()
            .filter_map(|id| self.webhooks.get(id))
    }

    /// Adds a webhook as the newest one, or replaces it by a new version.
    pub fn insert_webhook(&mut self, webhook: Webhook) {
        let ordinal = match self.webhooks.get(&webhook.id) {
            Some(known) => known.ordinal,
            None => {
                self.last_webhook_ordinal += 1;
                self.last_webhook_ordinal
            }
        };
        self.restore_webhook(ordinal, Arc::new(webhook));
    }

    /// Adds a webhook that has an ordinal already. It must be greater than those of all webhooks added before.
    pub fn restore_webhook(&mut self, ordinal: u64, webhook: Arc<Webhook>) {
        let of_organization = self.by_organization.entry(webhook.organization_id).or_default();
        if !self.webhooks.contains_key(&webhook.id) {
            of_organization.push(webhook.id);
        }
        self.webhooks
            .insert(webhook.id, WebhookEntry { ordinal, webhook });
    }

    pub fn change_webhook(&mut self, id: ObjectId, change: impl FnOnce(&mut Webhook)) {
        if let Some(entry) = self.webhooks.get_mut(&id) {
            change(Arc::make_mut(&mut entry.webhook));
        }
    }

    /// Removes a webhook and its pending deliveries. Returns it, and the bodies that no pending delivery shares any
    /// more.
    pub fn remove_webhook(&mut self, id: ObjectId) -> Option<(Arc<Webhook>, Vec<Arc<EventBody>>)> {
        let WebhookEntry { webhook, .. } = self.webhooks.remove(&id)?;
        if let Some(ids) = self.by_organization.get_mut(&webhook.organization_id) {
            ids.retain(|other| *other != id);
        }
        let owed: Vec<_> = self.pending_of(id).map(|delivery| delivery.id).collect();
        let bodies = owed.into_iter().filter_map(|id| self.take(id)?.1);
        let bodies = bodies.collect();
        Some((webhook, bodies))
    }

    pub fn webhook_count(&self, organization_id: ObjectId) -> usize {
        self.by_organization.get(&organization_id).map_or(0, Vec::len)
    }

    /// Counts of pending deliveries per organization.
    pub fn owed(&self) -> &Owed {
        &self.owed
    }

    pub fn pending(&self) -> impl ExactSizeIterator<Item = &Arc<Delivery>> {
        self.pending.values()
    }

    pub fn pending_delivery(&self, id: ObjectId) -> Option<&Arc<Delivery>> {
        self.pending.get(&id)
    }

    /// Oldest first.
    pub fn pending_of(&self, owner: ObjectId) -> impl DoubleEndedIterator<Item = &Arc<Delivery>> {
        let first = (owner, i64::MIN, ObjectId::from_bytes([0; 12]));
        let last = (owner, i64::MAX, ObjectId::from_bytes([u8::MAX; 12]));
        self.by_owner
            .range(first..=last)
            .filter_map(|(_, _, id)| self.pending.get(id))
    }

    /// Adds a pending delivery or replaces it by a new version. Returns the body that the old version shared, if no
    /// pending delivery shares it any more.
    pub fn owe(&mut self, delivery: Arc<Delivery>) -> Option<Arc<EventBody>> {
        let known = self.pending.get(&delivery.id);
        let released = known.and_then(|known| self.owed.remove(known));
        self.owed.add(&delivery);
        self.by_owner
            .insert((delivery.receiver.owner(), delivery.created_at_ns, delivery.id));
        self.pending.insert(delivery.id, delivery);
        released.filter(|body| self.owed.event(body.id).is_none())
    }

    pub fn change(&mut self, id: ObjectId, change: impl FnOnce(&mut Delivery)) {
        if let Some(delivery) = self.pending.get_mut(&id) {
            let before = delivery.owed_bytes();
            change(Arc::make_mut(delivery));
            self.owed.resize(delivery, before);
        }
    }

    /// Removes a pending delivery. Also returns its shared body, if no pending delivery shares it any more.
    pub fn take(&mut self, id: ObjectId) -> Option<(Arc<Delivery>, Option<Arc<EventBody>>)> {
        let delivery = self.pending.remove(&id)?;
        self.by_owner
            .remove(&(delivery.receiver.owner(), delivery.created_at_ns, id));
        let body = self.owed.remove(&delivery);
        Some((delivery, body))
    }
}
