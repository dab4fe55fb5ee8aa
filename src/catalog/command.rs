//! The commands that change the catalog, and their encoding in the log.
//!
//! Each command holds decided facts, including ids, hashes and times, so that replay produces the same state. Members
//! may be added with a default, but never renamed, removed or given another meaning (FORMAT.md).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Acknowledgement, AfterAttempt, Annotation, AnnotationSettings, Attempt, Audit, Board, BoardSettings,
    Bucket, Bytes, Delivery, DeliveryTotals, Dimensions, Duplicates, FanOut, Field, Invitation, Key, KeyHash,
    MetricType, MonthDay, NewDeliveries, Organization, Outcome, PasswordHash, PasswordReset, PendingLimits,
    Plan, Role, RuleRuntime, RuleSettings, RuleState, SchemaMode, Share, Silence, SourceStatus, User,
    UserSession, Webhook, WebhookSettings,
};
use crate::ids::ObjectId;

/// One change of the catalog.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "members are named for what they set")]
pub enum Command {
    /// Sets the secret that signs bearer tokens. Later ones are ignored.
    ServerSecretSet { secret: Bytes<32> },
    /// Creates an organization and its first user.
    SignedUp { organization: Organization, user: User },
    /// Sets a new password, by the user or with a link to reset it: ends all sessions, and the link.
    PasswordChanged {
        user_id: ObjectId,
        password: PasswordHash,
        /// The session that begins with it.
        #[serde(default)]
        session: Option<UserSession>,
    },
    /// A user has logged in. Sessions that are over are removed, and the oldest beyond a limit.
    SessionBegun { user_id: ObjectId, session: UserSession },
    /// The minutes, since the epoch, in which sessions were last used: user, number of the session, minute.
    SessionsTouched { touches: Vec<(ObjectId, u64, u32)> },
    /// A session was ended: the tokens of this number no longer work.
    SessionEnded {
        user_id: ObjectId,
        session: u64,
        at_ns: i64,
    },
    /// Invites a person. Invitations that have ended are removed.
    InvitationCreated {
        organization_id: ObjectId,
        invitation: Invitation,
    },
    /// Withdraws an invitation.
    InvitationDeleted {
        organization_id: ObjectId,
        invitation_id: ObjectId,
    },
    /// An invited person joins the organization.
    InvitationAccepted { invitation_id: ObjectId, user: User },
    /// Changes what a member may do.
    MemberRoleChanged { user_id: ObjectId, role: Role },
    /// Removes a member with its sessions. The email address is free again.
    MemberRemoved { user_id: ObjectId },
    /// A link with which a user may set a password; replaces an older one.
    ResetCreated { user_id: ObjectId, reset: PasswordReset },
    /// Renames an organization.
    OrganizationRenamed {
        organization_id: ObjectId,
        name: Box<str>,
        at_ns: i64,
    },
    /// Changes the plan. Existing objects stay.
    PlanChanged {
        organization_id: ObjectId,
        plan: Plan,
        at_ns: i64,
    },
    /// Total calls of organizations in a month: organization, month, count.
    CallsCounted { totals: Vec<(ObjectId, MonthDay, u64)> },
    /// Creates a key of an organization or of a bucket.
    KeyCreated { key: Key },
    /// Gives a key a new value; the former one may work for some time.
    KeyRotated {
        key_id: ObjectId,
        hash: KeyHash,
        shown_prefix: Box<str>,
        /// Until when the former value works, in UTC nanoseconds; absent if it does not.
        #[serde(default)]
        former_until_ns: Option<i64>,
    },
    /// Calls with keys in a month: key, month, count.
    KeyCallsCounted { totals: Vec<(ObjectId, MonthDay, u64)> },
    /// Deletes a key, which stops working.
    KeyDeleted { key_id: ObjectId },
    /// The minutes, since the epoch, in which keys were last used.
    KeysTouched { touches: Vec<(ObjectId, u32)> },
    /// Creates a bucket with the next ordinal.
    BucketCreated { bucket: NewBucket },
    /// The next bucket gets this ordinal at least: in a cluster each shard has a range of its own.
    BucketOrdinalsBegun { first: u32 },
    /// Replaces a bucket's settings.
    BucketUpdated {
        bucket_id: ObjectId,
        name: Box<str>,
        description: Option<Box<str>>,
        retention_days: u32,
        at_ns: i64,
        /// Points from this sequence on arrived under the new retention; absent if there are none.
        #[serde(default)]
        next_sequence: Option<u64>,
        /// Deliveries to webhooks about this change.
        #[serde(default)]
        deliveries: Vec<Delivery>,
        /// The same, if several webhooks receive it.
        #[serde(default)]
        fan_out: Option<FanOut>,
    },
    /// Deletes a bucket with its sources, keys and annotations, and the silences that are about nothing else.
    BucketDeleted { bucket_id: ObjectId },
    /// Creates a source with the bucket's next ordinal.
    SourceCreated { source: NewSource },
    /// Replaces a source's settings. The fields are merged into the schema.
    SourceUpdated {
        source_id: ObjectId,
        settings: SourceSettings,
        at_ns: i64,
    },
    /// Adds fields found in ingested points. Existing fields do not change.
    SchemaExtended {
        source_id: ObjectId,
        fields: Vec<Field>,
        at_ns: i64,
    },
    /// An agent has told the type of a source's metric.
    MetricTyped {
        source_id: ObjectId,
        metric_type: MetricType,
    },
    /// Sources have become stale, or no longer are.
    FreshnessChanged {
        changes: Vec<FreshnessChange>,
        at_ns: i64,
    },
    /// Deletes a source with its rules and annotations.
    SourceDeleted { source_id: ObjectId },
    /// Creates a rule with the next ordinal.
    RuleCreated { rule: NewRule },
    /// Replaces a rule's settings and state.
    RuleUpdated {
        rule_id: ObjectId,
        settings: RuleSettings,
        runtime: RuleRuntime,
        at_ns: i64,
    },
    /// Deletes a rule. Pending deliveries of its triggers stay.
    RuleDeleted { rule_id: ObjectId },
    /// Somebody knows that a rule has fired.
    RuleAcknowledged {
        rule_id: ObjectId,
        acknowledgement: Acknowledgement,
    },
    /// Records an accepted verdict.
    VerdictRecorded { verdict: Verdict },
    /// The dwell of a rule that had fired is over: it is armed again.
    RuleResolved {
        rule_id: ObjectId,
        at_ns: i64,
        told: NewDeliveries,
    },
    /// No evaluator has judged a rule since it became due.
    RuleOverdue {
        rule_id: ObjectId,
        /// When the rule became due, UTC nanoseconds.
        due_at_ns: i64,
        at_ns: i64,
        told: NewDeliveries,
    },
    /// Creates a webhook.
    WebhookCreated { webhook: Webhook },
    /// Replaces a webhook's settings.
    WebhookUpdated {
        webhook_id: ObjectId,
        settings: WebhookSettings,
        at_ns: i64,
    },
    /// Deletes a webhook and its pending deliveries.
    WebhookDeleted { webhook_id: ObjectId },
    /// Creates a silence. Some of its organization that have ended are removed.
    SilenceCreated { silence: Silence },
    /// Ends a silence before its time.
    SilenceDeleted { silence_id: ObjectId },
    /// Creates an annotation of a bucket or one of its sources.
    AnnotationCreated { annotation: Annotation },
    /// Replaces an annotation's settings.
    AnnotationUpdated {
        annotation_id: ObjectId,
        settings: AnnotationSettings,
        at_ns: i64,
    },
    /// Deletes an annotation.
    AnnotationDeleted { annotation_id: ObjectId },
    /// Creates a board.
    BoardCreated { board: Board },
    /// Replaces a board's settings, which makes its next version.
    BoardUpdated {
        board_id: ObjectId,
        settings: BoardSettings,
        at_ns: i64,
    },
    /// Deletes a board with its links.
    BoardDeleted { board_id: ObjectId },
    /// Adds a link to a board, and removes those that have expired when it was made.
    BoardShared { board_id: ObjectId, share: Share },
    /// Removes a link of a board before its end.
    BoardUnshared { board_id: ObjectId, share_id: ObjectId },
    /// Queues deliveries, for the first time or again.
    DeliveriesQueued { deliveries: Vec<Delivery> },
    /// Records a delivery attempt.
    AttemptMade { made: AttemptMade },
    /// Results of deliveries that are not logged individually.
    DeliveriesCounted { counts: Vec<(ObjectId, DeliveryTotals)> },
    /// A change that somebody asked for, and its entry in the audit.
    Audited { command: Box<Command>, audit: Audit },
    /// Points were deleted by filters: the entry in the audit.
    PointsDeleted { audit: Audit },
}

/// A rule that has no ordinal yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewRule {
    pub id: ObjectId,
    /// The source that the rule watches.
    pub source_id: ObjectId,
    pub settings: RuleSettings,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
}

/// An accepted verdict and its consequences.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// Id of its entry in the history.
    pub id: ObjectId,
    pub rule_id: ObjectId,
    /// UTC nanoseconds.
    pub at_ns: i64,
    pub outcome: Outcome,
    /// JSON, as sent.
    pub evidence: Option<Box<str>>,
    /// The key or the user that sent it.
    pub key_id: ObjectId,
    /// The state of the rule before the verdict.
    pub previous_state: RuleState,
    /// The state of the rule after it.
    pub runtime: RuleRuntime,
    /// Id of the trigger's entry in the history, if the rule fired.
    pub trigger_id: Option<ObjectId>,
    /// The silence that was in force when the rule fired; it has no deliveries then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_id: Option<ObjectId>,
    /// Deliveries of the trigger.
    pub deliveries: Vec<Delivery>,
    /// The same, if several webhooks receive it.
    #[serde(default)]
    pub fan_out: Option<FanOut>,
    /// Limits within which older deliveries are dropped to make room.
    #[serde(default)]
    pub room: Option<PendingLimits>,
    /// What webhooks hear beside a trigger: that evaluations resume, that the rule is armed again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<NewDeliveries>,
}

/// A delivery attempt and what follows from it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptMade {
    pub delivery_id: ObjectId,
    pub attempt: Attempt,
    pub then: AfterAttempt,
}

/// A bucket that has no ordinal yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewBucket {
    pub id: ObjectId,
    pub organization_id: ObjectId,
    /// Unique within the organization.
    pub name: Box<str>,
    pub description: Option<Box<str>>,
    /// How long points are kept, in days.
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

/// A source that has no ordinal yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewSource {
    pub id: ObjectId,
    pub bucket_id: ObjectId,
    pub settings: SourceSettings,
    /// The type of its metric, if an agent has told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_type: Option<MetricType>,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
}

/// The settings of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSettings {
    /// Unique within the bucket.
    pub name: Box<str>,
    /// The API's `type`.
    pub kind: Arc<str>,
    pub description: Option<Box<str>>,
    /// Fields in order of declaration.
    pub fields: Vec<Field>,
    /// How undeclared fields are handled.
    pub schema_mode: SchemaMode,
    /// Whether large raw queries are aggregated automatically.
    pub downsampling: bool,
    /// Whether the source accepts data.
    pub status: SourceStatus,
    /// How points are split into series; `None` if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<Arc<Dimensions>>,
    /// Whether points that are there already are stored again.
    #[serde(default, skip_serializing_if = "Duplicates::is_keep")]
    pub duplicates: Duplicates,
    /// Expected time between two points, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_interval_seconds: Option<u32>,
}

/// Webhooks have heard that a source is stale or has recovered, or its silence ended without an event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FreshnessChange {
    pub source_id: ObjectId,
    /// Since when it is stale, UTC nanoseconds; `None` if it is not.
    pub stale_since_ns: Option<i64>,
    pub told: NewDeliveries,
}

impl Command {
    /// The record for the log: MessagePack with named members.
    ///
    /// # Errors
    /// Never fails for commands made of owned data; the error type is that of the encoder.
    pub fn encode(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        rmp_serde::to_vec_named(self)
    }

    /// Decodes a record of the log. Unknown members are ignored; missing members get their default, if they have one.
    ///
    /// # Errors
    /// The bytes are not a command, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}
