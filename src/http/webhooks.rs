//! `/api/webhooks`.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::docs::{DeliveryStatusDoc, EventDoc};
use super::faults::{Faults, Members, kind_of};
use super::params::{self, PageParams, Pagination};
use super::{auth, body, respond, values};
use crate::catalog::{Event, RetryConfig, Webhook, WebhookStatus};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::{BACKOFF_MULTIPLIER, RETRIES_MAX, SECRET_CHARS_MAX, URL_CHARS_MAX};
use crate::service::webhooks::{RetryPatch, WebhookInput, WebhookPatch, check_secret};
use crate::service::{Access, Service};
use crate::timestamp::Timestamp;

/// A webhook.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Whose events it hears.
    pub organization_id: ObjectId,
    /// The one bucket it hears; null for all.
    pub bucket_id: Option<ObjectId>,
    /// Where it is told.
    pub url: &'a str,
    /// What it hears of.
    #[schema(value_type = Vec<EventDoc>)]
    pub events: Vec<&'static str>,
    /// Signs what it is told; shown once, when the webhook is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub secret: Option<&'a str>,
    /// When a failed delivery is tried again.
    pub retry_config: RetryView,
    /// `active` or `paused`.
    #[schema(value_type = WebhookStatus)]
    pub status: &'static str,
    /// Deliveries queued.
    pub total_deliveries: u64,
    /// Those that ended with a 2xx.
    pub successful_deliveries: u64,
    /// Those given up.
    pub failed_deliveries: u64,
    /// When the last one ended.
    pub last_delivery_at: Option<Timestamp>,
    /// `delivered` or `failed`.
    #[schema(value_type = Option<DeliveryStatusDoc>)]
    pub last_delivery_status: Option<&'static str>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its settings last changed.
    pub updated_at: Timestamp,
}

/// When a failed delivery is tried again.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryView {
    /// Attempts after the first.
    pub max_retries: u8,
    /// The n-th after this to the power of n − 1 seconds.
    #[schema(value_type = f64)]
    pub backoff_multiplier: Value,
}

/// A page of webhooks.
#[derive(Serialize, ToSchema)]
pub struct WebhooksAnswer<'a> {
    /// Oldest first.
    pub webhooks: Vec<WebhookView<'a>>,
    /// Which part.
    pub pagination: Pagination,
}

/// An answer about one webhook.
#[derive(Serialize, ToSchema)]
pub struct WebhookAnswer<'a> {
    /// What was done, for changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub message: Option<&'static str>,
    /// As it is now.
    pub webhook: WebhookView<'a>,
}

/// A deleted webhook.
#[derive(Serialize, ToSchema)]
pub struct DeletedWebhookView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Where it was told.
    pub url: &'a str,
}

/// An answer to a deletion.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedWebhookAnswer<'a> {
    /// What was done.
    pub message: &'static str,
    /// What it was.
    pub deleted_webhook: DeletedWebhookView<'a>,
}

/// Body of a creation.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct WebhookBody {
    /// http or https, with a public host.
    #[schema(min_length = 1, max_length = 2048)]
    pub url: String,
    /// What it hears of.
    #[schema(min_items = 1)]
    pub events: Vec<EventDoc>,
    /// The one bucket it hears; all when absent.
    pub bucket_id: Option<ObjectId>,
    /// Made when absent.
    #[schema(min_length = 1, max_length = 512)]
    pub secret: Option<String>,
    /// When a failed delivery is tried again.
    pub retry_config: Option<RetryBody>,
    /// `active` when absent.
    pub status: Option<WebhookStatus>,
}

/// Body of a change; what is left out stays.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct WebhookPatchBody {
    /// http or https, with a public host.
    #[schema(min_length = 1, max_length = 2048)]
    pub url: Option<String>,
    /// What it hears of.
    #[schema(min_items = 1)]
    pub events: Option<Vec<EventDoc>>,
    /// The one bucket it hears; null for all.
    pub bucket_id: Option<ObjectId>,
    /// Another secret.
    #[schema(min_length = 1, max_length = 512)]
    pub secret: Option<String>,
    /// When a failed delivery is tried again.
    pub retry_config: Option<RetryBody>,
    /// `active` or `paused`.
    pub status: Option<WebhookStatus>,
}

/// When a failed delivery is tried again.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct RetryBody {
    /// Attempts after the first: 3 when absent.
    #[schema(minimum = 0, maximum = 10)]
    pub max_retries: Option<u8>,
    /// 2 when absent: 1, 2, 4 seconds.
    #[schema(minimum = 1, maximum = 10)]
    pub backoff_multiplier: Option<f64>,
}

/// Lists the organization's webhooks.
///
/// Without their secrets, with the counts of their deliveries.
#[utoipa::path(get, path = "/api/webhooks", operation_id = "listWebhooks", tag = "webhooks",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(PageParams),
    responses(
        (status = 200, body = WebhooksAnswer, description = "A page of webhooks.")))]
pub async fn list(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let mut faults = Faults::default();
    let Some(asked) = params::page(&request, &mut faults) else {
        return Err(faults.into_error());
    };
    let page = service.list_webhooks(&caller, asked);
    let answer = WebhooksAnswer {
        webhooks: page
            .entries
            .iter()
            .map(|webhook| WebhookView::of(webhook))
            .collect(),
        pagination: Pagination::of(asked, &page),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Makes a webhook.
///
/// It hears the events of all buckets, or of one. Each delivery is signed with the secret, which is made when none is
/// sent and shown this once. A failed delivery is tried again as `retryConfig` says, and goes on after a restart. Private
/// and loopback addresses are refused unless the server allows them.
#[utoipa::path(post, path = "/api/webhooks", operation_id = "createWebhook", tag = "webhooks",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    request_body = WebhookBody,
    responses(
        (status = 201, body = WebhookAnswer, description = "The new webhook with its secret, this once.")))]
pub async fn create(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let body = body::read_json(&request, payload).await?;
    let mut faults = Faults::default();
    let members = Members::of_body(&body, &mut faults);
    let url = members.required("url", &mut faults, url);
    let events = read_events(members.required("events", &mut faults, Ok), &members, &mut faults);
    let patch = read_patch_members(&members, &mut faults);
    let (Some(url), Some(events), true) = (url, events, faults.none()) else {
        return Err(faults.into_error());
    };
    let input = WebhookInput {
        url,
        events,
        bucket_id: patch.bucket_id.flatten(),
        secret: patch.secret,
        retry: patch.retry.applied_to(RetryConfig::default()),
        status: patch.status.unwrap_or(WebhookStatus::Active),
    };
    let webhook = service.create_webhook(&caller, input).await?;
    let answer = WebhookAnswer {
        message: Some("webhook created"),
        webhook: WebhookView {
            secret: Some(&webhook.settings.secret.0),
            ..WebhookView::of(&webhook)
        },
    };
    respond::json(&request, StatusCode::CREATED, &answer).await
}

/// Shows a webhook.
///
/// Without its secret, with the counts of its deliveries.
#[utoipa::path(get, path = "/api/webhooks/{id}", operation_id = "showWebhook", tag = "webhooks",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(("id" = ObjectId, Path, description = "The webhook.")),
    responses(
        (status = 200, body = WebhookAnswer, description = "The webhook.")))]
pub async fn show(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let webhook = service.webhook(&caller, params::only_id(&request)?)?;
    let answer = WebhookAnswer {
        message: None,
        webhook: WebhookView::of(&webhook),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Changes a webhook.
///
/// What is left out stays. Nothing is queued for a `paused` webhook.
#[utoipa::path(patch, path = "/api/webhooks/{id}", operation_id = "updateWebhook", tag = "webhooks",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(("id" = ObjectId, Path, description = "The webhook.")),
    request_body = WebhookPatchBody,
    responses(
        (status = 200, body = WebhookAnswer, description = "As it is now.")))]
pub async fn update(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let body = body::read_json(&request, payload).await?;
    let mut faults = Faults::default();
    let id = params::id(&request, "id", &mut faults);
    let members = Members::of_body(&body, &mut faults);
    let patch = WebhookPatch {
        url: members.optional("url", &mut faults, url),
        events: read_events(members.given("events"), &members, &mut faults),
        ..read_patch_members(&members, &mut faults)
    };
    let Some(id) = id.filter(|_| faults.none()) else {
        return Err(faults.into_error());
    };
    let webhook = service.update_webhook(&caller, id, patch).await?;
    let answer = WebhookAnswer {
        message: Some("webhook updated"),
        webhook: WebhookView::of(&webhook),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Deletes a webhook with its deliveries.
///
/// Those that are still owed are not sent.
#[utoipa::path(delete, path = "/api/webhooks/{id}", operation_id = "deleteWebhook", tag = "webhooks",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(("id" = ObjectId, Path, description = "The webhook.")),
    responses(
        (status = 200, body = DeletedWebhookAnswer, description = "Deleted.")))]
pub async fn remove(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let webhook = service
        .delete_webhook(&caller, params::only_id(&request)?)
        .await?;
    let answer = DeletedWebhookAnswer {
        message: "webhook deleted",
        deleted_webhook: DeletedWebhookView {
            id: webhook.id,
            url: &webhook.settings.url,
        },
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

fn url(value: &Value) -> Result<String, String> {
    values::name(value, URL_CHARS_MAX)
}

/// The events, each once, in the order sent.
fn read_events(value: Option<&Value>, members: &Members<'_>, faults: &mut Faults) -> Option<Vec<Event>> {
    let names = Event::REGISTERED.map(|event| (event.name(), event));
    let path = members.path_of("events");
    let value = value?;
    let Some(entries) = value.as_array().filter(|entries| !entries.is_empty()) else {
        let got = if value.is_array() {
            "an empty one"
        } else {
            kind_of(value)
        };
        faults.add(&path, format!("must be an array of event names, not {got}"));
        return None;
    };
    let mut events = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        match values::one_of(entry, &names) {
            Ok(event) if !events.contains(&event) => events.push(event),
            Ok(_) => {}
            Err(fault) => {
                let place = path.iter().cloned().chain([index.to_string()]);
                faults.add(&place.collect::<Vec<_>>(), fault);
            }
        }
    }
    Some(events)
}

/// The members that creation and change read alike: all but URL and events.
fn read_patch_members(members: &Members<'_>, faults: &mut Faults) -> WebhookPatch {
    let statuses = WebhookStatus::ALL.map(|status| (status.name(), status));
    WebhookPatch {
        bucket_id: members.nullable("bucketId", faults, values::id),
        secret: members.optional("secret", faults, secret),
        retry: read_retry(members, faults),
        status: members.optional("status", faults, |v| values::one_of(v, &statuses)),
        ..WebhookPatch::default()
    }
}

fn secret(value: &Value) -> Result<String, String> {
    let secret = values::text(value, SECRET_CHARS_MAX)?;
    if secret.is_empty() {
        return Err("must not be empty; leave it out to have one made".to_owned());
    }
    check_secret(&secret)?;
    Ok(secret)
}

fn read_retry(members: &Members<'_>, faults: &mut Faults) -> RetryPatch {
    let Some(config) = members.given("retryConfig") else {
        return RetryPatch::default();
    };
    let config = Members::at(config, members.path_of("retryConfig"), faults);
    let (least, most) = BACKOFF_MULTIPLIER;
    RetryPatch {
        max_retries: config
            .optional("maxRetries", faults, |v| values::integer(v, 0, RETRIES_MAX))
            .map(|retries| retries as u8),
        backoff_multiplier: config.optional("backoffMultiplier", faults, |v| values::number(v, least, most)),
    }
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
                backoff_multiplier: values::shown_number(settings.retry.backoff_multiplier),
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
