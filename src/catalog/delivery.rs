//! Deliveries that are owed: they live in the catalog until they end, then in the ledger.

use serde::{Deserialize, Serialize};

use super::body::Body;
use super::webhook::Event;
use crate::ids::ObjectId;

const NANOSECONDS_A_MILLISECOND: i64 = 1_000_000;
/// Memory that an owed delivery takes besides its body, about: itself, and its places in the catalog's and the sender's
/// indexes.
const OWED_BYTES: usize = 512;
/// Memory that an attempt takes, about, most of it the error.
const ATTEMPT_BYTES: usize = 128;

/// One event for one receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// Identifies it to the API.
    pub id: ObjectId,
    /// Identifies it to the receiver: the `webhookId` of the body, the same on every attempt.
    pub webhook_id: ObjectId,
    /// Who is told.
    pub receiver: Receiver,
    /// Of what.
    pub event: Event,
    /// What every attempt says, byte for byte the same.
    pub body: Body,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// All attempts so far, oldest first.
    pub attempts: Vec<Attempt>,
    /// Attempts of the present schedule: a redelivery begins a new one.
    pub tries: u8,
    /// When the next one is due, in UTC nanoseconds; `None` when finished.
    pub next_attempt_at_ns: Option<i64>,
    /// Whether it had finished before and is in the ledger already.
    #[serde(default)]
    pub again: bool,
    /// Whose delivery it is; older programs did not say.
    #[serde(default)]
    pub organization_id: Option<ObjectId>,
}

/// Who is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receiver {
    /// A webhook of the organization; its URL and secret are those at the time of the attempt.
    Webhook(ObjectId),
    /// The `webhookUrl` of a rule, which is owed the trigger even when the rule is gone.
    Rule {
        /// Which.
        rule_id: ObjectId,
        /// Its URL when it fired.
        url: Box<str>,
    },
}

impl Receiver {
    /// Whose list of deliveries it stands in: the webhook's or the rule's.
    pub fn owner(&self) -> ObjectId {
        match self {
            Self::Webhook(id) => *id,
            Self::Rule { rule_id, .. } => *rule_id,
        }
    }
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// Attempts are still to be made.
    Pending,
    /// Answered with a 2xx.
    Delivered,
    /// Given up; it can be redelivered.
    Failed,
}

impl DeliveryStatus {
    /// The status' name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}

/// One try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it began, in UTC nanoseconds.
    pub at_ns: i64,
    /// What the receiver answered.
    pub status_code: Option<u16>,
    /// Why there was no 2xx.
    pub error: Option<Box<str>>,
    /// How long it took.
    pub duration_ms: u32,
}

impl Attempt {
    /// When it ended, in UTC nanoseconds.
    pub fn ended_at_ns(&self) -> i64 {
        self.at_ns + i64::from(self.duration_ms) * NANOSECONDS_A_MILLISECOND
    }
}

/// What follows an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterAttempt {
    /// A 2xx: done.
    Delivered,
    /// Another attempt at this moment, in UTC nanoseconds.
    Retry(i64),
    /// No attempt is left.
    Failed,
}

impl Delivery {
    /// Notes an attempt and what follows it.
    pub fn attempted(&mut self, attempt: Attempt, then: AfterAttempt) {
        self.attempts.push(attempt);
        self.tries = self.tries.saturating_add(1);
        (self.status, self.next_attempt_at_ns) = match then {
            AfterAttempt::Retry(at_ns) => (DeliveryStatus::Pending, Some(at_ns)),
            AfterAttempt::Delivered => (DeliveryStatus::Delivered, None),
            AfterAttempt::Failed => (DeliveryStatus::Failed, None),
        };
    }

    /// Memory that it takes while it is owed, about; of a shared body nothing.
    pub(super) fn owed_bytes(&self) -> usize {
        OWED_BYTES + self.attempts.len() * ATTEMPT_BYTES + self.body.own_bytes()
    }

    /// The record as the ledger keeps it: MessagePack with named members.
    ///
    /// # Errors
    /// Never for owned data; the encoder's type says so all the same.
    pub fn encode(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        rmp_serde::to_vec_named(self)
    }

    /// Reads a record of the ledger.
    ///
    /// # Errors
    /// Bytes that are no delivery, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}
