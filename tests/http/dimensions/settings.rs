//! Small print A and B: which sources have dimensions, and what the text of a value is.

use serde_json::{Value, json};

use super::{labelled, scene_of, split_source, values};
use crate::scene::{self, assert_faults};
use crate::support::time::{HOUR, SECOND, now_ns};

const SHOWN: &str = "small print A1: dimensions and duplicates stand in every representation of a source";

fn body(extra: &Value) -> Value {
    let mut body = json!({"name": "s", "schema": {"v": {"type": "number"}}});
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[test]
fn they_are_shown_everywhere_with_their_defaults() {
    let (_server, _, bucket) = scene::bucket();
    let created = bucket
        .call("POST", "/sources", &body(&json!({})))
        .expect(201, SHOWN);
    assert_eq!(created["dataSource"]["dimensions"], Value::Null, "{SHOWN}");
    assert_eq!(created["dataSource"]["duplicates"], "keep", "{SHOWN}");
    assert_eq!(
        created["dataSource"]["stats"]["seriesCount"],
        Value::Null,
        "small print B6: null without dimensions"
    );
    let id = created["dataSource"]["_id"].as_str().unwrap().to_owned();
    let with = body(&json!({"name": "t", "dimensions": ["b", "a", " x.y "], "duplicates": "skip"}));
    let created = bucket.call("POST", "/sources", &with).expect(201, SHOWN);
    assert_eq!(
        created["dataSource"]["dimensions"],
        json!(["b", "a", " x.y "]),
        "small print A2: the list keeps its order"
    );
    assert_eq!(
        created["dataSource"]["stats"]["seriesCount"], 0,
        "small print B6: 0 on creation"
    );
    let shown = bucket
        .call("GET", &format!("/sources/{id}"), &Value::Null)
        .expect(200, SHOWN);
    assert_eq!(shown["dataSource"]["duplicates"], "keep", "{SHOWN}");
    let listed = bucket.call("GET", "/sources", &Value::Null).expect(200, SHOWN);
    assert_eq!(listed["dataSources"][1]["duplicates"], "skip", "{SHOWN}");
    let changed = bucket.call(
        "PATCH",
        &format!("/sources/{id}"),
        &json!({"dimensions": "all", "duplicates": "skip"}),
    );
    let changed = changed.expect(200, "contract 12: PATCH while it has no points");
    assert_eq!(changed["dataSource"]["dimensions"], "all", "{SHOWN}");
    let cleared = bucket.call("PATCH", &format!("/sources/{id}"), &json!({"dimensions": null}));
    assert_eq!(
        cleared.expect(200, SHOWN)["dataSource"]["dimensions"],
        Value::Null,
        "null is the default"
    );
}

#[test]
fn what_is_wrong_is_400_at_its_place() {
    let (_server, _, bucket) = scene::bucket();
    let many: Vec<String> = (0..33).map(|n| format!("d{n}")).collect();
    for (extra, path) in [
        (json!({"dimensions": []}), "dimensions"),
        (json!({"dimensions": "some"}), "dimensions"),
        (json!({"dimensions": many}), "dimensions"),
        (json!({"dimensions": ["a", "a"]}), "dimensions/1"),
        (json!({"dimensions": [""]}), "dimensions/0"),
        (json!({"dimensions": ["a", "b\u{7}"]}), "dimensions/1"),
        (json!({"duplicates": null}), "duplicates"),
        (json!({"duplicates": "drop"}), "duplicates"),
    ] {
        let refused = bucket.call("POST", "/sources", &body(&extra));
        assert_faults(&refused, &[path], &format!("small print A: {extra}"));
    }
}

#[test]
fn dimensions_change_only_while_there_are_no_points() {
    let (_server, _, bucket) = scene::bucket();
    let source = split_source(&bucket, "cpu", &json!(["host"]));
    let path = format!("/sources/{source}");
    let at_ns = now_ns() - HOUR;
    bucket.send(&[labelled(&source, at_ns, 1, &json!({"host": "a"}))]);
    let same = bucket.call(
        "PATCH",
        &path,
        &json!({"dimensions": ["host"], "description": "d"}),
    );
    same.expect(200, "small print A4: PATCH to the value that stands is never 409");
    for other in [json!(["host", "x"]), json!("all"), Value::Null] {
        let refused = bucket.call(
            "PATCH",
            &path,
            &json!({"dimensions": other, "description": "other"}),
        );
        refused.expect(409, "contract 12: else 409");
    }
    let shown = bucket.call("GET", &path, &Value::Null).json();
    assert_eq!(
        shown["dataSource"]["description"], "d",
        "small print A4: a 409 changes nothing of the PATCH"
    );
    let skip = bucket.call("PATCH", &path, &json!({"duplicates": "skip"}));
    skip.expect(200, "small print A4: duplicates may be patched at any time");
    let again = bucket.batch(&[labelled(&source, at_ns, 2, &json!({"host": "a"}))]);
    assert_eq!(
        again.expect(201, "small print F4")["duplicateCount"],
        1,
        "small print A4: points of before count"
    );
    let all = json!({"bucketId": bucket.id, "filters": {"dataSourceIds": [source]}});
    let deleted = scene::call(&bucket.client, &bucket.admin, "POST", "/api/data/delete", &all);
    deleted.expect(200, "contract 11: delete");
    let changed = bucket.call("PATCH", &path, &json!({"dimensions": "all"}));
    changed.expect(200, "small print A4: totalDataPoints is 0, also after deletion");
    bucket.send(&[labelled(&source, at_ns, 3, &json!({"site": "s"}))]);
    assert_eq!(
        values(&bucket, &json!({"site": "s"})),
        [3],
        "the new dimensions are in force"
    );
}

#[test]
fn points_are_never_split_by_other_dimensions_than_their_source_has() {
    let (_server, _, bucket) = scene::bucket();
    let at_ns = now_ns() - HOUR;
    for round in 0..30 {
        let source = split_source(&bucket, &format!("source {round}"), &Value::Null);
        let path = format!("/sources/{source}");
        let point = labelled(&source, at_ns, 1, &json!({"h": "x"}));
        let (sent, changed) = std::thread::scope(|scope| {
            let sent = scope.spawn(|| bucket.single(&point).status);
            let changed = bucket.call("PATCH", &path, &json!({"dimensions": ["h"]})).status;
            (sent.join().unwrap(), changed)
        });
        assert_eq!(sent, 201, "contract 4");
        assert!([200, 409].contains(&changed), "contract 12: {changed}");
        let series = bucket.call("GET", &format!("{path}/series"), &Value::Null).json();
        let names = bucket
            .call("GET", &format!("{path}/dimensions"), &Value::Null)
            .json();
        let is_split = changed == 200;
        assert_eq!(
            names["dimensions"].as_array().map(Vec::len),
            Some(usize::from(is_split)),
            "round {round}, PATCH {changed}: {names}"
        );
        let expected = if is_split { json!({"h": "x"}) } else { json!({}) };
        assert_eq!(
            series["series"][0]["dimensions"], expected,
            "small print A4: round {round}, PATCH {changed}: {series}"
        );
    }
}

#[test]
fn one_value_has_one_text() {
    let metadata = [
        json!({"n": 1}),
        serde_json::from_str(r#"{"n": 1.0}"#).unwrap(),
        json!({"n": "1"}),
        json!({"n": true}),
        json!({"n": "true"}),
        json!({"n": ""}),
        json!({"n": null}),
        json!({"n": {"a": 1}}),
        json!({"n": [1]}),
        json!({"n": "v".repeat(1_025)}),
        json!({"n": "v".repeat(1_024)}),
        json!({"n": " a "}),
        json!({"n": "A"}),
        json!({}),
    ];
    let (_server, _, bucket, source) = scene_of(&metadata);
    for (matcher, expected) in [
        (json!("1"), vec![0, 1, 2]),
        (json!("true"), vec![3, 4]),
        (json!(""), vec![5]),
        (Value::Null, vec![6, 7, 8, 9, 13]),
        (json!("v".repeat(1_024)), vec![10]),
        (json!(" a "), vec![11]),
        (json!("a"), vec![]),
        (json!("A"), vec![12]),
    ] {
        let found = values(&bucket, &json!({"n": matcher}));
        assert_eq!(found, expected, "small print B: {matcher}");
    }
    let shown = bucket
        .call("GET", &format!("/sources/{source}"), &Value::Null)
        .json();
    assert_eq!(
        shown["dataSource"]["stats"]["seriesCount"], 7,
        "small print B5: the points without any are one"
    );
    let rows = bucket.rows(&json!({"dimensions": {"n": "1"}}));
    assert_eq!(
        rows[2]["metadata"],
        json!({"n": "1"}),
        "contract 12: they stay part of metadata"
    );
}

#[test]
fn long_ids_stay_apart_and_rows_keep_their_spelling() {
    let (_server, _, bucket) = scene::bucket();
    let source = split_source(&bucket, "cpu", &json!(["id"]));
    let at_ns = now_ns() - HOUR;
    let ids = ["9007199254740992", "9007199254740993", "2.50", "1e3"];
    for (second, id) in (0..).zip(ids) {
        let entry = labelled(&source, at_ns + second * SECOND, second, &json!({}));
        let entry = entry
            .to_string()
            .replace(r#""metadata":{}"#, &format!(r#""metadata":{{"id":{id}}}"#));
        let body = format!(r#"{{"bucketId":"{}","dataPoints":[{entry}]}}"#, bucket.id);
        let sent = bucket
            .client
            .post("/api/data/batch")
            .key(&bucket.admin)
            .body(body)
            .send();
        sent.expect(201, "a batch");
    }
    assert_eq!(
        values(&bucket, &json!({"id": ids[0]})),
        [0],
        "small print B1: ids above 2^53 stay apart"
    );
    assert_eq!(
        values(&bucket, &json!({"id": ["2.5", "1000"]})),
        [2, 3],
        "small print B1: what the service prints"
    );
    let all = bucket
        .post_query(&json!({"filters": {"dataSourceIds": [source]}}))
        .text();
    assert_eq!(
        scene::spellings(&all, "id"),
        ids,
        "small print B1: raw rows keep the spelling sent"
    );
}

#[test]
fn only_listed_names_split_points_and_a_dot_is_no_path() {
    let (_server, _, bucket) = scene::bucket();
    let source = split_source(&bucket, "cpu", &json!(["a.b", "host"]));
    let at_ns = now_ns() - HOUR;
    bucket.send(&[
        labelled(&source, at_ns, 0, &json!({"a": {"b": "x"}, "other": "1"})),
        labelled(&source, at_ns + SECOND, 1, &json!({"a.b": "x", "other": "2"})),
        labelled(&source, at_ns + 2 * SECOND, 2, &json!({"other": "3"})),
    ]);
    assert_eq!(
        values(&bucket, &json!({"a.b": "x"})),
        [1],
        "small print A3: the top-level member of that spelling"
    );
    let shown = bucket
        .call("GET", &format!("/sources/{source}"), &Value::Null)
        .json();
    assert_eq!(
        shown["dataSource"]["stats"]["seriesCount"], 2,
        "contract 12: each combination of the listed is a series"
    );
}
