//! How much each organization owes its receivers, kept with every change; what it owes longest; and the bodies that its
//! deliveries share.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::body::{Body, EventBody};
use super::delivery::Delivery;
use super::webhook::Event;
use crate::ids::ObjectId;

/// Deliveries that are owed, and the memory they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwedFigures {
    pub deliveries: u64,
    /// Bytes, bodies included: one that is shared counts once.
    pub bytes: u64,
}

/// Which deliveries make room for triggers first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Other,
    Trigger,
}

/// By rank, then oldest first.
type Turn = (Rank, i64, ObjectId);

#[derive(Default)]
struct OfOrganization {
    turns: BTreeSet<Turn>,
    bytes: u64,
}

/// A body, and the owed deliveries that share it.
struct Held {
    body: Arc<EventBody>,
    deliveries: usize,
}

/// Everything that is owed, by organization.
#[derive(Default)]
pub(super) struct Owed {
    organizations: HashMap<ObjectId, OfOrganization>,
    events: HashMap<ObjectId, Held>,
    bytes: u64,
}

impl Owed {
    /// What an organization owes.
    pub fn of(&self, organization_id: ObjectId) -> OwedFigures {
        let found = self.organizations.get(&organization_id);
        found.map_or_else(OwedFigures::default, |it| OwedFigures {
            deliveries: it.turns.len() as u64,
            bytes: it.bytes,
        })
    }

    /// Bytes of what all organizations owe together.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The body of an event of which deliveries are owed.
    pub fn event(&self, id: ObjectId) -> Option<&Arc<EventBody>> {
        self.events.get(&id).map(|held| &held.body)
    }

    /// The bodies that owed deliveries share, in no order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &Arc<EventBody>> {
        self.events.values().map(|held| &held.body)
    }

    /// The delivery that makes room first; none of those that are to stay.
    pub fn first(&self, organization_id: ObjectId, stays: impl Fn(ObjectId) -> bool) -> Option<ObjectId> {
        let turns = &self.organizations.get(&organization_id)?.turns;
        turns.iter().map(|(_, _, id)| *id).find(|id| !stays(*id))
    }

    /// A delivery is owed from now on.
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

    /// The memory that an owed delivery takes has changed.
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

    /// A delivery is owed no longer. Answers the body it shared, when it was the last one.
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
