//! Backtests of rules that are not stored (contract 14).

use serde_json::{Value, json};

use super::backtest::Tester;
use crate::scene::{self, UNKNOWN_ID, array, assert_faults};
use crate::support::given::Account;

const RANGE: [(&str, &str); 2] = [
    ("startTime", "2026-03-01T00:00:00Z"),
    ("endTime", "2026-03-01T01:00:00Z"),
];

fn draft(bucket: &str, source: &str) -> Value {
    json!({
        "bucketId": bucket, "dataSourceId": source, "name": "high", "naturalLanguageQuery": "level > 5",
        "evaluation": {
            "kind": "threshold", "intervalSeconds": 60, "windowSeconds": 600, "dwellSeconds": 60,
            "inputs": [{"key": "x", "field": "level"}], "parameters": {"operator": "gt", "value": 5},
        },
    })
}

fn with_range(mut draft: Value) -> Value {
    for (name, time) in RANGE {
        draft[name] = json!(time);
    }
    draft
}

fn with_verdicts(mut draft: Value) -> Value {
    draft["verdicts"] = json!([
        {"at": "2026-03-01T00:00:00Z", "outcome": "met"}, {"at": "2026-03-01T00:01:00Z", "outcome": "not_met"},
    ]);
    draft
}

#[test]
fn a_draft_is_tested_as_the_stored_rule_would_be() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let body = draft(&bucket.id, &source);
    let stored = bucket.rule(&body);
    let keys = [
        account.admin.clone(),
        bucket.key("write"),
        bucket.key("read"),
        account.evaluator().key,
    ];
    for key in &keys {
        let tester = Tester {
            client: &account.client,
            key,
        };
        let cycles = with_range(body.clone());
        let by_id = tester.post(&format!("{stored}/backtest"), &cycles);
        let found = tester.post("backtest", &cycles);
        let found = found.expect(200, "small print 33: admin, write, read and integration keys");
        assert_eq!(found, by_id.expect(200, "small print 33"));
        assert_eq!(found["pagination"]["total"], 61);
        let verdicts = with_verdicts(body.clone());
        let by_id = tester.post(&format!("{stored}/backtest/verdicts"), &verdicts);
        let found = tester.post("backtest/verdicts", &verdicts);
        let found = found.expect(200, "small print 33");
        assert_eq!(found, by_id.expect(200, "small print 33"));
        assert_eq!(array(&found, "/timeline").len(), 3);
    }
    let rules = bucket.call("GET", "/alerts", &Value::Null).json();
    assert_eq!(
        array(&rules, "/alertRules").len(),
        1,
        "contract 14: changes nothing"
    );
}

#[test]
fn a_draft_is_checked_as_a_creation() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let tester = Tester {
        client: &account.client,
        key: &account.admin,
    };
    let ready = [
        ("backtest", with_range(draft(&bucket.id, &source))),
        ("backtest/verdicts", with_verdicts(draft(&bucket.id, &source))),
    ];
    for (path, body) in &ready {
        let with = |name: &str, value: Value| {
            let mut body = body.clone();
            body[name] = value;
            tester.post(path, &body)
        };
        for none in [with("evaluation", Value::Null), with("evaluation", json!(5))] {
            assert_faults(&none, &["evaluation"], "small print 32: with `evaluation`");
        }
        let mut block = body["evaluation"].clone();
        block["dwellSecond"] = json!(5);
        let misspelt = with("evaluation", block);
        assert_faults(&misspelt, &["evaluation/dwellSecond"], "contract 1");
        let message = misspelt.json()["message"].to_string();
        assert!(
            message.contains("level"),
            "spec: the error names the fields: {message}"
        );
        let mut block = body["evaluation"].clone();
        block["inputs"][0]["field"] = json!("depth");
        assert_faults(
            &with("evaluation", block),
            &["evaluation/inputs/0/field"],
            "contract 6: an unknown field",
        );
        assert_faults(
            &with("condition", json!("level > 5")),
            &["naturalLanguageQuery", "webhookUrl"],
            "contract 6: exactly one of them, and `webhookUrl` beside `condition`",
        );
        with("bucketId", json!(UNKNOWN_ID)).refused(404, "contract 1: an unknown bucket");
        with("dataSourceId", json!(UNKNOWN_ID)).refused(404, "contract 1: an unknown source");
    }
    let nothing = tester.post("backtest", &json!({}));
    let faults = [
        "bucketId",
        "condition",
        "dataSourceId",
        "endTime",
        "evaluation",
        "name",
        "startTime",
    ];
    assert_faults(&nothing, &faults, "contract 1: all faults together");
    let no_object = tester.post("backtest", &json!([]));
    assert_eq!(
        no_object.json()["details"].as_array().unwrap().len(),
        1,
        "one fault"
    );
}

#[test]
fn a_draft_on_a_bucket_of_others_is_not_tested() {
    let (server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let body = with_range(draft(&bucket.id, &source));
    let foreigner = Account::sign_up(&server.client);
    for key in [foreigner.admin.clone(), foreigner.evaluator().key] {
        let tester = Tester {
            client: &account.client,
            key: &key,
        };
        tester
            .post("backtest", &body)
            .refused(404, "contract 1: a foreign bucket");
    }
    let elsewhere = account.bucket("elsewhere").key("read");
    let tester = Tester {
        client: &account.client,
        key: &elsewhere,
    };
    tester
        .post("backtest", &body)
        .refused(403, "contract 1: another bucket of its organization");
}
