//! Events for several webhooks: their body is stored once, as long as a delivery needs it; and the eviction of
//! deliveries for a new trigger.

use std::sync::Arc;

use super::super::*;
use super::alerts::{attempt, delivery, verdict, webhook, with_rule};
use super::id;

/// A catalog with webhooks 30 and 31.
fn with_webhooks() -> Catalog {
    let mut catalog = with_rule();
    catalog.apply(&Command::WebhookCreated {
        webhook: webhook(31, id(1)),
    });
    catalog
}

/// Event `number` for both webhooks: deliveries `number` + 1 and `number` + 2.
fn fan_out(event: Event, number: u64, at_ns: i64) -> FanOut {
    let text = format!("{{\"webhookId\":\"{}\",\"data\":1}}", id(number));
    let to = |webhook, n| (id(webhook), id(number + n), id((number + n) << 32));
    FanOut {
        event,
        body: Arc::new(EventBody::new(id(number), id(1), at_ns, text.into_bytes())),
        deliveries: vec![to(30, 1), to(31, 2)],
    }
}

fn change_bucket(catalog: &mut Catalog, number: u64, at_ns: i64) {
    catalog.apply(&Command::BucketUpdated {
        bucket_id: id(3),
        name: "b".into(),
        description: None,
        retention_days: 30,
        at_ns,
        next_sequence: None,
        deliveries: Vec::new(),
        fan_out: Some(fan_out(Event::BucketUpdated, number, at_ns)),
    });
}

fn end(catalog: &mut Catalog, number: u64) {
    let made = attempt(id(number), 1_000, AfterAttempt::Delivered);
    catalog.apply(&Command::AttemptMade { made });
}

fn kept(catalog: &Catalog) -> Vec<EventBody> {
    let entries = catalog.ledger().of(Stream::Events, id(1)).into_iter();
    entries
        .map(|(_, entry)| EventBody::decode(&entry.payload.to_vec()).unwrap())
        .collect()
}

#[test]
fn each_webhook_is_notified_with_its_own_id() {
    let mut catalog = with_webhooks();
    change_bucket(&mut catalog, 50, 5);
    for number in [51, 52] {
        let delivery = catalog.pending_delivery(id(number)).unwrap();
        let sent = delivery.body.sent_as(delivery.webhook_id).unwrap();
        let expected = format!("{{\"webhookId\":\"{}\",\"data\":1}}", id(number << 32));
        assert_eq!(&*sent, expected.as_bytes());
    }
    let owed = catalog.owed(id(1));
    assert_eq!(owed.deliveries, 2);
    let body = catalog.event_body(id(50)).unwrap().bytes() as u64;
    let each = catalog.pending_delivery(id(51)).unwrap().owed_bytes() as u64;
    assert_eq!(owed.bytes, body + 2 * each, "the body counts once");
}

/// When the last delivery has ended, the ledger keeps the body, since finished deliveries may be redelivered.
#[test]
fn the_body_moves_to_the_ledger_with_the_last_delivery() {
    let mut catalog = with_webhooks();
    change_bucket(&mut catalog, 50, 5);
    let event = EventBody::clone(catalog.event_body(id(50)).unwrap());
    end(&mut catalog, 51);
    assert!(catalog.event_body(id(50)).is_some());
    assert_eq!(kept(&catalog), []);
    let entries = catalog.ledger().of(Stream::Deliveries, id(30));
    let ended = Delivery::decode(&entries[0].1.payload.to_vec()).unwrap();
    assert_eq!(ended.body, Body::Named(event.name()), "by name, not once more");
    end(&mut catalog, 52);
    assert!(catalog.event_body(id(50)).is_none());
    assert_eq!(kept(&catalog), [event]);
    assert_eq!(catalog.owed(id(1)), PendingTotals::default());
    assert_eq!(catalog.owed_bytes(), 0);
}

#[test]
fn deleting_a_webhook_or_redelivering_keeps_the_shared_body() {
    // The other one has ended: its redelivery needs the body.
    let mut catalog = with_webhooks();
    change_bucket(&mut catalog, 50, 5);
    end(&mut catalog, 51);
    catalog.apply(&Command::WebhookDeleted { webhook_id: id(31) });
    assert_eq!(kept(&catalog).len(), 1);
    // A delivery redelivered while it is pending has its own body from then on.
    let mut catalog = with_webhooks();
    change_bucket(&mut catalog, 50, 5);
    end(&mut catalog, 51);
    let again = Delivery {
        organization_id: Some(id(1)),
        ..delivery(52, Receiver::Webhook(id(31)))
    };
    catalog.apply(&Command::DeliveriesQueued {
        deliveries: vec![again],
    });
    assert!(catalog.event_body(id(50)).is_none());
    assert_eq!(kept(&catalog).len(), 1);
    assert_eq!(catalog.owed(id(1)).deliveries, 1);
}

fn trigger(catalog: &mut Catalog, number: u64, at_ns: i64, deliveries_max: u64, bytes_max: u64) {
    let mut verdict = verdict(number + 10, id(20), at_ns);
    verdict.fan_out = Some(fan_out(Event::AlertTriggered, number, at_ns));
    verdict.room = Some(PendingLimits {
        organization_id: id(1),
        deliveries_max,
        bytes_max,
    });
    catalog.apply(&Command::VerdictRecorded { verdict });
}

fn pending(catalog: &Catalog) -> Vec<u64> {
    let numbers = (0..1_000).filter(|number| catalog.pending_delivery(id(*number)).is_some());
    numbers.collect()
}

#[test]
fn a_trigger_evicts_the_oldest_deliveries_of_other_events_first() {
    let mut catalog = with_webhooks();
    trigger(&mut catalog, 100, 5, 6, u64::MAX);
    change_bucket(&mut catalog, 200, 6);
    change_bucket(&mut catalog, 300, 7);
    assert_eq!(pending(&catalog), [101, 102, 201, 202, 301, 302]);
    trigger(&mut catalog, 400, 8, 6, u64::MAX);
    assert_eq!(pending(&catalog), [101, 102, 301, 302, 401, 402]);
    trigger(&mut catalog, 500, 9, 3, u64::MAX);
    assert_eq!(pending(&catalog), [402, 501, 502]);
    // Its own deliveries are never evicted, even when the clock was set back.
    trigger(&mut catalog, 600, 1, 1, u64::MAX);
    assert_eq!(pending(&catalog), [601, 602]);
    trigger(&mut catalog, 700, 10, 100, 1);
    assert_eq!(pending(&catalog), [701, 702]);
}

#[test]
fn an_evicted_delivery_records_why_and_can_be_redelivered() {
    let mut catalog = with_webhooks();
    change_bucket(&mut catalog, 200, 6);
    trigger(&mut catalog, 400, 8, 2, u64::MAX);
    let entries = catalog.ledger().of(Stream::Deliveries, id(30));
    let ended = Delivery::decode(&entries[0].1.payload.to_vec()).unwrap();
    assert_eq!((ended.id, ended.status), (id(201), DeliveryStatus::Failed));
    let error = ended.attempts[0].error.as_deref().unwrap();
    assert!(error.contains("given up"), "{error}");
    assert_eq!(catalog.webhook(id(30)).unwrap().totals.failed, 1);
    assert_eq!(kept(&catalog)[0].id, id(200));
}

/// Commands in the format of older programs.
#[test]
fn commands_of_older_versions_are_read() {
    let command = Command::VerdictRecorded {
        verdict: verdict(40, id(20), 9),
    };
    let mut bytes = command.encode().unwrap();
    let mut put = |from: &[u8], to: &[u8]| {
        let at = bytes.windows(from.len()).position(|it| it == from).unwrap();
        bytes.splice(at..at + from.len(), to.iter().copied());
    };
    // A map of twelve members becomes one of ten.
    put(b"\xa7verdict\x8c", b"\xa7verdict\x8a");
    put(b"\xa7fan_out\xc0", b"");
    put(b"\xa4room\xc0", b"");
    let Command::VerdictRecorded { verdict } = Command::decode(&bytes).unwrap() else {
        panic!("another command");
    };
    assert_eq!((verdict.fan_out, verdict.room), (None, None));
}
