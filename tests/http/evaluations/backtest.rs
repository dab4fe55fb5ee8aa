//! Backtests of stored rules: their cycles and their timelines (contract 14).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::scene::{self, UNKNOWN_ID, array, assert_faults, column};
use crate::support::client::{Answer, Client};
use crate::support::given::{Bucket, point};
use crate::support::time::{MINUTE, now_ns, timestamp};

/// A client with a key.
pub struct Tester<'a> {
    pub client: &'a Client,
    pub key: &'a str,
}

impl Tester<'_> {
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        let path = format!("/api/alerts/{path}");
        self.client.post(&path).key(self.key).json(body).send()
    }

    fn cycles(&self, rule: &str, body: &Value) -> Value {
        let answer = self.post(&format!("{rule}/backtest"), body);
        answer.expect(200, "contract 14: the due cycles of that time")
    }

    fn timeline(&self, rule: &str, verdicts: &Value) -> Vec<Value> {
        let path = format!("{rule}/backtest/verdicts");
        let answer = self.post(&path, &json!({"verdicts": verdicts}));
        array(
            &answer.expect(200, "contract 14: the timeline of states and triggers"),
            "/timeline",
        )
    }
}

fn rule(bucket: &Bucket, source: &str, dwell_seconds: u32) -> String {
    bucket.rule(&json!({
        "dataSourceId": source, "name": "high", "naturalLanguageQuery": "level > 5",
        "evaluation": {
            "kind": "threshold", "intervalSeconds": 60, "windowSeconds": 600, "dwellSeconds": dwell_seconds,
            "inputs": [{"key": "x", "field": "level"}], "parameters": {"operator": "gt", "value": 5},
        },
    }))
}

fn range(start: &str, end: &str) -> Value {
    json!({"startTime": start, "endTime": end})
}

#[test]
fn cycles_are_an_interval_apart_up_to_and_including_the_end() {
    let (_server, account, bucket) = scene::bucket();
    let rule = rule(&bucket, &bucket.source("gauge", &["level"]), 300);
    let tester = Tester {
        client: &account.client,
        key: &account.admin,
    };
    let body = range("2026-03-01T00:00:30.5Z", "2026-03-01T01:00:30.5Z");
    let answer = tester.cycles(&rule, &body);
    let cycles = array(&answer, "/cycles");
    assert_eq!(cycles.len(), 61, "small print 34: up to and including `endTime`");
    assert_eq!(cycles[0]["at"], "2026-03-01T00:00:30.500Z");
    assert_eq!(cycles[60]["at"], "2026-03-01T01:00:30.500Z");
    let expected = json!({"limit": 100, "offset": 0, "total": 61, "hasMore": false});
    assert_eq!(answer["pagination"], expected, "small print 35");
    let filters = &cycles[60]["inputs"][0]["query"]["filters"];
    assert_eq!(filters["startTime"], "2026-03-01T00:50:30.500Z");
    assert_eq!(filters["endTime"], "2026-03-01T01:00:30.500Z");
    let shorter = range("2026-03-01T00:00:30.5Z", "2026-03-01T01:00:30.499Z");
    assert_eq!(tester.cycles(&rule, &shorter)["pagination"]["total"], 60);
    let shortest = range("2026-03-01T00:00:00Z", "2026-03-01T00:00:00.000000001Z");
    assert_eq!(tester.cycles(&rule, &shortest)["pagination"]["total"], 1);
    let evaluation = bucket.show(&rule)["evaluation"].clone();
    let tested = json!({"name": "high", "condition": "level > 5", "evaluation": evaluation});
    assert_eq!(answer["rule"], tested, "what an evaluator has to know");
}

#[test]
fn pages_are_parts_of_the_whole() {
    let (_server, account, bucket) = scene::bucket();
    let rule = rule(&bucket, &bucket.source("gauge", &["level"]), 300);
    let tester = Tester {
        client: &account.client,
        key: &account.admin,
    };
    let page = |limit: u64, offset: u64| {
        let mut body = range("2026-03-01T00:00:00Z", "2026-03-01T16:39:59Z");
        body["limit"] = json!(limit);
        body["offset"] = json!(offset);
        tester.cycles(&rule, &body)
    };
    let whole = array(&page(1_000, 0), "/cycles");
    assert_eq!(whole.len(), 1_000);
    for (limit, offset) in [
        (1, 0),
        (7, 5),
        (400, 900),
        (1_000, 999),
        (5, 1_000),
        (5, u64::MAX >> 1),
    ] {
        let answer = page(limit, offset);
        let from = usize::try_from(offset).unwrap().min(1_000);
        let to = from.saturating_add(limit as usize).min(1_000);
        assert_eq!(
            array(&answer, "/cycles"),
            whole[from..to],
            "{limit} from {offset}"
        );
        let pagination = &answer["pagination"];
        assert_eq!(pagination["total"], 1_000, "small print 35");
        assert_eq!(pagination["hasMore"], to < 1_000);
        assert_eq!(pagination["limit"], limit);
        assert_eq!(pagination["offset"], offset);
    }
}

/// Three hundred million cycles, from the first timestamp to the last.
#[test]
fn the_longest_range_is_answered_by_the_page() {
    let (_server, account, bucket) = scene::bucket();
    let rule = rule(&bucket, &bucket.source("gauge", &["level"]), 300);
    let tester = Tester {
        client: &account.client,
        key: &account.admin,
    };
    let mut body = range("1678-01-01T00:00:01Z", "2261-12-31T23:59:59Z");
    let total = 307_153_440;
    body["offset"] = json!(total - 3);
    let asked = Instant::now();
    let answer = tester.cycles(&rule, &body);
    assert!(asked.elapsed() < Duration::from_secs(5), "small print 35: pages");
    assert_eq!(answer["pagination"]["total"], total);
    let last = column(&array(&answer, "/cycles"), "/at");
    assert_eq!(last.len(), 3);
    assert_eq!(last[2], "2261-12-31T23:59:01Z");
    // A window that would begin before all timestamps begins with them.
    body["offset"] = json!(0);
    let first = tester.cycles(&rule, &body)["cycles"][0]["inputs"][0]["query"].clone();
    assert_eq!(first["filters"]["startTime"], "1678-01-01T00:00:00Z");
    let posted = account.client.post("/api/data/query").key(&account.admin);
    posted.json(&first).send().expect(200, "the queries are ready");
}

/// The queries of a cycle are those of `due`, but for the times.
#[test]
fn the_queries_are_those_of_due() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level", "depth"]);
    let other = bucket.source("other", &["level"]);
    let rule = bucket.rule(&json!({
        "dataSourceId": source, "name": "judged", "naturalLanguageQuery": "level > 5",
        "evaluation": {
            "intervalSeconds": 60, "windowSeconds": 600, "parameters": {},
            "inputs": [
                {"key": "raw", "field": "level"},
                {"key": "groups", "field": "depth", "aggregation": "avg", "groupBy": "15m", "fill": "previous"},
                {"key": "zone", "field": "level", "aggregation": "max", "groupBy": "day", "timezone": "Europe/Stockholm",
                 "windowSeconds": 86_400, "dataSourceId": other},
            ],
        },
    }));
    let now = now_ns() / MINUTE * MINUTE;
    let evaluator = account.evaluator();
    let due = evaluator.due("").remove(0);
    let tester = Tester {
        client: &account.client,
        key: &evaluator.key,
    };
    let cycles = tester.cycles(&rule, &range(&timestamp(now - 5 * MINUTE), &timestamp(now)));
    let cycle = array(&cycles, "/cycles").pop().unwrap();
    assert_eq!(cycle["at"], timestamp(now));
    let without_times = |inputs: &Value| {
        let mut inputs = inputs.clone();
        for input in inputs.as_array_mut().unwrap() {
            let filters = input["query"]["filters"].as_object_mut().unwrap();
            filters.remove("startTime").unwrap();
            filters.remove("endTime").unwrap();
        }
        inputs
    };
    assert_eq!(
        without_times(&cycle["inputs"]),
        without_times(&due["inputs"]),
        "small print 35: otherwise the queries are those of `due`"
    );
    for (input, window) in [(0, 10 * MINUTE), (1, 10 * MINUTE), (2, 24 * 60 * MINUTE)] {
        let filters = &cycle["inputs"][input]["query"]["filters"];
        assert_eq!(filters["endTime"], timestamp(now), "small print 35");
        assert_eq!(filters["startTime"], timestamp(now - window), "input {input}");
    }
    bucket.send(&[
        point(&source, now - 6 * MINUTE, &json!({"level": 7})),
        point(&source, now + 1, &json!({"level": 8})),
    ]);
    let posted = account.client.post("/api/data/query").key(&evaluator.key);
    let rows = posted.json(&cycle["inputs"][0]["query"]).send();
    let rows = array(&rows.expect(200, "the queries are ready"), "/data");
    assert_eq!(column(&rows, "/values/level"), [json!(7)]);
}

#[test]
fn the_timeline_is_that_of_intervals_and_dwell() {
    let (_server, account, bucket) = scene::bucket();
    let rule = rule(&bucket, &bucket.source("gauge", &["level"]), 120);
    let tester = Tester {
        client: &account.client,
        key: &account.admin,
    };
    let verdicts = json!([
        {"at": "2026-03-01T00:06:00Z", "outcome": "not_met"},
        {"at": "2026-03-01T00:00:00Z", "outcome": "met"},
        {"at": "2026-03-01T00:00:00Z", "outcome": "not_met"},
        {"at": "2026-03-01T00:00:59.5Z", "outcome": "not_met"},
        {"at": "2026-03-01T02:01:00+02:00", "outcome": "not_met"},
        {"at": "2026-03-01T00:02:00Z", "outcome": "inconclusive"},
        {"at": "2026-03-01T00:03:00Z", "outcome": "met"},
    ]);
    let found = tester.timeline(&rule, &verdicts);
    let entry = |at: &str, outcome: Value, states: [&str; 2], triggered: bool, accepted: bool| {
        json!({
            "at": format!("2026-03-01T00:{at}Z"), "outcome": outcome, "previousState": states[0], "state": states[1],
            "triggered": triggered, "accepted": accepted,
        })
    };
    let expected = [
        entry("00:00", json!("met"), ["armed", "firing"], true, true),
        entry("00:00", json!("not_met"), ["firing", "firing"], false, false),
        entry("00:59.500", json!("not_met"), ["firing", "firing"], false, false),
        entry("01:00", json!("not_met"), ["firing", "clearing"], false, true),
        entry(
            "02:00",
            json!("inconclusive"),
            ["clearing", "clearing"],
            false,
            true,
        ),
        // It has ended before the verdict of the same instant (small print 38).
        entry("03:00", Value::Null, ["clearing", "armed"], false, true),
        entry("03:00", json!("met"), ["armed", "firing"], true, true),
        entry("06:00", json!("not_met"), ["firing", "clearing"], false, true),
        entry("08:00", Value::Null, ["clearing", "armed"], false, true),
    ];
    assert_eq!(found, expected, "small print 36 to 38");
}

#[test]
fn a_backtest_takes_1_to_10000_verdicts() {
    let (_server, account, bucket) = scene::bucket();
    let rule = rule(&bucket, &bucket.source("gauge", &["level"]), 60);
    let tester = Tester {
        client: &account.client,
        key: &account.admin,
    };
    let start = now_ns() / MINUTE * MINUTE;
    let verdicts = |count: i64| -> Value {
        (0..count)
            .map(|nth| {
                let outcome = if nth % 2 == 0 { "met" } else { "not_met" };
                json!({"at": timestamp(start + nth * MINUTE), "outcome": outcome})
            })
            .collect()
    };
    let longest = tester.timeline(&rule, &verdicts(10_000));
    assert_eq!(
        longest.len(),
        15_000,
        "each second verdict begins a dwell that ends"
    );
    let fired = longest.iter().filter(|entry| entry["triggered"] == true).count();
    assert_eq!(fired, 5_000);
    let path = format!("{rule}/backtest/verdicts");
    for count in [0, 10_001] {
        let answer = tester.post(&path, &json!({"verdicts": verdicts(count)}));
        assert_faults(&answer, &["verdicts"], "small print 36: 1 to 10,000 entries");
    }
    let wrong = json!({"verdicts": [
        {"at": "yesterday", "outcome": "met"}, {"at": "2026-03-01T00:00:00Z", "outcome": "maybe"}, {}, 5,
    ]});
    let faults = [
        "verdicts/0/at",
        "verdicts/1/outcome",
        "verdicts/2/at",
        "verdicts/2/outcome",
        "verdicts/3",
    ];
    assert_faults(
        &tester.post(&path, &wrong),
        &faults,
        "contract 1: all faults together",
    );
    assert_faults(
        &tester.post(&path, &json!({})),
        &["verdicts"],
        "small print 1: required",
    );
}

#[test]
fn a_range_has_its_limits() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let stored = rule(&bucket, &source, 300);
    let tester = Tester {
        client: &account.client,
        key: &account.admin,
    };
    let good = range("2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z");
    let post = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        tester.post(&format!("{stored}/backtest"), &body)
    };
    for limit in [1, 1_000] {
        post("limit", json!(limit)).expect(200, "small print 35: `limit` 1 to 1,000");
    }
    for (name, wrong) in [
        ("limit", json!(0)),
        ("limit", json!(1_001)),
        ("limit", json!("5")),
        ("offset", json!(-1)),
        ("offset", json!(1.5)),
        ("endTime", json!(5)),
        ("endTime", Value::Null),
    ] {
        assert_faults(&post(name, wrong), &[name], "small print 35");
    }
    for end in ["2026-03-01T00:00:00Z", "2026-02-28T00:00:00Z"] {
        assert_faults(
            &post("endTime", json!(end)),
            &["startTime"],
            "small print 34: `startTime` must be before `endTime`",
        );
    }
    let empty = tester.post(&format!("{stored}/backtest"), &json!({}));
    assert_faults(&empty, &["endTime", "startTime"], "small print 1: required");
}

#[test]
fn only_rules_with_an_evaluation_block_are_tested_also_paused_ones() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let stored = rule(&bucket, &source, 300);
    let plain = bucket.rule(&json!({
        "dataSourceId": source, "name": "plain", "naturalLanguageQuery": "level is above 3"
    }));
    let elsewhere = account.bucket("elsewhere").key("write");
    let admin = Tester {
        client: &account.client,
        key: &account.admin,
    };
    let bodies = [
        ("backtest", range("2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z")),
        (
            "backtest/verdicts",
            json!({"verdicts": [{"at": "2026-03-01T00:00:00Z", "outcome": "met"}]}),
        ),
    ];
    for (below, body) in &bodies {
        let refused = admin.post(&format!("{plain}/{below}"), body);
        refused.refused(400, "small print 34: plain rules: 400");
        admin
            .post(&format!("{UNKNOWN_ID}/{below}"), body)
            .refused(404, "contract 1: unknown");
        let stranger = Tester {
            key: &elsewhere,
            ..admin
        };
        let refused = stranger.post(&format!("{stored}/{below}"), body);
        refused.refused(403, "contract 1: a rule of another bucket");
    }
    for status in ["paused", "inactive"] {
        let path = format!("/api/alerts/{stored}");
        let patched = account.client.request("PATCH", &path).key(&account.admin);
        patched
            .json(&json!({"status": status}))
            .send()
            .expect(200, status);
        for (below, body) in &bodies {
            let tested = admin.post(&format!("{stored}/{below}"), body);
            tested.expect(200, "small print 34: paused rules may be tested");
        }
    }
}

#[test]
fn a_backtest_changes_nothing() {
    let (mut server, account, bucket) = scene::bucket();
    let stored = rule(&bucket, &bucket.source("gauge", &["level"]), 300);
    let evaluator = account.evaluator();
    let tester = Tester {
        client: &account.client,
        key: &evaluator.key,
    };
    let (before, due) = (bucket.show(&stored), evaluator.due(""));
    tester.cycles(&stored, &range("2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z"));
    let now = timestamp(now_ns());
    let timeline = tester.timeline(&stored, &json!([{"at": now, "outcome": "met"}]));
    assert_eq!(timeline[0]["triggered"], true);
    server.kill();
    server.launch();
    assert_eq!(bucket.show(&stored), before, "contract 14: changes nothing");
    assert!(bucket.history(&stored).is_empty());
    assert_eq!(column(&evaluator.due(""), "/dueAt"), column(&due, "/dueAt"));
}

/// The rule's own past plays no part: a firing rule is tested from `armed` on.
#[test]
fn the_timeline_begins_armed() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    bucket.send(&[point(&source, now_ns(), &json!({"level": 9}))]);
    let stored = rule(&bucket, &source, 300);
    account.evaluator().evaluate(&stored, "met");
    let tester = Tester {
        client: &account.client,
        key: &account.admin,
    };
    let timeline = tester.timeline(&stored, &json!([{"at": timestamp(now_ns()), "outcome": "met"}]));
    assert_eq!(timeline[0]["previousState"], "armed", "small print 36");
    assert_eq!(
        timeline[0]["accepted"], true,
        "small print 34: its own past plays no part"
    );
}
