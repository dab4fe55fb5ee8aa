//! What an event owes, as commands carry it: what several webhooks are told is in a command once.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::body::{Body, EventBody};
use super::delivery::{Delivery, DeliveryStatus, Receiver};
use super::webhook::Event;
use crate::ids::ObjectId;

/// An event that several webhooks are told of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FanOut {
    /// What happened.
    pub event: Event,
    /// What all of them are told.
    pub body: Arc<EventBody>,
    /// Of each delivery: the webhook, its own id, and the id that the receiver knows it by.
    pub deliveries: Vec<(ObjectId, ObjectId, ObjectId)>,
}

impl FanOut {
    /// The deliveries, due at once.
    pub(super) fn deliveries(&self) -> impl Iterator<Item = Delivery> {
        self.deliveries.iter().map(|(webhook, id, webhook_id)| Delivery {
            id: *id,
            webhook_id: *webhook_id,
            receiver: Receiver::Webhook(*webhook),
            event: self.event,
            body: Body::Shared(Arc::clone(&self.body)),
            created_at_ns: self.body.created_at_ns,
            status: DeliveryStatus::Pending,
            attempts: Vec::new(),
            tries: 0,
            next_attempt_at_ns: Some(self.body.created_at_ns),
            again: false,
            organization_id: Some(self.body.organization_id),
        })
    }
}

/// What an event owes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Owing {
    /// Deliveries with a body of their own.
    pub deliveries: Vec<Delivery>,
    /// Those that share one.
    pub fan_out: Option<FanOut>,
    /// What older deliveries make room for, see [`OwedRoom`].
    pub room: Option<OwedRoom>,
}

impl Owing {
    /// Of a few deliveries, each with a body of its own.
    pub fn of(deliveries: Vec<Delivery>) -> Self {
        Self {
            deliveries,
            ..Self::default()
        }
    }

    /// Ids of all deliveries.
    pub fn ids(&self) -> Vec<ObjectId> {
        let shared = self.fan_out.iter().flat_map(|fan_out| &fan_out.deliveries);
        let own = self.deliveries.iter().map(|delivery| delivery.id);
        own.chain(shared.map(|(_, id, _)| *id)).collect()
    }

    /// How many deliveries, and the memory that they take, in bytes.
    pub fn size(&self) -> (u64, u64) {
        let own: usize = self.deliveries.iter().map(Delivery::owed_bytes).sum();
        let (shared, bytes) = self.fan_out.as_ref().map_or((0, 0), |fan_out| {
            let one = fan_out.deliveries().next().map_or(0, |one| one.owed_bytes());
            let count = fan_out.deliveries.len();
            (count, fan_out.body.bytes() + count * one)
        });
        let count = self.deliveries.len() + shared;
        (count as u64, (own + bytes) as u64)
    }
}

/// What an organization may owe at once. What a trigger owes is always owed: where the organization would owe more than
/// this, its oldest deliveries end as failed, those of other events before those of triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwedRoom {
    /// Whose deliveries.
    pub organization_id: ObjectId,
    pub deliveries_max: u64,
    /// The memory they take, bodies included, in bytes.
    pub bytes_max: u64,
}
