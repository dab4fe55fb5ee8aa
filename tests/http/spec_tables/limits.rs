//! The table *Limits*: a value at each limit is accepted, one beyond it is refused. Time limits are in `times`.

use std::thread;

use serde_json::{Value, json};

use crate::access::quota;
use crate::general::bodies::padded;
use crate::scene::{self, array, assert_faults, call};
use crate::support::client::Answer;
use crate::support::given::{Account, Bucket, point};
use crate::support::time::{DAY, MINUTE, SECOND, now_ns};
use crate::support::watch::evaluation;

#[test]
fn api_calls_per_month_and_the_rate_headers() {
    quota::within_a_month();
    for (plan, calls) in [("Free", 10_000), ("Pro", 1_000_000)] {
        let (_server, account, _) = quota::on_plan(plan);
        let sentence = format!("spec, Limits: API calls per month: {plan}, in X-RateLimit-*");
        // Creating the bucket was a call, too; signing up and creating a key are not.
        let shown = quota::quota(&quota::show(&account));
        assert_eq!(shown, Some([calls, calls - 2, quota::next_month()]), "{sentence}");
        let overview = call(
            &account.client,
            &account.admin,
            "GET",
            "/api/analytics/overview",
            &Value::Null,
        );
        assert_eq!(
            overview.json()["overview"]["usage"]["apiCallsLimit"],
            calls,
            "{sentence}"
        );
    }
    let (_server, account, _) = quota::on_plan("Enterprise");
    let shown = quota::quota(&quota::show(&account));
    assert_eq!(
        shown, None,
        "spec, Limits: API calls per month: Enterprise unlimited"
    );
}

fn create_bucket(account: &Account, body: &Value) -> Answer {
    call(&account.client, &account.admin, "POST", "/api/buckets", body)
}

#[test]
fn buckets() {
    for (plan, most) in [("Free", 3), ("Pro", 25)] {
        let server = scene::server_with("accounts.default_plan", plan);
        let account = Account::sign_up(&server.client);
        for nth in 0..most {
            account.bucket(&format!("bucket {nth}"));
        }
        let sentence = format!("spec, Limits: Buckets: {plan} {most}");
        create_bucket(&account, &json!({"name": "one more"})).refused(403, &sentence);
    }
    let server = scene::server();
    let account = Account::sign_up(&server.client);
    for nth in 0..30 {
        account.bucket(&format!("bucket {nth}"));
    }
}

#[test]
fn retention() {
    for (plan, most) in [("Free", 30), ("Pro", 365)] {
        let server = scene::server_with("accounts.default_plan", plan);
        let account = Account::sign_up(&server.client);
        let sentence = format!("spec, Limits: Retention: {plan} {most} days");
        create_bucket(&account, &json!({"name": "all of it", "retentionDays": most})).expect(201, &sentence);
        let beyond = create_bucket(&account, &json!({"name": "more", "retentionDays": most + 1}));
        assert_faults(&beyond, &["retentionDays"], &sentence);
    }
    let server = scene::server();
    let account = Account::sign_up(&server.client);
    let custom = create_bucket(&account, &json!({"name": "custom", "retentionDays": 4_000}));
    let custom = custom.expect(201, "spec, Limits: Retention: Enterprise custom");
    assert_eq!(custom["bucket"]["retentionDays"], 4_000, "as asked for");
}

#[test]
fn data_points_per_batch() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let entry = json!({"dataSourceId": source, "values": {"level": 1}});
    let sentence = "spec, Limits: Data points per batch: 1000";
    let answer = bucket.batch(&vec![entry.clone(); 1_000]).expect(201, sentence);
    assert_eq!(answer["insertedCount"], 1_000, "{sentence}");
    bucket.batch(&vec![entry; 1_001]).refused(400, sentence);
}

/// Bodies of exactly this many bytes; decompressed bodies have the same limits (`general::bodies`).
#[test]
fn batch_request_size_and_single_data_point_request() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let entry = json!({"dataSourceId": source, "values": {"level": 1}});
    let mut single = entry.clone();
    single["bucketId"] = json!(bucket.id);
    let batch = json!({"bucketId": bucket.id, "dataPoints": [entry]});
    for (limit, path, body, bytes_max) in [
        ("Batch request size: 10 MB", "/api/data/batch", batch, 10_485_760),
        ("Single data point request: 100 KB", "/api/data", single, 102_400),
    ] {
        let send = |bytes: usize| {
            let body = padded(&body.to_string(), bytes);
            bucket.client.post(path).key(&bucket.admin).body(body).send()
        };
        send(bytes_max).expect(201, &format!("spec, Limits: {limit}"));
        send(bytes_max + 1).refused(413, &format!("spec, Limits: {limit}"));
    }
}

#[test]
fn timestamp_age_on_batch_ingest() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let aged = |age: i64| point(&source, now_ns() - age, &json!({"level": 1}));
    let sentence = "spec, Limits: Timestamp age on batch ingest: at most 30 days in the past";
    let answer = bucket.batch(&[aged(30 * DAY - MINUTE), aged(30 * DAY + SECOND)]);
    let answer = answer.expect(207, sentence);
    assert_eq!(answer["errors"][0]["index"], 1, "{sentence}: {answer}");
    assert_eq!(answer["insertedCount"], 1, "{sentence}: {answer}");
}

#[test]
fn query_limit() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source_with(&json!({
        "name": "gauge", "schema": {"level": {"type": "number"}}, "downsampling": false,
    }));
    let now = now_ns();
    let points: Vec<_> = (0..10_001)
        .map(|nth| point(&source, now + nth * SECOND, &json!({"level": nth})))
        .collect();
    bucket.send(&points);
    let count = |body: &Value| array(&bucket.query(body), "/data").len();
    assert_eq!(count(&json!({})), 100, "spec, Limits: Query limit: default 100");
    let sentence = "spec, Limits: Query limit: max 10000";
    assert_eq!(count(&json!({"limit": 10_000})), 10_000, "{sentence}");
    assert_faults(
        &bucket.post_query(&json!({"limit": 10_001})),
        &["limit"],
        sentence,
    );
}

#[test]
fn list_limit() {
    const RULES: usize = 1_001;
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    thread::scope(|scope| {
        for of_thread in 0..8 {
            let (bucket, source) = (&bucket, &source);
            scope.spawn(move || {
                for nth in (of_thread..RULES).step_by(8) {
                    let name = format!("rule {nth}");
                    bucket.rule(
                        &json!({"dataSourceId": source, "name": name, "naturalLanguageQuery": "level > 5"}),
                    );
                }
            });
        }
    });
    let list = |query: &str| bucket.call("GET", &format!("/alerts{query}"), &Value::Null);
    let count = |query: &str| array(&list(query).json(), "/alertRules").len();
    assert_eq!(count(""), 100, "spec, Limits: List limit: default 100");
    let sentence = "spec, Limits: List limit: max 1000";
    assert_eq!(count("?limit=1000"), 1_000, "{sentence}");
    list("?limit=1001").refused(400, sentence);
}

/// Evenly spaced points, so that the expected number equals the actual one.
#[test]
fn auto_downsampling_threshold() {
    let (_server, _, bucket) = scene::bucket();
    let start = now_ns() / DAY * DAY;
    for (points, applied) in [(490, false), (510, true)] {
        let source = bucket.source(&format!("{points} points"), &["level"]);
        let entry = |nth: i64| point(&source, start + nth * 10 * SECOND, &json!({"level": nth}));
        bucket.send(&(0..points).map(entry).collect::<Vec<_>>());
        let answer = bucket.query(&json!({"filters": {"dataSourceIds": [source]}, "limit": 1_000}));
        assert_eq!(
            answer["metadata"]["downsamplingApplied"] == true,
            applied,
            "spec, Limits: Auto-downsampling threshold: about 500 expected points, not {points}"
        );
    }
}

#[test]
fn bucket_name() {
    let server = scene::server();
    let account = Account::sign_up(&server.client);
    let sentence = "spec, Limits: Bucket name: 1-100 characters";
    for name in ["n".to_owned(), "n".repeat(100), "é".repeat(100), "🌊".repeat(100)] {
        create_bucket(&account, &json!({"name": name})).expect(201, sentence);
    }
    for name in [String::new(), "n".repeat(101), "é".repeat(101)] {
        assert_faults(
            &create_bucket(&account, &json!({"name": name})),
            &["name"],
            sentence,
        );
    }
}

/// Creates a rule whose block has this member.
fn with_block(bucket: &Bucket, source: &str, member: &str, value: &Value) -> Answer {
    let mut block = evaluation("level");
    block[member] = value.clone();
    let body = json!({
        "bucketId": bucket.id, "dataSourceId": source, "name": "judged", "naturalLanguageQuery": "level > 5",
        "evaluation": block,
    });
    call(&bucket.client, &bucket.admin, "POST", "/api/alerts", &body)
}

fn inputs(count: usize) -> Value {
    let input = |nth: usize| json!({"key": format!("k{nth}"), "field": "level"});
    (0..count).map(input).collect()
}

#[test]
fn evaluation_interval_window_inputs_and_kind() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    for (limit, member, taken, refused) in [
        (
            "intervalSeconds: 60-86400",
            "intervalSeconds",
            [json!(60), json!(86_400)],
            [json!(59), json!(86_401)],
        ),
        (
            "windowSeconds: 60-31536000",
            "windowSeconds",
            [json!(60), json!(31_536_000)],
            [json!(59), json!(31_536_001)],
        ),
        (
            "inputs: 1-10 per rule",
            "inputs",
            [inputs(1), inputs(10)],
            [inputs(0), inputs(11)],
        ),
        (
            "kind: at most 64 characters",
            "kind",
            [json!("k".repeat(64)), json!("🌊".repeat(64))],
            [json!("k".repeat(65)), json!("ü".repeat(65))],
        ),
    ] {
        let sentence = format!("spec, Limits: Evaluation {limit}");
        for value in taken {
            with_block(&bucket, &source, member, &value).expect(201, &sentence);
        }
        for value in refused {
            let path = format!("evaluation/{member}");
            assert_faults(&with_block(&bucket, &source, member, &value), &[&path], &sentence);
        }
    }
}
