//! `filters.metadata`: all given keys must match by value.

use serde_json::{Value, json};

use crate::scene::{self, column};
use crate::support::given::Bucket;

/// Sends points 0.. with these metadata texts, in order of time.
fn with_metadata(bucket: &Bucket, texts: &[Option<&str>]) {
    let source = bucket.source("gauge", &["level"]);
    let now = crate::support::time::now_ns();
    let entry = |(nth, metadata): (usize, &Option<&str>)| {
        let at = crate::support::time::timestamp(now + nth as i64);
        let metadata = metadata
            .map(|text| format!(r#","metadata":{text}"#))
            .unwrap_or_default();
        format!(r#"{{"dataSourceId":"{source}","timestamp":"{at}","values":{{"level":{nth}}}{metadata}}}"#)
    };
    let entries: Vec<String> = texts.iter().enumerate().map(entry).collect();
    let body = format!(
        r#"{{"bucketId":"{}","dataPoints":[{}]}}"#,
        bucket.id,
        entries.join(",")
    );
    bucket
        .client
        .post("/api/data/batch")
        .key(&bucket.admin)
        .body(body)
        .send()
        .expect(201, "points with metadata");
}

fn matching(bucket: &Bucket, filter: &Value) -> Vec<i64> {
    let rows = column(&bucket.rows(&json!({"metadata": filter})), "/values/level");
    rows.iter().filter_map(Value::as_i64).collect()
}

#[test]
fn values_compare_as_json_and_numbers_by_value() {
    let (mut server, _, bucket) = scene::bucket();
    with_metadata(
        &bucket,
        &[
            Some(r#"{"a":1}"#),
            Some(r#"{"a":1.0}"#),
            Some(r#"{"a":10e-1,"b":2}"#),
            Some(r#"{"a":"1"}"#),
            Some(r#"{"a":true}"#),
            Some(r#"{"a":null}"#),
            Some(r#"{"a":[1,2.0]}"#),
            Some(r#"{"a":{"x":1,"y":[]}}"#),
            Some(r#"{ "a" : { "y" : [ ] , "x" : 1.00 } }"#),
            Some(r#"{"b":2}"#),
            None,
            Some(r#"{"a":"\u00e9"}"#),
            Some(r#"{"\u0061":"é"}"#),
            Some(r#"{"a":[2,1]}"#),
            Some(r#"{"a":{"x":1}}"#),
            Some(r#"{"a":""}"#),
        ],
    );
    let sentence = "contract 5, 10: values compare as JSON, numbers by value";
    for restarted in [false, true] {
        if restarted {
            server.stop();
            server.launch();
        }
        for (filter, expected) in [
            (json!({"a": 1}), vec![0, 1, 2]),
            (json!({"a": 1.0}), vec![0, 1, 2]),
            (json!({"a": "1"}), vec![3]),
            (json!({"a": true}), vec![4]),
            (json!({"a": [1, 2]}), vec![6]),
            (json!({"a": {"y": [], "x": 1}}), vec![7, 8]),
            (json!({"a": {"x": 1}}), vec![14]),
            (json!({"a": "é"}), vec![11, 12]),
            (json!({"a": ""}), vec![15]),
            (json!({"b": 2}), vec![2, 9]),
            (json!({"a": 2}), vec![]),
            (json!({"A": 1}), vec![]),
        ] {
            assert_eq!(
                matching(&bucket, &filter),
                expected,
                "{sentence}: {filter} (after a stop: {restarted})"
            );
        }
        let both = json!({"a": 1, "b": 2});
        assert_eq!(
            matching(&bucket, &both),
            [2],
            "contract 5: all given keys must match"
        );
        assert_eq!(
            matching(&bucket, &json!({})).len(),
            16,
            "a filter without keys matches every point"
        );
        let null = matching(&bucket, &json!({"a": null}));
        assert!(null.contains(&5), "{sentence}: null matches null");
        assert!(
            !null.contains(&0) && !null.contains(&3),
            "{sentence}: null matches nothing else"
        );
    }
}

#[test]
fn a_dotted_key_reaches_into_nested_objects() {
    let (_server, _, bucket) = scene::bucket();
    with_metadata(
        &bucket,
        &[
            Some(r#"{"a":{"b":1}}"#),
            Some(r#"{"a":{"b":{"c":"deep"}}}"#),
            Some(r#"{"a":{"b":1,"c":2}}"#),
            Some(r#"{"a":{"c":1}}"#),
            Some(r#"{"b":1}"#),
            Some(r#"{"a":1}"#),
            Some(r#"{"a":[{"b":1}]}"#),
            Some(r#"{"a":{"b":1.0},"z":"n"}"#),
            None,
        ],
    );
    let sentence = "contract 5: `a.b` reaches into nested objects";
    for (filter, expected) in [
        (json!({"a.b": 1}), vec![0, 2, 7]),
        (json!({"a.b.c": "deep"}), vec![1]),
        (json!({"a.b": {"c": "deep"}}), vec![1]),
        (json!({"a.b": 1, "a.c": 2}), vec![2]),
        (json!({"a.b": 1, "z": "n"}), vec![7]),
        (json!({"a.b": "1"}), vec![]),
        (json!({"a.x": 1}), vec![]),
        (json!({"b": 1}), vec![4]),
    ] {
        assert_eq!(matching(&bucket, &filter), expected, "{sentence}: {filter}");
    }
}

#[test]
fn pages_and_cursors_count_matching_rows_only() {
    let (_server, _, bucket) = scene::bucket();
    let texts: Vec<Option<&str>> = (0..200)
        .map(|nth| {
            (nth % 3 != 0).then_some(if nth % 2 == 0 {
                r#"{"even":true}"#
            } else {
                r#"{"even":false}"#
            })
        })
        .collect();
    with_metadata(&bucket, &texts);
    let expected: Vec<i64> = (0..200).filter(|nth| nth % 3 != 0 && nth % 2 == 0).collect();
    let filters = json!({"metadata": {"even": true}});
    let mut found = Vec::new();
    let mut body = json!({"filters": filters, "limit": 7, "downsampling": false});
    loop {
        let answer = bucket.query(&body);
        found.extend(
            column(&scene::array(&answer, "/data"), "/values/level")
                .iter()
                .filter_map(Value::as_i64),
        );
        if answer["metadata"]["hasMore"] == false {
            break;
        }
        body["cursor"] = answer["metadata"]["nextCursor"].clone();
    }
    assert_eq!(
        found, expected,
        "contract 5: a cursor goes on exactly behind the last row, with a metadata filter too"
    );
    let page = bucket.query(&json!({"filters": filters, "limit": 7, "offset": 14}));
    let page: Vec<i64> = column(&scene::array(&page, "/data"), "/values/level")
        .iter()
        .filter_map(Value::as_i64)
        .collect();
    assert_eq!(page, expected[14..21], "offset counts matching rows");
}
