//! Raw rows: their members and their order.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, column, members};
use crate::support::given::{Bucket, point};
use crate::support::time::{SECOND, now_ns, timestamp};

#[test]
fn a_raw_answer_has_the_shape_of_the_spec() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let empty = bucket.query(&json!({}));
    assert_eq!(
        empty["data"],
        json!([]),
        "spec: {{data, metadata}} of an empty bucket"
    );
    let now = now_ns();
    let mut with = point(&source, now, &json!({"level": 1}));
    with["metadata"] = json!({"a": 1});
    bucket.send(&[with, point(&source, now + 1, &json!({"level": 2}))]);
    let answer = bucket.query(&json!({}));
    assert_eq!(members(&answer), ["data", "metadata"], "spec: {{data, metadata}}");
    assert_eq!(
        members(&answer["data"][0]),
        ["_id", "dataSourceId", "metadata", "timestamp", "values"],
        "spec: a raw row"
    );
    let without = members(&answer["data"][1]);
    assert_eq!(
        without,
        ["_id", "dataSourceId", "timestamp", "values"],
        "contract 5: metadata is left out when there was none"
    );
    for (member, value) in [
        ("count", json!(2)),
        ("limit", json!(100)),
        ("offset", json!(0)),
        ("hasMore", json!(false)),
    ] {
        assert_eq!(
            answer["metadata"][member], value,
            "spec: metadata.{member} of a raw answer"
        );
    }
    assert!(
        answer["metadata"]["nextCursor"].is_null(),
        "contract 5: nextCursor only with more to come: {answer}"
    );
}

/// Sends points with ties: most timestamps occur several times, in several sources, in batches and singly, out of
/// order.
fn send_ties(bucket: &Bucket, random: &mut fastrand::Rng) -> Vec<(i64, i64)> {
    let sources = [
        bucket.source("a", &["level"]),
        bucket.source("b", &["level"]),
        bucket.source("c", &["level"]),
    ];
    let start = now_ns() / SECOND * SECOND;
    let mut arrived = Vec::new();
    while arrived.len() < 600 {
        let size = if random.bool() { 1 } else { random.usize(2..60) };
        let mut entries = Vec::new();
        for _ in 0..size {
            let at = start + random.i64(-40..40) * SECOND;
            let number = arrived.len() as i64;
            arrived.push((at, number));
            entries.push(point(&sources[random.usize(..3)], at, &json!({"level": number})));
        }
        match entries.as_slice() {
            [only] => drop(bucket.single(only).expect(201, "a point")),
            _ => bucket.send(&entries),
        }
    }
    // A stable sort: points with equal timestamps stay in order of arrival.
    arrived.sort_by_key(|(at, _)| *at);
    arrived
}

#[test]
fn order_is_timestamp_then_arrival_and_desc_is_its_exact_reverse() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let (mut server, _, bucket) = scene::bucket();
    let expected = send_ties(&bucket, &mut fastrand::Rng::with_seed(seed));
    let numbers: Vec<Value> = expected.iter().map(|(_, number)| json!(number)).collect();
    let reversed: Vec<Value> = numbers.iter().rev().cloned().collect();
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        for (sort, expected) in [
            (None, &numbers),
            (Some("asc"), &numbers),
            (Some("desc"), &reversed),
        ] {
            let mut body = json!({"limit": 10_000, "downsampling": false});
            if let Some(sort) = sort {
                body["sort"] = json!(sort);
            }
            let found = column(&array(&bucket.query(&body), "/data"), "/values/level");
            let sentence =
                "contract 5: raw order: timestamp, then order of arrival; desc is the exact reverse";
            assert_eq!(
                found, *expected,
                "{sentence} (sort {sort:?}, after a kill: {restarted}, seed {seed})"
            );
        }
    }
}

#[test]
fn both_ends_are_inclusive_to_the_nanosecond() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let start = now_ns() / SECOND * SECOND;
    bucket.send(
        &(0..10)
            .map(|nth| point(&source, start + nth, &json!({"level": nth})))
            .collect::<Vec<_>>(),
    );
    let between = |from: Option<i64>, until: Option<i64>| {
        let mut filters = json!({});
        if let Some(from) = from {
            filters["startTime"] = json!(timestamp(start + from));
        }
        if let Some(until) = until {
            filters["endTime"] = json!(timestamp(start + until));
        }
        let rows = column(&bucket.rows(&filters), "/values/level");
        rows.iter().filter_map(Value::as_i64).collect::<Vec<_>>()
    };
    let sentence = "contract 5: startTime ≤ timestamp ≤ endTime: both ends inclusive";
    assert_eq!(between(Some(3), Some(6)), [3, 4, 5, 6], "{sentence}");
    assert_eq!(between(Some(9), Some(50)), [9], "{sentence}");
    assert_eq!(between(Some(-50), Some(0)), [0], "{sentence}");
    assert!(
        between(Some(-50), Some(-1)).is_empty() && between(Some(10), Some(50)).is_empty(),
        "{sentence}"
    );
    assert_eq!(between(Some(8), None), [8, 9], "contract 5: either may be absent");
    assert_eq!(between(None, Some(1)), [0, 1], "contract 5: either may be absent");
    let sentence = "contract 5: both given, startTime must be before endTime";
    for (from, until) in [(5, 5), (6, 5), (5 + SECOND, 5)] {
        let filters = json!({"startTime": timestamp(start + from), "endTime": timestamp(start + until)});
        let answer = bucket.post_query(&json!({"filters": filters}));
        answer.refused(400, sentence);
        let faults = answer.faults();
        let one_of_both = faults == ["filters/startTime"] || faults == ["filters/endTime"];
        assert!(one_of_both, "{sentence}: the fault is at one of both: {answer}");
    }
    // Different spellings of one instant.
    let filters = json!({"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-01-01T01:00:00+01:00"});
    bucket
        .post_query(&json!({"filters": filters}))
        .refused(400, sentence);
}

#[test]
fn sources_are_selected_and_all_are_the_default() {
    let (_server, account, bucket) = scene::bucket();
    let sources = [
        bucket.source("a", &["level"]),
        bucket.source("b", &["level"]),
        bucket.source("c", &["level"]),
    ];
    let other = account.bucket("other");
    other.send(&[point(
        &other.source("a", &["level"]),
        now_ns(),
        &json!({"level": 99}),
    )]);
    let now = now_ns();
    bucket.send(
        &(0..9)
            .map(|nth| point(&sources[nth as usize % 3], now + nth, &json!({"level": nth})))
            .collect::<Vec<_>>(),
    );
    let of = |ids: Value| {
        let rows = column(&bucket.rows(&json!({"dataSourceIds": ids})), "/values/level");
        rows.iter().filter_map(Value::as_i64).collect::<Vec<_>>()
    };
    let all: Vec<i64> = (0..9).collect();
    assert_eq!(
        of(json!([])),
        all,
        "contract 5: an empty array is every source of the bucket"
    );
    assert_eq!(
        bucket.rows(&json!({})).len(),
        9,
        "contract 5: no dataSourceIds is every source of the bucket"
    );
    assert_eq!(of(json!([sources[1]])), [1, 4, 7], "spec: dataSourceIds selects");
    assert_eq!(
        of(json!([sources[2], sources[0]])),
        [0, 2, 3, 5, 6, 8],
        "contract 5: order is by time, not by source"
    );
    assert_eq!(
        of(json!([sources[1], sources[1]])),
        [1, 4, 7],
        "a source named twice is one source"
    );
    bucket
        .post_query(&json!({"filters": {"dataSourceIds": [scene::UNKNOWN_ID]}}))
        .refused(404, "contract 5: an unknown id: 404");
}

#[test]
fn aggregation_and_group_by_require_each_other() {
    let (_server, _, bucket) = scene::bucket();
    bucket.source("gauge", &["level"]);
    let sentence = "spec: aggregation without groupBy or the reverse is 400";
    for (body, either) in [
        (json!({"aggregation": "avg"}), "aggregation"),
        (json!({"groupBy": "hour"}), "groupBy"),
    ] {
        let answer = bucket.post_query(&body);
        answer.refused(400, sentence);
        let faults = answer.faults();
        let named = faults == ["aggregation"] || faults == ["groupBy"];
        assert!(named, "{sentence}, at one of both (given: {either}): {answer}");
    }
    assert_faults(
        &bucket.post_query(&json!({"aggregation": "AVG", "groupBy": "hour"})),
        &["aggregation"],
        "spec: aggregations",
    );
    assert_faults(
        &bucket.post_query(&json!({"aggregation": "avg", "groupBy": "hours"})),
        &["groupBy"],
        "spec: groupBy",
    );
    assert_faults(
        &bucket.post_query(&json!({"sort": "ASC"})),
        &["sort"],
        "spec: sort is asc or desc",
    );
}
