//! Keys that expire, are rotated, and are counted (contract 14).

use serde_json::{Value, json};

use super::quota;
use crate::scene::{self, array, assert_faults};
use crate::support::client::{Answer, Client};
use crate::support::given::{Account, Bucket, point, text};
use crate::support::time::{DAY, MINUTE, SECOND, now_ns, timestamp};

/// A key of the bucket: its id and text.
fn key(bucket: &Bucket, body: &Value) -> (String, String) {
    let created = bucket.call("POST", "/keys", body).expect(201, "contract 2");
    (text(&created, "/apiKey/_id"), text(&created, "/apiKey/key"))
}

fn status(client: &Client, path: &str, key: &str) -> u16 {
    client.get(path).key(key).send().status
}

fn listed(bucket: &Bucket, id: &str) -> Value {
    let keys = bucket.call("GET", "/keys", &Value::Null).expect(200, "a list");
    let keys = array(&keys, "/apiKeys");
    let found = keys.into_iter().find(|key| key["_id"] == id);
    found.unwrap_or_else(|| panic!("small print 48: the key stays listed"))
}

fn rotate(account: &Account, path: &str, seconds: &Value) -> Answer {
    let request = account.client.post(&format!("{path}/rotate")).key(&account.admin);
    request.json(&json!({"overlapSeconds": seconds})).send()
}

#[test]
fn a_key_may_have_an_end() {
    let (_server, account, bucket) = scene::bucket();
    let at = timestamp(now_ns() + DAY);
    let (id, secret) = key(
        &bucket,
        &json!({"name": "brief", "type": "read", "expiresAt": at}),
    );
    assert_eq!(listed(&bucket, &id)["expiresAt"], json!(at));
    let path = format!("/api/buckets/{}/sources", bucket.id);
    assert_eq!(status(&account.client, &path, &secret), 200);
    let (other, _) = key(&bucket, &json!({"name": "for ever", "type": "read"}));
    assert_eq!(
        listed(&bucket, &other)["expiresAt"],
        Value::Null,
        "small print 48: shown as null"
    );
    for past in [now_ns() - SECOND, now_ns() - 400 * DAY] {
        let body = json!({"name": "late", "type": "read", "expiresAt": timestamp(past)});
        assert_faults(
            &bucket.call("POST", "/keys", &body),
            &["expiresAt"],
            "small print 48",
        );
    }
    for wrong in [json!("tomorrow"), json!(5)] {
        let body = json!({"name": "late", "type": "read", "expiresAt": wrong});
        assert_faults(
            &bucket.call("POST", "/keys", &body),
            &["expiresAt"],
            "a timestamp",
        );
    }
}

#[test]
fn an_expired_key_is_refused_and_stays_listed() {
    quota::within_a_month();
    let (_server, account, bucket) = scene::bucket();
    let ends_ns = now_ns() + 3 * SECOND;
    let body = json!({"name": "brief", "type": "read", "expiresAt": timestamp(ends_ns)});
    let (id, secret) = key(&bucket, &body);
    let path = format!("/api/buckets/{}/sources", bucket.id);
    while now_ns() < ends_ns {
        status(&account.client, &path, &secret);
    }
    assert_eq!(status(&account.client, &path, &secret), 401, "small print 48");
    assert!(listed(&bucket, &id)["callsThisMonth"].as_u64() > Some(0));
    bucket
        .call("DELETE", &format!("/keys/{id}"), &Value::Null)
        .expect(200, "until it is deleted");
}

#[test]
fn a_rotated_key_has_two_values_for_a_while() {
    let (mut server, account, bucket) = scene::bucket();
    let client = account.client.clone();
    let expires = timestamp(now_ns() + DAY);
    let (id, first) = key(
        &bucket,
        &json!({"name": "device", "type": "write", "expiresAt": expires}),
    );
    let path = format!("/api/buckets/{}/sources", bucket.id);
    let key_path = format!("/api/buckets/{}/keys/{id}", bucket.id);
    let rotated = rotate(&account, &key_path, &json!(3_600)).expect(200, "small print 49");
    let shown = &rotated["apiKey"];
    assert_eq!(text(shown, "/_id"), id, "small print 49: the same id");
    super::bucket_keys::assert_created(&rotated, "svc_w_");
    assert_eq!(
        (&shown["name"], &shown["expiresAt"]),
        (&json!("device"), &json!(expires))
    );
    let second = text(shown, "/key");
    let works = |client: &Client, key: &str| status(client, &path, key) == 200;
    assert!(works(&client, &first) && works(&client, &second));
    assert_eq!(
        text(&listed(&bucket, &id), "/keyPrefix"),
        format!("{}\u{2026}", &second[..12])
    );
    server.kill();
    server.launch();
    assert!(works(&client, &first) && works(&client, &second), "durable");
    let third = rotate(&account, &key_path, &json!(604_800)).expect(200, "the longest");
    let third = text(&third, "/apiKey/key");
    assert!(
        !works(&client, &first),
        "small print 49: one former value at most"
    );
    assert!(works(&client, &second) && works(&client, &third));
    let fourth = rotate(&account, &key_path, &json!(0)).expect(200, "at once");
    let fourth = text(&fourth, "/apiKey/key");
    assert!(
        !works(&client, &second) && !works(&client, &third),
        "small print 49: 0 is at once"
    );
    assert!(works(&client, &fourth));
    rotate(&account, &key_path, &json!(60)).expect(200, "once more");
    let deleted = client.delete(&key_path).key(&account.admin).send();
    deleted.expect(200, "deletion");
    assert!(!works(&client, &fourth), "small print 49: deletion ends all");
    assert_eq!(rotate(&account, &key_path, &json!(60)).status, 404);
}

#[test]
fn rotation_is_for_those_who_may_create_such_a_key() {
    let (_server, account, bucket) = scene::bucket();
    let (id, _) = key(&bucket, &json!({"name": "device", "type": "write"}));
    let own = format!("/api/buckets/{}/keys/{id}", bucket.id);
    for wrong in [json!(-1), json!(604_801), json!(1.5), json!("60"), Value::Null] {
        assert_faults(
            &rotate(&account, &own, &wrong),
            &["overlapSeconds"],
            "small print 49",
        );
    }
    let keys = account
        .client
        .get("/api/organization/keys")
        .key(&account.admin)
        .send();
    let keys = keys.expect(200, "keys of the organization");
    let admin = text(&keys, "/apiKeys/0/_id");
    let path = format!("/api/organization/keys/{admin}");
    assert_eq!(
        rotate(&account, &path, &json!(0)).status,
        403,
        "small print 49: no admin key by an admin key"
    );
    let by_bearer = account
        .client
        .post(&format!("{path}/rotate"))
        .bearer(&account.token);
    by_bearer
        .json(&json!({"overlapSeconds": 60}))
        .send()
        .expect(200, "the bearer may");
    let elsewhere = format!("/api/organization/keys/{id}");
    assert_eq!(
        rotate(&account, &elsewhere, &json!(0)).status,
        404,
        "not a key of the organization"
    );
}

#[test]
fn lists_show_the_calls_of_this_month() {
    quota::within_a_month();
    let (mut server, account, bucket) = scene::bucket();
    let source = bucket.source("one", &["v"]);
    let (id, secret) = key(&bucket, &json!({"name": "device", "type": "write"}));
    let calls = |bucket: &Bucket| listed(bucket, &id)["callsThisMonth"].as_u64().unwrap();
    assert_eq!(calls(&bucket), 0);
    let mut entry = point(&source, now_ns() - MINUTE, &json!({"v": 1}));
    entry["bucketId"] = json!(bucket.id);
    for _ in 0..5 {
        account
            .client
            .post("/api/data")
            .key(&secret)
            .json(&entry)
            .send()
            .expect(201, "a point");
    }
    account
        .client
        .post("/api/data")
        .key(&secret)
        .json(&json!({}))
        .send()
        .expect(400, "a refused call counts as well");
    assert_eq!(calls(&bucket), 6, "small print 50");
    account.evaluator().due("");
    let keys = account
        .client
        .get("/api/organization/keys")
        .key(&account.admin)
        .send();
    let keys = array(&keys.expect(200, "keys"), "/apiKeys");
    let polled = keys.iter().find(|key| key["type"] == "integration").unwrap();
    assert_eq!(
        polled["callsThisMonth"], 1,
        "small print 50: integration keys included"
    );
    // A clean stop saves what was counted.
    assert!(server.stop().success());
    server.launch();
    assert_eq!(calls(&bucket), 6);
}
