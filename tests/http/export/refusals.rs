//! Who may export, and what is refused before the first byte.

use serde_json::{Value, json};

use super::{EXPORT, post};
use crate::access::quota;
use crate::scene::{self, UNKNOWN_ID, assert_faults, call};
use crate::support::given::{Account, point};
use crate::support::process::{Server, Setup};
use crate::support::time::{HOUR, now_ns};

#[test]
fn who_queries_may_export_but_not_integration_keys() {
    let (server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    bucket.send(&[point(&source, now_ns() - HOUR, &json!({"level": 1}))]);
    let body = json!({"bucketId": bucket.id, "format": "csv"});
    let mut files = Vec::new();
    for key in [bucket.admin.clone(), bucket.key("write"), bucket.key("read")] {
        let answer = call(&bucket.client, &key, "POST", "/api/data/export", &body);
        assert_eq!(
            answer.status, 200,
            "small print L1: who queries may export: {answer}"
        );
        files.push(answer.body);
    }
    let by_bearer = account.client.post("/api/data/export").bearer(&account.token);
    files.push(by_bearer.json(&body).send().body);
    assert!(
        files.iter().all(|file| file == &files[0] && !file.is_empty()),
        "{EXPORT}"
    );

    let created = account
        .client
        .post("/api/organization/keys")
        .bearer(&account.token)
        .json(&json!({"name": "evaluator", "type": "integration"}))
        .send()
        .expect(201, "contract 2: an integration key");
    let integration = created["apiKey"]["key"].as_str().unwrap();
    call(&bucket.client, integration, "POST", "/api/data/export", &body)
        .refused(403, "small print L1: integration keys not (403: three endpoints)");

    let other = account.bucket("other");
    let theirs = json!({"bucketId": other.id, "format": "csv"});
    call(
        &bucket.client,
        &bucket.key("read"),
        "POST",
        "/api/data/export",
        &theirs,
    )
    .refused(403, "small print L1: a bucket key's 403");
    let foreign = Account::sign_up(&server.client).bucket("foreign");
    for unknown in [foreign.id.as_str(), UNKNOWN_ID] {
        let body = json!({"bucketId": unknown, "format": "csv"});
        call(&bucket.client, &bucket.admin, "POST", "/api/data/export", &body)
            .refused(404, "small print L1: foreign 404s");
    }
}

#[test]
fn faults_are_answered_before_the_first_byte() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    bucket.send(&[point(&source, now_ns() - HOUR, &json!({"level": 1}))]);
    for member in ["limit", "offset", "cursor"] {
        for value in [json!(10), json!("x"), json!(0)] {
            let answer = post(&bucket, &json!({"format": "csv", member: value}));
            assert_faults(
                &answer,
                &[member],
                "small print L2: limit, offset, cursor given: 400 at that member",
            );
        }
        let answer = post(&bucket, &json!({"format": "csv", member: null}));
        assert_eq!(
            answer.status, 200,
            "small print A1: null is as if absent: {answer}"
        );
    }
    for format in [json!("CSV"), json!("json"), json!(1), Value::Null] {
        let answer = post(&bucket, &json!({"format": format}));
        assert_faults(&answer, &["format"], "small print L2: format exact lower case");
    }
    assert_faults(
        &post(&bucket, &json!({})),
        &["format"],
        "contract 11: with format",
    );
    assert_faults(
        &post(
            &bucket,
            &json!({"format": "x", "limit": 1, "fill": "null", "filters": {"startTime": "soon"}}),
        ),
        &["fill", "filters/startTime", "format", "limit"],
        "contract 1: all faults together",
    );
    let of_fields = json!({"format": "csv", "filters": {"fields": ["depth"]}});
    assert_faults(
        &post(&bucket, &of_fields),
        &["filters/fields/0"],
        "contract 5: an unknown field",
    );
    let filled = json!({
        "format": "csv", "aggregation": "avg", "groupBy": "1s", "fill": 0,
        "filters": {"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-03-01T00:00:00Z"},
    });
    assert_faults(
        &post(&bucket, &filled),
        &["fill"],
        "small print E6: more than 1,000,000 rows by fill",
    );
    let unknown = json!({"format": "csv", "filters": {"dataSourceIds": [UNKNOWN_ID]}});
    post(&bucket, &unknown).refused(404, "contract 5: an unknown source");
}

#[test]
fn an_export_counts_one_call_of_any_size() {
    quota::within_a_month();
    let server = Server::start_with(Setup::default());
    let bucket = Account::sign_up(&server.client).bucket("tides");
    let source = bucket.source("gauge", &["level"]);
    let first_ns = now_ns() - HOUR;
    let points: Vec<Value> = (0..20_000)
        .map(|nth| point(&source, first_ns + nth, &json!({"level": nth})))
        .collect();
    bucket.send(&points);
    let mut left = Vec::new();
    for _ in 0..2 {
        let answer = post(&bucket, &json!({"format": "csv"}));
        let header = answer.header("x-ratelimit-remaining").unwrap();
        left.push(header.parse::<i64>().unwrap());
    }
    assert_eq!(left[0] - left[1], 1, "small print L1: it counts one call");
}
