//! Pending deliveries. They are in the catalog until they finish, then in the ledger. Also the deliveries that result
//! from an event, as stored in commands: a body that several webhooks receive is stored once.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Body, Event, EventBody, names};
use crate::clock::MILLISECOND_NS;
use crate::ids::ObjectId;

/// Approximate memory of a pending delivery besides its body: the delivery itself, and its entries in the indexes of
/// the catalog and the sender.
const OWED_BYTES: usize = 512;
/// Approximate memory of an attempt; most of it is the error.
const ATTEMPT_BYTES: usize = 128;

/// The delivery of one event to one receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// Identifies the delivery in the API.
    pub id: ObjectId,
    /// Identifies the delivery to the receiver: the `webhookId` of the body, the same on every attempt.
    pub webhook_id: ObjectId,
    pub receiver: Receiver,
    pub event: Event,
    /// The body, byte for byte the same on every attempt.
    pub body: Body,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    pub status: DeliveryStatus,
    /// All attempts so far, oldest first.
    pub attempts: Vec<Attempt>,
    /// Attempts of the present retry schedule. A redelivery starts a new schedule.
    pub tries: u8,
    /// When the next attempt is due, in UTC nanoseconds; `None` if finished.
    pub next_attempt_at_ns: Option<i64>,
    /// Whether it had finished before, so that the ledger has an older version.
    #[serde(default)]
    pub again: bool,
    /// The organization it belongs to; `None` if an older program created it.
    #[serde(default)]
    pub organization_id: Option<ObjectId>,
}

/// The receiver of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receiver {
    /// A webhook of the organization. An attempt uses the URL and the secret that the webhook has at that time.
    Webhook(ObjectId),
    /// The `webhookUrl` of a rule. The trigger is delivered even if the rule has been deleted.
    Rule {
        rule_id: ObjectId,
        /// The rule's URL at the time it fired.
        url: Box<str>,
    },
}

impl Receiver {
    /// The id under which the delivery is listed: that of the webhook or the rule.
    pub fn owner(&self) -> ObjectId {
        match self {
            Self::Webhook(id) => *id,
            Self::Rule { rule_id, .. } => *rule_id,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// Further attempts will be made.
    Pending,
    /// A receiver has answered with a 2xx.
    Delivered,
    /// No further attempts; it can be redelivered.
    Failed,
}

names!(DeliveryStatus: Pending => "pending", Delivered => "delivered", Failed => "failed");

/// One delivery attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Start of the attempt, in UTC nanoseconds.
    pub at_ns: i64,
    /// The status code of the receiver's response.
    pub status_code: Option<u16>,
    /// Why there was no 2xx.
    pub error: Option<Box<str>>,
    pub duration_ms: u32,
}

impl Attempt {
    /// End of the attempt, in UTC nanoseconds.
    pub fn ended_at_ns(&self) -> i64 {
        self.at_ns + i64::from(self.duration_ms) * MILLISECOND_NS
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterAttempt {
    /// A 2xx: finished.
    Delivered,
    /// Another attempt at this time, in UTC nanoseconds.
    Retry(i64),
    /// No attempts are left.
    Failed,
}

impl Delivery {
    /// Records an attempt and what follows it.
    pub fn attempted(&mut self, attempt: Attempt, then: AfterAttempt) {
        self.attempts.push(attempt);
        self.tries = self.tries.saturating_add(1);
        (self.status, self.next_attempt_at_ns) = match then {
            AfterAttempt::Retry(at_ns) => (DeliveryStatus::Pending, Some(at_ns)),
            AfterAttempt::Delivered => (DeliveryStatus::Delivered, None),
            AfterAttempt::Failed => (DeliveryStatus::Failed, None),
        };
    }

    /// Approximate memory of the delivery while it is pending, without a shared body.
    pub(super) fn owed_bytes(&self) -> usize {
        OWED_BYTES + self.attempts.len() * ATTEMPT_BYTES + self.body.own_bytes()
    }

    /// Decodes a record of the ledger.
    ///
    /// # Errors
    /// The bytes are not a delivery, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}

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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NewDeliveries {
    /// Deliveries with a body of their own.
    #[serde(default)]
    pub deliveries: Vec<Delivery>,
    /// Deliveries that share a body.
    #[serde(default)]
    pub fan_out: Option<FanOut>,
    /// Limits within which older deliveries are dropped to make room, see [`PendingLimits`].
    #[serde(default)]
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

/// Limits on an organization's pending deliveries. Some events are always owed ([`Event::is_always_owed`]): if their
/// deliveries exceed the limits, the organization's oldest deliveries fail, those of other events first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingLimits {
    pub organization_id: ObjectId,
    pub deliveries_max: u64,
    /// Memory of the deliveries, including bodies, in bytes.
    pub bytes_max: u64,
}
