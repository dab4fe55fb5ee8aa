//! The deliveries that result from an event, as stored in commands. A body that several webhooks receive is stored
//! once.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::body::{Body, EventBody};
use super::delivery::{Delivery, DeliveryStatus, Receiver};
use super::webhook::Event;
use crate::ids::ObjectId;

/// An event that several webhooks receive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FanOut {
    pub event: Event,
    /// The body that all of them receive.
    pub body: Arc<EventBody>,
    /// For each delivery: the webhook, the delivery's id, and the id by which the receiver knows it.
    pub deliveries: Vec<(ObjectId, ObjectId, ObjectId)>,
}

impl FanOut {
    /// The deliveries, due immediately.
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

/// The deliveries that result from an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewDeliveries {
    /// Deliveries with a body of their own.
    pub deliveries: Vec<Delivery>,
    /// Deliveries that share a body.
    pub fan_out: Option<FanOut>,
    /// Limits within which older deliveries are dropped to make room, see [`PendingLimits`].
    pub room: Option<PendingLimits>,
}

impl NewDeliveries {
    /// A few deliveries, each with a body of its own.
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

    /// Number of deliveries, and the memory they need, in bytes.
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

/// Limits on an organization's pending deliveries. Deliveries of a trigger are always accepted: if they exceed the
/// limits, the organization's oldest deliveries fail, those of other events before those of triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingLimits {
    pub organization_id: ObjectId,
    pub deliveries_max: u64,
    /// Memory of the deliveries, including bodies, in bytes.
    pub bytes_max: u64,
}
