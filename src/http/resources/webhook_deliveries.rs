//! `/api/webhooks/{id}/deliveries`, `/api/webhooks/{id}/test` and `/api/alerts/{id}/deliveries`.

use actix_web::http::StatusCode;

use super::views::{Many, One, Resource, view};
use crate::catalog::{Attempt, Delivery, DeliveryStatus, Event};
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reader, Reply, get, post};
use crate::http::shape::{DeliveredEventDoc, DeliveryStatusDoc};
use crate::ids::ObjectId;
use crate::service::page::PageRequest;
use crate::timestamp::Timestamp;

view! {
    /// A delivery of an event.
    pub struct DeliveryView<'a> of(delivery: &'a Delivery) {
        /// ID of the delivery.
        #[serde(rename = "_id")]
        id: ObjectId = delivery.id,
        /// The `webhookId` that the receiver gets: the same on every attempt.
        webhook_id: ObjectId = delivery.webhook_id,
        /// Type of the event.
        #[schema(value_type = DeliveredEventDoc)]
        event: Event = delivery.event,
        /// Status of the delivery.
        #[schema(value_type = DeliveryStatusDoc)]
        status: DeliveryStatus = delivery.status,
        /// Attempts, oldest first.
        attempts: Vec<AttemptView<'a>> = delivery.attempts.iter().map(AttemptView::of).collect(),
        /// When the next attempt is due; null when the delivery is finished.
        next_attempt_at: Option<Timestamp> = delivery.next_attempt_at_ns.map(Timestamp),
        /// When the delivery was first queued.
        created_at: Timestamp = Timestamp(delivery.created_at_ns),
    }
}

view! {
    /// One attempt to deliver.
    pub struct AttemptView<'a> of(attempt: &'a Attempt) {
        /// When the attempt started.
        at: Timestamp = Timestamp(attempt.at_ns),
        /// HTTP status of the receiver's response.
        status_code?: u16 = attempt.status_code,
        /// Why the attempt failed.
        error?: &'a str = attempt.error.as_deref(),
        /// Duration of the attempt, in milliseconds.
        duration_ms: u32 = attempt.duration_ms,
    }
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
