//! Which webhooks are notified, by event, bucket and status; a hanging receiver delays no other.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{EVENTS, admin, deliveries, hook, receiver, scene, send_test, update, wait_until_ended};
use crate::scene::column;
use crate::support::given::{Account, point, text};
use crate::support::receiver::{Receiver, status};
use crate::support::time::{SECOND, now_ns};

#[test]
fn a_webhook_receives_its_events_of_its_buckets() {
    let (server, account, bucket) = scene();
    let other = account.bucket("other");
    let receiver = receiver();
    for event in EVENTS {
        hook(&account, &receiver, &format!("/{event}"), &[event]);
    }
    hook(&account, &receiver, "/all", &EVENTS);
    account.webhook(&json!({"url": receiver.url("/one"), "events": EVENTS, "bucketId": bucket.id}));
    let foreigner = Account::sign_up(&server.client);
    hook(&foreigner, &receiver, "/foreign", &EVENTS);
    let evaluator = account.evaluator();
    for bucket in [&bucket, &other] {
        let source = bucket.source("gauge", &["level"]);
        bucket
            .single(&point(&source, now_ns() / SECOND * SECOND, &json!({"level": 7})))
            .expect(201, "a point");
        update(bucket, "told");
        evaluator.evaluate(&bucket.evaluated_rule("high", &source), "met");
    }
    let deliveries_on = |path: &str, count: usize| {
        let mut deliveries_on: Vec<(String, String)> = receiver
            .wait(path, count)
            .iter()
            .map(|request| {
                (
                    text(&request.json(), "/bucketId"),
                    text(&request.json(), "/event"),
                )
            })
            .collect();
        deliveries_on.sort();
        deliveries_on
    };
    let expected = |buckets: &[&str], events: &[&str]| {
        let mut expected: Vec<(String, String)> = buckets
            .iter()
            .flat_map(|bucket| {
                events
                    .iter()
                    .map(|event| ((*bucket).to_owned(), (*event).to_owned()))
            })
            .collect();
        expected.sort();
        expected
    };
    let both = [bucket.id.as_str(), other.id.as_str()];
    for event in EVENTS {
        assert_eq!(
            deliveries_on(&format!("/{event}"), 2),
            expected(&both, &[event]),
            "contract 7: a webhook receives the events it was registered for"
        );
    }
    assert_eq!(
        deliveries_on("/all", 6),
        expected(&both, &EVENTS),
        "contract 7: without `bucketId` it receives events of all buckets of the organization"
    );
    assert_eq!(
        deliveries_on("/one", 3),
        expected(&both[..1], &EVENTS),
        "contract 7: with `bucketId` it receives events of that bucket"
    );
    assert!(
        receiver.received("/foreign").is_empty(),
        "contract 1: a webhook of another organization receives nothing"
    );
    let mut ids: Vec<String> = EVENTS
        .iter()
        .map(|event| format!("/{event}"))
        .chain(["/all".to_owned(), "/one".to_owned()])
        .flat_map(|path| receiver.received(&path))
        .map(|request| text(&request.json(), "/webhookId"))
        .collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(
        ids.len(),
        count,
        "contract 7: `webhookId` is different for every event and webhook"
    );
}

#[test]
fn nothing_is_queued_for_a_paused_webhook() {
    let (_server, account, bucket) = scene();
    let receiver = receiver();
    let webhook = hook(&account, &receiver, "/", &["bucket.updated"]);
    let path = format!("/api/webhooks/{webhook}");
    let patch = |status: &str| {
        admin(&account, "PATCH", &path, &json!({"status": status})).expect(200, "contract 7: PATCH `status`");
    };
    patch("paused");
    update(&bucket, "while it is paused");
    send_test(&account, &webhook);
    let received = receiver.wait("/", 1);
    assert_eq!(
        received[0].json()["event"],
        "webhook.test",
        "contract 10: test and redelivery work on paused webhooks"
    );
    patch("active");
    update(&bucket, "while it is active");
    let received = receiver.wait("/", 2);
    assert_eq!(
        received[1].json()["data"]["changes"]["description"]["new"],
        "while it is active",
        "contract 7: paused: nothing is queued for it, then either"
    );
    let listed = wait_until_ended(&account, &format!("webhooks/{webhook}"), 2);
    assert_eq!(
        column(&listed, "/event"),
        [json!("bucket.updated"), json!("webhook.test")],
        "contract 7: paused: nothing is queued for it"
    );
}

#[test]
fn a_patched_webhook_receives_by_its_new_settings() {
    let (_server, account, bucket) = scene();
    let receiver = receiver();
    let webhook = hook(&account, &receiver, "/before", &["data.received"]);
    let path = format!("/api/webhooks/{webhook}");
    update(&bucket, "unheard");
    let patch = json!({"url": receiver.url("/after"), "events": ["bucket.updated"]});
    admin(&account, "PATCH", &path, &patch).expect(200, "contract 7: PATCH");
    update(&bucket, "heard");
    let received = receiver.wait("/after", 1);
    assert_eq!(
        received[0].json()["data"]["changes"]["description"],
        json!({"old": "unheard", "new": "heard"}),
        "contract 7: a patched webhook receives the events it is registered for now"
    );
    assert!(
        receiver.received("/before").is_empty(),
        "contract 7: and only there"
    );
    admin(&account, "DELETE", &path, &Value::Null).expect(200, "contract 7: DELETE");
    let last = hook(&account, &receiver, "/last", &["bucket.updated"]);
    update(&bucket, "after the deletion");
    receiver.wait("/last", 1);
    wait_until_ended(&account, &format!("webhooks/{last}"), 1);
    assert_eq!(
        receiver.received("/after").len(),
        1,
        "contract 7: a deleted webhook receives nothing"
    );
}

/// A receiver never answers: others are notified immediately, ingest continues, and the attempt times out after 30 s.
#[test]
fn one_slow_receiver_delays_no_other() {
    let (_server, account, bucket) = scene();
    // Dropped when the test ends, so that the receiver never answers.
    let (_keeps_silence, over) = std::sync::mpsc::channel::<()>();
    let over = Mutex::new(over);
    let receiver = Receiver::answering(move |request, _| {
        if request.path == "/slow" {
            let _ = over.lock().unwrap().recv();
        }
        status(200)
    });
    let slow = text(
        &account.webhook(&json!({
            "url": receiver.url("/slow"), "events": EVENTS, "retryConfig": {"maxRetries": 0},
        })),
        "/_id",
    );
    let fast = hook(&account, &receiver, "/fast", &EVENTS);
    let started = Instant::now();
    send_test(&account, &slow);
    receiver.wait("/slow", 1);
    let source = bucket.source("gauge", &["level"]);
    for nth in 0..20 {
        update(&bucket, &format!("change {nth}"));
        bucket
            .single(&point(
                &source,
                now_ns() / SECOND * SECOND,
                &json!({"level": nth}),
            ))
            .expect(201, "contract 7: one slow receiver never delays an ingest");
    }
    receiver.wait("/fast", 40);
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "contract 7: one slow receiver never delays another: {:?}",
        started.elapsed()
    );
    let listed = deliveries(&account, &format!("webhooks/{slow}"));
    assert!(
        listed.iter().any(|delivery| delivery["status"] == "pending"),
        "what hangs is pending: {listed:?}"
    );
    wait_until_ended(&account, &format!("webhooks/{fast}"), 20);
    let test =
        crate::support::waiting::until_within(Duration::from_secs(40), "spec: a timeout of 30 s", || {
            let listed = deliveries(&account, &format!("webhooks/{slow}"));
            listed
                .into_iter()
                .find(|delivery| delivery["event"] == "webhook.test" && delivery["status"] != "pending")
        });
    let sentence = "spec: per-request timeout is 30 seconds";
    assert_eq!(test["status"], "failed", "{sentence}: {test}");
    let took = test["attempts"][0]["durationMs"].as_u64().unwrap_or_default();
    assert!((29_000..36_000).contains(&took), "{sentence}: {test}");
    assert!(
        test["attempts"][0]["error"].is_string(),
        "contract 7: a failure says why: {test}"
    );
}
