//! The evaluation block: defaults, all limits, all faults together.

use serde_json::{Value, json};

use crate::scene::{self, UNKNOWN_ID, assert_faults, call};
use crate::support::client::Answer;
use crate::support::given::Bucket;
use crate::support::process::Server;
use crate::support::watch::evaluation;

/// A bucket with a source of several fields, another source, and a third in another bucket.
struct Block {
    bucket: Bucket,
    source: String,
    other: String,
    elsewhere: String,
}

fn scene() -> (Server, Block) {
    let (server, account, bucket) = scene::bucket();
    let source = bucket.source_with(&json!({
        "name": "gauge",
        "schema": {"level": {"type": "number"}, "depth": {"type": "number"}, "state": {"type": "string"}},
    }));
    let other = bucket.source("weather", &["wind"]);
    let elsewhere = account.bucket("elsewhere").source("gauge", &["level"]);
    let block = Block {
        bucket,
        source,
        other,
        elsewhere,
    };
    (server, block)
}

impl Block {
    #[track_caller]
    fn create(&self, evaluation: &Value) -> Answer {
        let body = json!({
            "bucketId": self.bucket.id, "dataSourceId": self.source, "name": "odd",
            "naturalLanguageQuery": "it behaves strangely", "evaluation": evaluation,
        });
        call(
            &self.bucket.client,
            &self.bucket.admin,
            "POST",
            "/api/alerts",
            &body,
        )
    }

    /// Creates a rule with the block; returns the shown block.
    #[track_caller]
    fn create_with(&self, evaluation: &Value, sentence: &str) -> Value {
        let answer = self.create(evaluation);
        answer.expect(201, &format!("{sentence}: {evaluation}"))["alertRule"]["evaluation"].clone()
    }
}

fn with(name: &str, value: Value) -> Value {
    let mut block = evaluation("level");
    block[name] = value;
    block
}

fn without(name: &str) -> Value {
    let mut block = evaluation("level");
    block.as_object_mut().unwrap().remove(name);
    block
}

fn input(member: &str, value: Value) -> Value {
    let mut input = json!({"key": "x", "field": "level"});
    input[member] = value;
    with("inputs", json!([input]))
}

#[test]
fn a_block_is_kept_and_shown_with_its_defaults() {
    let (_server, scene) = scene();
    let shown = scene.create_with(&evaluation("level"), "spec: the least block");
    assert_eq!(
        shown["dwellSeconds"], 300,
        "spec: `dwellSeconds` default equals windowSeconds"
    );
    assert_eq!(
        shown["mode"], "external",
        "contract 6: `mode` may be absent (`external`)"
    );
    let full = json!({
        "mode": "external", "kind": "threshold", "intervalSeconds": 90, "windowSeconds": 3600,
        "inputs": [
            {"key": "level", "field": "level"},
            {"key": "w2_max", "field": "wind", "dataSourceId": scene.other, "aggregation": "max", "groupBy": "hour",
                "windowSeconds": 7200},
        ],
        "parameters": {"above": 5.5, "unit": "m", "strict": true, "höhe": -1, "": ""},
        "dwellSeconds": 0,
    });
    assert_eq!(
        scene.create_with(&full, "spec: a block with every member"),
        full,
        "spec: a block is kept as it was sent"
    );
}

#[test]
fn values_at_the_limits_are_accepted() {
    let (_server, scene) = scene();
    let many = |count: usize| -> Value {
        let input = |nth: usize| json!({"key": format!("k{nth}"), "field": "level"});
        (0..count).map(input).collect()
    };
    let taken = [
        (
            "spec: intervalSeconds 60 to 86400",
            with("intervalSeconds", json!(60)),
        ),
        (
            "spec: intervalSeconds 60 to 86400",
            with("intervalSeconds", json!(86_400)),
        ),
        (
            "spec: windowSeconds 60 to 31536000",
            with("windowSeconds", json!(60)),
        ),
        (
            "spec: windowSeconds 60 to 31536000",
            with("windowSeconds", json!(31_536_000)),
        ),
        ("spec: dwellSeconds at least 0", with("dwellSeconds", json!(0))),
        (
            "spec: kind at most 64 characters",
            with("kind", json!("ü".repeat(64))),
        ),
        ("spec: kind at most 64 characters", with("kind", json!(""))),
        ("spec: inputs 1 to 10 entries", with("inputs", many(10))),
        (
            "contract 6: `parameters` may be empty",
            with("parameters", json!({})),
        ),
        ("spec: a key starts with a letter", input("key", json!("Z_9z"))),
        ("spec: a key is a letter at least", input("key", json!("a"))),
        (
            "contract 6: an input's window has the rule's bounds",
            input("windowSeconds", json!(60)),
        ),
        (
            "contract 6: an input's window has the rule's bounds",
            input("windowSeconds", json!(31_536_000)),
        ),
        (
            "spec: the rule's own source may be named",
            input("dataSourceId", json!(scene.source)),
        ),
        ("spec: any declared field", input("field", json!("state"))),
    ];
    for (sentence, block) in taken {
        scene.create_with(&block, sentence);
    }
    for aggregation in ["avg", "sum", "min", "max", "count"] {
        for unit in ["minute", "hour", "day", "week", "month"] {
            let grouped = json!({"key": "x", "field": "level", "aggregation": aggregation, "groupBy": unit});
            scene.create_with(&with("inputs", json!([grouped])), "spec: aggregation and groupBy");
        }
    }
}

#[test]
fn values_beyond_the_limits_are_400_at_their_path() {
    let (_server, scene) = scene();
    let two = |first: Value, second: Value| with("inputs", json!([first, second]));
    let many: Value = (0..11)
        .map(|nth| json!({"key": format!("k{nth}"), "field": "level"}))
        .collect();
    let table = [
        (with("mode", json!("internal")), "mode"),
        (with("mode", json!("native")), "mode"),
        (with("mode", json!(5)), "mode"),
        (with("kind", json!("k".repeat(65))), "kind"),
        (with("kind", json!(5)), "kind"),
        (with("intervalSeconds", json!(59)), "intervalSeconds"),
        (with("intervalSeconds", json!(86_401)), "intervalSeconds"),
        (with("intervalSeconds", json!("60")), "intervalSeconds"),
        (with("intervalSeconds", json!(null)), "intervalSeconds"),
        (without("intervalSeconds"), "intervalSeconds"),
        (with("windowSeconds", json!(59)), "windowSeconds"),
        (with("windowSeconds", json!(31_536_001)), "windowSeconds"),
        (with("windowSeconds", json!([])), "windowSeconds"),
        (without("windowSeconds"), "windowSeconds"),
        (with("dwellSeconds", json!(-1)), "dwellSeconds"),
        (with("dwellSeconds", json!("0")), "dwellSeconds"),
        (without("inputs"), "inputs"),
        (with("inputs", json!([])), "inputs"),
        (with("inputs", many), "inputs"),
        (with("inputs", json!({})), "inputs"),
        (with("inputs", json!(["level"])), "inputs/0"),
        (without("parameters"), "parameters"),
        (with("parameters", json!([])), "parameters"),
        (with("parameters", json!(null)), "parameters"),
        (with("parameters", json!({"a": {"b": 1}})), "parameters/a"),
        (with("parameters", json!({"a": [1]})), "parameters/a"),
        (with("parameters", json!({"a": null})), "parameters/a"),
        (with("dwellSecond", json!(60)), "dwellSecond"),
        (with("Mode", json!("external")), "Mode"),
        (input("agregation", json!("avg")), "inputs/0/agregation"),
        (input("key", json!("")), "inputs/0/key"),
        (input("key", json!("9a")), "inputs/0/key"),
        (input("key", json!("_a")), "inputs/0/key"),
        (input("key", json!("a-b")), "inputs/0/key"),
        (input("key", json!("a b")), "inputs/0/key"),
        (input("key", json!(5)), "inputs/0/key"),
        (with("inputs", json!([{"field": "level"}])), "inputs/0/key"),
        (with("inputs", json!([{"key": "x"}])), "inputs/0/field"),
        (input("field", json!(5)), "inputs/0/field"),
        (input("field", json!("nope")), "inputs/0/field"),
        (input("field", json!("Level")), "inputs/0/field"),
        (input("field", json!("wind")), "inputs/0/field"),
        (input("dataSourceId", json!("x")), "inputs/0/dataSourceId"),
        (input("dataSourceId", json!(5)), "inputs/0/dataSourceId"),
        (input("dataSourceId", json!(UNKNOWN_ID)), "inputs/0/dataSourceId"),
        (
            input("dataSourceId", json!(scene.elsewhere)),
            "inputs/0/dataSourceId",
        ),
        (input("dataSourceId", json!(scene.other)), "inputs/0/field"),
        (input("windowSeconds", json!(59)), "inputs/0/windowSeconds"),
        (
            input("windowSeconds", json!(31_536_001)),
            "inputs/0/windowSeconds",
        ),
    ];
    for (block, path) in table {
        let sentence = format!("spec, contract 6: a block beyond its constraints is refused: {block}");
        assert_faults(&scene.create(&block), &[&format!("evaluation/{path}")], &sentence);
    }
    let twice = two(
        json!({"key": "x", "field": "level"}),
        json!({"key": "x", "field": "depth"}),
    );
    assert_faults(
        &scene.create(&twice),
        &["evaluation/inputs/1/key"],
        "spec: a key is unique within the rule",
    );
    let listed = scene.bucket.call("GET", "/alerts", &Value::Null).json();
    assert_eq!(listed["pagination"]["total"], 0, "what was refused was not made");
}

#[test]
fn aggregation_and_group_by_require_each_other() {
    let (_server, scene) = scene();
    let sentence = "spec: aggregation and groupBy must be supplied together; supplying only one is rejected";
    for (member, value) in [("aggregation", "avg"), ("groupBy", "hour")] {
        let answer = scene.create(&input(member, json!(value)));
        answer.refused(400, sentence);
        let faults = answer.faults();
        assert!(
            faults.len() == 1 && faults[0].starts_with("evaluation/inputs/0/"),
            "{sentence}, at its path: {answer}"
        );
    }
    for (aggregation, unit, path) in [
        ("mode", "hour", "aggregation"),
        ("avg", "fortnight", "groupBy"),
        ("AVG", "hour", "aggregation"),
    ] {
        let grouped = json!({"key": "x", "field": "level", "aggregation": aggregation, "groupBy": unit});
        assert_faults(
            &scene.create(&with("inputs", json!([grouped]))),
            &[&format!("evaluation/inputs/0/{path}")],
            "spec: the names of aggregation and groupBy",
        );
    }
}

#[test]
fn all_faults_are_reported_together() {
    let (_server, scene) = scene();
    let wrong = json!({
        "mode": "internal", "kind": "k".repeat(65), "intervalSeconds": 1, "windowSeconds": 1, "dwellSeconds": -1,
        "inputs": [{"key": "1", "field": 5, "dataSourceId": "x", "windowSeconds": 1}, {}, 5],
        "parameters": {"fine": 1, "a": [], "b": {}}, "window": 5,
    });
    assert_faults(
        &scene.create(&wrong),
        &[
            "evaluation/mode",
            "evaluation/kind",
            "evaluation/intervalSeconds",
            "evaluation/windowSeconds",
            "evaluation/dwellSeconds",
            "evaluation/inputs/0/key",
            "evaluation/inputs/0/field",
            "evaluation/inputs/0/dataSourceId",
            "evaluation/inputs/0/windowSeconds",
            "evaluation/inputs/1/key",
            "evaluation/inputs/1/field",
            "evaluation/inputs/2",
            "evaluation/parameters/a",
            "evaluation/parameters/b",
            "evaluation/window",
        ],
        "contract 1: all faults of one body are reported together",
    );
    let unknown = json!([
        {"key": "a", "field": "nope"}, {"key": "b", "field": "level"}, {"key": "c", "field": "none"},
        {"key": "d", "field": "level", "dataSourceId": UNKNOWN_ID},
    ]);
    assert_faults(
        &scene.create(&with("inputs", unknown)),
        &[
            "evaluation/inputs/0/field",
            "evaluation/inputs/2/field",
            "evaluation/inputs/3/dataSourceId",
        ],
        "contract 10: faults that only the named resource can tell, all of them together",
    );
}

#[test]
fn the_error_names_the_fields_available() {
    let (_server, scene) = scene();
    let sentence = "spec: when an evaluation block fails validation, the error names the fields available";
    for wrong in [
        with("intervalSeconds", json!(1)),
        input("field", json!("nope")),
        with("mode", json!("internal")),
        without("inputs"),
        input("dataSourceId", json!(UNKNOWN_ID)),
        with(
            "inputs",
            json!([{"key": "a", "field": "state", "aggregation": "avg", "groupBy": "hour"}]),
        ),
    ] {
        let answer = scene.create(&wrong);
        answer.refused(400, sentence);
        for field in ["level", "depth", "state"] {
            assert!(
                answer.text().contains(field),
                "{sentence}, `{field}` among them: {answer}"
            );
        }
    }
    let rule = scene.bucket.evaluated_rule("odd", &scene.source);
    let patch = call(
        &scene.bucket.client,
        &scene.bucket.admin,
        "PATCH",
        &format!("/api/alerts/{rule}"),
        &json!({"evaluation": with("windowSeconds", json!(1))}),
    );
    assert_faults(
        &patch,
        &["evaluation/windowSeconds"],
        "spec: PATCH validates the block too",
    );
    for field in ["level", "depth", "state"] {
        assert!(
            patch.text().contains(field),
            "{sentence}, of a PATCH too: {patch}"
        );
    }
    assert_eq!(
        scene.bucket.show(&rule)["evaluation"]["windowSeconds"],
        300,
        "what was refused changed nothing"
    );
}
