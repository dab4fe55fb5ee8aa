//! The commands that change the catalog, and how they are written to the log.
//!
//! Each holds decided facts: ids, hashes and times are in it, so that replay makes the same state.
//! Members may be added with a default, never renamed, removed or given another meaning (FORMAT.md).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Bytes;
use super::bucket::Bucket;
use super::calls::MonthDay;
use super::delivery::{AfterAttempt, Attempt, Delivery};
use super::fan_out::{FanOut, OwedRoom};
use super::key::Key;
use super::organization::{Organization, Plan};
use super::rule::{Outcome, RuleRuntime, RuleSettings, RuleState};
use super::schema::{Field, SchemaMode};
use super::source::SourceStatus;
use super::user::{PasswordHash, User};
use super::webhook::{DeliveryTotals, Webhook, WebhookSettings};
use crate::ids::ObjectId;

/// One change of the catalog.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "members are named for what they set")]
pub enum Command {
    /// The secret that signs bearer tokens; the first one stays.
    ServerSecretSet { secret: Bytes<32> },
    /// An organization and its first user.
    SignedUp { organization: Organization, user: User },
    /// A new password; ends the user's older tokens.
    PasswordChanged {
        user_id: ObjectId,
        password: PasswordHash,
    },
    /// A user has logged out: the tokens of the session no longer work.
    SessionEnded {
        user_id: ObjectId,
        session: u64,
        at_ns: i64,
    },
    /// A new name.
    OrganizationRenamed {
        organization_id: ObjectId,
        name: Box<str>,
        at_ns: i64,
    },
    /// Another plan; what exists stays.
    PlanChanged {
        organization_id: ObjectId,
        plan: Plan,
        at_ns: i64,
    },
    /// Calls that organizations made in a month, in all: whose, which month, how many.
    CallsCounted { totals: Vec<(ObjectId, MonthDay, u64)> },
    /// A key of an organization or of a bucket.
    KeyCreated { key: Key },
    /// The key stops working.
    KeyDeleted { key_id: ObjectId },
    /// Minutes since the epoch in which keys were last used.
    KeysTouched { touches: Vec<(ObjectId, u32)> },
    /// A bucket; its ordinal is the next one.
    BucketCreated { bucket: NewBucket },
    /// The bucket's settings as they are from now on.
    BucketUpdated {
        bucket_id: ObjectId,
        name: Box<str>,
        description: Option<Box<str>>,
        retention_days: u32,
        at_ns: i64,
        /// Points numbered from here on came under the new retention; absent: none did.
        #[serde(default)]
        next_sequence: Option<u64>,
        /// What webhooks are owed for it.
        #[serde(default)]
        deliveries: Vec<Delivery>,
        /// The same where several webhooks are owed it.
        #[serde(default)]
        fan_out: Option<FanOut>,
    },
    /// The bucket, its sources and its keys are gone.
    BucketDeleted { bucket_id: ObjectId },
    /// A source; its ordinal is the bucket's next one.
    SourceCreated { source: NewSource },
    /// The source's settings as they are from now on; the fields are merged over the schema.
    SourceUpdated {
        source_id: ObjectId,
        settings: SourceSettings,
        at_ns: i64,
    },
    /// Fields that ingested points brought; those already there stay as they are.
    SchemaExtended {
        source_id: ObjectId,
        fields: Vec<Field>,
        at_ns: i64,
    },
    /// The source and its rules are gone.
    SourceDeleted { source_id: ObjectId },
    /// A rule; its ordinal is the next one.
    RuleCreated { rule: NewRule },
    /// The rule's settings as they are from now on, and where it stands.
    RuleUpdated {
        rule_id: ObjectId,
        settings: RuleSettings,
        runtime: RuleRuntime,
        at_ns: i64,
    },
    /// The rule is gone; what its triggers owe is not.
    RuleDeleted { rule_id: ObjectId },
    /// A verdict was accepted.
    VerdictRecorded { verdict: Verdict },
    /// A webhook.
    WebhookCreated { webhook: Webhook },
    /// The webhook's settings as they are from now on.
    WebhookUpdated {
        webhook_id: ObjectId,
        settings: WebhookSettings,
        at_ns: i64,
    },
    /// The webhook is gone, and with it what it was owed.
    WebhookDeleted { webhook_id: ObjectId },
    /// Deliveries that are owed from now on, whether for the first time or again.
    DeliveriesQueued { deliveries: Vec<Delivery> },
    /// An attempt ended.
    AttemptMade { made: AttemptMade },
    /// What became of deliveries that are not logged one by one.
    DeliveriesCounted { counts: Vec<(ObjectId, DeliveryTotals)> },
}

/// A rule before it has its ordinal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewRule {
    /// Identifies it.
    pub id: ObjectId,
    /// What it watches.
    pub source_id: ObjectId,
    /// All that can be set.
    pub settings: RuleSettings,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
}

/// An accepted verdict, and all that follows from it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// Of its entry in the history.
    pub id: ObjectId,
    /// The rule it is about.
    pub rule_id: ObjectId,
    /// UTC nanoseconds.
    pub at_ns: i64,
    /// What the evaluator found.
    pub outcome: Outcome,
    /// JSON, as sent.
    pub evidence: Option<Box<str>>,
    /// The key, or the user, that sent it.
    pub key_id: ObjectId,
    /// Where the rule stood.
    pub previous_state: RuleState,
    /// Where it stands now.
    pub runtime: RuleRuntime,
    /// Of the trigger's entry in the history, when the rule fired.
    pub trigger_id: Option<ObjectId>,
    /// What the trigger owes.
    pub deliveries: Vec<Delivery>,
    /// The same where several webhooks are owed it.
    #[serde(default)]
    pub fan_out: Option<FanOut>,
    /// What older deliveries make room for.
    #[serde(default)]
    pub room: Option<OwedRoom>,
}

/// An attempt at a delivery, and what follows from it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptMade {
    /// Which delivery.
    pub delivery_id: ObjectId,
    /// How it went.
    pub attempt: Attempt,
    /// What is next.
    pub then: AfterAttempt,
}

/// A bucket before it has its ordinal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewBucket {
    /// Identifies it.
    pub id: ObjectId,
    /// Its owner.
    pub organization_id: ObjectId,
    /// Unique within the organization.
    pub name: Box<str>,
    /// Free text.
    pub description: Option<Box<str>>,
    /// How long its points are kept.
    pub retention_days: u32,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
}

impl NewBucket {
    pub(super) fn numbered(&self, ordinal: u32) -> Bucket {
        Bucket {
            id: self.id,
            ordinal,
            organization_id: self.organization_id,
            name: self.name.clone(),
            description: self.description.clone(),
            retention_days: self.retention_days,
            expired_before_ns: i64::MIN,
            expired: Vec::new(),
            created_at_ns: self.created_at_ns,
            updated_at_ns: self.created_at_ns,
        }
    }
}

/// A source before it has its ordinal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewSource {
    /// Identifies it.
    pub id: ObjectId,
    /// Its bucket.
    pub bucket_id: ObjectId,
    /// All that can be set.
    pub settings: SourceSettings,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
}

/// What can be set of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSettings {
    /// Unique within the bucket.
    pub name: Box<str>,
    /// The API's `type`.
    pub kind: Arc<str>,
    /// Free text.
    pub description: Option<Box<str>>,
    /// Fields in order of declaration.
    pub fields: Vec<Field>,
    /// What happens to undeclared fields.
    pub schema_mode: SchemaMode,
    /// Whether large raw queries are aggregated by themselves.
    pub downsampling: bool,
    /// Whether it takes data.
    pub status: SourceStatus,
}

impl Command {
    /// The record for the log: MessagePack with named members.
    ///
    /// # Errors
    /// Never for commands made of owned data; the encoder's type says so all the same.
    pub fn encode(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        rmp_serde::to_vec_named(self)
    }

    /// Reads a record of the log. Unknown members are ignored, missing ones with a default get it.
    ///
    /// # Errors
    /// Bytes that are no command, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}
