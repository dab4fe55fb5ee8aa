//! Keys of a bucket: how they are created, listed, used and deleted.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_timestamp, call};
use crate::support::given::{point, text};
use crate::support::time::now_ns;

/// Members of every answer to a key's creation.
#[track_caller]
pub fn assert_created(answer: &Value, prefix: &str) {
    let key = &answer["apiKey"];
    let secret = text(key, "/key");
    let random = secret
        .strip_prefix(prefix)
        .unwrap_or_else(|| panic!("spec: the prefix is {prefix}: {secret}"));
    let base64url = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    assert!(
        random.len() == 43 && random.chars().all(base64url),
        "contract 2: a key is its prefix plus 43 base64url characters: {secret}"
    );
    let preview = format!("\u{2026}{}", &secret[secret.len() - 4..]);
    assert_eq!(
        key["keyPreview"], preview,
        "contract 2: keyPreview is U+2026 and the last 4 characters"
    );
    assert!(
        key["_id"].is_string() && key["_id"] == key["id"],
        "contract 2: the answer has `_id` and `id`: {key}"
    );
    assert_timestamp(&key["createdAt"], "apiKey.createdAt");
    let has_text = |member: &str| answer[member].as_str().is_some_and(|text| !text.is_empty());
    assert!(
        has_text("warning"),
        "contract 2: `warning` stands beside `apiKey`: {answer}"
    );
    assert!(has_text("message"), "spec: {{message, apiKey}}: {answer}");
}

/// Members of every listed key with this text.
#[track_caller]
pub fn assert_listed(entry: &Value, secret: &str) {
    let prefix = format!("{}\u{2026}", &secret[..12]);
    assert_eq!(
        entry["keyPrefix"], prefix,
        "contract 2: lists show the first 12 characters and U+2026"
    );
    assert!(
        entry.get("key").is_none(),
        "spec: the full key is never returned again: {entry}"
    );
    assert!(
        entry.get("lastUsedAt").is_some(),
        "spec: lists show lastUsedAt: {entry}"
    );
    assert!(
        entry["name"].is_string() && entry["type"].is_string(),
        "spec: lists show name and type: {entry}"
    );
    assert_timestamp(&entry["createdAt"], "apiKey.createdAt");
}

#[test]
fn a_key_is_created_and_listed_as_the_spec_shows() {
    let (_server, account, bucket) = scene::bucket();
    let write = json!([
        "data:read",
        "data:write",
        "notifications:read",
        "notifications:write"
    ]);
    let read = json!(["data:read", "notifications:read"]);
    let kinds = [
        ("write", "svc_w_", "name", write),
        ("read", "svc_r_", "label", read),
    ];
    for (kind, prefix, named, permissions) in kinds {
        let created = bucket.call(
            "POST",
            "/keys",
            &json!({named: format!(" My {kind} key "), "type": kind}),
        );
        let created = created.expect(201, &format!("contract 2: key creation accepts `{named}`"));
        assert_created(&created, prefix);
        let key = &created["apiKey"];
        assert_eq!(
            key["name"],
            format!("My {kind} key"),
            "contract 10: names of everything are stored trimmed"
        );
        assert_eq!(key["type"], kind, "spec: the type asked for");
        assert_eq!(
            key["permissions"], permissions,
            "spec: permissions of a {kind} key"
        );
        assert_eq!(key["bucketId"], bucket.id, "spec: bucketId is the key's scope");
        assert_eq!(
            key["bucketName"], "tides",
            "spec: bucketName in the creation response"
        );

        let listed = bucket.call("GET", "/keys", &Value::Null);
        assert!(
            !listed.text().contains(&text(key, "/key")),
            "spec: the full key is never returned again"
        );
        let listed = array(
            &listed.expect(200, "spec: GET /api/buckets/:bucketId/keys"),
            "/apiKeys",
        );
        let entry = listed.last().unwrap_or(&Value::Null);
        assert_eq!(
            entry["_id"], key["_id"],
            "contract 1: lists are ordered by creation"
        );
        assert_listed(entry, &text(key, "/key"));
        assert_eq!(
            entry["lastUsedAt"],
            Value::Null,
            "a key never used has no lastUsedAt"
        );
    }
    let by_bearer = account
        .client
        .post(&format!("/api/buckets/{}/keys", bucket.id))
        .bearer(&account.token);
    by_bearer
        .json(&json!({"name": "k", "type": "read"}))
        .send()
        .expect(201, "contract 2: the bearer is accepted like admin");
}

#[test]
fn key_names_have_1_to_100_characters_and_need_not_be_unique() {
    let (_server, _, bucket) = scene::bucket();
    let create = |name: &str| bucket.call("POST", "/keys", &json!({"name": name, "type": "read"}));
    create("same").expect(201, "a key");
    create("same").expect(201, "spec: no 409 is stated for names of keys");
    create(&"é".repeat(100)).expect(201, "contract 2: 1-100 chars");
    scene::assert_faults(&create(&"é".repeat(101)), &["name"], "contract 2: 1-100 chars");
}

#[test]
fn last_used_is_exact_to_the_minute() {
    let (_server, _, bucket) = scene::bucket();
    let key = bucket.key("read");
    let before = now_ns();
    let query = json!({"bucketId": bucket.id});
    call(&bucket.client, &key, "POST", "/api/data/query", &query).expect(200, "a query");
    let listed = array(&bucket.call("GET", "/keys", &Value::Null).json(), "/apiKeys");
    assert_timestamp(&listed[0]["lastUsedAt"], "lastUsedAt");
    let earliest = crate::support::time::timestamp(before - 60_000_000_000);
    let used = listed[0]["lastUsedAt"].as_str().unwrap_or_default();
    assert!(
        used >= earliest.as_str(),
        "contract 2: lastUsedAt is exact to the minute: {used}, used after {earliest}"
    );
}

#[test]
fn a_deleted_key_is_401_at_once_and_after_a_restart() {
    let (mut server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let created = bucket
        .call("POST", "/keys", &json!({"name": "short-lived", "type": "write"}))
        .json();
    let (id, key) = (text(&created, "/apiKey/_id"), text(&created, "/apiKey/key"));
    let mut body = point(&source, now_ns(), &json!({"level": 1}));
    body["bucketId"] = json!(bucket.id);
    call(&account.client, &key, "POST", "/api/data", &body).expect(201, "spec: a write key ingests");
    let deleted = bucket.call("DELETE", &format!("/keys/{id}"), &Value::Null);
    let deleted = deleted.expect(200, "spec: DELETE /api/buckets/:bucketId/keys/:keyId");
    let expected = json!({"_id": id, "name": "short-lived", "type": "write"});
    assert_eq!(
        deleted["deletedKey"], expected,
        "spec: deletedKey {{_id, name, type}}"
    );
    assert!(deleted["message"].is_string(), "spec: {{message, deletedKey}}");
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        let used = call(&account.client, &key, "POST", "/api/data", &body);
        used.refused(401, "spec: a deleted key stops working immediately");
        let listed = array(&bucket.call("GET", "/keys", &Value::Null).json(), "/apiKeys");
        assert!(listed.is_empty(), "spec: a deleted key is no longer listed");
        bucket
            .call("DELETE", &format!("/keys/{id}"), &Value::Null)
            .refused(404, "spec: API key not found");
    }
    assert_eq!(
        bucket.rows(&json!({})).len(),
        1,
        "a deleted key takes nothing with it"
    );
}
