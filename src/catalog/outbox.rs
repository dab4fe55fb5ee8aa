//! Pending deliveries, with what is known of them without a scan: the counts of each organization, the order in which
//! they are dropped to make room, and the bodies that they share.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{Body, Delivery, EventBody};
use crate::ids::ObjectId;

/// Number of pending deliveries and their memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingTotals {
    pub deliveries: u64,
    /// In bytes, including bodies. A shared body counts once.
    pub bytes: u64,
}

#[derive(Default)]
struct OfOrganization {
    /// In the order of dropping, to make room: events that are always owed last, then oldest first.
    dropping: BTreeSet<(bool, i64, ObjectId)>,
    bytes: u64,
}

/// All pending deliveries.
#[derive(Default)]
pub(super) struct Outbox {
    pending: HashMap<ObjectId, Arc<Delivery>>,
    /// Receiver's owner, time of creation, id.
    by_owner: BTreeSet<(ObjectId, i64, ObjectId)>,
    organizations: HashMap<ObjectId, OfOrganization>,
    /// Shared bodies, each with the number of pending deliveries that share it.
    events: HashMap<ObjectId, (Arc<EventBody>, usize)>,
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
        self.events.get(&id).map(|(body, _)| body)
    }

    /// The bodies that deliveries share, in no particular order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &Arc<EventBody>> {
        self.events.values().map(|(body, _)| body)
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
            let (_, deliveries) = self.events.entry(body.id).or_insert_with(|| {
                bytes += body.bytes();
                (Arc::clone(body), 0)
            });
            *deliveries += 1;
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

    pub fn change(&mut self, id: ObjectId, change: impl FnOnce(&mut Delivery)) {
        if let Some((mut delivery, _)) = self.remove(id) {
            change(Arc::make_mut(&mut delivery));
            self.insert(delivery);
        }
    }

    /// Removes a delivery. Also returns its shared body, if no pending delivery shares it any more.
    pub fn remove(&mut self, id: ObjectId) -> Option<(Arc<Delivery>, Option<Arc<EventBody>>)> {
        let delivery = self.pending.remove(&id)?;
        self.by_owner.remove(&owner_key(&delivery));
        let mut bytes = delivery.owed_bytes();
        let mut released = None;
        if let Body::Shared(body) = &delivery.body
            && let Some((_, deliveries)) = self.events.get_mut(&body.id)
        {
            *deliveries -= 1;
            if *deliveries == 0 {
                bytes += body.bytes();
                released = self.events.remove(&body.id).map(|(body, _)| body);
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

fn dropping_key(delivery: &Delivery) -> (bool, i64, ObjectId) {
    (
        delivery.event.is_always_owed(),
        delivery.created_at_ns,
        delivery.id,
    )
}
