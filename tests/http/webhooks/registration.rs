//! Registering webhooks: required members, shown members, and changes.

use serde_json::{Value, json};

use super::{EVENTS, admin};
use crate::scene::{self, UNKNOWN_ID, array, assert_faults, assert_timestamp, members};
use crate::support::client::Answer;
use crate::support::given::{Account, text};

const URL: &str = "https://hooks.invalid/tides";

fn body() -> Value {
    json!({"url": URL, "events": ["alert.triggered"]})
}

fn with(name: &str, value: Value) -> Value {
    let mut body = body();
    body[name] = value;
    body
}

fn post(account: &Account, body: &Value) -> Answer {
    admin(account, "POST", "/api/webhooks", body)
}

fn path(webhook: &Value) -> String {
    format!("/api/webhooks/{}", text(webhook, "/_id"))
}

#[test]
fn a_webhook_is_shown_with_its_secret_once() {
    let (_server, account, bucket) = scene::bucket();
    let full = json!({
        "url": URL, "events": EVENTS, "bucketId": bucket.id, "secret": "a secret of mine",
        "retryConfig": {"maxRetries": 5, "backoffMultiplier": 1.5},
    });
    let answer = post(&account, &full).expect(201, "contract 7: POST /api/webhooks gives 201");
    assert!(
        answer["message"].is_string(),
        "contract 7: 201 `{{message, webhook}}`: {answer}"
    );
    let created = &answer["webhook"];
    for name in members(&full) {
        assert_eq!(
            created[name], full[name],
            "contract 7: a webhook shows `{name}`: {created}"
        );
    }
    for (name, value) in [
        ("status", json!("active")),
        ("totalDeliveries", json!(0)),
        ("successfulDeliveries", json!(0)),
        ("failedDeliveries", json!(0)),
        ("lastDeliveryAt", Value::Null),
        ("lastDeliveryStatus", Value::Null),
    ] {
        assert_eq!(
            created.get(name),
            Some(&value),
            "contract 7: `{name}` of a new webhook: {created}"
        );
    }
    assert_timestamp(&created["createdAt"], "createdAt");
    let mut shown = created.clone();
    shown.as_object_mut().unwrap().remove("secret");
    let sentence = "contract 7: shown this once; without the secret";
    let one = admin(&account, "GET", &path(created), &Value::Null).expect(200, "contract 7: GET of one");
    assert_eq!(one["webhook"], shown, "{sentence}");
    let list = admin(&account, "GET", "/api/webhooks", &Value::Null).expect(200, "contract 7: GET");
    assert_eq!(list["webhooks"], json!([shown]), "{sentence}");
    assert_eq!(
        list["pagination"]["total"], 1,
        "contract 7: `{{webhooks, pagination}}`"
    );
    let patched = admin(
        &account,
        "PATCH",
        &path(created),
        &json!({"secret": "another secret"}),
    );
    let patched = patched.expect(200, "contract 7: PATCH takes any member of the creation");
    assert_eq!(patched["webhook"].get("secret"), None, "{sentence}");
}

#[test]
fn omitted_members_have_their_defaults() {
    let (_server, account, _) = scene::bucket();
    let created = account.webhook(&body());
    assert_eq!(
        created["retryConfig"],
        json!({"maxRetries": 3, "backoffMultiplier": 2}),
        "spec: retried up to 3 times with exponential backoff of 1s, 2s, 4s"
    );
    assert!(
        created.get("bucketId").is_none_or(Value::is_null),
        "contract 7: without `bucketId` it is subscribed to all buckets: {created}"
    );
    let secret = text(&created, "/secret");
    let decoded = secret.strip_prefix("whsec_").and_then(|key| {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.decode(key).ok()
    });
    let sentence = "contract 7: a missing secret is generated (`whsec_` + base64)";
    let decoded = decoded.unwrap_or_else(|| panic!("{sentence}: {secret}"));
    assert!(
        decoded.len() >= 24,
        "{sentence}, of at least 24 bytes: {}",
        decoded.len()
    );
    let other = text(&account.webhook(&body()), "/secret");
    assert_ne!(secret, other, "a generated secret is new each time");
    let partial = account.webhook(&with("retryConfig", json!({"maxRetries": 0})));
    assert_eq!(
        partial["retryConfig"],
        json!({"maxRetries": 0, "backoffMultiplier": 2}),
        "spec: `retryConfig {{maxRetries, backoffMultiplier}}`, each optional"
    );
}

#[test]
fn all_faults_are_reported_together() {
    let (_server, account, _) = scene::bucket();
    let sentence = "contract 1: all faults of one body are reported together";
    assert_faults(&post(&account, &json!({})), &["url", "events"], sentence);
    let wrong = json!({
        "url": 5, "events": "all", "bucketId": "x", "secret": 5, "status": "asleep",
        "retryConfig": {"maxRetries": 11, "backoffMultiplier": 0.5},
    });
    let faults = [
        "url",
        "events",
        "bucketId",
        "secret",
        "status",
        "retryConfig/maxRetries",
        "retryConfig/backoffMultiplier",
    ];
    assert_faults(&post(&account, &wrong), &faults, sentence);
    let created = account.webhook(&body());
    assert_faults(
        &admin(&account, "PATCH", &path(&created), &wrong),
        &faults,
        sentence,
    );
    let table = [
        ("events", json!([]), "events", "contract 10: empty `events`: 400"),
        (
            "events",
            json!(["webhook.test"]),
            "events/0",
            "contract 10: `webhook.test` in them: 400",
        ),
        (
            "events",
            json!(["alert.triggered", "alert.fired"]),
            "events/1",
            "contract 7: an unknown event name: 400",
        ),
        (
            "events",
            json!([5]),
            "events/0",
            "contract 7: an unknown event name: 400",
        ),
        (
            "events",
            json!({}),
            "events",
            "spec: `events` is an array of event names",
        ),
        (
            "retryConfig",
            json!({"maxRetries": -1}),
            "retryConfig/maxRetries",
            "contract 7: maxRetries 0-10",
        ),
        (
            "retryConfig",
            json!({"maxRetries": 1.5}),
            "retryConfig/maxRetries",
            "contract 7: maxRetries 0-10",
        ),
        (
            "retryConfig",
            json!({"maxRetries": "3"}),
            "retryConfig/maxRetries",
            "contract 7: maxRetries 0-10",
        ),
        (
            "retryConfig",
            json!({"backoffMultiplier": 10.5}),
            "retryConfig/backoffMultiplier",
            "contract 7: backoffMultiplier 1-10",
        ),
        (
            "retryConfig",
            json!([]),
            "retryConfig",
            "contract 7: `retryConfig` is an object",
        ),
        (
            "secret",
            json!("whsec_no base64!"),
            "secret",
            "contract 10: `whsec_` with bad base64: 400",
        ),
        (
            "secret",
            json!(""),
            "secret",
            "spec: `secret` is used for signing",
        ),
        (
            "bucketId",
            json!(5),
            "bucketId",
            "contract 1: a malformed id is 400",
        ),
    ];
    for (name, value, fault, sentence) in table {
        assert_faults(&post(&account, &with(name, value.clone())), &[fault], sentence);
        assert_faults(
            &admin(&account, "PATCH", &path(&created), &json!({name: value})),
            &[fault],
            sentence,
        );
    }
    let total = admin(&account, "GET", "/api/webhooks", &Value::Null).json();
    assert_eq!(total["pagination"]["total"], 1, "what was refused was not made");
    for retry in [
        json!({"maxRetries": 10, "backoffMultiplier": 10}),
        json!({"maxRetries": 0, "backoffMultiplier": 1}),
    ] {
        post(&account, &with("retryConfig", retry))
            .expect(201, "contract 7: maxRetries 0-10, backoffMultiplier 1-10");
    }
    post(&account, &with("secret", json!("whsec_c2VjcmV0IG9mIG1pbmU=")))
        .expect(201, "contract 7: a `whsec_` secret");
}

#[test]
fn a_bucket_must_belong_to_the_organization() {
    let (server, account, _) = scene::bucket();
    let foreign = Account::sign_up(&server.client).bucket("tides");
    let created = account.webhook(&body());
    for id in [UNKNOWN_ID, foreign.id.as_str()] {
        let sentence = "contract 1: an id that names nothing the caller may see is 404";
        post(&account, &with("bucketId", json!(id))).refused(404, sentence);
        admin(&account, "PATCH", &path(&created), &json!({"bucketId": id})).refused(404, sentence);
    }
}

#[test]
fn every_member_and_the_status_can_be_changed() {
    let (_server, account, bucket) = scene::bucket();
    let created = account.webhook(&body());
    let path = path(&created);
    let mut expected = created;
    expected.as_object_mut().unwrap().remove("secret");
    let changes = [
        ("url", json!("http://hooks.invalid:8080/other?a=b")),
        ("events", json!(["bucket.updated", "data.received"])),
        ("bucketId", json!(bucket.id)),
        ("bucketId", Value::Null),
        ("retryConfig", json!({"maxRetries": 1, "backoffMultiplier": 3})),
        ("status", json!("paused")),
        ("status", json!("active")),
    ];
    for (name, value) in changes {
        let answer = admin(&account, "PATCH", &path, &json!({name: value}));
        let answer = answer.expect(200, &format!("contract 7: PATCH takes `{name}`"));
        assert!(
            answer["message"].is_string(),
            "contract 7: PATCH answers a message: {answer}"
        );
        expected[name] = value;
        for member in members(&expected) {
            if member != "updatedAt" {
                assert_eq!(
                    answer["webhook"][member], expected[member],
                    "contract 7: PATCH `{name}` changes only it (`{member}`)"
                );
            }
        }
        let shown = admin(&account, "GET", &path, &Value::Null).json();
        assert_eq!(
            shown["webhook"], answer["webhook"],
            "what PATCH answers is what GET shows"
        );
    }
    let answer = admin(
        &account,
        "PATCH",
        &path,
        &json!({"totalDeliveries": 5, "_id": UNKNOWN_ID}),
    );
    let answer = answer.expect(200, "contract 1: unnamed fields are ignored");
    assert_eq!(
        answer["webhook"]["totalDeliveries"], 0,
        "contract 1: unnamed fields are ignored"
    );
}

#[test]
fn a_deleted_webhook_is_404() {
    let (_server, account, _) = scene::bucket();
    let created = account.webhook(&body());
    let path = path(&created);
    let answer = admin(&account, "DELETE", &path, &Value::Null).expect(200, "contract 7: DELETE");
    assert_eq!(
        answer["deletedWebhook"],
        json!({"_id": created["_id"], "url": URL}),
        "contract 10: DELETE answers `{{message, deletedWebhook: {{_id, url}}}}`"
    );
    assert!(
        answer["message"].is_string(),
        "contract 10: DELETE answers a message: {answer}"
    );
    for (method, below) in [
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/deliveries"),
        ("POST", "/test"),
    ] {
        admin(&account, method, &format!("{path}{below}"), &Value::Null)
            .refused(404, "contract 1: an id that names nothing is 404");
    }
    let list = admin(&account, "GET", "/api/webhooks", &Value::Null).json();
    assert!(
        array(&list, "/webhooks").is_empty(),
        "a deleted webhook is not listed"
    );
}

#[test]
fn webhooks_survive_every_kind_of_restart() {
    let (mut server, account, bucket) = scene::sealing_bucket();
    account.webhook(&with("bucketId", json!(bucket.id)));
    account.webhook(&with("status", json!("paused")));
    let list = || admin(&account, "GET", "/api/webhooks", &Value::Null).json()["webhooks"].clone();
    let before = list();
    server.kill();
    server.launch();
    assert_eq!(list(), before, "webhooks survive a kill");
    assert!(server.stop().success(), "contract 9: SIGTERM: exit 0");
    server.launch();
    assert_eq!(list(), before, "webhooks survive a stop");
}

#[test]
fn the_form_of_a_url_is_a_fault_of_the_body_like_others() {
    let (_server, account, bucket) = scene::bucket();
    const TOGETHER: &str = "contract 1: all faults of one body together, before what it names";
    let webhook = json!({"url": "ftp://x", "events": ["x"], "bucketId": UNKNOWN_ID});
    assert_faults(&post(&account, &webhook), &["events/0", "url"], TOGETHER);
    let webhook = json!({"url": "mailto:nobody", "events": ["alert.triggered"], "bucketId": UNKNOWN_ID});
    assert_faults(&post(&account, &webhook), &["url"], TOGETHER);
    let unknown = admin(
        &account,
        "PATCH",
        &format!("/api/webhooks/{UNKNOWN_ID}"),
        &json!({"url": "x"}),
    );
    assert_faults(&unknown, &["url"], TOGETHER);
    let mail = json!({"webhookUrl": "mailto:ada@example.com"});
    let unknown = admin(&account, "PATCH", &format!("/api/alerts/{UNKNOWN_ID}"), &mail);
    assert_faults(&unknown, &["webhookUrl"], TOGETHER);
    let rule = json!({"name": "", "bucketId": bucket.id, "dataSourceId": UNKNOWN_ID, "condition": "v > 1", "webhookUrl": "x"});
    assert_faults(
        &admin(&account, "POST", "/api/alerts", &rule),
        &["name", "webhookUrl"],
        TOGETHER,
    );
}
