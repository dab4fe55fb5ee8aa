//! The bodies of deliveries, and the deliveries that an event causes.
//!
//! Pure: ids, names, times and values are arguments. The body for a webhook is an envelope around the event's data. The
//! `webhookUrl` of a rule gets a body in a different form.

use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::catalog::{Body, Delivery, DeliveryStatus, Event, EventBody, FanOut, Owing, Receiver, Webhook};
use crate::ids::{ObjectId, ObjectIds};
use crate::timestamp::Timestamp;

/// A rule has fired.
#[derive(Clone, Copy)]
pub struct Trigger<'a> {
    pub rule_id: ObjectId,
    pub rule_name: &'a str,
    /// The condition as text.
    pub condition: &'a str,
    pub bucket: Named<'a>,
    pub source: Named<'a>,
    /// The field's value; `None` if the caller did not give it.
    pub current_value: Option<&'a RawValue>,
    /// What the value was compared with; `None` if the caller did not give it.
    pub threshold: Option<&'a RawValue>,
    /// How they were compared; `None` if the caller did not give it.
    pub operator: Option<&'a RawValue>,
    /// UTC nanoseconds.
    pub triggered_at_ns: i64,
    /// The point that fired the rule, if any.
    pub point: Option<TriggerPoint<'a>>,
}

/// Id and name of an object.
#[derive(Clone, Copy, Serialize)]
pub struct Named<'a> {
    #[serde(rename = "_id")]
    pub id: ObjectId,
    pub name: &'a str,
}

/// The point that fired a rule.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
pub enum TriggerPoint<'a> {
    /// As the evaluator sent it.
    Evidence(&'a RawValue),
    /// The newest point of the source.
    Newest(Point<'a>),
}

#[derive(Clone, Copy, Serialize)]
pub struct Point<'a> {
    pub timestamp: Timestamp,
    /// A JSON object of field names and values.
    pub values: &'a RawValue,
    /// A JSON object.
    #[serde(serialize_with = "object_or_empty")]
    pub metadata: Option<&'a RawValue>,
}

/// The part of an ingest that concerns one source.
#[derive(Clone, Copy)]
pub struct Received<'a> {
    pub bucket_id: ObjectId,
    pub source: Named<'a>,
    pub point_id: &'a str,
    /// The newest point of the source.
    pub point: Point<'a>,
    /// Number of points of this source in a batch; `None` for a single point.
    pub point_count: Option<u32>,
    /// UTC nanoseconds.
    pub received_at_ns: i64,
}

/// A change of a bucket's configuration.
#[derive(Clone, Copy)]
pub struct BucketUpdate<'a> {
    pub bucket_id: ObjectId,
    /// Field, old value, new value.
    pub changes: &'a [(&'static str, Value, Value)],
    /// The API key or user that made the change.
    pub updated_by: ObjectId,
    /// UTC nanoseconds.
    pub updated_at_ns: i64,
}

impl Trigger<'_> {
    /// The body of `alert.triggered`.
    pub fn body(&self, webhook_id: ObjectId) -> Body {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Data<'a> {
            alert_id: ObjectId,
            alert_name: &'a str,
            data_source_id: ObjectId,
            data_source_name: &'a str,
            condition: &'a str,
            current_value: Option<&'a RawValue>,
            threshold: Option<&'a RawValue>,
            operator: Option<&'a RawValue>,
            triggered_at: Timestamp,
            data_point: Option<TriggerPoint<'a>>,
        }
        let data = Data {
            alert_id: self.rule_id,
            alert_name: self.rule_name,
            data_source_id: self.source.id,
            data_source_name: self.source.name,
            condition: self.condition,
            current_value: self.current_value,
            threshold: self.threshold,
            operator: self.operator,
            triggered_at: Timestamp(self.triggered_at_ns),
            data_point: self.point,
        };
        enveloped(
            Event::AlertTriggered,
            self.triggered_at_ns,
            webhook_id,
            Some(self.bucket.id),
            &data,
        )
    }

    /// The body for the rule's own `webhookUrl`.
    pub fn rule_body(&self) -> Body {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Data<'a> {
            alert_id: ObjectId,
            alert_name: &'a str,
            condition: &'a str,
            triggered_at: Timestamp,
            data_point: Option<TriggerPoint<'a>>,
            bucket: Named<'a>,
            data_source: Named<'a>,
        }
        json(&Data {
            alert_id: self.rule_id,
            alert_name: self.rule_name,
            condition: self.condition,
            triggered_at: Timestamp(self.triggered_at_ns),
            data_point: self.point,
            bucket: self.bucket,
            data_source: self.source,
        })
    }
}

impl Received<'_> {
    /// The body of `data.received`.
    pub fn body(&self, webhook_id: ObjectId) -> Body {
        #[derive(Serialize)]
        struct StoredPoint<'a> {
            #[serde(rename = "_id")]
            id: &'a str,
            timestamp: Timestamp,
            values: &'a RawValue,
            #[serde(serialize_with = "object_or_empty")]
            metadata: Option<&'a RawValue>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Data<'a> {
            data_source_id: ObjectId,
            data_source_name: &'a str,
            data_point: StoredPoint<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            data_point_count: Option<u32>,
        }
        let data = Data {
            data_source_id: self.source.id,
            data_source_name: self.source.name,
            data_point: StoredPoint {
                id: self.point_id,
                timestamp: self.point.timestamp,
                values: self.point.values,
                metadata: self.point.metadata,
            },
            data_point_count: self.point_count,
        };
        enveloped(
            Event::DataReceived,
            self.received_at_ns,
            webhook_id,
            Some(self.bucket_id),
            &data,
        )
    }
}

impl BucketUpdate<'_> {
    /// The body of `bucket.updated`.
    pub fn body(&self, webhook_id: ObjectId) -> Body {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Data<'a> {
            #[serde(serialize_with = "changes")]
            changes: &'a [(&'static str, Value, Value)],
            updated_by: ObjectId,
            updated_at: Timestamp,
        }
        let data = Data {
            changes: self.changes,
            updated_by: self.updated_by,
            updated_at: Timestamp(self.updated_at_ns),
        };
        enveloped(
            Event::BucketUpdated,
            self.updated_at_ns,
            webhook_id,
            Some(self.bucket_id),
            &data,
        )
    }
}

/// The body of `webhook.test`. `bucket_id` is the bucket the webhook subscribes to; `None` means all buckets.
pub fn test_body(webhook_id: ObjectId, bucket_id: Option<ObjectId>, now_ns: i64) -> Body {
    #[derive(Serialize)]
    struct Data {
        message: &'static str,
    }
    let data = Data {
        message: "this is a test: deliveries reach this webhook",
    };
    enveloped(Event::WebhookTest, now_ns, webhook_id, bucket_id, &data)
}

/// The deliveries of an event to all webhooks that subscribe to it in this bucket. `body` makes the body for a given
/// delivery id as the receiver sees it. Several webhooks share one body, because only that id differs.
pub fn owing(
    event: Event,
    bucket_id: ObjectId,
    webhooks: &[Arc<Webhook>],
    ids: &ObjectIds,
    now_ns: i64,
    body: impl Fn(ObjectId) -> Body,
) -> Owing {
    let hears = |webhook: &&Arc<Webhook>| webhook.hears(event, bucket_id);
    let subscribers: Vec<&Arc<Webhook>> = webhooks.iter().filter(hears).collect();
    match subscribers.as_slice() {
        [] => Owing::default(),
        [webhook] => Owing::of(vec![delivery_to(webhook, event, ids, now_ns, body)]),
        [first, ..] => {
            let id = ids.next(now_ns);
            let text = body(id).sent_as(id).unwrap_or_default();
            let told = |webhook: &&Arc<Webhook>| (webhook.id, ids.next(now_ns), ids.next(now_ns));
            Owing {
                fan_out: Some(FanOut {
                    event,
                    body: Arc::new(EventBody::new(id, first.organization_id, now_ns, text)),
                    deliveries: subscribers.iter().map(told).collect(),
                }),
                ..Owing::default()
            }
        }
    }
}

/// A delivery to a webhook that is due at once.
pub fn delivery_to(
    webhook: &Webhook,
    event: Event,
    ids: &ObjectIds,
    now_ns: i64,
    body: impl FnOnce(ObjectId) -> Body,
) -> Delivery {
    let receiver = Receiver::Webhook(webhook.id);
    delivery(receiver, webhook.organization_id, event, ids, now_ns, body)
}

/// A delivery that is due at once.
pub fn delivery(
    receiver: Receiver,
    organization_id: ObjectId,
    event: Event,
    ids: &ObjectIds,
    now_ns: i64,
    body: impl FnOnce(ObjectId) -> Body,
) -> Delivery {
    let webhook_id = ids.next(now_ns);
    Delivery {
        id: ids.next(now_ns),
        webhook_id,
        receiver,
        event,
        body: body(webhook_id),
        created_at_ns: now_ns,
        status: DeliveryStatus::Pending,
        attempts: Vec::new(),
        tries: 0,
        next_attempt_at_ns: Some(now_ns),
        again: false,
        organization_id: Some(organization_id),
    }
}

fn enveloped(
    event: Event,
    at_ns: i64,
    webhook_id: ObjectId,
    bucket_id: Option<ObjectId>,
    data: &impl Serialize,
) -> Body {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Envelope<'a, D> {
        event: &'static str,
        timestamp: Timestamp,
        webhook_id: ObjectId,
        bucket_id: Option<ObjectId>,
        data: &'a D,
    }
    json(&Envelope {
        event: event.name(),
        timestamp: Timestamp(at_ns),
        webhook_id,
        bucket_id,
        data,
    })
}

#[expect(
    clippy::expect_used,
    reason = "BUG: names and values of a body are valid JSON"
)]
fn json(body: &impl Serialize) -> Body {
    Body::whole(serde_json::to_vec(body).expect("BUG: names and values of a body are valid JSON"))
}

fn object_or_empty<S: Serializer>(object: &Option<&RawValue>, serializer: S) -> Result<S::Ok, S::Error> {
    match object {
        Some(object) => object.serialize(serializer),
        None => serializer.serialize_map(Some(0))?.end(),
    }
}

fn changes<S: Serializer>(
    changes: &&[(&'static str, Value, Value)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Change<'a> {
        old: &'a Value,
        new: &'a Value,
    }
    let changes = changes.iter();
    serializer.collect_map(changes.map(|(field, old, new)| (field, Change { old, new })))
}
