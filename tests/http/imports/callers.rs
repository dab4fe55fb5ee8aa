//! I1, I2, I7: who imports.

use serde_json::json;

use super::{CSV, bucket, post};
use crate::scene::call;
use crate::support::given::text;

const FILE: &str = "time,a\n2026-01-01T00:00:00Z,1\n";

#[test]
fn keys_that_write_import_as_agents_send_them() {
    let (_server, account, bucket) = bucket();
    let path = format!("/api/buckets/{}/import?source=file&format=csv", bucket.id);
    let send = |header: &str, value: &str| bucket.client.post(&path).header(header, value).bytes(FILE).send();
    let write = bucket.key("write");
    for (header, value) in [
        ("X-API-Key", bucket.admin.clone()),
        ("X-API-Key", write.clone()),
        ("Authorization", format!("Bearer {write}")),
        ("Authorization", format!("token {write}")),
        ("Authorization", format!("Bearer {}", account.token)),
    ] {
        assert_eq!(send(header, &value).status, 201, "I1: {header}");
    }
    for kind in ["read", "integration"] {
        let key = match kind {
            "read" => bucket.key("read"),
            _ => {
                let made = bucket.client.post("/api/organization/keys").key(&account.admin);
                let made = made
                    .json(&json!({"name": "evaluator", "type": "integration"}))
                    .send();
                text(&made.expect(201, "spec"), "/apiKey/key")
            }
        };
        assert_eq!(send("X-API-Key", &key).status, 403, "I1: {kind} keys");
    }
    assert_eq!(bucket.client.post(&path).bytes(FILE).send().status, 401);
    let other = account.bucket("other");
    let answer = bucket
        .client
        .post(&format!(
            "/api/buckets/{}/import?source=file&format=csv",
            other.id
        ))
        .key(&write)
        .bytes(FILE)
        .send();
    assert_eq!(answer.status, 403, "the key of another bucket: {answer}");
    let answer = bucket
        .client
        .post("/api/buckets/0123456789abcdef01234567/import?source=file&format=csv")
        .key(&bucket.admin)
        .bytes(FILE)
        .send();
    assert_eq!(answer.status, 404);
}

#[test]
fn an_inactive_source_refuses_its_rows() {
    let (_server, _, bucket) = bucket();
    let id = bucket.source("file", &["a"]);
    let path = format!("/api/buckets/{}/sources/{id}", bucket.id);
    call(
        &bucket.client,
        &bucket.admin,
        "PATCH",
        &path,
        &json!({"status": "inactive"}),
    )
    .expect(200, "spec");
    let answer = post(&bucket, CSV, "", FILE.as_bytes());
    assert_eq!(answer.status, 400, "I7: {answer}");
    assert!(super::errors(&answer)[0].2.contains("inactive"));
}
