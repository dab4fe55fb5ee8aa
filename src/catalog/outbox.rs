//! Pending deliveries, with what is known of them without a scan: the counts of each organization, the order in which
//! they are dropped to make room, and the bodies that they share.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::body::{Body, EventBody};
use super::delivery::Delivery;
use super::webhook::Event;
use crate::ids::ObjectId;

/// Number of pending deliveries and their memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingTotals {
    pub deliveries: u64,
    /// In bytes, including bodies. A shared body counts once.
    pub bytes: u64,
}

/// The order in which deliveries are dropped to make room for triggers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Other,
    Trigger,
}

#[derive(Default)]
struct OfOrganization {
    /// In the order of dropping: by rank, then oldest first.
    dropping: BTreeSet<(Rank, i64, ObjectId)>,
    bytes: u64,
}

/// A body, and the number of pending deliveries that share it.
struct SharedBody {
    body: Arc<EventBody>,
    deliveries: usize,
}

/// All pending deliveries.
#[derive(Default)]
pub(super) struct Outbox {
    pending: HashMap<ObjectId, Arc<Delivery>>,
    /// Receiver's owner, time of creation, id.
    by_owner: BTreeSet<(ObjectId, i64, ObjectId)>,
    organizations: HashMap<ObjectId, OfOrganization>,
    events: HashMap<ObjectId, SharedBody>,
    bytes: u64,
}

impl Outbox {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Delivery>> {
        self.pending.values()
    }

    pub fn get(&self, id: ObjectId) -> Option<&Arc<Delivery>> {
        self.pending.get(&id)
    }

    /// The deliveries of a webhook or a rule, oldest first.
    pub fn of_owner(&self, owner: ObjectId) -> impl DoubleEndedIterator<Item = &Arc<Delivery>> {
        let first = (owner, i64::MIN, ObjectId::from_bytes([0; 12]));
        let last = (owner, i64::MAX, ObjectId::from_bytes([u8::MAX; 12]));
        let ids = self.by_owner.range(first..=last);
        ids.filter_map(|(_, _, id)| self.pending.get(id))
    }

    /// The counts of an organization.
    pub fn figures_of(&self, organization_id: ObjectId) -> PendingTotals {
        let found = self.organizations.get(&organization_id);
        found.map_or_else(PendingTotals::default, |it| PendingTotals {
            deliveries: it.dropping.len() as u64,
            bytes: it.bytes,
        })
    }

    /// Memory of the deliveries of all organizations, in bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The body of an event that has pending deliveries.
    pub fn event(&self, id: ObjectId) -> Option<&Arc<EventBody>> {
        self.events.get(&id).map(|shared| &shared.body)
    }

    /// The bodies that deliveries share, in no particular order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &Arc<EventBody>> {
        self.events.values().map(|shared| &shared.body)
    }

    /// The delivery to drop first, except those that must stay.
    pub fn first_to_drop(
        &self,
        organization_id: ObjectId,
        stays: impl Fn(ObjectId) -> bool,
    ) -> Option<ObjectId> {
        let dropping = &self.organizations.get(&organization_id)?.dropping;
        dropping.iter().map(|(_, _, id)| *id).find(|id| !stays(*id))
    }

    /// Inserts a delivery or replaces it by a new version. Returns the body that the old version shared, if no pending
    /// delivery shares it any more.
    pub fn insert(&mut self, delivery: Arc<Delivery>) -> Option<Arc<EventBody>> {
        let released = self.remove(delivery.id).and_then(|(_, body)| body);
        let mut bytes = delivery.owed_bytes();
        if let Body::Shared(body) = &delivery.body {
            let shared = self.events.entry(body.id).or_insert_with(|| {
                bytes += body.bytes();
                SharedBody {
                    body: Arc::clone(body),
                    deliveries: 0,
                }
            });
            shared.deliveries += 1;
        }
        self.bytes += bytes as u64;
        if let Some(organization_id) = delivery.organization_id {
            let organization = self.organizations.entry(organization_id).or_default();
            organization.dropping.insert(dropping_key(&delivery));
            organization.bytes += bytes as u64;
        }
        self.by_owner.insert(owner_key(&delivery));
        self.pending.insert(delivery.id, delivery);
        released.filter(|body| self.event(body.id).is_none())
    }

    /// Changes members of a delivery that no index depends on.
    pub fn change(&mut self, id: ObjectId, change: impl FnOnce(&mut Delivery)) {
        let Some(delivery) = self.pending.get_mut(&id) else {
            return;
        };
        let before = delivery.owed_bytes() as u64;
        change(Arc::make_mut(delivery));
        let after = delivery.owed_bytes() as u64;
        self.bytes = self.bytes + after - before;
        let organization_id = delivery.organization_id;
        if let Some(organization) = organization_id.and_then(|id| self.organizations.get_mut(&id)) {
            organization.bytes = organization.bytes + after - before;
        }
    }

    /// Removes a delivery. Also returns its shared body, if no pending delivery shares it any more.
    pub fn remove(&mut self, id: ObjectId) -> Option<(Arc<Delivery>, Option<Arc<EventBody>>)> {
        let delivery = self.pending.remove(&id)?;
        self.by_owner.remove(&owner_key(&delivery));
        let mut bytes = delivery.owed_bytes();
        let mut released = None;
        if let Body::Shared(body) = &delivery.body
            && let Some(shared) = self.events.get_mut(&body.id)
        {
            shared.deliveries -= 1;
            if shared.deliveries == 0 {
                bytes += body.bytes();
                released = self.events.remove(&body.id).map(|shared| shared.body);
            }
        }
        self.bytes -= bytes as u64;
        if let Some(organization_id) = delivery.organization_id
            && let Some(organization) = self.organizations.get_mut(&organization_id)
        {
            organization.dropping.remove(&dropping_key(&delivery));
            organization.bytes -= bytes as u64;
            if organization.dropping.is_empty() {
                self.organizations.remove(&organization_id);
            }
        }
        Some((delivery, released))
    }
}

fn owner_key(delivery: &Delivery) -> (ObjectId, i64, ObjectId) {
    (delivery.receiver.owner(), delivery.created_at_ns, delivery.id)
}

fn dropping_key(delivery: &Delivery) -> (Rank, i64, ObjectId) {
    let rank = match delivery.event {
        Event::AlertTriggered => Rank::Trigger,
        Event::BucketUpdated | Event::DataReceived | Event::WebhookTest => Rank::Other,
    };
    (rank, delivery.created_at_ns, delivery.id)
}
