//! `/api/webhooks/{id}/deliveries`, `/api/webhooks/{id}/test` and `/api/alerts/{id}/deliveries`.

use actix_web::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::catalog::{Attempt, Delivery};
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Pagination, Reader, Reply, get, post};
use crate::http::shape::{DeliveredEventDoc, DeliveryStatusDoc};
use crate::ids::ObjectId;
use crate::service::page::{Page, PageRequest};
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

/// Those of alert rules.
pub fn endpoints_of_rules() -> Vec<Endpoint> {
    vec![get(
        "/api/alerts/{id}/deliveries",
        "listRuleDeliveries",
        list_of_rule,
    )]
}

async fn list(call: Call<Admin, (ObjectId, PageRequest)>) -> Reply<DeliveriesAnswer<'static>> {
    let (webhook_id, asked) = call.params;
    listed(
        asked,
        &call.service.webhook_deliveries(&call.caller, webhook_id, asked)?,
    )
}

async fn list_of_rule(call: Call<Reader, (ObjectId, PageRequest)>) -> Reply<DeliveriesAnswer<'static>> {
    let (rule_id, asked) = call.params;
    listed(
        asked,
        &call.service.rule_deliveries(&call.caller, rule_id, asked)?,
    )
}

fn listed(asked: PageRequest, page: &Page<Delivery>) -> Reply<DeliveriesAnswer<'static>> {
    Answer::of(&DeliveriesAnswer {
        deliveries: page.entries.iter().map(DeliveryView::of).collect(),
        pagination: Pagination::of(asked, page),
    })
}

async fn test(call: Call<Admin, ObjectId>) -> Reply<DeliveryAnswer<'static>> {
    let delivery = call.service.test_webhook(&call.caller, call.params).await?;
    Answer::of(&DeliveryAnswer {
        message: "test queued",
        delivery: DeliveryView::of(&delivery),
    })
}

async fn redeliver(call: Call<Admin, (ObjectId, ObjectId)>) -> Reply<DeliveryAnswer<'static>> {
    let (webhook_id, delivery_id) = call.params;
    let delivery = call
        .service
        .redeliver(&call.caller, webhook_id, delivery_id)
        .await?;
    Answer::of(&DeliveryAnswer {
        message: "delivery queued again",
        delivery: DeliveryView::of(&delivery),
    })
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
