//! `/api/webhooks`: subscriptions to events.

use std::collections::HashSet;

use actix_web::http::StatusCode;
use serde_json::Value;

use super::views::{Many, One, Resource, view};
use crate::catalog::{
    self, Event, FormatName, RetryConfig, Webhook, WebhookFormat, WebhookSettings, WebhookStatus, json_number,
};
use crate::error::ServiceError;
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reply, delete, get, patch, post};
use crate::http::shape::{
    DeliveryStatusDoc, Integer, List, Number, Patch, Secret, Text, Trimmed, UrlOrMailto, body,
};
use crate::ids::ObjectId;
use crate::limits::{BACKOFF_MULTIPLIER, RETRIES_MAX, ROUTING_KEY_CHARS_MAX, TEMPLATE_CHARS_MAX};
use crate::service::page::PageRequest;
use crate::service::webhook_format::FormatChange;
use crate::service::webhooks::secret_or_generated;
use crate::timestamp::Timestamp;

type Events = List<Event, 1, { usize::MAX }>;
type TemplateText = Text<TEMPLATE_CHARS_MAX>;
type RoutingKey = Trimmed<ROUTING_KEY_CHARS_MAX>;
type Retries = Integer<0, RETRIES_MAX>;
type Multiplier = Number<{ BACKOFF_MULTIPLIER.0 }, { BACKOFF_MULTIPLIER.1 }>;

view! {
    /// A webhook.
    pub struct WebhookView<'a> of(webhook: &'a Webhook; settings = &webhook.settings, totals = &webhook.totals) {
        /// ID of the webhook.
        #[serde(rename = "_id")]
        id: ObjectId = webhook.id,
        /// ID of the organization that owns the webhook.
        organization_id: ObjectId = webhook.organization_id,
        /// Bucket whose events are delivered; null for all buckets.
        bucket_id: Option<ObjectId> = settings.bucket_id,
        /// URL that receives the events.
        url: &'a str = &settings.url,
        /// Events that it receives.
        events: Vec<Event> = settings.events.clone(),
        /// Secret that signs deliveries; returned only once, when the webhook is created.
        secret?: &'a str = None,
        /// Form of the deliveries: `standard`, `slack`, `teams`, `ntfy`, `pagerduty`, `email` or `template`.
        format: FormatName = settings.format.name(),
        /// Text of the deliveries in the format `template`; null in other formats.
        template: Option<&'a str> = settings.format.template(),
        /// Retry policy for failed deliveries.
        retry_config: RetryView = RetryView::of(settings.retry),
        /// `active` or `paused`.
        status: WebhookStatus = settings.status,
        /// Number of deliveries queued.
        total_deliveries: u64 = totals.total,
        /// Number of deliveries that succeeded with a 2xx.
        successful_deliveries: u64 = totals.successful,
        /// Number of deliveries that failed after all retries.
        failed_deliveries: u64 = totals.failed,
        /// When the last delivery finished.
        last_delivery_at: Option<Timestamp> = totals.last_at_ns.map(Timestamp),
        /// Result of the last delivery: `delivered` or `failed`.
        #[schema(value_type = Option<DeliveryStatusDoc>)]
        last_delivery_status: Option<&'static str> =
            totals.last_delivered.map(|delivered| if delivered { "delivered" } else { "failed" }),
        /// When the webhook was created.
        created_at: Timestamp = Timestamp(webhook.created_at_ns),
        /// When the settings last changed.
        updated_at: Timestamp = Timestamp(webhook.updated_at_ns),
    }
}

view! {
    /// Retry policy for failed deliveries.
    pub struct RetryView of(retry: RetryConfig) {
        /// Maximum number of retries after the first attempt.
        max_retries: u8 = retry.max_retries,
        /// Base of the exponential backoff: retry n follows after this to the power of n − 1 seconds.
        #[schema(value_type = f64)]
        backoff_multiplier: Value = json_number(retry.backoff_multiplier),
    }
}

view! {
    /// A deleted webhook.
    pub struct DeletedWebhookView<'a> of(webhook: &'a Webhook) {
        /// ID of the webhook.
        #[serde(rename = "_id")]
        id: ObjectId = webhook.id,
        /// URL that received the events.
        url: &'a str = &webhook.settings.url,
    }
}

view! {
    /// The response to a deletion.
    pub struct DeletedWebhookAnswer<'a> of(webhook: &'a Webhook) {
        /// Result in words.
        message: &'static str = "webhook deleted",
        /// The deleted webhook.
        deleted_webhook: DeletedWebhookView<'a> = DeletedWebhookView::of(webhook),
    }
}

body! {
    /// Body of a request that creates a webhook.
    pub struct WebhookBody {
        /// URL that receives the events: http or https, with a public host. With the format `email`: `mailto:` and one or
        /// more addresses by comma.
        url: UrlOrMailto,
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
        /// Form of the deliveries; `standard` when absent.
        format: Option<FormatName>,
        /// Text of the deliveries in the format `template`: `{{data.alertName}}` stands for a member of the event.
        template: Option<TemplateText>,
        /// Key of a PagerDuty integration, with the format `pagerduty`; never returned.
        routing_key: Option<RoutingKey>,
    }
}

body! {
    /// Body of a request that changes a webhook; absent members keep their values.
    pub struct WebhookPatchBody {
        /// URL that receives the events, as for the creation.
        url: Option<UrlOrMailto>,
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
        /// Form of the deliveries.
        format: Option<FormatName>,
        /// Text of the deliveries in the format `template`.
        template: Option<TemplateText>,
        /// Key of a PagerDuty integration, with the format `pagerduty`.
        routing_key: Option<RoutingKey>,
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
    let events = each_once(body.events);
    let format = format_of(body.format, body.template, body.routing_key);
    let settings = WebhookSettings {
        url: body.url.0.into(),
        format: format.over(&WebhookFormat::Standard, &events, call.service.has_mail_server())?,
        events,
        bucket_id: body.bucket_id,
        secret: secret_or_generated(body.secret.map(Into::into))?,
        retry: retry_over(RetryConfig::default(), body.retry_config),
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
    let (url, bucket_id) = (body.url.clone(), body.bucket_id.0.flatten());
    let url = url.as_ref().map(|url| &*url.0);
    let has_mail_server = call.service.has_mail_server();
    let change = |known: &WebhookSettings| body.applied_to(known, has_mail_server);
    let webhook = call
        .service
        .update_webhook(&call.caller, call.params, url, bucket_id, change)
        .await?;
    Answer::changed("webhook updated", WebhookView::of(&webhook))
}

async fn remove(call: Call<Admin, ObjectId>) -> Reply<DeletedWebhookAnswer<'static>> {
    let webhook = call.service.delete_webhook(&call.caller, call.params).await?;
    Answer::of(&DeletedWebhookAnswer::of(&webhook))
}

/// Removes duplicates and keeps the order.
fn each_once(mut events: Events) -> Vec<Event> {
    let mut seen = HashSet::new();
    events.0.retain(|event| seen.insert(*event));
    events.0
}

fn retry_over(known: RetryConfig, body: Option<RetryBody>) -> RetryConfig {
    let Some(body) = body else { return known };
    RetryConfig {
        max_retries: body
            .max_retries
            .map_or(known.max_retries, |retries| retries.0 as u8),
        backoff_multiplier: body
            .backoff_multiplier
            .map_or(known.backoff_multiplier, |multiplier| multiplier.0),
    }
}

impl WebhookPatchBody {
    fn applied_to(
        self,
        known: &WebhookSettings,
        has_mail_server: bool,
    ) -> Result<WebhookSettings, ServiceError> {
        let events = self.events.map_or_else(|| known.events.clone(), each_once);
        let format = format_of(self.format, self.template, self.routing_key);
        Ok(WebhookSettings {
            url: self.url.map_or_else(|| known.url.clone(), |url| url.0.into()),
            format: format.over(&known.format, &events, has_mail_server)?,
            events,
            bucket_id: self.bucket_id.0.unwrap_or(known.bucket_id),
            secret: self.secret.map_or_else(|| known.secret.clone(), Into::into),
            retry: retry_over(known.retry, self.retry_config),
            status: self.status.unwrap_or(known.status),
        })
    }
}

fn format_of(
    name: Option<FormatName>,
    template: Option<TemplateText>,
    routing_key: Option<RoutingKey>,
) -> FormatChange {
    FormatChange {
        name,
        template: template.map(|text| text.0.into()),
        routing_key: routing_key.map(|key| catalog::Secret(key.0.into())),
    }
}

impl From<Secret> for catalog::Secret {
    fn from(Secret(text): Secret) -> Self {
        Self(text.into())
    }
}

impl Resource for WebhookView<'_> {
    const ONE: &'static str = "webhook";
    const MANY: &'static str = "webhooks";
}
