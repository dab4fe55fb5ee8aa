//! Rules, webhooks and deliveries: the state after each command.

use super::super::*;
use super::{create_source, field, id, with_bucket};
use crate::clock::HOUR_NS;
use crate::ids::ObjectId;

pub(super) fn rule_settings(text: &str) -> RuleSettings {
    RuleSettings {
        name: "hot".into(),
        text: text.into(),
        form: RuleForm::Condition,
        parsed: None,
        webhook_url: Some("https://example.com".into()),
        cooldown_minutes: 5.0,
        status: RuleStatus::Active,
        evaluation: Some(Evaluation {
            kind: Some("threshold".into()),
            interval_seconds: 60.0,
            window_seconds: 300.0,
            inputs: vec![Input {
                fill: None,
                timezone: None,
                dimensions: None,
                group_by_dimensions: Vec::new(),
                key: "t".into(),
                field: "a".into(),
                source_id: None,
                grouping: Some(("avg".into(), "minute".into())),
                window_seconds: None,
            }],
            parameters: vec![
                ("value".into(), Parameter::Number(30.0)),
                ("strict".into(), Parameter::Boolean(true)),
                ("unit".into(), Parameter::Text("°C".into())),
            ],
            dwell_seconds: 300.0,
        }),
    }
}

pub(super) fn webhook(number: u64, organization_id: ObjectId) -> Webhook {
    Webhook {
        id: id(number),
        organization_id,
        settings: WebhookSettings {
            url: "https://example.com".into(),
            events: vec![Event::AlertTriggered, Event::BucketUpdated],
            bucket_id: None,
            secret: Secret("s".into()),
            retry: RetryConfig::default(),
            status: WebhookStatus::Active,
            format: WebhookFormat::Standard,
        },
        totals: DeliveryTotals::default(),
        created_at_ns: 0,
        updated_at_ns: 0,
    }
}

/// A silence of the whole organization, for an hour.
pub(super) fn silence(number: u64, organization_id: ObjectId, created_at_ns: i64) -> Silence {
    Silence {
        id: id(number),
        organization_id,
        bucket_id: None,
        alert_ids: None,
        bucket_ids: Vec::new(),
        until_ns: created_at_ns + HOUR_NS,
        reason: "maintenance".into(),
        created_at_ns,
        created_by: id(9),
    }
}

/// An annotation of a whole bucket, at the time of its creation.
pub(super) fn annotation(number: u64, bucket_id: ObjectId, created_at_ns: i64) -> Annotation {
    Annotation {
        id: id(number),
        bucket_id,
        settings: AnnotationSettings {
            source_id: None,
            at_ns: created_at_ns,
            until_ns: None,
            text: format!("note {number}").into(),
        },
        created_at_ns,
        created_by: id(9),
        updated_at_ns: created_at_ns,
    }
}

pub(super) fn delivery(number: u64, receiver: Receiver) -> Delivery {
    Delivery {
        id: id(number),
        webhook_id: id(number << 32),
        receiver,
        event: Event::AlertTriggered,
        body: Body::whole(b"{}".as_slice()),
        created_at_ns: number as i64,
        status: DeliveryStatus::Pending,
        attempts: Vec::new(),
        tries: 0,
        next_attempt_at_ns: Some(0),
        again: false,
        organization_id: None,
    }
}

pub(super) fn verdict(number: u64, rule_id: ObjectId, at_ns: i64) -> Verdict {
    Verdict {
        id: id(number),
        rule_id,
        at_ns,
        outcome: Outcome::Met,
        evidence: Some("{\"n\": 1.0}".into()),
        key_id: id(9),
        previous_state: RuleState::Armed,
        runtime: RuleRuntime {
            state: RuleState::Firing,
            last_triggered_at_ns: Some(at_ns),
            ..RuleRuntime::new(0)
        },
        trigger_id: Some(id(number << 40)),
        silence_id: None,
        deliveries: Vec::new(),
        fan_out: None,
        room: None,
        told: Vec::new(),
    }
}

pub(super) fn attempt(delivery_id: ObjectId, at_ns: i64, then: AfterAttempt) -> AttemptMade {
    AttemptMade {
        delivery_id,
        attempt: Attempt {
            at_ns,
            status_code: Some(503),
            error: Some("the receiver answered 503".into()),
            duration_ms: 7,
        },
        then,
    }
}

/// A catalog with rule 20 on source 10, and webhook 30.
pub(super) fn with_rule() -> Catalog {
    let mut catalog = with_bucket();
    catalog.apply(&create_source(10, "s", vec![field("a", FieldType::Number)]));
    catalog.apply(&Command::RuleCreated {
        rule: NewRule {
            id: id(20),
            source_id: id(10),
            settings: rule_settings("a above 30"),
            created_at_ns: 5,
        },
    });
    catalog.apply(&Command::WebhookCreated {
        webhook: webhook(30, id(1)),
    });
    catalog
}

fn queue(catalog: &mut Catalog, deliveries: Vec<Delivery>) {
    catalog.apply(&Command::DeliveriesQueued { deliveries });
}

fn end(catalog: &mut Catalog, number: u64, then: AfterAttempt) {
    catalog.apply(&Command::AttemptMade {
        made: attempt(id(number), 1_000, then),
    });
}

/// Counts of all, successful and failed deliveries.
fn totals(catalog: &Catalog) -> (u64, u64, u64) {
    let totals = catalog.webhook(id(30)).unwrap().totals;
    (totals.total, totals.successful, totals.failed)
}

#[test]
fn rules_are_deleted_with_their_source_or_bucket() {
    let mut catalog = with_rule();
    assert_eq!(catalog.contents_of(id(3)).alert_rules, 1);
    assert_eq!(catalog.rule_count_of_source(id(3), id(10)), 1);
    catalog.apply(&Command::SourceDeleted { source_id: id(10) });
    assert!(catalog.rule(id(20)).is_none());
    assert_eq!(catalog.rule_count(id(3)), 0);

    let mut catalog = with_rule();
    catalog.apply(&Command::BucketDeleted { bucket_id: id(3) });
    assert_eq!(catalog.rules().count(), 0);
}

#[test]
fn a_rule_for_a_deleted_source_is_not_created() {
    let mut catalog = with_rule();
    catalog.apply(&Command::SourceDeleted { source_id: id(10) });
    let rule = NewRule {
        id: id(21),
        source_id: id(10),
        settings: rule_settings("a above 30"),
        created_at_ns: 5,
    };
    catalog.apply(&Command::RuleCreated { rule });
    assert!(catalog.rule(id(21)).is_none());
}

#[test]
fn a_trigger_is_pending_even_when_its_rule_is_deleted() {
    let mut catalog = with_rule();
    catalog.apply(&Command::RuleDeleted { rule_id: id(20) });
    let mut verdict = verdict(40, id(20), 9);
    verdict.deliveries.push(delivery(41, Receiver::Webhook(id(30))));
    catalog.apply(&Command::VerdictRecorded { verdict });
    assert!(catalog.rule(id(20)).is_none());
    assert_eq!(catalog.pending_deliveries_of(id(30)).count(), 1);
}

#[test]
fn a_delivery_is_pending_until_it_ends() {
    let mut catalog = with_rule();
    queue(&mut catalog, vec![delivery(41, Receiver::Webhook(id(30)))]);
    end(&mut catalog, 41, AfterAttempt::Retry(77));
    let pending = catalog.pending_delivery(id(41)).unwrap();
    assert_eq!((pending.tries, pending.next_attempt_at_ns), (1, Some(77)));
    assert_eq!(totals(&catalog), (1, 0, 0));
    end(&mut catalog, 41, AfterAttempt::Delivered);
    assert!(catalog.pending_delivery(id(41)).is_none());
    assert_eq!(totals(&catalog), (1, 1, 0));
    let webhook = catalog.webhook(id(30)).unwrap();
    assert_eq!(webhook.totals.last_delivered, Some(true));
    // An attempt in flight when the delivery ended changes nothing.
    end(&mut catalog, 41, AfterAttempt::Failed);
    assert_eq!(totals(&catalog), (1, 1, 0));
}

#[test]
fn a_redelivery_is_the_same_delivery_and_counts_once() {
    let mut catalog = with_rule();
    let first = delivery(41, Receiver::Webhook(id(30)));
    queue(&mut catalog, vec![first.clone()]);
    end(&mut catalog, 41, AfterAttempt::Failed);
    assert_eq!(totals(&catalog), (1, 0, 1));
    let failed = Delivery {
        status: DeliveryStatus::Failed,
        ..first
    };
    // Two concurrent requests for a redelivery.
    queue(&mut catalog, vec![failed.clone()]);
    queue(&mut catalog, vec![failed]);
    assert_eq!(totals(&catalog), (1, 0, 0), "pending again");
    assert!(catalog.pending_delivery(id(41)).unwrap().again);
    end(&mut catalog, 41, AfterAttempt::Delivered);
    assert_eq!(totals(&catalog), (1, 1, 0));
}

#[test]
fn a_deleted_webhook_has_no_pending_deliveries() {
    let mut catalog = with_rule();
    let to_rule = Receiver::Rule {
        rule_id: id(20),
        url: "https://example.com".into(),
    };
    queue(
        &mut catalog,
        vec![
            delivery(41, Receiver::Webhook(id(30))),
            delivery(42, to_rule.clone()),
        ],
    );
    catalog.apply(&Command::WebhookDeleted { webhook_id: id(30) });
    assert!(catalog.pending_delivery(id(41)).is_none());
    assert_eq!(catalog.pending_delivery(id(42)).unwrap().receiver, to_rule);
    assert_eq!(catalog.webhooks_of(id(1)).count(), 0);
}
