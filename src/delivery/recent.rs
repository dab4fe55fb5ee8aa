//! Best-effort deliveries: the newest of every webhook, pending or finished, in memory only.
//!
//! Limited by deliveries per webhook and by total bytes. A delivery above a limit evicts the oldest one of its own
//! webhook, or of the webhook that uses the most memory, so a flood displaces only its own deliveries. A delivery in
//! flight is not evicted until its attempt has ended. The actor writes; requests that list deliveries read.

use std::collections::{BTreeSet, HashMap};
use std::mem::take;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::catalog::{AfterAttempt, Attempt, Delivery, DeliveryStatus, DeliveryTotals};
use crate::ids::ObjectId;

/// Maximum number of deliveries kept per webhook.
pub(super) const PER_WEBHOOK_MAX: usize = 1_000;
/// Maximum bytes kept for all webhooks together.
pub(super) const BYTES_MAX: usize = 16 << 20;
/// Estimated memory of a delivery besides its body, attempts included.
const OVERHEAD_BYTES: usize = 512;

/// Best-effort deliveries by webhook.
#[derive(Default)]
pub(super) struct Recent(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    kept: HashMap<ObjectId, Kept>,
    webhooks: HashMap<ObjectId, OfWebhook>,
    bytes: usize,
}

#[derive(Default)]
struct OfWebhook {
    /// Its deliveries, oldest first, because ids of one process increase.
    deliveries: BTreeSet<ObjectId>,
    bytes: usize,
    /// Finished deliveries that are not in the catalog's totals yet.
    uncounted: DeliveryTotals,
}

/// A best-effort delivery.
pub(super) struct Kept {
    delivery: Arc<Delivery>,
    in_flight: bool,
    /// Whether its result is in the catalog's totals.
    counted: bool,
}

impl Kept {
    /// The delivery as the catalog's totals see it: pending until it is counted there.
    pub fn as_counted(&self) -> Delivery {
        Delivery {
            status: if self.counted {
                self.delivery.status
            } else {
                DeliveryStatus::Pending
            },
            ..(*self.delivery).clone()
        }
    }

    /// What it adds to its webhook's totals, if it has ended and the catalog has not counted it.
    fn uncounted(&self) -> Option<DeliveryTotals> {
        let ended = !self.counted && self.delivery.status != DeliveryStatus::Pending;
        ended.then(|| {
            let delivered = self.delivery.status == DeliveryStatus::Delivered;
            DeliveryTotals {
                total: 1,
                successful: u64::from(delivered),
                failed: u64::from(!delivered),
                last_at_ns: self.delivery.attempts.last().map(Attempt::ended_at_ns),
                last_delivered: Some(delivered),
            }
        })
    }
}

impl Recent {
    /// Stores a new delivery. Returns the pending deliveries that were evicted.
    pub fn keep(&self, delivery: Delivery) -> Vec<ObjectId> {
        let webhook_id = delivery.receiver.owner();
        let kept = Kept {
            delivery: Arc::new(delivery),
            in_flight: false,
            counted: false,
        };
        let mut inner = self.0.lock();
        let of_webhook = inner.insert(kept);
        let mut dropped = Vec::new();
        if of_webhook.deliveries.len() > PER_WEBHOOK_MAX {
            inner.evict_oldest(webhook_id, &mut dropped);
        }
        while inner.bytes > BYTES_MAX
            && let Some(largest) = inner.largest()
            && inner.evict_oldest(largest, &mut dropped)
        {}
        dropped
    }

    /// Marks a delivery as in flight; `None` if it is not stored here.
    pub fn start(&self, id: ObjectId) -> Option<Arc<Delivery>> {
        let mut inner = self.0.lock();
        let kept = inner.kept.get_mut(&id)?;
        kept.in_flight = true;
        Some(Arc::clone(&kept.delivery))
    }

    /// Records the result of an attempt.
    pub fn end(&self, id: ObjectId, attempt: Attempt, then: AfterAttempt) {
        let inner = &mut *self.0.lock();
        let Some(kept) = inner.kept.get_mut(&id) else {
            return;
        };
        kept.in_flight = false;
        Arc::make_mut(&mut kept.delivery).attempted(attempt, then);
        if let Some(counted) = kept.uncounted()
            && let Some(of_webhook) = inner.webhooks.get_mut(&kept.delivery.receiver.owner())
        {
            of_webhook.uncounted.add(counted);
        }
    }

    /// Removes a delivery and what it added to the totals, because the catalog is to own it.
    pub fn take(&self, id: ObjectId) -> Option<Kept> {
        let mut inner = self.0.lock();
        let kept = inner.remove(id)?;
        if let Some(counted) = kept.uncounted()
            && let Some(of_webhook) = inner.webhooks.get_mut(&kept.delivery.receiver.owner())
        {
            let totals = &mut of_webhook.uncounted;
            totals.total -= counted.total;
            totals.successful -= counted.successful;
            totals.failed -= counted.failed;
        }
        Some(kept)
    }

    /// Stores a delivery again after the catalog refused it.
    pub fn put_back(&self, kept: Kept) {
        let counted = kept.uncounted();
        let mut inner = self.0.lock();
        let of_webhook = inner.insert(kept);
        if let Some(counted) = counted {
            of_webhook.uncounted.add(counted);
        }
    }

    /// Removes a delivery whose receiver was deleted.
    pub fn forget(&self, id: ObjectId) {
        self.0.lock().remove(id);
    }

    pub fn get(&self, id: ObjectId) -> Option<Arc<Delivery>> {
        let inner = self.0.lock();
        inner.kept.get(&id).map(|kept| Arc::clone(&kept.delivery))
    }

    /// The deliveries of a webhook, newest first.
    pub fn list(&self, webhook_id: ObjectId) -> Vec<Arc<Delivery>> {
        let inner = self.0.lock();
        let newest_first = inner.of_webhook(webhook_id).rev();
        newest_first.map(|kept| Arc::clone(&kept.delivery)).collect()
    }

    /// Totals that the catalog does not have yet. Pending deliveries count in `total`.
    pub fn uncounted(&self, webhook_id: ObjectId) -> DeliveryTotals {
        let inner = self.0.lock();
        let Some(of_webhook) = inner.webhooks.get(&webhook_id) else {
            return DeliveryTotals::default();
        };
        let mut totals = of_webhook.uncounted;
        let pending = |kept: &&Kept| kept.delivery.status == DeliveryStatus::Pending;
        totals.total += inner.of_webhook(webhook_id).filter(pending).count() as u64;
        totals
    }

    /// Takes the counts to add to the catalog's totals. Drops the deliveries of deleted webhooks.
    pub fn take_uncounted(&self, exists: impl Fn(ObjectId) -> bool) -> Vec<(ObjectId, DeliveryTotals)> {
        let inner = &mut *self.0.lock();
        for (_, gone) in inner.webhooks.extract_if(|id, _| !exists(*id)) {
            inner.bytes -= gone.bytes;
            gone.deliveries.iter().for_each(|id| drop(inner.kept.remove(id)));
        }
        for kept in inner.kept.values_mut() {
            kept.counted |= kept.delivery.status != DeliveryStatus::Pending;
        }
        let webhooks = inner.webhooks.iter_mut();
        let uncounted = webhooks.map(|(id, of)| (*id, &mut of.uncounted));
        let uncounted = uncounted.filter(|(_, uncounted)| uncounted.total > 0);
        uncounted.map(|(id, uncounted)| (id, take(uncounted))).collect()
    }

    /// Returns counts that could not be added. (A delivery that is redelivered before they are added counts twice.)
    pub fn give_back(&self, counts: Vec<(ObjectId, DeliveryTotals)>) {
        let mut inner = self.0.lock();
        for (id, counted) in counts {
            if let Some(of_webhook) = inner.webhooks.get_mut(&id) {
                of_webhook.uncounted.add(counted);
            }
        }
    }
}

impl Inner {
    /// Stores a delivery with those of its webhook, which are returned.
    fn insert(&mut self, kept: Kept) -> &mut OfWebhook {
        let (webhook_id, id, bytes) = (
            kept.delivery.receiver.owner(),
            kept.delivery.id,
            bytes_of(&kept.delivery),
        );
        self.kept.insert(id, kept);
        self.bytes += bytes;
        let of_webhook = self.webhooks.entry(webhook_id).or_default();
        of_webhook.bytes += bytes;
        of_webhook.deliveries.insert(id);
        of_webhook
    }

    /// Removes the oldest delivery of a webhook that is not in flight. Returns whether there was one.
    fn evict_oldest(&mut self, webhook_id: ObjectId, dropped: &mut Vec<ObjectId>) -> bool {
        let oldest = self.of_webhook(webhook_id).find(|kept| !kept.in_flight);
        let Some(id) = oldest.map(|kept| kept.delivery.id) else {
            return false;
        };
        let removed = self.remove(id);
        if removed.is_some_and(|removed| removed.delivery.status == DeliveryStatus::Pending) {
            dropped.push(id);
        }
        true
    }

    /// The deliveries of a webhook, oldest first.
    fn of_webhook(&self, webhook_id: ObjectId) -> impl DoubleEndedIterator<Item = &Kept> {
        let deliveries = self.webhooks.get(&webhook_id).map(|of| &of.deliveries);
        let ids = deliveries.into_iter().flatten();
        ids.filter_map(|id| self.kept.get(id))
    }

    fn remove(&mut self, id: ObjectId) -> Option<Kept> {
        let removed = self.kept.remove(&id)?;
        let bytes = bytes_of(&removed.delivery);
        self.bytes -= bytes;
        let of_webhook = self.webhooks.get_mut(&removed.delivery.receiver.owner())?;
        of_webhook.deliveries.remove(&id);
        of_webhook.bytes -= bytes;
        Some(removed)
    }

    fn largest(&self) -> Option<ObjectId> {
        let largest = self.webhooks.iter().max_by_key(|(_, of)| of.bytes)?;
        Some(*largest.0)
    }
}

fn bytes_of(delivery: &Delivery) -> usize {
    delivery.body.own_bytes() + OVERHEAD_BYTES
}
