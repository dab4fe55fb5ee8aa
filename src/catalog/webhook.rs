//! Webhooks, which receive the events of an organization.

use serde::{Deserialize, Serialize};

use super::names;
use crate::ids::ObjectId;

/// An event that a webhook can receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Event {
    /// An alert rule fired.
    #[serde(rename = "alert.triggered")]
    AlertTriggered,
    /// A rule that had fired is armed again.
    #[serde(rename = "alert.resolved")]
    AlertResolved,
    /// No evaluator has judged a rule for too long.
    #[serde(rename = "evaluation.overdue")]
    EvaluationOverdue,
    /// A rule that was overdue has a verdict.
    #[serde(rename = "evaluation.resumed")]
    EvaluationResumed,
    /// A source sends less often than expected.
    #[serde(rename = "source.stale")]
    SourceStale,
    /// A source that was stale sends again.
    #[serde(rename = "source.recovered")]
    SourceRecovered,
    /// A point was ingested.
    #[serde(rename = "data.received")]
    DataReceived,
    /// A bucket's configuration changed.
    #[serde(rename = "bucket.updated")]
    BucketUpdated,
    /// A test was requested.
    #[serde(rename = "webhook.test")]
    WebhookTest,
}

names!(
    Event:
    AlertTriggered => "alert.triggered",
    AlertResolved => "alert.resolved",
    EvaluationOverdue => "evaluation.overdue",
    EvaluationResumed => "evaluation.resumed",
    SourceStale => "source.stale",
    SourceRecovered => "source.recovered",
    DataReceived => "data.received",
    BucketUpdated => "bucket.updated",
    WebhookTest => "webhook.test"
);

impl Event {
    /// The events that a webhook can subscribe to.
    pub const REGISTERED: [Self; 8] = [
        Self::AlertTriggered,
        Self::AlertResolved,
        Self::EvaluationOverdue,
        Self::EvaluationResumed,
        Self::SourceStale,
        Self::SourceRecovered,
        Self::DataReceived,
        Self::BucketUpdated,
    ];

    /// Whether no limit refuses the event: deliveries of others make room for it, and it goes last itself.
    pub const fn is_always_owed(self) -> bool {
        match self {
            Self::AlertTriggered
            | Self::AlertResolved
            | Self::EvaluationOverdue
            | Self::EvaluationResumed
            | Self::SourceStale
            | Self::SourceRecovered => true,
            Self::DataReceived | Self::BucketUpdated | Self::WebhookTest => false,
        }
    }
}

/// What the deliveries of a webhook look like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookFormat {
    /// The event as an envelope.
    #[default]
    Standard,
    /// A message for Slack.
    Slack,
    /// A message for Microsoft Teams.
    Teams,
    /// A message for a topic of ntfy.
    Ntfy,
    /// An event for PagerDuty, under the key of one of its integrations.
    PagerDuty { routing_key: Secret },
    /// A mail.
    Email,
    /// A text with members of the envelope.
    Template { text: Box<str> },
}

/// Its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FormatName {
    Standard,
    Slack,
    Teams,
    Ntfy,
    PagerDuty,
    Email,
    Template,
}

names!(
    FormatName:
    Standard => "standard",
    Slack => "slack",
    Teams => "teams",
    Ntfy => "ntfy",
    PagerDuty => "pagerduty",
    Email => "email",
    Template => "template"
);

impl WebhookFormat {
    /// Its name in the API.
    pub const fn name(&self) -> FormatName {
        match self {
            Self::Standard => FormatName::Standard,
            Self::Slack => FormatName::Slack,
            Self::Teams => FormatName::Teams,
            Self::Ntfy => FormatName::Ntfy,
            Self::PagerDuty { .. } => FormatName::PagerDuty,
            Self::Email => FormatName::Email,
            Self::Template { .. } => FormatName::Template,
        }
    }

    /// The text of a template.
    pub fn template(&self) -> Option<&str> {
        match self {
            Self::Template { text } => Some(text),
            _ => None,
        }
    }

    fn is_standard(&self) -> bool {
        *self == Self::Standard
    }
}

/// Whether events are queued for a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookStatus {
    /// Events are queued.
    Active,
    /// No events are queued.
    Paused,
}

names!(WebhookStatus: Active => "active", Paused => "paused");

/// When a failed delivery is retried: for the n-th time after `backoff_multiplier`^(n−1) seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryConfig {
    /// Attempts after the first one, 0 to 10.
    pub max_retries: u8,
    /// 1 to 10.
    pub backoff_multiplier: f64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_retries: 3,
            backoff_multiplier: 2.0,
        }
    }
}

/// A webhook of an organization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Webhook {
    pub id: ObjectId,
    /// The organization whose events it receives.
    pub organization_id: ObjectId,
    pub settings: WebhookSettings,
    /// Counts of its deliveries.
    #[serde(default)]
    pub totals: DeliveryTotals,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// UTC nanoseconds; deliveries do not change it.
    pub updated_at_ns: i64,
}

/// The settings of a webhook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebhookSettings {
    pub url: Box<str>,
    /// The events that it subscribes to.
    pub events: Vec<Event>,
    /// The one bucket whose events it receives; `None` for all buckets of its organization.
    pub bucket_id: Option<ObjectId>,
    /// Signs the bodies.
    pub secret: Secret,
    /// When a failed delivery is retried.
    pub retry: RetryConfig,
    pub status: WebhookStatus,
    #[serde(default, skip_serializing_if = "WebhookFormat::is_standard")]
    pub format: WebhookFormat,
}

/// Text that `Debug` hides.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub Box<str>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<secret>")
    }
}

/// Counts of a webhook's deliveries; those still pending are `total` − `successful` − `failed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryTotals {
    /// Deliveries queued.
    pub total: u64,
    /// Deliveries that succeeded.
    pub successful: u64,
    /// Deliveries that failed.
    pub failed: u64,
    /// When the last one finished, in UTC nanoseconds.
    pub last_at_ns: Option<i64>,
    /// Whether that one was delivered.
    pub last_delivered: Option<bool>,
}

impl DeliveryTotals {
    /// Adds the counts of other deliveries of the same webhook.
    pub fn add(&mut self, other: Self) {
        self.total += other.total;
        self.successful += other.successful;
        self.failed += other.failed;
        if other.last_at_ns > self.last_at_ns {
            (self.last_at_ns, self.last_delivered) = (other.last_at_ns, other.last_delivered);
        }
    }
}

impl Webhook {
    /// Whether the webhook receives this event of this bucket.
    pub fn receives(&self, event: Event, bucket_id: ObjectId) -> bool {
        self.settings.status == WebhookStatus::Active
            && self.settings.events.contains(&event)
            && self.settings.bucket_id.is_none_or(|only| only == bucket_id)
    }
}
