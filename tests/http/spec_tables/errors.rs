//! The table *Errors*: every condition with its status.

use std::fs;
use std::io::Write;
use std::thread;

use serde_json::{Value, json};

use crate::access::quota;
use crate::scene::{self, UNKNOWN_ID, call, files};
use crate::support::client::Answer;
use crate::support::given::{Account, Bucket, point, text};
use crate::support::process::Server;
use crate::support::time::now_ns;
use crate::support::watch::evaluation;

/// A condition of the table, and the answer to a request that meets it.
type Line = (&'static str, Answer);

#[track_caller]
fn assert_lines(status: u16, lines: &[Line]) {
    for (condition, answer) in lines {
        answer.refused(status, &format!("spec, Errors: {status} {condition}"));
    }
}

struct Scene {
    _server: Server,
    account: Account,
    bucket: Bucket,
    source: String,
}

fn scene() -> Scene {
    let (server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    Scene {
        _server: server,
        account,
        bucket,
        source,
    }
}

impl Scene {
    /// Sends a request with an admin key.
    #[track_caller]
    fn admin(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.call_as(&self.account.admin, method, path, body)
    }

    #[track_caller]
    fn call_as(&self, key: &str, method: &str, path: &str, body: &Value) -> Answer {
        call(&self.account.client, key, method, path, body)
    }

    /// The body of a rule with these members added or replaced.
    fn rule(&self, members: &Value) -> Value {
        let mut body = json!({"bucketId": self.bucket.id, "dataSourceId": self.source, "name": "high"});
        for (name, value) in members.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        body
    }

    fn point(&self) -> Value {
        json!({"bucketId": self.bucket.id, "dataSourceId": self.source, "values": {"level": 1}})
    }
}

#[test]
fn status_400_validation_error() {
    let scene = scene();
    let bucket = &scene.bucket;
    let create = |body: Value| scene.admin("POST", "/api/buckets", &body);
    let key = |body: Value| bucket.call("POST", "/keys", &body);
    let source = |body: Value| bucket.call("POST", "/sources", &body);
    let rule = |members: Value| scene.admin("POST", "/api/alerts", &scene.rule(&members));
    let judged = |input: Value| {
        let mut block = evaluation("level");
        block["inputs"] = json!([input]);
        rule(json!({"naturalLanguageQuery": "level > 5", "evaluation": block}))
    };
    let entry = json!({"dataSourceId": scene.source, "values": {"level": 1}});
    let range =
        |start: &str, end: &str| bucket.post_query(&json!({"filters": {"startTime": start, "endTime": end}}));
    let (noon, later) = ("2026-01-01T12:00:00Z", "2026-01-01T12:00:01Z");
    range(noon, later).expect(200, "spec, Errors: startTime before endTime is no fault");
    assert_lines(
        400,
        &[
            (
                "missing body fields",
                bucket.single(&json!({"dataSourceId": scene.source})),
            ),
            (
                "wrong-typed body fields",
                bucket.single(&json!({"dataSourceId": scene.source, "values": [1]})),
            ),
            ("startTime not before endTime: after it", range(later, noon)),
            ("startTime not before endTime: the same", range(noon, noon)),
            ("batch over 1000 points", bucket.batch(&vec![entry; 1_001])),
            ("batch empty", bucket.batch(&[])),
            (
                "bucket name over 100 chars",
                create(json!({"name": "n".repeat(101)})),
            ),
            ("bucket name empty", create(json!({"name": ""}))),
            (
                "invalid bucket id format",
                scene.admin("GET", "/api/buckets/not-an-id", &Value::Null),
            ),
            ("invalid key type", key(json!({"name": "k", "type": "admin"}))),
            ("missing key name", key(json!({"type": "read"}))),
            ("schema missing", source(json!({"name": "s"}))),
            (
                "invalid field type",
                source(json!({"name": "s", "schema": {"a": {"type": "integer"}}})),
            ),
            (
                "unparsable alert condition",
                rule(json!({"naturalLanguageQuery": "the weather is nice"})),
            ),
            (
                "invalid webhook URL",
                rule(json!({"condition": "level > 5", "webhookUrl": "no url"})),
            ),
            (
                "aggregation without groupBy",
                bucket.post_query(&json!({"aggregation": "avg"})),
            ),
            (
                "groupBy without aggregation",
                bucket.post_query(&json!({"groupBy": "hour"})),
            ),
            (
                "aggregation without groupBy, in an evaluation input",
                judged(json!({"key": "x", "field": "level", "aggregation": "avg"})),
            ),
            (
                "groupBy without aggregation, in an evaluation input",
                judged(json!({"key": "x", "field": "level", "groupBy": "hour"})),
            ),
            (
                "unknown field in an evaluation input",
                judged(json!({"key": "x", "field": "depth"})),
            ),
            (
                "unknown data source in an evaluation input",
                judged(json!({"key": "x", "field": "level", "dataSourceId": UNKNOWN_ID})),
            ),
        ],
    );
}

#[test]
fn status_401_unauthorized() {
    let scene = scene();
    let path = format!("/api/buckets/{}/sources", scene.bucket.id);
    let with = |key: &str| scene.call_as(key, "GET", &path, &Value::Null);
    let key = json!({"name": "reader", "type": "read"});
    let created = scene.bucket.call("POST", "/keys", &key).json();
    let (id, deleted) = (text(&created, "/apiKey/_id"), text(&created, "/apiKey/key"));
    with(&deleted).expect(200, "spec, Errors: the key works before");
    let gone = scene.bucket.call("DELETE", &format!("/keys/{id}"), &Value::Null);
    gone.expect(200, "spec: DELETE of a key");
    assert_lines(
        401,
        &[
            ("invalid key", with(&format!("svc_r_{}", "A".repeat(43)))),
            ("missing key", scene.account.client.get(&path).send()),
            ("deleted key", with(&deleted)),
        ],
    );
}

#[test]
fn status_403_forbidden() {
    let scene = scene();
    let (read, write) = (scene.bucket.key("read"), scene.bucket.key("write"));
    let elsewhere = scene.account.bucket("elsewhere").key("read");
    let integration = scene.account.evaluator().key;
    let rule = scene.rule(&json!({"naturalLanguageQuery": "level > 5"}));
    let made = scene.admin("POST", "/api/alerts", &rule).json();
    let one = format!("/api/alerts/{}", text(&made, "/alertRule/_id"));
    let (paused, query) = (json!({"status": "paused"}), json!({"bucketId": scene.bucket.id}));
    let bucket = json!({"name": "another"});
    assert_lines(
        403,
        &[
            (
                "read key on a write operation",
                scene.call_as(&read, "POST", "/api/data", &scene.point()),
            ),
            (
                "write key on an admin operation",
                scene.call_as(&write, "POST", "/api/buckets", &bucket),
            ),
            (
                "read key on an admin operation",
                scene.call_as(&read, "POST", "/api/buckets", &bucket),
            ),
            (
                "key not valid for the bucket",
                scene.call_as(&elsewhere, "POST", "/api/data/query", &query),
            ),
            (
                "integration key creating rules",
                scene.call_as(&integration, "POST", "/api/alerts", &rule),
            ),
            (
                "integration key modifying rules",
                scene.call_as(&integration, "PATCH", &one, &paused),
            ),
            (
                "integration key modifying rules: deleting",
                scene.call_as(&integration, "DELETE", &one, &Value::Null),
            ),
        ],
    );
}

#[test]
fn status_404_not_found() {
    let scene = scene();
    let nowhere = |path: String| scene.admin("DELETE", &path, &Value::Null);
    let bucket = format!("/api/buckets/{}", scene.bucket.id);
    assert_lines(
        404,
        &[
            ("bucket", nowhere(format!("/api/buckets/{UNKNOWN_ID}"))),
            ("data source", nowhere(format!("{bucket}/sources/{UNKNOWN_ID}"))),
            (
                "data source, when a rule is made",
                scene.admin(
                    "POST",
                    "/api/alerts",
                    &scene.rule(&json!({"naturalLanguageQuery": "level > 5", "dataSourceId": UNKNOWN_ID})),
                ),
            ),
            ("API key", nowhere(format!("{bucket}/keys/{UNKNOWN_ID}"))),
            (
                "API key of the organization",
                nowhere(format!("/api/organization/keys/{UNKNOWN_ID}")),
            ),
        ],
    );
}

#[test]
fn status_409_conflict() {
    let scene = scene();
    let evaluator = scene.account.evaluator();
    let verdict = json!({"outcome": "not_met", "evidence": {}});
    let rule = scene.bucket.evaluated_rule("judged", &scene.source);
    evaluator.evaluate(&rule, "met");
    let contested = scene.bucket.evaluated_rule("contested", &scene.source);
    let mut both: Vec<Answer> = thread::scope(|scope| {
        let judges = [(); 2].map(|()| scope.spawn(|| evaluator.verdict(&contested, &verdict)));
        judges.map(|judge| judge.join().unwrap()).into()
    });
    both.sort_by_key(|answer| answer.status);
    let second = both.pop().unwrap();
    both[0].expect(200, "spec, Errors: of two concurrent verdicts one is taken");
    let source = json!({"name": "gauge", "schema": {"level": {"type": "number"}}});
    assert_lines(
        409,
        &[
            (
                "duplicate bucket name",
                scene.admin("POST", "/api/buckets", &json!({"name": "tides"})),
            ),
            (
                "duplicate data source name in a bucket",
                scene.bucket.call("POST", "/sources", &source),
            ),
            ("duplicate verdict", evaluator.verdict(&rule, &verdict)),
            ("concurrent verdict", second),
        ],
    );
    scene.account.bucket("elsewhere").source("gauge", &["level"]);
}

#[test]
fn status_429_too_many_requests() {
    quota::within_a_month();
    let (_server, account, _) = quota::on_plan("Free");
    quota::use_up(&account);
    let refused = quota::show(&account).refused(429, "spec, Errors: 429 monthly quota exceeded");
    let message = text(&refused, "/message");
    assert!(
        message.contains(&quota::reset_in_words()),
        "spec, Errors: 429, message states the reset time: {message}"
    );
}

/// Overwrites the middle of each segment in place, since the server has mapped this file.
fn damage_segments(server: &Server) {
    let files = files(&server.data_dir().join("segments"));
    let segments = files
        .iter()
        .filter(|file| file.extension().is_some_and(|it| it == "segment"));
    for segment in segments {
        let mut bytes = fs::read(segment).unwrap();
        let (quarter, most) = (bytes.len() / 4, bytes.len() * 3 / 4);
        bytes[quarter..most].fill(0x5a);
        let mut file = fs::OpenOptions::new().write(true).open(segment).unwrap();
        file.write_all(&bytes).unwrap();
    }
}

/// Points become unreadable: the disk is damaged under a running server.
#[test]
fn status_500_internal_server_error() {
    let (mut server, _, bucket) = scene::sealing_bucket();
    let source = bucket.source("gauge", &["level"]);
    let now = now_ns();
    let entry = |nth: i64| point(&source, now + nth, &json!({"level": nth as f64 * 1.7}));
    bucket.send(&(0..10_000).map(entry).collect::<Vec<_>>());
    // All points are sealed, and no sealing or merge is in progress.
    assert!(server.stop().success(), "contract 9: SIGTERM: checkpoint, exit 0");
    server.launch();
    damage_segments(&server);
    let answer = bucket.post_query(&json!({"limit": 10_000, "downsampling": false}));
    let refused = answer.refused(500, "spec, Errors: 500 server error");
    assert_eq!(
        refused["requestId"],
        json!(answer.header("x-request-id")),
        "contract 1: its body carries the request id: {refused}"
    );
    let shown = refused.to_string();
    for internal in ["segment", "offset", "corrupt", "/", "panicked", ".rs"] {
        assert!(
            !shown.contains(internal),
            "contract 1: 500 never shows internals: {shown}"
        );
    }
    let other = bucket.call("GET", "/sources", &Value::Null);
    other.expect(200, "what can be read is answered as before");
}

#[test]
fn status_207_batch_partially_ingested() {
    let scene = scene();
    let entry = |value: Value| json!({"dataSourceId": scene.source, "values": {"level": value}});
    let answer = scene
        .bucket
        .batch(&[entry(json!(1)), entry(json!("high")), entry(json!(2))]);
    let answer = answer.expect(207, "spec, Errors: 207 batch partially ingested");
    assert_eq!(
        (
            &answer["insertedCount"],
            &answer["failedCount"],
            &answer["errors"][0]["index"]
        ),
        (&json!(2), &json!(1), &json!(1)),
        "spec: {{message, insertedCount, failedCount, errors: [{{index, error}}]}}"
    );
    assert_eq!(scene.bucket.rows(&json!({})).len(), 2, "the others are stored");
}
