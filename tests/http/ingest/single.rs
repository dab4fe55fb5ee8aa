//! POST /api/data.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::scene::{self, assert_faults, assert_timestamp, column, members};
use crate::support::given::{Bucket, point};
use crate::support::time::{SECOND, now_ns};

/// A source with one field of each type.
pub fn typed_source(bucket: &Bucket) -> String {
    bucket.source_with(&json!({
        "name": "mixed",
        "schema": {"level": {"type": "number"}, "state": {"type": "string"}, "valid": {"type": "boolean"}},
    }))
}

#[test]
fn the_answer_is_the_stored_point() {
    let (mut server, _, bucket) = scene::bucket();
    let source = typed_source(&bucket);
    let values = json!({"level": 1.25, "state": "ebb \"é\" \n", "valid": false});
    let body = json!({
        "dataSourceId": source, "timestamp": "2026-01-02T03:04:05.5Z", "values": values, "metadata": {"a": 1},
    });
    let answer = bucket.single(&body).expect(201, "spec: POST /api/data");
    assert!(answer["message"].is_string(), "spec: {{message, dataPoint}}");
    let stored = &answer["dataPoint"];
    let named = [
        "_id",
        "bucketId",
        "createdAt",
        "dataSourceId",
        "metadata",
        "timestamp",
        "values",
    ];
    assert_eq!(members(stored), named, "contract 4: the members of dataPoint");
    assert_eq!(stored["bucketId"], bucket.id, "contract 4: dataPoint.bucketId");
    assert_eq!(
        stored["dataSourceId"], source,
        "contract 4: dataPoint.dataSourceId"
    );
    assert_eq!(
        stored["timestamp"], "2026-01-02T03:04:05.500Z",
        "contract 1: timestamps out"
    );
    assert_eq!(stored["values"], values, "contract 4: dataPoint.values");
    assert_eq!(
        stored["metadata"],
        json!({"a": 1}),
        "contract 4: dataPoint.metadata"
    );
    assert_timestamp(&stored["createdAt"], "dataPoint.createdAt");
    let without = bucket
        .single(&json!({"dataSourceId": source, "values": {"level": 1}}))
        .json();
    assert!(
        without["dataPoint"].get("metadata").is_none(),
        "contract 10: metadata is left out when a point had none"
    );

    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        let rows = bucket.rows(&json!({}));
        assert_eq!(
            rows.len(),
            2,
            "every acknowledged point is a row (after a kill: {restarted})"
        );
        for member in ["_id", "dataSourceId", "timestamp", "values", "metadata"] {
            assert_eq!(
                rows[0][member], stored[member],
                "contract 4: a stored point does not change (`{member}`)"
            );
        }
        assert_eq!(
            rows[1]["_id"], without["dataPoint"]["_id"],
            "contract 4: `_id` of a point never changes"
        );
        assert!(
            rows[1].get("metadata").is_none(),
            "contract 5: raw rows leave out metadata when there was none"
        );
    }
}

#[test]
fn null_is_not_a_measurement() {
    let (_server, _, bucket) = scene::bucket();
    let source = typed_source(&bucket);
    let body = json!({"dataSourceId": source, "values": {"level": 1, "state": null, "valid": null}});
    let answer = bucket
        .single(&body)
        .expect(201, "contract 4: null is the same as leaving the field out");
    assert_eq!(
        answer["dataPoint"]["values"],
        json!({"level": 1}),
        "contract 4: null is the same as leaving out"
    );
    assert_eq!(
        column(&bucket.rows(&json!({})), "/values"),
        [json!({"level": 1})],
        "contract 4: null is no measurement"
    );
    for nothing in [
        json!({}),
        json!({"level": null}),
        json!({"level": null, "state": null, "valid": null}),
    ] {
        let body = json!({"dataSourceId": source, "values": nothing});
        let answer = bucket.single(&body);
        answer.refused(400, "contract 4: all null or empty: 400");
        let faults = answer.faults();
        assert!(
            faults.first().is_some_and(|path| path.starts_with("values")),
            "contract 1: the fault is at `values`: {answer}"
        );
        bucket
            .batch(&[body])
            .refused(400, "contract 4: all null or empty: an entry error");
    }
}

#[test]
fn a_value_must_be_of_its_declared_type() {
    let (_server, _, bucket) = scene::bucket();
    let source = typed_source(&bucket);
    let wrong = [
        ("level", json!("1"), "number", "string"),
        ("level", json!(true), "number", "boolean"),
        ("state", json!(1), "string", "number"),
        ("state", json!(false), "string", "boolean"),
        ("valid", json!("true"), "boolean", "string"),
        ("valid", json!(0), "boolean", "number"),
    ];
    for (field, value, declared, came) in wrong {
        let body = json!({"dataSourceId": source, "values": {field: value}});
        let sentence = format!(
            "contract 4: {value} for a {declared} is 400 naming the field, what was declared and what came"
        );
        let answer = bucket.single(&body);
        assert_faults(&answer, &[&format!("values/{field}")], &sentence);
        let message = answer.json()["details"][0]["message"]
            .as_str()
            .unwrap_or_default()
            .to_lowercase();
        assert!(
            message.contains(declared) && message.contains(came),
            "{sentence}: `{message}`"
        );
        let batch = bucket.batch(&[body]).refused(400, &sentence);
        let error = batch["errors"][0]["error"]
            .as_str()
            .unwrap_or_default()
            .to_lowercase();
        let names_all = [field, declared, came].iter().all(|word| error.contains(word));
        assert!(names_all, "{sentence}, in a batch too: `{error}`");
    }
}

#[test]
fn an_undeclared_field_is_refused_even_when_null() {
    let (_server, _, bucket) = scene::bucket();
    let source = typed_source(&bucket);
    for value in [json!(1), json!("x"), json!(true), Value::Null] {
        let body = json!({"dataSourceId": source, "values": {"level": 1, "depth": value}});
        let sentence = "contract 4: an undeclared field (strict; also when null) is 400 naming it";
        assert_faults(&bucket.single(&body), &["values/depth"], sentence);
        let batch = bucket
            .batch(&[body, json!({"dataSourceId": source, "values": {"level": 1}})])
            .expect(207, sentence);
        let error = batch["errors"][0]["error"].as_str().unwrap_or_default();
        assert!(error.contains("depth"), "{sentence}: `{error}`");
    }
    for close in ["Level", "level ", "LEVEL"] {
        let body = json!({"dataSourceId": source, "values": {close: 1}});
        assert_faults(
            &bucket.single(&body),
            &[&format!("values/{close}")],
            "contract 4: names are compared exactly",
        );
    }
}

#[test]
fn point_ids_are_unique_and_survive_a_restart() {
    let (mut server, _, bucket) = scene::bucket();
    let (first, second) = (
        bucket.source("first", &["level"]),
        bucket.source("second", &["level"]),
    );
    let now = now_ns();
    for round in 0..3 {
        bucket
            .single(&point(&first, now, &json!({"level": round})))
            .expect(201, "a point");
        let source = |nth: i64| if nth % 2 == 0 { &first } else { &second };
        let points: Vec<Value> = (0..300)
            .map(|nth| point(source(nth), now - nth * SECOND, &json!({"level": nth})))
            .collect();
        bucket.send(&points);
        let before = column(&bucket.rows(&json!({})), "/_id");
        if round % 2 == 0 {
            server.kill();
        } else {
            server.stop();
        }
        server.launch();
        assert_eq!(
            column(&bucket.rows(&json!({})), "/_id"),
            before,
            "contract 4: `_id` of a point never changes"
        );
        let unique: HashSet<String> = before.iter().map(Value::to_string).collect();
        assert_eq!(
            unique.len(),
            before.len(),
            "contract 4: `_id` of a point is unique"
        );
        for id in &before {
            let text = id.as_str().unwrap_or_default();
            let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            assert!(
                text.len() == 24 && text.chars().all(hex),
                "contract 1: an id is 24 lowercase hex characters: {id}"
            );
        }
    }
}
