//! Limits of one organization: counts, texts, deliveries. A request beyond a limit is refused with the name of the
//! limit, and other organizations are served.

use std::net::TcpListener;
use std::time::Instant;

use serde_json::{Value, json};

use super::process::{resident_bytes, resident_bytes_max};
use crate::operation::metrics::Metrics;
use crate::scene::{array, call};
use crate::support::client::Answer;
use crate::support::given::{Account, Bucket, point, text};
use crate::support::process::{Server, Setup};
use crate::support::time::now_ns;
use crate::support::waiting::until;

const MIB: u64 = 1 << 20;

/// A receiver that accepts connections and never answers.
struct UnresponsiveReceiver(TcpListener);

impl UnresponsiveReceiver {
    fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn url(&self) -> String {
        format!("http://{}/", self.0.local_addr().unwrap())
    }
}

fn setup_with(limits: &[(&str, &str)]) -> Setup {
    let setup = Setup::unlimited().set("webhooks.allow_private_networks", "true");
    limits.iter().fold(setup, |setup, (key, value)| {
        setup.set(&format!("limits.{key}"), value)
    })
}

#[track_caller]
fn post(account: &Account, path: &str, body: &Value) -> Answer {
    call(&account.client, &account.admin, "POST", path, body)
}

#[track_caller]
fn assert_limit_refused(answer: &Answer, limit: &str) {
    let body = answer.refused(403, limit);
    assert!(
        text(&body, "/message").contains(&format!("limits.{limit}")),
        "{answer}"
    );
}

fn source(name: &str) -> Value {
    json!({"name": name, "schema": {"level": {"type": "number"}}})
}

fn rule(bucket: &Bucket, source: &str) -> Value {
    json!({"bucketId": bucket.id, "dataSourceId": source, "name": "high", "naturalLanguageQuery": "level above 5"})
}

/// Creates objects until one is refused, deletes one, and creates another.
#[track_caller]
fn fill(account: &Account, path: &str, id: &str, below: &str, limit: &str, body: impl Fn(usize) -> Value) {
    let mut made = Vec::new();
    let refused = loop {
        let answer = post(account, path, &body(made.len()));
        if answer.status != 201 {
            break answer;
        }
        made.push(text(&answer.json(), id));
        assert!(made.len() < 10, "{limit}: no end to what is taken");
    };
    assert_limit_refused(&refused, limit);
    let one = format!("{below}/{}", made[0]);
    call(&account.client, &account.admin, "DELETE", &one, &Value::Null).expect(200, "one is deleted");
    post(account, path, &body(20)).expect(201, "there is room again");
    assert_limit_refused(&post(account, path, &body(21)), limit);
}

#[test]
fn one_object_too_many_is_refused_naming_the_limit() {
    let limits = [
        ("buckets_max", "3"),
        ("sources_max", "3"),
        ("keys_max", "4"),
        ("rules_max", "2"),
        ("webhooks_max", "2"),
    ];
    let server = Server::start_with(setup_with(&limits));
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    let watched = bucket.source("watched", &["level"]);
    let named = |prefix: &str, number: usize| json!({"name": format!("{prefix}{number}")});
    fill(
        &account,
        "/api/buckets",
        "/bucket/_id",
        "/api/buckets",
        "buckets_max",
        |n| named("b", n),
    );
    let sources = format!("/api/buckets/{}/sources", bucket.id);
    fill(
        &account,
        &sources,
        "/dataSource/_id",
        &sources,
        "sources_max",
        |n| source(&format!("s{n}")),
    );
    let keys = format!("/api/buckets/{}/keys", bucket.id);
    let key = |n| json!({"name": format!("k{n}"), "type": "write"});
    fill(&account, &keys, "/apiKey/_id", &keys, "keys_max", key);
    let integration = json!({"name": "evaluator", "type": "integration"});
    assert_limit_refused(
        &post(&account, "/api/organization/keys", &integration),
        "keys_max",
    );
    fill(
        &account,
        "/api/alerts",
        "/alertRule/_id",
        "/api/alerts",
        "rules_max",
        |_| rule(&bucket, &watched),
    );
    let webhook = |_| json!({"url": "https://example.com/", "events": ["alert.triggered"]});
    fill(
        &account,
        "/api/webhooks",
        "/webhook/_id",
        "/api/webhooks",
        "webhooks_max",
        webhook,
    );
    // Existing objects keep working, and other organizations are not affected.
    bucket
        .single(&point(&watched, now_ns(), &json!({"level": 7})))
        .expect(201, "a point");
    let neighbour = Account::sign_up(&server.client);
    neighbour.bucket("tides").source("gauge", &["level"]);
}

#[test]
fn the_sum_of_texts_is_bounded_and_deletion_frees_it() {
    let mut server = Server::start_with(setup_with(&[("catalog_bytes_max", "20000")]));
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    let watched = bucket.source("watched", &["level"]);
    let described = |bytes: usize| json!({"description": "x".repeat(bytes)});
    let patch = |bytes: usize| bucket.call("PATCH", "", &described(bytes));
    let large = || {
        let mut large = rule(&bucket, &watched);
        large["evaluation"] = json!({"kind": "threshold", "intervalSeconds": 60, "windowSeconds": 60,
            "dwellSeconds": 0, "inputs": [{"key": "l", "field": "level"}],
            "parameters": {"a": "x".repeat(4_000), "b": "x".repeat(4_000)}});
        large
    };
    let created = post(&account, "/api/alerts", &large());
    let id = text(&created.expect(201, "8 KB"), "/alertRule/_id");
    post(&account, "/api/alerts", &large()).expect(201, "16 KB");
    assert_limit_refused(&post(&account, "/api/alerts", &large()), "catalog_bytes_max");
    patch(1_000).expect(200, "17 KB");
    assert_limit_refused(&patch(4_096), "catalog_bytes_max");
    patch(900).expect(200, "a text may always get shorter");
    let path = format!("/api/alerts/{id}");
    let longer = json!({"evaluation": {"kind": "threshold", "intervalSeconds": 60, "windowSeconds": 60,
        "dwellSeconds": 0, "inputs": [{"key": "l", "field": "level"}],
        "parameters": {"a": "x".repeat(4_000), "b": "x".repeat(4_000), "c": "x".repeat(4_000)}}});
    assert_limit_refused(
        &call(&account.client, &account.admin, "PATCH", &path, &longer),
        "catalog_bytes_max",
    );
    let sources = format!("/api/buckets/{}/sources", bucket.id);
    let wide: serde_json::Map<String, Value> = (0..100)
        .map(|n| (format!("{n}{}", "x".repeat(100)), json!({"type": "number"})))
        .collect();
    assert_limit_refused(
        &post(&account, &sources, &json!({"name": "wide", "schema": wide})),
        "catalog_bytes_max",
    );
    // The limit also applies to schemas that are extended by ingestion.
    let open = json!({"name": "open", "schema": {"level": {"type": "number"}}, "schemaMode": "extend"});
    let open = bucket.source_with(&open);
    let values: serde_json::Map<String, Value> = (0..200)
        .map(|n| (format!("{n}{}", "x".repeat(100)), json!(n)))
        .collect();
    assert_limit_refused(
        &bucket.single(&point(&open, now_ns(), &json!(values))),
        "catalog_bytes_max",
    );
    bucket
        .single(&point(&open, now_ns(), &json!({"level": 7})))
        .expect(201, "a field that is there");
    // Below a lowered limit, existing objects are unchanged and new ones are refused.
    server.stop();
    server.configure(setup_with(&[("catalog_bytes_max", "100")]));
    server.launch();
    let rules = bucket.call("GET", "/alerts", &Value::Null).json();
    assert_eq!(array(&rules, "/alertRules").len(), 2);
    patch(10).expect(200, "shorter");
    assert_limit_refused(&patch(11), "catalog_bytes_max");
    call(&account.client, &account.admin, "DELETE", &path, &Value::Null).expect(200, "deleted");
    server.stop();
    server.configure(setup_with(&[("catalog_bytes_max", "20000")]));
    server.launch();
    post(&account, "/api/alerts", &large()).expect(201, "a deletion frees the limit");
}

/// Regression: without a bound, 400 of them took 2.3 GB, and one poll answered 306 MB.
#[test]
fn four_hundred_rules_of_the_largest_size_stay_within_the_memory() {
    let server = Server::start_with(setup_with(&[]));
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    let watched = bucket.source("watched", &["level"]);
    let before = resident_bytes(&server);
    let parameters: serde_json::Map<String, Value> = (0..200)
        .map(|n| (format!("p{n}"), json!("x".repeat(4_090))))
        .collect();
    let mut large = rule(&bucket, &watched);
    large["evaluation"] = json!({"kind": "threshold", "intervalSeconds": 60, "windowSeconds": 60,
        "dwellSeconds": 0, "inputs": [{"key": "l", "field": "level"}], "parameters": parameters});
    let body = large.to_string();
    let create = || {
        account
            .client
            .post("/api/alerts")
            .key(&account.admin)
            .body(body.clone())
            .send()
    };
    let answers: Vec<Answer> = (0..400).map(|_| create()).collect();
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    answers[made..]
        .iter()
        .for_each(|answer| assert_limit_refused(answer, "catalog_bytes_max"));
    assert_eq!(
        made,
        64 * MIB as usize / (200 * (4_090 + 32 + 4)),
        "rules of {} bytes",
        body.len()
    );
    let due = account
        .client
        .get("/api/evaluations/due?limit=1000")
        .key(&account.admin)
        .send();
    assert_eq!(due.status, 200);
    let listed = array(&due.json(), "/evaluations").len();
    assert!((1..made).contains(&listed), "{listed} of {made}");
    assert!(due.body.len() < 6 * MIB as usize, "{} bytes", due.body.len());
    let claim = account
        .client
        .get("/api/evaluations/due?limit=1000&claim=60")
        .key(&account.admin);
    let first = array(&claim.send().json(), "/evaluations");
    let claim = account
        .client
        .get("/api/evaluations/due?limit=1000&claim=60")
        .key(&account.admin);
    let second = array(&claim.send().json(), "/evaluations");
    assert!(
        !second.is_empty() && first[0]["ruleId"] != second[0]["ruleId"],
        "the next poll has the next ones"
    );
    let most = resident_bytes_max(&server);
    println!(
        "400 rules of {} bytes: {made} taken; a poll {} bytes; RSS {} MiB, at most {} MiB",
        body.len(),
        due.body.len(),
        before / MIB,
        most / MIB
    );
    assert!(most < before + 512 * MIB, "{} MiB", most / MIB);
    let neighbour = Account::sign_up(&server.client).bucket("tides");
    let gauge = neighbour.source("gauge", &["level"]);
    neighbour
        .single(&point(&gauge, now_ns(), &json!({"level": 7})))
        .expect(201, "a point");
}

/// A webhook for events of buckets and rules.
fn webhook(account: &Account, receiver: &UnresponsiveReceiver) -> String {
    let body = json!({"url": receiver.url(), "events": ["bucket.updated", "alert.triggered"],
        "retryConfig": {"maxRetries": 10, "backoffMultiplier": 10}});
    text(&account.webhook(&body), "/_id")
}

#[test]
fn pending_deliveries_are_bounded_and_triggers_have_priority() {
    let server = Server::start_with(setup_with(&[("owed_deliveries_max", "5")]));
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    let watched = bucket.source("watched", &["level"]);
    let receiver = UnresponsiveReceiver::new();
    let hooks = [webhook(&account, &receiver), webhook(&account, &receiver)];
    let patch = |text: &str| bucket.call("PATCH", "", &json!({"description": text}));
    patch("one").expect(200, "two are pending");
    patch("two").expect(200, "four are pending");
    assert_limit_refused(&patch("three"), "owed_deliveries_max");
    let shown = bucket.call("GET", "", &Value::Null).expect(200, "the bucket");
    assert_eq!(
        shown["bucket"]["description"], "two",
        "a change that is refused changes nothing"
    );
    let test = format!("/api/webhooks/{}/test", hooks[0]);
    post(&account, &test, &Value::Null).expect(202, "five are pending");
    assert_limit_refused(&post(&account, &test, &Value::Null), "owed_deliveries_max");
    let evaluator = account.evaluator();
    let verdict = evaluator.evaluate(&bucket.evaluated_rule("high", &watched), "met");
    assert_eq!(
        verdict["triggered"], true,
        "an evaluator is never refused: {verdict}"
    );
    let listed = |hook: &String| {
        let path = format!("/api/webhooks/{hook}/deliveries");
        array(
            &call(&account.client, &account.admin, "GET", &path, &Value::Null).json(),
            "/deliveries",
        )
    };
    for hook in &hooks {
        let deliveries = listed(hook);
        let trigger = deliveries
            .iter()
            .find(|it| it["event"] == "alert.triggered")
            .unwrap();
        assert_eq!(trigger["status"], "pending");
        let oldest = deliveries.last().unwrap();
        assert_eq!(
            (&oldest["event"], &oldest["status"]),
            (&json!("bucket.updated"), &json!("failed"))
        );
        let attempt = array(oldest, "/attempts").pop().unwrap();
        assert!(text(&attempt, "/error").contains("given up"), "{attempt}");
        let again = format!(
            "/api/webhooks/{hook}/deliveries/{}/redeliver",
            text(oldest, "/_id")
        );
        assert_limit_refused(&post(&account, &again, &Value::Null), "owed_deliveries_max");
    }
    // Deleting a webhook releases its pending deliveries.
    let path = format!("/api/webhooks/{}", hooks[1]);
    call(&account.client, &account.admin, "DELETE", &path, &Value::Null).expect(200, "deleted");
    let oldest = text(listed(&hooks[0]).last().unwrap(), "/_id");
    let again = format!("/api/webhooks/{}/deliveries/{oldest}/redeliver", hooks[0]);
    post(&account, &again, &Value::Null).expect(202, "its body is still there");
}

const WEBHOOKS: usize = 1_000;
const CHANGES: usize = 100;
/// For a total of 512 MiB.
const MEMORY_BYTES_MAX: u64 = 256 * MIB;

/// Regression: without a bound, it took 2.7 GB and filled the log, so that other organizations got 503.
#[test]
fn a_thousand_webhooks_and_a_hundred_changes_stay_within_the_memory() {
    let setup = setup_with(&[]).set("storage.memory_bytes_max", &MEMORY_BYTES_MAX.to_string());
    let mut server = Server::start_with(setup);
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    let neighbour = Account::sign_up(&server.client);
    let tides = neighbour.bucket("tides");
    let gauge = tides.source("gauge", &["level"]);
    let receiver = UnresponsiveReceiver::new();
    for _ in 0..WEBHOOKS {
        webhook(&account, &receiver);
    }
    assert_limit_refused(
        &post(
            &account,
            "/api/webhooks",
            &json!({"url": receiver.url(), "events": ["bucket.updated"]}),
        ),
        "webhooks_max",
    );
    webhook(&neighbour, &receiver);
    let (before, began) = (resident_bytes(&server), Instant::now());
    let mut taken = 0;
    for change in 0..CHANGES {
        let description = format!("{change} {}", "x".repeat(4_090));
        let answer = bucket.call("PATCH", "", &json!({"description": description}));
        match answer.status {
            200 => taken += 1,
            _ => assert_limit_refused(&answer, "owed_bytes_max"),
        }
        let at = now_ns();
        tides
            .single(&point(&gauge, at, &json!({"level": 7})))
            .expect(201, "a neighbour's point");
        let renamed = tides.call("PATCH", "", &json!({"description": change.to_string()}));
        renamed.expect(200, "a neighbour's change");
    }
    let took = began.elapsed();
    let pending = || Metrics::of(&server.client).value("tidewatch_deliveries_pending");
    let owed = until("all of it is queued", || {
        let pending = pending();
        (pending >= (taken * WEBHOOKS) as f64).then_some(pending)
    });
    let most = resident_bytes_max(&server);
    println!(
        "{WEBHOOKS} webhooks, {CHANGES} changes in {took:?}: {taken} taken, {owed} owed; RSS {} MiB, at most {} MiB",
        before / MIB,
        most / MIB
    );
    assert!((10..CHANGES).contains(&taken), "{taken} changes were taken");
    assert!(most < 512 * MIB, "{} MiB", most / MIB);
    server.kill();
    server.launch();
    let found = until("all of them are still pending", || {
        let pending = Metrics::of(&server.client).value("tidewatch_deliveries_pending");
        (pending >= (taken * WEBHOOKS) as f64).then_some(pending)
    });
    println!(
        "restarted: {found} pending; RSS {} MiB",
        resident_bytes(&server) / MIB
    );
    assert!(resident_bytes_max(&server) < 512 * MIB);
    tides
        .single(&point(&gauge, now_ns(), &json!({"level": 7})))
        .expect(201, "a neighbour's point");
}
