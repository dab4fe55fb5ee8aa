//! `/api/webhooks/{id}/deliveries`, `/api/webhooks/{id}/test` and `/api/alerts/{id}/deliveries`.

use actix_web::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::views::{Many, One, Resource};
use crate::catalog::{Attempt, Delivery};
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reader, Reply, get, post};
use crate::http::shape::{DeliveredEventDoc, DeliveryStatusDoc};
use crate::ids::ObjectId;
use crate::service::page::PageRequest;
use crate::timestamp::Timestamp;

/// A delivery of an event.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView<'a> {
    /// ID of the delivery.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// The `webhookId` that the receiver gets: the same on every attempt.
    pub webhook_id: ObjectId,
    /// Type of the event.
    #[schema(value_type = DeliveredEventDoc)]
    pub event: &'static str,
    /// Status of the delivery.
    #[schema(value_type = DeliveryStatusDoc)]
    pub status: &'static str,
    /// Attempts, oldest first.
    pub attempts: Vec<AttemptView<'a>>,
    /// When the next attempt is due; null when the delivery is finished.
    pub next_attempt_at: Option<Timestamp>,
    /// When the delivery was first queued.
    pub created_at: Timestamp,
}

/// One attempt to deliver.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView<'a> {
    /// When the attempt started.
    pub at: Timestamp,
    /// HTTP status of the receiver's response.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub status_code: Option<u16>,
    /// Why the attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<&'a str>,
    /// Duration of the attempt, in milliseconds.
    pub duration_ms: u32,
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/webhooks/{id}/deliveries", "listDeliveries", list),
        post("/api/webhooks/{id}/test", "testWebhook", test).status(StatusCode::ACCEPTED),
        post(
            "/api/webhooks/{id}/deliveries/{deliveryId}/redeliver",
            "redeliver",
            redeliver,
        )
        .status(StatusCode::ACCEPTED),
    ]
}

/// The endpoints for deliveries of alert rules.
pub fn endpoints_of_rules() -> Vec<Endpoint> {
    vec![get(
        "/api/alerts/{id}/deliveries",
        "listRuleDeliveries",
        list_of_rule,
    )]
}

async fn list(call: Call<Admin, (ObjectId, PageRequest)>) -> Reply<Many<DeliveryView<'static>>> {
    let (webhook_id, page_request) = call.params;
    let page = call
        .service
        .webhook_deliveries(&call.caller, webhook_id, page_request)?;
    Answer::page(page_request, &page, DeliveryView::of)
}

async fn list_of_rule(call: Call<Reader, (ObjectId, PageRequest)>) -> Reply<Many<DeliveryView<'static>>> {
    let (rule_id, page_request) = call.params;
    let page = call
        .service
        .rule_deliveries(&call.caller, rule_id, page_request)?;
    Answer::page(page_request, &page, DeliveryView::of)
}

async fn test(call: Call<Admin, ObjectId>) -> Reply<One<DeliveryView<'static>>> {
    let delivery = call.service.test_webhook(&call.caller, call.params).await?;
    Answer::changed("test queued", DeliveryView::of(&delivery))
}

async fn redeliver(call: Call<Admin, (ObjectId, ObjectId)>) -> Reply<One<DeliveryView<'static>>> {
    let (webhook_id, delivery_id) = call.params;
    let delivery = call
        .service
        .redeliver(&call.caller, webhook_id, delivery_id)
        .await?;
    Answer::changed("delivery queued again", DeliveryView::of(&delivery))
}

impl Resource for DeliveryView<'_> {
    const ONE: &'static str = "delivery";
    const MANY: &'static str = "deliveries";
    const ORDER: &'static str = "Newest first.";
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
