//! `tidewatch evaluate --backtest` with an integration key on a real server (contract 14).

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::scene;
use crate::support::given::point;
use crate::support::process::{command, run_to_end};
use crate::support::time::{DAY, MINUTE, now_ns, timestamp};

const WITHIN: Duration = Duration::from_secs(60);

#[test]
fn the_command_prints_what_the_rule_would_have_done() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let rule = bucket.rule(&json!({
        "dataSourceId": source, "name": "high", "naturalLanguageQuery": "level > 5",
        "evaluation": {
            "kind": "threshold", "intervalSeconds": 60, "windowSeconds": 60, "dwellSeconds": 120,
            "inputs": [{"key": "x", "field": "level"}], "parameters": {"operator": "gt", "value": 5},
        },
    }));
    let start = now_ns() / MINUTE * MINUTE - 120 * MINUTE;
    let at = |minute: i64| timestamp(start + minute * MINUTE);
    let level = |minute: i64| if (10..12).contains(&minute) { 9 } else { 1 };
    let points: Vec<Value> = (0..20)
        .map(|minute| point(&source, start + minute * MINUTE, &json!({"level": level(minute)})))
        .collect();
    bucket.send(&points);
    let directory = TempDir::new().unwrap();
    let key = account.evaluator().key;
    let run = |from: &str, to: &str| {
        let mut command = command(directory.path());
        command.args(["evaluate", "--url", &account.client.base(), "--backtest", &rule]);
        command
            .args(["--from", from, "--to", to])
            .env("TIDEWATCH_KEY", &key);
        run_to_end(&mut command, WITHIN)
    };
    let (status, output) = run(&at(8), &at(16));
    assert!(status.success(), "small print 39: exit 0: {output}");
    let expected = [
        "high: level > 5".to_owned(),
        format!("{}  not_met       armed -> armed", at(8)),
        format!("{}  not_met       armed -> armed", at(9)),
        format!("{}  met           armed -> firing, triggered", at(10)),
        format!("{}  met           firing -> firing", at(11)),
        format!("{}  met           firing -> firing", at(12)),
        format!("{}  not_met       firing -> clearing", at(13)),
        format!("{}  not_met       clearing -> clearing", at(14)),
        format!("{}  dwell ended   clearing -> armed", at(15)),
        format!("{}  not_met       armed -> armed", at(15)),
        format!("{}  not_met       armed -> armed", at(16)),
    ];
    let printed: Vec<&str> = output
        .lines()
        .filter(|line| line.contains("level > 5") || line.contains(" -> "))
        .collect();
    assert_eq!(printed, expected, "small print 39: {output}");
    let shown = bucket.show(&rule);
    assert_eq!(
        shown["lastEvaluatedAt"],
        Value::Null,
        "contract 14: changes nothing"
    );

    let (status, output) = run(&timestamp(start - 7 * DAY), &at(0));
    assert!(!status.success(), "too many cycles");
    assert!(
        output.contains("10081 times") && output.contains("--from and --to"),
        "{output}"
    );
    let (status, output) = run("yesterday", &at(0));
    assert!(!status.success() && output.contains("startTime"), "{output}");
}

#[test]
fn a_backtest_needs_both_ends_of_its_range() {
    let directory = TempDir::new().unwrap();
    let id = "0123456789abcdef01234567";
    let time = "2026-03-01";
    for arguments in [
        vec!["--backtest", id],
        vec!["--backtest", id, "--from", time],
        vec!["--from", time, "--to", time],
        vec!["--backtest", id, "--from", time, "--to", time, "--once"],
    ] {
        let mut command = command(directory.path());
        command
            .args(["evaluate", "--url", "http://127.0.0.1:9"])
            .args(&arguments);
        let (status, output) = run_to_end(command.env("TIDEWATCH_KEY", "svc_i_x"), WITHIN);
        assert!(
            !status.success() && output.contains("Usage"),
            "{arguments:?}: {output}"
        );
    }
}
