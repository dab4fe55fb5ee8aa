//! Webhooks: who is told of what happens in an organization.

use serde::{Deserialize, Serialize};

use crate::ids::ObjectId;

/// What a webhook can hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Event {
    /// An alert rule fired.
    #[serde(rename = "alert.triggered")]
    AlertTriggered,
    /// A point was ingested.
    #[serde(rename = "data.received")]
    DataReceived,
    /// A bucket's configuration changed.
    #[serde(rename = "bucket.updated")]
    BucketUpdated,
    /// Somebody asked for a test.
    #[serde(rename = "webhook.test")]
    WebhookTest,
}

impl Event {
    /// Those that a webhook can be registered for.
    pub const REGISTERED: [Self; 3] = [Self::AlertTriggered, Self::DataReceived, Self::BucketUpdated];

    /// The event's name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AlertTriggered => "alert.triggered",
            Self::DataReceived => "data.received",
            Self::BucketUpdated => "bucket.updated",
            Self::WebhookTest => "webhook.test",
        }
    }
}

/// Whether anything is queued for a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookStatus {
    /// Hears its events.
    Active,
    /// Nothing is queued for it.
    Paused,
}

impl WebhookStatus {
    /// All statuses.
    pub const ALL: [Self; 2] = [Self::Active, Self::Paused];

    /// The status' name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
        }
    }
}

/// How often and when a failed delivery is tried again: the n-th time after
/// `backoff_multiplier`^(n−1) seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryConfig {
    /// Attempts after the first, 0 to 10.
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
    /// Identifies it.
    pub id: ObjectId,
    /// Whose events it hears.
    pub organization_id: ObjectId,
    /// All that can be set.
    pub settings: WebhookSettings,
    /// What became of its deliveries.
    #[serde(default)]
    pub totals: DeliveryTotals,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// UTC nanoseconds; deliveries do not change it.
    pub updated_at_ns: i64,
}

/// What can be set of a webhook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebhookSettings {
    /// Where it is told.
    pub url: Box<str>,
    /// What it hears of.
    pub events: Vec<Event>,
    /// The one bucket it hears; `None` for all of its organization.
    pub bucket_id: Option<ObjectId>,
    /// Signs what it is told.
    pub secret: Secret,
    /// When a failed delivery is tried again.
    pub retry: RetryConfig,
    /// Whether anything is queued for it.
    pub status: WebhookStatus,
}

/// Text that no log shows.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub Box<str>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<secret>")
    }
}

/// What became of a webhook's deliveries; those still pending are `total` − `successful` − `failed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryTotals {
    /// Deliveries queued.
    pub total: u64,
    /// Deliveries that ended with a 2xx.
    pub successful: u64,
    /// Deliveries given up.
    pub failed: u64,
    /// When the last one ended, in UTC nanoseconds.
    pub last_at_ns: Option<i64>,
    /// Whether that one was delivered.
    pub last_delivered: Option<bool>,
}

impl DeliveryTotals {
    /// Adds what became of other deliveries of the same webhook.
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
    /// Whether it is told of this event in this bucket.
    pub fn hears(&self, event: Event, bucket_id: ObjectId) -> bool {
        self.settings.status == WebhookStatus::Active
            && self.settings.events.contains(&event)
            && self.settings.bucket_id.is_none_or(|only| only == bucket_id)
    }
}
