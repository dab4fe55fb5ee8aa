//! `/api/webhooks`: subscriptions to events.

use actix_web::http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::views::{Many, One, Resource};
use crate::catalog::{Event, RetryConfig, Webhook, WebhookSettings, WebhookStatus};
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reply, delete, get, patch, post};
use crate::http::shape::{DeliveryStatusDoc, Integer, List, Number, Patch, Secret, Url, body, shown_number};
use crate::ids::ObjectId;
use crate::limits::{BACKOFF_MULTIPLIER, RETRIES_MAX};
use crate::service::page::PageRequest;
use crate::service::webhooks::{RetryPatch, WebhookPatch, secret_or_generated};
use crate::timestamp::Timestamp;

type Events = List<Event, 1, { usize::MAX }>;
type Retries = Integer<0, RETRIES_MAX>;
type Multiplier = Number<{ BACKOFF_MULTIPLIER.0 }, { BACKOFF_MULTIPLIER.1 }>;

/// A webhook.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookView<'a> {
    /// ID of the webhook.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// ID of the organization that owns the webhook.
    pub organization_id: ObjectId,
    /// Bucket whose events are delivered; null for all buckets.
    pub bucket_id: Option<ObjectId>,
    /// URL that receives the events.
    pub url: &'a str,
    /// Events that it receives.
    #[schema(value_type = Vec<Event>)]
    pub events: Vec<&'static str>,
    /// Secret that signs deliveries; returned only once, when the webhook is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub secret: Option<&'a str>,
    /// Retry policy for failed deliveries.
    pub retry_config: RetryView,
    /// `active` or `paused`.
    #[schema(value_type = WebhookStatus)]
    pub status: &'static str,
    /// Number of deliveries queued.
    pub total_deliveries: u64,
    /// Number of deliveries that succeeded with a 2xx.
    pub successful_deliveries: u64,
    /// Number of deliveries that failed after all retries.
    pub failed_deliveries: u64,
    /// When the last delivery finished.
    pub last_delivery_at: Option<Timestamp>,
    /// Result of the last delivery: `delivered` or `failed`.
    #[schema(value_type = Option<DeliveryStatusDoc>)]
    pub last_delivery_status: Option<&'static str>,
    /// When the webhook was created.
    pub created_at: Timestamp,
    /// When the settings last changed.
    pub updated_at: Timestamp,
}

/// Retry policy for failed deliveries.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryView {
    /// Maximum number of retries after the first attempt.
    pub max_retries: u8,
    /// Base of the exponential backoff: retry n follows after this to the power of n − 1 seconds.
    #[schema(value_type = f64)]
    pub backoff_multiplier: Value,
}

/// A deleted webhook.
#[derive(Serialize, ToSchema)]
pub struct DeletedWebhookView<'a> {
    /// ID of the webhook.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// URL that received the events.
    pub url: &'a str,
}

/// The response to a deletion.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedWebhookAnswer<'a> {
    /// Result in words.
    pub message: &'static str,
    /// The deleted webhook.
    pub deleted_webhook: DeletedWebhookView<'a>,
}

body! {
    /// Body of a request that creates a webhook.
    pub struct WebhookBody {
        /// URL that receives the events: http or https, with a public host.
        url: Url,
        /// Events that it receives.
        events: Events,
        /// Bucket whose events are delivered; all buckets when absent.
        bucket_id: Option<ObjectId>,
        /// Secret that signs deliveries; generated when absent.
        secret: Option<Secret>,
        /// Retry policy for failed deliveries.
        retry_config: Option<RetryBody>,
        /// `active` when absent.
        status: Option<WebhookStatus>,
    }
}

body! {
    /// Body of a request that changes a webhook; absent members keep their values.
    pub struct WebhookPatchBody {
        /// URL that receives the events: http or https, with a public host.
        url: Option<Url>,
        /// Events that it receives.
        events: Option<Events>,
        /// Bucket whose events are delivered; null for all buckets.
        #[schema(value_type = Option<ObjectId>)]
        bucket_id: Patch<ObjectId>,
        /// New secret that signs deliveries.
        secret: Option<Secret>,
        /// Retry policy for failed deliveries.
        retry_config: Option<RetryBody>,
        /// `active` or `paused`.
        status: Option<WebhookStatus>,
    }
}

body! {
    /// Retry policy for failed deliveries.
    pub struct RetryBody {
        /// Maximum number of retries after the first attempt; 3 when absent.
        max_retries: Option<Retries>,
        /// Base of the exponential backoff; 2 when absent, which waits 1, 2 and 4 seconds.
        backoff_multiplier: Option<Multiplier>,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/webhooks", "listWebhooks", list),
        post("/api/webhooks", "createWebhook", create).status(StatusCode::CREATED),
        get("/api/webhooks/{id}", "showWebhook", show),
        patch("/api/webhooks/{id}", "updateWebhook", update),
        delete("/api/webhooks/{id}", "deleteWebhook", remove),
    ]
}

async fn list(call: Call<Admin, PageRequest>) -> Reply<Many<WebhookView<'static>>> {
    let page = call.service.list_webhooks(&call.caller, call.params);
    Answer::page(call.params, &page, |webhook| WebhookView::of(webhook))
}

async fn create(call: Call<Admin, (), WebhookBody>) -> Reply<One<WebhookView<'static>>> {
    let body = call.body;
    let settings = WebhookSettings {
        url: body.url.0.into(),
        events: each_once(body.events),
        bucket_id: body.bucket_id,
        secret: secret_or_generated(body.secret.map(|secret| secret.0))?,
        retry: retry_of(body.retry_config).applied_to(RetryConfig::default()),
        status: body.status.unwrap_or(WebhookStatus::Active),
    };
    let webhook = call.service.create_webhook(&call.caller, settings).await?;
    let view = WebhookView {
        secret: Some(&webhook.settings.secret.0),
        ..WebhookView::of(&webhook)
    };
    Answer::changed("webhook created", view)
}

async fn show(call: Call<Admin, ObjectId>) -> Reply<One<WebhookView<'static>>> {
    let webhook = call.service.webhook(&call.caller, call.params)?;
    Answer::one(WebhookView::of(&webhook))
}

async fn update(call: Call<Admin, ObjectId, WebhookPatchBody>) -> Reply<One<WebhookView<'static>>> {
    let body = call.body;
    let patch = WebhookPatch {
        url: body.url.map(|url| url.0),
        events: body.events.map(each_once),
        bucket_id: body.bucket_id.0,
        secret: body.secret.map(|secret| secret.0),
        retry: retry_of(body.retry_config),
        status: body.status,
    };
    let webhook = call
        .service
        .update_webhook(&call.caller, call.params, patch)
        .await?;
    Answer::changed("webhook updated", WebhookView::of(&webhook))
}

async fn remove(call: Call<Admin, ObjectId>) -> Reply<DeletedWebhookAnswer<'static>> {
    let webhook = call.service.delete_webhook(&call.caller, call.params).await?;
    Answer::of(&DeletedWebhookAnswer {
        message: "webhook deleted",
        deleted_webhook: DeletedWebhookView {
            id: webhook.id,
            url: &webhook.settings.url,
        },
    })
}

/// Removes duplicates and keeps the order.
fn each_once(events: Events) -> Vec<Event> {
    let mut once = Vec::new();
    for event in events.0 {
        if !once.contains(&event) {
            once.push(event);
        }
    }
    once
}

fn retry_of(body: Option<RetryBody>) -> RetryPatch {
    body.map_or_else(RetryPatch::default, |body| RetryPatch {
        max_retries: body.max_retries.map(|retries| retries.0 as u8),
        backoff_multiplier: body.backoff_multiplier.map(|multiplier| multiplier.0),
    })
}

impl Resource for WebhookView<'_> {
    const ONE: &'static str = "webhook";
    const MANY: &'static str = "webhooks";
}

impl<'a> WebhookView<'a> {
    fn of(webhook: &'a Webhook) -> Self {
        let (settings, totals) = (&webhook.settings, &webhook.totals);
        Self {
            id: webhook.id,
            organization_id: webhook.organization_id,
            bucket_id: settings.bucket_id,
            url: &settings.url,
            events: settings.events.iter().map(|event| event.name()).collect(),
            secret: None,
            retry_config: RetryView {
                max_retries: settings.retry.max_retries,
                backoff_multiplier: shown_number(settings.retry.backoff_multiplier),
            },
            status: settings.status.name(),
            total_deliveries: totals.total,
            successful_deliveries: totals.successful,
            failed_deliveries: totals.failed,
            last_delivery_at: totals.last_at_ns.map(Timestamp),
            last_delivery_status: totals
                .last_delivered
                .map(|delivered| if delivered { "delivered" } else { "failed" }),
            created_at: Timestamp(webhook.created_at_ns),
            updated_at: Timestamp(webhook.updated_at_ns),
        }
    }
}
