//! Listing, repeating and counting deliveries.

use serde_json::{Value, json};

use super::{admin, deliveries, hook, receiver, scene, send_test, update, wait_until_ended};
use crate::scene::{UNKNOWN_ID, array, assert_timestamp, column, members};
use crate::support::given::text;
use crate::support::receiver::{Receiver, status};
use crate::support::waiting::until;

#[test]
fn deliveries_are_listed_newest_first() {
    let (mut server, account, bucket) = scene();
    let receiver = receiver();
    let webhook = hook(&account, &receiver, "/", &["bucket.updated"]);
    assert!(
        deliveries(&account, &format!("webhooks/{webhook}")).is_empty(),
        "nothing was sent yet"
    );
    for nth in 0..5 {
        update(&bucket, &format!("change {nth}"));
        receiver.wait("/", nth + 1);
    }
    send_test(&account, &webhook);
    let listed = wait_until_ended(&account, &format!("webhooks/{webhook}"), 6);
    let sent: Vec<Value> = receiver
        .received("/")
        .iter()
        .rev()
        .map(|r| r.json()["webhookId"].clone())
        .collect();
    assert_eq!(
        column(&listed, "/webhookId"),
        sent,
        "contract 7: `{{deliveries, pagination}}`, newest first"
    );
    assert_eq!(listed[0]["event"], "webhook.test", "contract 7: newest first");
    for delivery in &listed {
        for name in ["_id", "attempts", "event", "nextAttemptAt", "status", "webhookId"] {
            assert!(
                members(delivery).contains(&name),
                "contract 7: a delivery shows `{name}`: {delivery}"
            );
        }
        assert_eq!(
            delivery["status"], "delivered",
            "contract 7: `pending`, `delivered`, `failed`"
        );
        assert_eq!(
            delivery["attempts"][0]["statusCode"], 200,
            "contract 7: attempts: {delivery}"
        );
    }
    let path = format!("/api/webhooks/{webhook}/deliveries");
    let page = admin(&account, "GET", &format!("{path}?limit=2&offset=1"), &Value::Null).json();
    assert_eq!(
        array(&page, "/deliveries"),
        listed[1..3],
        "contract 1: all lists of this page paginate"
    );
    assert_eq!(
        page["pagination"],
        json!({"limit": 2, "offset": 1, "total": 6, "hasMore": true}),
        "contract 1: `pagination`"
    );
    server.kill();
    server.launch();
    let kept = |listed: &[Value]| -> Vec<Value> {
        listed
            .iter()
            .filter(|delivery| delivery["event"] != "data.received")
            .cloned()
            .collect()
    };
    assert_eq!(
        kept(&deliveries(&account, &format!("webhooks/{webhook}"))),
        kept(&listed),
        "contract 7: deliveries of `bucket.updated` are durable, and kept 7 days"
    );
}

#[test]
fn statistics_count_deliveries_not_attempts() {
    let (_server, account, _) = scene();
    // The second and the third test delivery fail once, the fourth fails permanently.
    let receiver =
        Receiver::answering(|_, before| status([200, 500, 200, 500, 200, 500, 500][before.min(6)]));
    let body = json!({
        "url": receiver.url("/"), "events": ["bucket.updated"],
        "retryConfig": {"maxRetries": 1, "backoffMultiplier": 1},
    });
    let webhook = text(&account.webhook(&body), "/_id");
    let shown = || {
        admin(&account, "GET", &format!("/api/webhooks/{webhook}"), &Value::Null).json()["webhook"].clone()
    };
    for (ended_so_far, (outcome, counts)) in [
        ("delivered", (1, 1, 0)),
        ("delivered", (2, 2, 0)),
        ("delivered", (3, 3, 0)),
        ("failed", (4, 3, 1)),
    ]
    .into_iter()
    .enumerate()
    {
        send_test(&account, &webhook);
        let listed = wait_until_ended(&account, &format!("webhooks/{webhook}"), ended_so_far + 1);
        assert_eq!(
            listed[0]["status"], outcome,
            "contract 7: the outcome of test {ended_so_far}"
        );
        let found = until("the statistics follow", || {
            let found = shown();
            let (total, successful, failed) = counts;
            let expected = json!([total, successful, failed]);
            let observed = json!([
                found["totalDeliveries"],
                found["successfulDeliveries"],
                found["failedDeliveries"]
            ]);
            (observed == expected).then_some(found)
        });
        assert_eq!(
            found["lastDeliveryStatus"], outcome,
            "spec: lastDeliveryStatus; contract 10: deliveries, not attempts"
        );
        assert_timestamp(&found["lastDeliveryAt"], "lastDeliveryAt");
    }
}

#[test]
fn a_redelivery_keeps_its_webhook_id() {
    let (mut server, account, bucket) = scene();
    let receiver = Receiver::answering(|_, before| status(if before < 1 { 500 } else { 200 }));
    let body =
        json!({"url": receiver.url("/"), "events": ["bucket.updated"], "retryConfig": {"maxRetries": 0}});
    let webhook = text(&account.webhook(&body), "/_id");
    let of = format!("webhooks/{webhook}");
    update(&bucket, "told twice");
    let failed = wait_until_ended(&account, &of, 1).remove(0);
    assert_eq!(
        failed["status"], "failed",
        "contract 7: after the last: status `failed`, kept, redeliverable"
    );
    admin(
        &account,
        "PATCH",
        &format!("/api/{of}"),
        &json!({"status": "paused"}),
    )
    .expect(200, "contract 7: PATCH");
    server.kill();
    server.launch();
    let path = |delivery: &str| format!("/api/{of}/deliveries/{delivery}/redeliver");
    let id = text(&failed, "/_id");
    for count in 2..4 {
        let answer = admin(&account, "POST", &path(&id), &Value::Null);
        let answer = answer.expect(
            202,
            "contract 7, 10: 202 `{message, delivery}`, on paused webhooks and delivered deliveries",
        );
        assert!(
            answer["message"].is_string(),
            "contract 7: 202 `{{message, delivery}}`: {answer}"
        );
        assert_eq!(
            answer["delivery"]["webhookId"], failed["webhookId"],
            "contract 7: a redelivery keeps its `webhookId`"
        );
        let received = receiver.wait("/", count);
        assert_eq!(
            received[count - 1].body,
            received[0].body,
            "contract 7: a redelivery keeps its `webhookId`, and tells the same"
        );
        until("the redelivery has ended", || {
            let listed = deliveries(&account, &of);
            listed
                .iter()
                .all(|delivery| delivery["status"] == "delivered" || delivery == &failed)
                .then_some(())
        });
    }
    for unknown in [UNKNOWN_ID, webhook.as_str()] {
        admin(&account, "POST", &path(unknown), &Value::Null)
            .refused(404, "contract 1: an unknown id is 404");
    }
    let other = hook(&account, &receiver, "/other", &["bucket.updated"]);
    let elsewhere = format!("/api/webhooks/{other}/deliveries/{id}/redeliver");
    admin(&account, "POST", &elsewhere, &Value::Null)
        .refused(404, "a delivery is found only at its own webhook");
}

#[test]
fn a_redelivery_has_the_full_retry_schedule() {
    let (_server, account, _) = scene();
    let receiver = Receiver::answering(|_, _| status(500));
    let body = json!({
        "url": receiver.url("/"), "events": ["bucket.updated"],
        "retryConfig": {"maxRetries": 1, "backoffMultiplier": 1},
    });
    let webhook = text(&account.webhook(&body), "/_id");
    let delivery = text(&send_test(&account, &webhook), "/_id");
    receiver.wait("/", 2);
    wait_until_ended(&account, &format!("webhooks/{webhook}"), 1);
    let path = format!("/api/webhooks/{webhook}/deliveries/{delivery}/redeliver");
    admin(&account, "POST", &path, &Value::Null).expect(202, "contract 7: redeliver");
    let received = receiver.wait("/", 4);
    let waited = received[3].at - received[2].at;
    assert!(
        waited.as_millis() >= 950,
        "contract 10: redelivery with the full retry schedule: {waited:?}"
    );
}

/// Deliveries that are pending at a kill are sent after the restart, with the same id.
#[test]
fn pending_deliveries_survive_a_kill() {
    let (mut server, account, bucket) = scene();
    let receiver = Receiver::answering(|_, before| status(if before == 0 { 503 } else { 200 }));
    let webhook = hook(&account, &receiver, "/", &["bucket.updated"]);
    update(&bucket, "told in the end");
    receiver.wait("/", 1);
    server.kill();
    server.launch();
    let received = receiver.wait("/", 2);
    assert_eq!(
        received[0].body, received[1].body,
        "contract 7: killed between attempts, the server goes on after a restart, with the same `webhookId`"
    );
    let listed = wait_until_ended(&account, &format!("webhooks/{webhook}"), 1);
    assert_eq!(
        listed[0]["status"], "delivered",
        "contract 7: and delivers: {listed:?}"
    );
}

/// The body shared by several deliveries is stored once; tested with a checkpoint and a restart.
#[test]
fn redelivery_of_a_shared_body_is_byte_for_byte_the_same() {
    let (mut server, account, bucket) = scene();
    let receiver = receiver();
    let hooks: Vec<String> = ["/a", "/b", "/c"]
        .iter()
        .map(|path| hook(&account, &receiver, path, &["bucket.updated"]))
        .collect();
    update(&bucket, "told to three");
    let observed: Vec<Vec<u8>> = ["/a", "/b", "/c"]
        .iter()
        .map(|path| receiver.wait(path, 1).remove(0).body)
        .collect();
    let ids: Vec<Value> = observed
        .iter()
        .map(|body| serde_json::from_slice::<Value>(body).unwrap()["webhookId"].clone())
        .collect();
    assert!(
        ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2],
        "{ids:?}"
    );
    let listed: Vec<Value> = hooks
        .iter()
        .map(|hook| wait_until_ended(&account, &format!("webhooks/{hook}"), 1).remove(0))
        .collect();
    for (delivery, id) in listed.iter().zip(&ids) {
        assert_eq!(delivery["webhookId"], *id, "the receiver's own");
    }
    assert!(server.stop().success());
    server.launch();
    for ((hook, delivery), (path, body)) in hooks
        .iter()
        .zip(&listed)
        .zip(["/a", "/b", "/c"].iter().zip(&observed))
    {
        let again = format!(
            "/api/webhooks/{hook}/deliveries/{}/redeliver",
            text(delivery, "/_id")
        );
        admin(&account, "POST", &again, &Value::Null).expect(202, "contract 7: POST redeliver");
        let sent = receiver.wait(path, 2).remove(1);
        assert_eq!(&sent.body, body, "contract 7: a redelivery keeps its `webhookId`");
    }
}
