//! `/api/webhooks/{id}/deliveries`, `/api/webhooks/{id}/test` and `/api/alerts/{id}/deliveries`.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::docs::{DeliveredEventDoc, DeliveryStatusDoc};
use super::faults::Faults;
use super::params::{self, PageParams, Pagination};
use super::{auth, respond};
use crate::catalog::{Attempt, Delivery};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::service::page::{Page, PageRequest};
use crate::service::{Access, Caller, Service};
use crate::timestamp::Timestamp;

/// A delivery.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// The id that the receiver knows it by: the same on every attempt.
    pub webhook_id: ObjectId,
    /// What it tells of.
    #[schema(value_type = DeliveredEventDoc)]
    pub event: &'static str,
    /// Where it stands.
    #[schema(value_type = DeliveryStatusDoc)]
    pub status: &'static str,
    /// Oldest first.
    pub attempts: Vec<AttemptView<'a>>,
    /// When the next attempt is due; null when finished.
    pub next_attempt_at: Option<Timestamp>,
    /// When it was queued first.
    pub created_at: Timestamp,
}

/// One try.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView<'a> {
    /// When it began.
    pub at: Timestamp,
    /// What the receiver answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub status_code: Option<u16>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<&'a str>,
    /// How long it took.
    pub duration_ms: u32,
}

/// A page of deliveries.
#[derive(Serialize, ToSchema)]
pub struct DeliveriesAnswer<'a> {
    /// Newest first.
    pub deliveries: Vec<DeliveryView<'a>>,
    /// Which part.
    pub pagination: Pagination,
}

/// An answer about a delivery that was queued.
#[derive(Serialize, ToSchema)]
pub struct DeliveryAnswer<'a> {
    /// What was done.
    pub message: &'static str,
    /// As it is now.
    pub delivery: DeliveryView<'a>,
}

/// Lists the deliveries of a webhook of the last 7 days.
///
/// Newest first, with every attempt.
#[utoipa::path(get, path = "/api/webhooks/{id}/deliveries", operation_id = "listDeliveries", tag = "webhooks",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(
        ("id" = ObjectId, Path, description = "The webhook."),
        PageParams),
    responses(
        (status = 200, body = DeliveriesAnswer, description = "A page of deliveries.")))]
pub async fn list(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    list_with(&request, &service, Access::ADMIN, Service::webhook_deliveries).await
}

/// Lists the deliveries to a rule's `webhookUrl` of the last 7 days.
///
/// Newest first, with every attempt.
#[utoipa::path(get, path = "/api/alerts/{id}/deliveries", operation_id = "listRuleDeliveries", tag = "alert rules",
    security(("apiKey" = ["admin", "write", "read"]), ("bearer" = [])),
    params(
        ("id" = ObjectId, Path, description = "The alert rule."),
        PageParams),
    responses(
        (status = 200, body = DeliveriesAnswer, description = "A page of deliveries.")))]
pub async fn list_of_rule(
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let readers = Access::ADMIN.or(Access::WRITE).or(Access::READ);
    list_with(&request, &service, readers, Service::rule_deliveries).await
}

/// Sends a test event to a webhook.
///
/// The event is `webhook.test`. It works on paused webhooks too; see its attempts among the deliveries.
#[utoipa::path(post, path = "/api/webhooks/{id}/test", operation_id = "testWebhook", tag = "webhooks",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(("id" = ObjectId, Path, description = "The webhook.")),
    responses(
        (status = 202, body = DeliveryAnswer, description = "Queued.")))]
pub async fn test(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let delivery = service.test_webhook(&caller, params::only_id(&request)?).await?;
    let answer = DeliveryAnswer {
        message: "test queued",
        delivery: DeliveryView::of(&delivery),
    };
    respond::json(&request, StatusCode::ACCEPTED, &answer).await
}

/// Sends a delivery once more.
///
/// Under the same `webhookId`, so that a receiver that has it already can tell. The whole retry schedule begins again.
#[utoipa::path(post, path = "/api/webhooks/{id}/deliveries/{deliveryId}/redeliver", operation_id = "redeliver", tag = "webhooks",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(
        ("id" = ObjectId, Path, description = "The webhook."),
        ("deliveryId" = ObjectId, Path, description = "The delivery.")),
    responses(
        (status = 202, body = DeliveryAnswer, description = "Queued again.")))]
pub async fn redeliver(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let mut faults = Faults::default();
    let webhook_id = params::id(&request, "id", &mut faults);
    let delivery_id = params::id(&request, "deliveryId", &mut faults);
    let (Some(webhook_id), Some(delivery_id)) = (webhook_id, delivery_id) else {
        return Err(faults.into_error());
    };
    let delivery = service.redeliver(&caller, webhook_id, delivery_id).await?;
    let answer = DeliveryAnswer {
        message: "delivery queued again",
        delivery: DeliveryView::of(&delivery),
    };
    respond::json(&request, StatusCode::ACCEPTED, &answer).await
}

async fn list_with(
    request: &HttpRequest,
    service: &Service,
    access: Access,
    list: impl FnOnce(&Service, &Caller, ObjectId, PageRequest) -> Result<Page<Delivery>, ServiceError>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(request, service, access)?;
    let mut faults = Faults::default();
    let id = params::id(request, "id", &mut faults);
    let asked = params::page(request, &mut faults);
    let (Some(id), Some(asked)) = (id, asked) else {
        return Err(faults.into_error());
    };
    let page = list(service, &caller, id, asked)?;
    let answer = DeliveriesAnswer {
        deliveries: page.entries.iter().map(DeliveryView::of).collect(),
        pagination: Pagination::of(asked, &page),
    };
    respond::json(request, StatusCode::OK, &answer).await
}

impl<'a> DeliveryView<'a> {
    fn of(delivery: &'a Delivery) -> Self {
        let attempt = |attempt: &'a Attempt| AttemptView {
            at: Timestamp(attempt.at_ns),
            status_code: attempt.status_code,
            error: attempt.error.as_deref(),
            duration_ms: attempt.duration_ms,
        };
        Self {
            id: delivery.id,
            webhook_id: delivery.webhook_id,
            event: delivery.event.name(),
            status: delivery.status.name(),
            attempts: delivery.attempts.iter().map(attempt).collect(),
            next_attempt_at: delivery.next_attempt_at_ns.map(Timestamp),
            created_at: Timestamp(delivery.created_at_ns),
        }
    }
}
