//! The exact bodies of deliveries.

use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};

use crate::catalog::{
    Body, DeliveryStatus, Event, RetryConfig, Secret, Webhook, WebhookFormat, WebhookSettings, WebhookStatus,
};
use crate::clock::SECOND_NS;
use crate::delivery::envelope::{
    BucketChanges, BucketUpdate, Change, Named, Point, Received, Trigger, enveloped, new_deliveries,
    test_data,
};
use crate::ids::{ObjectId, ObjectIds};
use crate::timestamp::Timestamp;

const AT_NS: i64 = 1_700_000_000 * SECOND_NS + 500_000_000;
const BUCKET: ObjectId = ObjectId::from_bytes([0xb0; 12]);
const OTHER_BUCKET: ObjectId = ObjectId::from_bytes([0xb1; 12]);
const SOURCE: ObjectId = ObjectId::from_bytes([0x50; 12]);
const SOURCE_NAME: &str = "probe \"7\"";
const WEBHOOK_ID: ObjectId = ObjectId::from_bytes([0xee; 12]);

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn text(body: &Body) -> String {
    // A delivery with its own body uses it for any receiver.
    String::from_utf8(body.sent_as(BUCKET).unwrap().to_vec()).unwrap()
}

/// The body of an event of the bucket.
fn of_bucket(event: Event, data: &impl serde::Serialize) -> Body {
    enveloped(event, AT_NS, WEBHOOK_ID, Some(BUCKET), data)
}

fn trigger<'a>(
    point: Option<&'a RawValue>,
    [value, threshold, operator]: [Option<&'a RawValue>; 3],
) -> Trigger<'a> {
    Trigger {
        alert_id: ObjectId::from_bytes([0xa1; 12]),
        alert_name: "too hot",
        condition: "temperature above 30",
        bucket: Named {
            id: BUCKET,
            name: "plant",
        },
        data_source_id: SOURCE,
        data_source_name: SOURCE_NAME,
        current_value: value,
        threshold,
        operator,
        triggered_at: Timestamp(AT_NS),
        data_point: point,
    }
}

#[test]
fn a_trigger_names_both_sides_of_the_comparison() {
    let (value, threshold, operator) = (raw("31.50"), raw("30"), raw("\"gt\""));
    let (values, metadata) = (raw(r#"{"temperature":31.50}"#), raw(r#"{"rack":1e2}"#));
    let point = Point {
        id: None,
        timestamp: Timestamp(1_700_000_000 * SECOND_NS),
        values: &values,
        metadata: Some(&metadata),
    };
    let compared = [Some(&*value), Some(&*threshold), Some(&*operator)];
    let point = to_raw_value(&point).unwrap();
    let trigger = trigger(Some(&point), compared);
    assert_eq!(
        text(&of_bucket(Event::AlertTriggered, &trigger)),
        concat!(
            r#"{"event":"alert.triggered","timestamp":"2023-11-14T22:13:20.500Z","#,
            r#""webhookId":"eeeeeeeeeeeeeeeeeeeeeeee","bucketId":"b0b0b0b0b0b0b0b0b0b0b0b0","#,
            r#""data":{"alertId":"a1a1a1a1a1a1a1a1a1a1a1a1","alertName":"too hot","#,
            r#""dataSourceId":"505050505050505050505050","dataSourceName":"probe \"7\"","#,
            r#""condition":"temperature above 30","currentValue":31.50,"threshold":30,"operator":"gt","#,
            r#""triggeredAt":"2023-11-14T22:13:20.500Z","dataPoint":{"timestamp":"2023-11-14T22:13:20Z","#,
            r#""values":{"temperature":31.50},"metadata":{"rack":1e2}}}}"#
        )
    );
    assert_eq!(
        text(&trigger.rule_body()),
        concat!(
            r#"{"alertId":"a1a1a1a1a1a1a1a1a1a1a1a1","alertName":"too hot","condition":"temperature above 30","#,
            r#""triggeredAt":"2023-11-14T22:13:20.500Z","dataPoint":{"timestamp":"2023-11-14T22:13:20Z","#,
            r#""values":{"temperature":31.50},"metadata":{"rack":1e2}},"#,
            r#""bucket":{"_id":"b0b0b0b0b0b0b0b0b0b0b0b0","name":"plant"},"#,
            r#""dataSource":{"_id":"505050505050505050505050","name":"probe \"7\""}}"#
        )
    );
}

#[test]
fn missing_facts_are_null_and_evidence_is_sent_verbatim() {
    let body = of_bucket(Event::AlertTriggered, &trigger(None, [None; 3]));
    assert!(text(&body).contains(r#""currentValue":null,"threshold":null,"operator":null,"#));
    assert!(text(&body).contains(r#""dataPoint":null"#));
    let evidence = raw(r#"{"values" : [1, 2.0]}"#);
    let body = trigger(Some(&evidence), [None; 3]).rule_body();
    assert!(text(&body).contains(r#""dataPoint":{"values" : [1, 2.0]},"#));
}

#[test]
fn an_ingest_carries_its_point_and_a_batch_its_counts() {
    let values = raw(r#"{"t":1.0,"on":true}"#);
    let single = Received {
        data_source_id: SOURCE,
        data_source_name: SOURCE_NAME,
        data_point: Point {
            id: Some(ObjectId::of_point(1, 255)),
            timestamp: Timestamp(0),
            values: &values,
            metadata: None,
        },
        data_point_count: None,
    };
    let expected = concat!(
        r#"{"event":"data.received","timestamp":"2023-11-14T22:13:20.500Z","#,
        r#""webhookId":"eeeeeeeeeeeeeeeeeeeeeeee","bucketId":"b0b0b0b0b0b0b0b0b0b0b0b0","#,
        r#""data":{"dataSourceId":"505050505050505050505050","dataSourceName":"probe \"7\"","#,
        r#""dataPoint":{"_id":"0000000100000000000000ff","timestamp":"1970-01-01T00:00:00Z","#,
        r#""values":{"t":1.0,"on":true},"metadata":{}}}}"#
    );
    assert_eq!(text(&of_bucket(Event::DataReceived, &single)), expected);
    let batch = Received {
        data_point_count: Some(250),
        ..single
    };
    let expected = expected.replace(r#""metadata":{}}}}"#, r#""metadata":{}},"dataPointCount":250}}"#);
    assert_eq!(text(&of_bucket(Event::DataReceived, &batch)), expected);
}

#[test]
fn an_update_lists_what_changed() {
    let changes = BucketChanges {
        name: Change::between("old", "new"),
        description: Change::between(None, Some("d")),
        retention_days: Change::between(7, 7),
    };
    let update = BucketUpdate {
        changes,
        updated_by: ObjectId::from_bytes([0x0b; 12]),
        updated_at: Timestamp(AT_NS),
    };
    assert_eq!(
        text(&of_bucket(Event::BucketUpdated, &update)),
        concat!(
            r#"{"event":"bucket.updated","timestamp":"2023-11-14T22:13:20.500Z","#,
            r#""webhookId":"eeeeeeeeeeeeeeeeeeeeeeee","bucketId":"b0b0b0b0b0b0b0b0b0b0b0b0","#,
            r#""data":{"changes":{"name":{"old":"old","new":"new"},"description":{"old":null,"new":"d"}},"#,
            r#""updatedBy":"0b0b0b0b0b0b0b0b0b0b0b0b","updatedAt":"2023-11-14T22:13:20.500Z"}}"#
        )
    );
}

#[test]
fn a_test_names_the_subscribed_bucket_or_null() {
    let body = enveloped(Event::WebhookTest, AT_NS, WEBHOOK_ID, None, &test_data());
    assert!(text(&body).starts_with(r#"{"event":"webhook.test","timestamp":"2023-11-14T22:13:20.500Z","#));
    assert!(text(&body).contains(r#""bucketId":null,"data":{"message":"#));
    let body = of_bucket(Event::WebhookTest, &test_data());
    assert!(text(&body).contains(r#""bucketId":"b0b0b0b0b0b0b0b0b0b0b0b0","#));
}

fn webhook(number: u8, event: Event, bucket_id: Option<ObjectId>, status: WebhookStatus) -> Arc<Webhook> {
    Arc::new(Webhook {
        id: ObjectId::from_bytes([number; 12]),
        organization_id: ObjectId::from_bytes([0; 12]),
        settings: WebhookSettings {
            url: "https://example.com".into(),
            events: vec![event],
            bucket_id,
            secret: Secret("s".into()),
            retry: RetryConfig::default(),
            status,
            format: WebhookFormat::Standard,
        },
        totals: Default::default(),
        created_at_ns: 0,
        updated_at_ns: 0,
    })
}

#[test]
fn every_subscribed_webhook_gets_its_own_delivery() {
    use Event::{AlertTriggered, BucketUpdated};
    use WebhookStatus::{Active, Paused};
    let webhooks = [
        webhook(1, AlertTriggered, None, Active),
        webhook(2, AlertTriggered, Some(BUCKET), Active),
        webhook(3, AlertTriggered, Some(OTHER_BUCKET), Active),
        webhook(4, AlertTriggered, None, Paused),
        webhook(5, BucketUpdated, None, Active),
    ];
    let ids = ObjectIds::new().unwrap();
    let trigger = trigger(None, [None; 3]);
    let body = |webhook_id| enveloped(AlertTriggered, AT_NS, webhook_id, Some(BUCKET), &trigger);
    let made = new_deliveries(AlertTriggered, BUCKET, &webhooks, &ids, AT_NS, &trigger);
    assert_eq!(made.deliveries, []);
    let fan_out = made.fan_out.unwrap();
    let owners: Vec<_> = fan_out.deliveries.iter().map(|(webhook, ..)| *webhook).collect();
    assert_eq!(owners, [webhooks[0].id, webhooks[1].id]);
    for (_, _, webhook_id) in &fan_out.deliveries {
        let sent = fan_out.body.sent_as(*webhook_id);
        assert_eq!(
            &*sent,
            text(&body(*webhook_id)).as_bytes(),
            "as if it were made for it"
        );
    }
    let made = fan_out.deliveries.iter();
    let mut ids: Vec<_> = made.flat_map(|(_, id, webhook_id)| [*id, *webhook_id]).collect();
    ids.push(fan_out.body.id);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5, "no id is used twice");
}

#[test]
fn a_single_subscriber_gets_a_delivery_with_its_own_body() {
    let webhooks = [webhook(1, Event::AlertTriggered, None, WebhookStatus::Active)];
    let ids = ObjectIds::new().unwrap();
    let made = new_deliveries(
        Event::AlertTriggered,
        BUCKET,
        &webhooks,
        &ids,
        AT_NS,
        &trigger(None, [None; 3]),
    );
    let [delivery] = made.deliveries.as_slice() else {
        panic!("one delivery");
    };
    assert_eq!((made.fan_out, delivery.receiver.owner()), (None, webhooks[0].id));
    assert!(text(&delivery.body).contains(&format!(r#""webhookId":"{}""#, delivery.webhook_id)));
    assert_eq!(delivery.next_attempt_at_ns, Some(AT_NS), "due at once");
    assert_eq!((delivery.status, delivery.tries), (DeliveryStatus::Pending, 0));
}
