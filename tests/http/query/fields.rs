//! `filters.fields`: the values in a row, and which points become rows.

use serde_json::{Value, json};

use crate::scene::{self, array, column};
use crate::support::given::{Bucket, point};
use crate::support::time::{MINUTE, now_ns};

fn two_sources(bucket: &Bucket) -> (String, String) {
    let first = bucket.source_with(&json!({
        "name": "first",
        "schema": {"level": {"type": "number"}, "depth": {"type": "number"}, "state": {"type": "string"}},
    }));
    let second = bucket.source_with(&json!({
        "name": "second", "schema": {"level": {"type": "number"}, "wind": {"type": "number"}},
    }));
    (first, second)
}

#[test]
fn only_requested_fields_are_shown_and_empty_rows_omitted() {
    let (_server, _, bucket) = scene::bucket();
    let (first, second) = two_sources(&bucket);
    let now = now_ns();
    bucket.send(&[
        point(&first, now, &json!({"level": 1, "depth": 2, "state": "ebb"})),
        point(&first, now + 1, &json!({"depth": 3})),
        point(&second, now + 2, &json!({"level": 4, "wind": 5})),
        point(&second, now + 3, &json!({"wind": 6})),
        point(&first, now + 4, &json!({"state": "flow"})),
    ]);
    let of = |fields: &[&str]| column(&bucket.rows(&json!({"fields": fields})), "/values");
    let sentence = "contract 5: rows left with no value are not rows";
    assert_eq!(
        of(&["level"]),
        [json!({"level": 1}), json!({"level": 4})],
        "{sentence}"
    );
    assert_eq!(
        of(&["wind", "state"]),
        [
            json!({"state": "ebb"}),
            json!({"wind": 5}),
            json!({"wind": 6}),
            json!({"state": "flow"})
        ],
        "{sentence}"
    );
    assert_eq!(
        of(&["depth", "depth"]),
        [json!({"depth": 2}), json!({"depth": 3})],
        "a field named twice is one field"
    );
    assert_eq!(of(&[]).len(), 5, "an empty `fields` leaves nothing out");
    let answer = bucket.query(&json!({"filters": {"fields": ["level"]}, "limit": 1}));
    assert_eq!(
        answer["metadata"]["hasMore"], true,
        "{sentence}: paging counts rows"
    );
    let answer = bucket.query(&json!({"filters": {"fields": ["level"]}, "limit": 1, "offset": 1}));
    assert_eq!(
        answer["data"][0]["values"],
        json!({"level": 4}),
        "{sentence}: offset counts rows"
    );
    assert_eq!(
        answer["metadata"]["hasMore"], false,
        "{sentence}: paging counts rows"
    );
}

#[test]
fn an_undeclared_field_is_400_naming_the_available_ones() {
    let (_server, _, bucket) = scene::bucket();
    let (first, second) = two_sources(&bucket);
    let sentence =
        "contract 5: a name in fields that no selected source declares: 400 naming the available ones";
    for (filters, path, available) in [
        (
            json!({"fields": ["nope"]}),
            "filters/fields/0",
            ["level", "depth", "state", "wind"].as_slice(),
        ),
        (
            json!({"fields": ["level", "Level"]}),
            "filters/fields/1",
            &["level", "depth", "state", "wind"],
        ),
        (
            json!({"fields": ["wind"], "dataSourceIds": [first]}),
            "filters/fields/0",
            &["level", "depth", "state"],
        ),
        (
            json!({"fields": ["depth"], "dataSourceIds": [second]}),
            "filters/fields/0",
            &["level", "wind"],
        ),
    ] {
        for aggregation in [None, Some("avg")] {
            let mut body = json!({"filters": filters});
            if let Some(aggregation) = aggregation {
                body["aggregation"] = json!(aggregation);
                body["groupBy"] = json!("hour");
            }
            let answer = bucket.post_query(&body);
            answer.refused(400, sentence);
            assert_eq!(answer.faults(), [path], "{sentence}: {answer}");
            let detail = answer.json()["details"][0]["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let message = format!("{} {detail}", answer.json()["message"]);
            assert!(
                available.iter().all(|field| message.contains(field)),
                "{sentence}: {message}"
            );
        }
    }
    bucket
        .post_query(&json!({"filters": {"fields": ["wind"]}}))
        .expect(200, "contract 5: one selected source is enough");
}

#[test]
fn a_numeric_aggregation_of_a_text_or_boolean_field_is_400() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source_with(&json!({
        "name": "mixed",
        "schema": {"level": {"type": "number"}, "state": {"type": "string"}, "valid": {"type": "boolean"}},
    }));
    let now = now_ns() / MINUTE * MINUTE;
    bucket.send(&[
        point(&source, now, &json!({"level": 1, "state": "ebb", "valid": true})),
        point(&source, now + 1, &json!({"level": 2, "state": "flow"})),
        point(&source, now + 2, &json!({"valid": false})),
        point(&source, now + MINUTE, &json!({"state": "ebb"})),
    ]);
    let aggregate = |aggregation: &str, fields: Option<&[&str]>| {
        let mut body = json!({"aggregation": aggregation, "groupBy": "minute"});
        if let Some(fields) = fields {
            body["filters"] = json!({"fields": fields});
        }
        bucket.post_query(&body)
    };
    for aggregation in ["avg", "sum", "min", "max"] {
        let sentence = "contract 5: asking a numeric aggregation of a string or boolean field by fields: 400";
        for (fields, path) in [
            (["state"].as_slice(), "filters/fields/0"),
            (&["level", "valid"], "filters/fields/1"),
        ] {
            let answer = aggregate(aggregation, Some(fields));
            answer.refused(400, sentence);
            assert_eq!(answer.faults(), [path], "{sentence}: {answer}");
        }
        let rows = array(
            &aggregate(aggregation, None).expect(200, "without fields those fields are left out"),
            "/data",
        );
        let left_out = "contract 5: without fields, string and boolean fields are left out";
        assert_eq!(
            rows.len(),
            1,
            "{left_out}, and a group with nothing else is no row"
        );
        assert_eq!(scene::members(&rows[0]["values"]), ["level"], "{left_out}");
    }
    let values = |fields: Option<&[&str]>| {
        column(
            &array(&aggregate("count", fields).expect(200, "a count"), "/data"),
            "/values",
        )
    };
    let sentence = "contract 5: count covers all fields and counts values present";
    assert_eq!(
        values(None),
        [json!({"level": 2, "state": 2, "valid": 2}), json!({"state": 1})],
        "{sentence}"
    );
    assert_eq!(
        values(Some(&["state", "valid"])),
        [json!({"state": 2, "valid": 2}), json!({"state": 1})],
        "{sentence}"
    );
    assert_eq!(values(Some(&["level"])), [json!({"level": 2})], "{sentence}");
    assert_eq!(
        Value::from(2),
        values(None)[0]["level"],
        "contract 1: a count is printed without .0"
    );
}

#[test]
fn all_fields_of_an_ordinary_source_are_named() {
    let (_server, _, bucket) = scene::bucket();
    let names: Vec<String> = (0..60).map(|nth| format!("field_{nth:02}")).collect();
    let fields: Vec<&str> = names.iter().map(String::as_str).collect();
    bucket.source("machine", &fields);
    let answer = bucket.post_query(&json!({"filters": {"fields": ["nope"]}}));
    answer.refused(400, "contract 5: 400 naming the available ones");
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !answer.text().contains(*name))
        .collect();
    assert!(missing.is_empty(), "{missing:?} are not in {answer}");
}

/// Regression: all available names were listed for each unknown one: a few kilobytes made an answer of many megabytes.
#[test]
fn the_error_for_many_unknown_names_is_small() {
    let (_server, _, bucket) = scene::bucket();
    let declared: serde_json::Map<String, Value> = (0..256)
        .map(|nth| (format!("declared {nth}"), json!({"type": "number"})))
        .collect();
    bucket.source_with(&json!({"name": "wide", "schema": declared}));
    let unknown = |count: usize| (0..count).map(|nth| format!("unknown {nth}")).collect::<Vec<_>>();
    let answer = bucket.post_query(&json!({"filters": {"fields": unknown(256)}}));
    answer.refused(400, "contract 5: a name that no selected source declares is 400");
    assert_eq!(
        scene::array(&answer.json(), "/details").len(),
        100,
        "of very many faults the first"
    );
    assert!(answer.text().contains("256 faults"), "and how many there are");
    assert!(answer.body.len() < 32_000, "{} bytes", answer.body.len());
    let answer = bucket.post_query(&json!({"filters": {"fields": unknown(257)}}));
    answer.refused(400, "a query names 256 fields at most");
    assert_eq!(answer.faults(), ["filters/fields"]);
}
