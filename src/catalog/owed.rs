//! Statistics of each organization's pending deliveries, updated with every change; the order in which they are dropped
//! to make room; and the bodies that they share.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::body::{Body, EventBody};
use super::delivery::Delivery;
use super::webhook::Event;
use crate::ids::ObjectId;

/// Number of pending deliveries and their memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwedFigures {
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

/// The order of dropping: by rank, then oldest first.
type Turn = (Rank, i64, ObjectId);

#[derive(Default)]
struct OfOrganization {
    turns: BTreeSet<Turn>,
    bytes: u64,
}

/// A body, and the number of pending deliveries that share it.
struct Held {
    body: Arc<EventBody>,
    deliveries: usize,
}

/// All pending deliveries, by organization.
#[derive(Default)]
pub(super) struct Owed {
    organizations: HashMap<ObjectId, OfOrganization>,
    events: HashMap<ObjectId, Held>,
    bytes: u64,
}

impl Owed {
    /// The pending deliveries of an organization.
    pub fn of(&self, organization_id: ObjectId) -> OwedFigures {
        let found = self.organizations.get(&organization_id);
        found.map_or_else(OwedFigures::default, |it| OwedFigures {
            deliveries: it.turns.len() as u64,
            bytes: it.bytes,
        })
    }

    /// Memory of the pending deliveries of all organizations, in bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The body of an event that has pending deliveries.
    pub fn event(&self, id: ObjectId) -> Option<&Arc<EventBody>> {
        self.events.get(&id).map(|held| &held.body)
    }

    /// The bodies that pending deliveries share, in no particular order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &Arc<EventBody>> {
        self.events.values().map(|held| &held.body)
    }

    /// The delivery to drop first, except those that must stay.
    pub fn first(&self, organization_id: ObjectId, stays: impl Fn(ObjectId) -> bool) -> Option<ObjectId> {
        let turns = &self.organizations.get(&organization_id)?.turns;
        turns.iter().map(|(_, _, id)| *id).find(|id| !stays(*id))
    }

    /// Adds a pending delivery.
    pub fn add(&mut self, delivery: &Delivery) {
        let mut bytes = delivery.owed_bytes();
        if let Body::Shared(body) = &delivery.body {
            let held = self.events.entry(body.id).or_insert_with(|| {
                bytes += body.bytes();
                Held {
                    body: Arc::clone(body),
                    deliveries: 0,
                }
            });
            held.deliveries += 1;
        }
        self.bytes += bytes as u64;
        if let Some(organization_id) = delivery.organization_id {
            let of = self.organizations.entry(organization_id).or_default();
            of.turns.insert(turn(delivery));
            of.bytes += bytes as u64;
        }
    }

    /// Updates the memory of a pending delivery that has changed.
    pub fn resize(&mut self, delivery: &Delivery, before: usize) {
        let after = delivery.owed_bytes() as u64;
        self.bytes = self.bytes + after - before as u64;
        if let Some(of) = delivery
            .organization_id
            .and_then(|id| self.organizations.get_mut(&id))
        {
            of.bytes = of.bytes + after - before as u64;
        }
    }

    /// Removes a pending delivery. Returns the body that it shared, if it was the last one.
    pub fn remove(&mut self, delivery: &Delivery) -> Option<Arc<EventBody>> {
        let mut bytes = delivery.owed_bytes();
        let mut last = None;
        if let Body::Shared(body) = &delivery.body
            && let Some(held) = self.events.get_mut(&body.id)
        {
            held.deliveries -= 1;
            if held.deliveries == 0 {
                bytes += body.bytes();
                last = self.events.remove(&body.id).map(|held| held.body);
            }
        }
        self.bytes -= bytes as u64;
        if let Some(organization_id) = delivery.organization_id
            && let Some(of) = self.organizations.get_mut(&organization_id)
        {
            of.turns.remove(&turn(delivery));
            of.bytes -= bytes as u64;
            if of.turns.is_empty() {
                self.organizations.remove(&organization_id);
            }
        }
        last
    }
}

fn turn(delivery: &Delivery) -> Turn {
    let rank = match delivery.event {
        Event::AlertTriggered => Rank::Trigger,
        Event::BucketUpdated | Event::DataReceived | Event::WebhookTest => Rank::Other,
    };
    (rank, delivery.created_at_ns, delivery.id)
}
