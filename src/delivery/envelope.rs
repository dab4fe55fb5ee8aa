//! The bodies of deliveries, and the deliveries that an event causes.
//!
//! Pure: ids, names, times and values are arguments. The body for a webhook is an envelope around the event's data. The
//! `webhookUrl` of a rule gets a body in a different form.

use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::catalog::{
    Body, Delivery, DeliveryStatus, Event, EventBody, FanOut, NewDeliveries, Receiver, Webhook,
};
use crate::ids::{ObjectId, ObjectIds};
use crate::timestamp::Timestamp;

/// A rule has fired: the data of `alert.triggered`.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trigger<'a> {
    #[serde(skip)]
    pub bucket: Named<'a>,
    pub alert_id: ObjectId,
    pub alert_name: &'a str,
    pub data_source_id: ObjectId,
    pub data_source_name: &'a str,
    /// The condition as text.
    pub condition: &'a str,
    /// The field's value; `None` if the caller did not give it.
    pub current_value: Option<&'a RawValue>,
    /// What the value was compared with; `None` if the caller did not give it.
    pub threshold: Option<&'a RawValue>,
    /// How they were compared; `None` if the caller did not give it.
    pub operator: Option<&'a RawValue>,
    pub triggered_at: Timestamp,
    /// The point that fired the rule, if any: as the evaluator sent it, or the newest [`Point`] of the source.
    pub data_point: Option<&'a RawValue>,
}

/// Id and name of an object.
#[derive(Clone, Copy, Serialize)]
pub struct Named<'a> {
    #[serde(rename = "_id")]
    pub id: ObjectId,
    pub name: &'a str,
}

#[derive(Clone, Copy, Serialize)]
pub struct Point<'a> {
    /// Left out of triggers.
    #[serde(rename = "_id", skip_serializing_if = "Option::is_none")]
    pub id: Option<ObjectId>,
    pub timestamp: Timestamp,
    /// A JSON object of field names and values.
    pub values: &'a RawValue,
    /// A JSON object.
    #[serde(serialize_with = "object_or_empty")]
    pub metadata: Option<&'a RawValue>,
}

/// The part of an ingest that concerns one source: the data of `data.received`.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Received<'a> {
    pub data_source_id: ObjectId,
    pub data_source_name: &'a str,
    /// The newest point of the source.
    pub data_point: Point<'a>,
    /// Number of points of this source in a batch; `None` for a single point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_point_count: Option<u32>,
}

/// A change of a bucket's configuration: the data of `bucket.updated`.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketUpdate<'a> {
    pub changes: BucketChanges<'a>,
    /// The API key or user that made the change.
    pub updated_by: ObjectId,
    pub updated_at: Timestamp,
}

/// The members of a bucket that changed.
#[derive(Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketChanges<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Change<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Change<Option<&'a str>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<Change<u32>>,
}

#[derive(Clone, Copy, Serialize)]
pub struct Change<T> {
    old: T,
    new: T,
}

impl<T: PartialEq> Change<T> {
    /// `None` if the values are equal.
    pub fn between(old: T, new: T) -> Option<Self> {
        (old != new).then_some(Self { old, new })
    }
}

impl Trigger<'_> {
    /// The body for the rule's own `webhookUrl`.
    pub fn rule_body(&self) -> Body {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Data<'a> {
            alert_id: ObjectId,
            alert_name: &'a str,
            condition: &'a str,
            triggered_at: Timestamp,
            data_point: Option<&'a RawValue>,
            bucket: Named<'a>,
            data_source: Named<'a>,
        }
        to_body(&Data {
            alert_id: self.alert_id,
            alert_name: self.alert_name,
            condition: self.condition,
            triggered_at: self.triggered_at,
            data_point: self.data_point,
            bucket: self.bucket,
            data_source: Named {
                id: self.data_source_id,
                name: self.data_source_name,
            },
        })
    }
}

/// The data of `webhook.test`.
pub fn test_data() -> Value {
    json!({"message": "this is a test: deliveries reach this webhook"})
}

/// The deliveries of an event of a bucket to all webhooks that subscribe to it. Several webhooks share one body, because
/// only the delivery's id as the receiver sees it differs.
pub fn new_deliveries(
    event: Event,
    bucket_id: ObjectId,
    webhooks: &[Arc<Webhook>],
    ids: &ObjectIds,
    now_ns: i64,
    data: &impl Serialize,
) -> NewDeliveries {
    let receives = |webhook: &&Arc<Webhook>| webhook.receives(event, bucket_id);
    let subscribers: Vec<&Arc<Webhook>> = webhooks.iter().filter(receives).collect();
    let bucket_id = Some(bucket_id);
    match subscribers.as_slice() {
        [] => NewDeliveries::default(),
        [webhook] => NewDeliveries::of(vec![delivery_to(webhook, event, bucket_id, ids, now_ns, data)]),
        [first, ..] => {
            let id = ids.next(now_ns);
            let text = enveloped(event, now_ns, id, bucket_id, data)
                .sent_as(id)
                .unwrap_or_default();
            let delivery_ids = |webhook: &&Arc<Webhook>| (webhook.id, ids.next(now_ns), ids.next(now_ns));
            NewDeliveries {
                fan_out: Some(FanOut {
                    event,
                    body: Arc::new(EventBody::new(id, first.organization_id, now_ns, text)),
                    deliveries: subscribers.iter().map(delivery_ids).collect(),
                }),
                ..NewDeliveries::default()
            }
        }
    }
}

/// A delivery to a webhook that is due at once. `bucket_id` is the bucket of the event; of a test, the one that the
/// webhook subscribes to, `None` for all.
pub fn delivery_to(
    webhook: &Webhook,
    event: Event,
    bucket_id: Option<ObjectId>,
    ids: &ObjectIds,
    now_ns: i64,
    data: &impl Serialize,
) -> Delivery {
    let receiver = Receiver::Webhook(webhook.id);
    let body = |webhook_id| enveloped(event, now_ns, webhook_id, bucket_id, data);
    delivery(receiver, webhook.organization_id, event, ids, now_ns, body)
}

/// A delivery that is due at once. `body` makes its body from its id as the receiver sees it.
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

/// The body of an event at `now_ns`, UTC nanoseconds, for one delivery.
pub(super) fn enveloped(
    event: Event,
    now_ns: i64,
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
    to_body(&Envelope {
        event: event.name(),
        timestamp: Timestamp(now_ns),
        webhook_id,
        bucket_id,
        data,
    })
}

#[expect(
    clippy::expect_used,
    reason = "BUG: names and values of a body are valid JSON"
)]
fn to_body(body: &impl Serialize) -> Body {
    Body::whole(serde_json::to_vec(body).expect("BUG: names and values of a body are valid JSON"))
}

fn object_or_empty<S: Serializer>(object: &Option<&RawValue>, serializer: S) -> Result<S::Ok, S::Error> {
    match object {
        Some(object) => object.serialize(serializer),
        None => serializer.serialize_map(Some(0))?.end(),
    }
}
