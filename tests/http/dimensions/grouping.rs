//! Small print E and O: `groupByDimensions`.

use serde_json::{Value, json};

use super::{labelled, scene_of, split_source};
use crate::scene::{self, array, assert_faults, call, column};
use crate::support::time::{HOUR, MINUTE, SECOND, now_ns, timestamp};

const GROUPS: &str = "contract 12: rows carry dimensions: {name: value or null}";

fn metadata() -> Vec<Value> {
    vec![
        json!({"host": "a", "site": "1"}),
        json!({"host": "b", "site": "1"}),
        json!({"host": "10", "site": "2"}),
        json!({"host": "9", "site": "2"}),
        json!({"site": "1"}),
        json!({"host": "a", "site": "2"}),
    ]
}

/// The dimensions and sums of the groups of the whole range.
fn sums(answer: &Value) -> Vec<(Value, i64)> {
    let rows = array(answer, "/data");
    rows.iter()
        .map(|row| (row["dimensions"].clone(), row["values"]["v"].as_i64().unwrap()))
        .collect()
}

#[test]
fn series_are_grouped_by_the_values_of_the_named_dimensions() {
    let (_server, _, bucket, source) = scene_of(&metadata());
    let query = |extra: Value| {
        let mut body = json!({"aggregation": "sum", "groupBy": "all"});
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        bucket.query(&body)
    };
    let by_host = query(json!({"groupByDimensions": ["host"]}));
    let expected = [
        (json!({"host": null}), 4),
        (json!({"host": "10"}), 2),
        (json!({"host": "9"}), 3),
        (json!({"host": "a"}), 5),
        (json!({"host": "b"}), 1),
    ];
    assert_eq!(
        sums(&by_host),
        expected,
        "small print E3: null first, then by UTF-8 bytes (10 before 9)"
    );
    assert_eq!(
        by_host["data"][0]["dataSourceId"], source,
        "without mergeSources rows have their source"
    );
    let mut reversed = expected.to_vec();
    reversed.reverse();
    let descending = query(json!({"groupByDimensions": ["host"], "sort": "desc"}));
    assert_eq!(
        sums(&descending),
        reversed,
        "small print E3: desc is the exact reverse"
    );
    let by_both = query(json!({"groupByDimensions": ["site", "host"]}));
    let names: Vec<Value> = sums(&by_both)
        .into_iter()
        .map(|(dimensions, _)| dimensions)
        .collect();
    let expected = [
        ("1", Value::Null),
        ("1", json!("a")),
        ("1", json!("b")),
        ("2", json!("10")),
        ("2", json!("9")),
        ("2", json!("a")),
    ];
    let expected: Vec<Value> = expected
        .iter()
        .map(|(site, host)| json!({"site": site, "host": host}))
        .collect();
    assert_eq!(
        names, expected,
        "small print E3: in the order of groupByDimensions"
    );
    for none in [json!({}), json!({"groupByDimensions": []})] {
        let whole = query(none);
        assert_eq!(
            array(&whole, "/data").len(),
            1,
            "contract 12: without it a source's series are one"
        );
        assert!(
            whole["data"][0].get("dimensions").is_none(),
            "small print E1: [] is as if absent"
        );
        assert_eq!(whole["data"][0]["values"]["v"], 15);
    }
    let filtered = query(json!({"groupByDimensions": ["host"], "filters": {"dimensions": {"site": "2"}}}));
    assert_eq!(sums(&filtered).len(), 3, "only matching series form groups");
    let paged = query(json!({"groupByDimensions": ["host"], "offset": 1, "limit": 2}));
    assert_eq!(
        sums(&paged),
        [(json!({"host": "10"}), 2), (json!({"host": "9"}), 3)],
        "pages of groups"
    );
    assert_eq!(paged["metadata"]["hasMore"], true);
}

#[test]
fn the_shape_is_checked() {
    let (_server, _, bucket, _) = scene_of(&metadata());
    let grouped = |names: Value| {
        bucket.post_query(&json!({"aggregation": "sum", "groupBy": "all", "groupByDimensions": names}))
    };
    for (names, path) in [
        (json!(["host", "host"]), "groupByDimensions/1"),
        (
            json!(["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
            "groupByDimensions",
        ),
        (json!(["host", 1]), "groupByDimensions/1"),
        (json!("host"), "groupByDimensions"),
        (json!(["site", "nobody"]), "groupByDimensions/1"),
    ] {
        assert_faults(
            &grouped(names.clone()),
            &[path],
            &format!("small print E1, D6: {names}"),
        );
    }
    let raw = bucket.post_query(&json!({"groupByDimensions": ["host"]}));
    assert_faults(
        &raw,
        &["groupByDimensions"],
        "small print E1: without aggregation and groupBy",
    );
    let empty = bucket.post_query(&json!({"groupByDimensions": []}));
    empty.expect(200, "small print E1: [] is as if absent");
}

#[test]
fn merged_sources_share_their_groups() {
    let (_server, _, bucket, _) = scene_of(&metadata());
    let other = split_source(&bucket, "other", &json!(["host"]));
    let plain = bucket.source("plain", &["v"]);
    let at_ns = now_ns() - HOUR;
    bucket.send(&[
        labelled(&other, at_ns, 100, &json!({"host": "a", "site": "1"})),
        labelled(&other, at_ns, 200, &json!({"host": "z"})),
        labelled(&plain, at_ns, 1_000, &json!({"host": "a"})),
    ]);
    let body =
        json!({"aggregation": "sum", "groupBy": "all", "groupByDimensions": ["host"], "mergeSources": true});
    let merged = bucket.query(&body);
    let expected = [
        (json!({"host": null}), 1_004),
        (json!({"host": "10"}), 2),
        (json!({"host": "9"}), 3),
        (json!({"host": "a"}), 105),
        (json!({"host": "b"}), 1),
        (json!({"host": "z"}), 200),
    ];
    assert_eq!(
        sums(&merged),
        expected,
        "small print E2: groups of equal values over all sources"
    );
    assert!(
        merged["data"][0].get("dataSourceId").is_none(),
        "small print E2: rows without dataSourceId"
    );
    let apart = bucket.query(&json!({"aggregation": "sum", "groupBy": "all", "groupByDimensions": ["site"]}));
    let sources = column(&array(&apart, "/data"), "/dataSourceId");
    assert_eq!(sources.len(), 4, "sources first, then values: {apart}");
    assert_eq!(
        apart["data"][2]["dimensions"],
        json!({"site": null}),
        "small print D6: null in rows"
    );
}

#[test]
fn fill_compare_and_top_treat_a_group_as_a_source() {
    let (_server, _, bucket) = scene::bucket();
    let source = split_source(&bucket, "cpu", &json!("all"));
    let start_ns = (now_ns() / HOUR - 3) * HOUR;
    let at = |minute: i64, value: i64, host: &str| {
        labelled(&source, start_ns + minute * MINUTE, value, &json!({"host": host}))
    };
    bucket.send(&[
        at(0, 1, "a"),
        at(2, 3, "a"),
        at(1, 5, "b"),
        at(63, 8, "a"),
        at(62, 9, "c"),
    ]);
    let range = |first: i64, last: i64| json!({"startTime": timestamp(start_ns + first * MINUTE), "endTime": timestamp(start_ns + last * MINUTE)});
    let filled = bucket.query(&json!({
        "aggregation": "sum", "groupBy": "minute", "groupByDimensions": ["host"], "fill": 0, "filters": range(0, 2)
    }));
    let expected = [("a", 1), ("b", 0), ("a", 0), ("b", 5), ("a", 3), ("b", 0)];
    let expected = expected.map(|(host, sum)| (json!({"host": host}), sum));
    assert_eq!(
        sums(&filled),
        expected,
        "small print E1 of fill: the groups that occur in the range"
    );
    let between = bucket.query(&json!({
        "aggregation": "sum", "groupBy": "minute", "groupByDimensions": ["host"], "fill": 0,
        "filters": {
            "startTime": timestamp(start_ns + MINUTE), "endTime": timestamp(start_ns + MINUTE + SECOND)
        }
    }));
    assert_eq!(
        sums(&between),
        [(json!({"host": "b"}), 5)],
        "small print E1: not groups that have points before and after the range only"
    );
    let top = bucket.query(&json!({
        "aggregation": "sum", "groupBy": "all", "groupByDimensions": ["host"],
        "top": {"n": 2, "by": "sum", "field": "v"}
    }));
    assert_eq!(
        sums(&top),
        [(json!({"host": "a"}), 12), (json!({"host": "c"}), 9)],
        "contract 11: top by dimension values"
    );
    let compared = bucket.query(&json!({
        "aggregation": "sum", "groupBy": "hour", "groupByDimensions": ["host"], "compare": {"offset": "1h"},
        "filters": range(60, 119)
    }));
    let rows = array(&compared, "/data");
    assert_eq!(column(&rows, "/dimensions/host"), ["a", "c"]);
    assert_eq!(
        column(&rows, "/previous"),
        [json!({"v": 4}), json!({})],
        "compare within the group"
    );
    let merged = bucket.query(&json!({
        "aggregation": "sum", "groupBy": "all", "groupByDimensions": ["host"], "mergeSources": true,
        "top": {"n": 1, "by": "max", "field": "v", "order": "asc"}
    }));
    assert_eq!(
        sums(&merged),
        [(json!({"host": "b"}), 5)],
        "small print I2: merged sources with dimensions are chosen from"
    );
}

#[test]
fn aggregations_in_order_of_time_combine_the_series_of_a_group() {
    let (_server, _, bucket) = scene::sealing_bucket();
    let source = split_source(&bucket, "counter", &json!(["host", "core"]));
    let start_ns = (now_ns() / HOUR - 2) * HOUR;
    let mut points = Vec::new();
    for second in 0..120 {
        for (core, step) in [("0", 1), ("1", 10)] {
            let metadata = json!({"host": "a", "core": core});
            points.push(labelled(
                &source,
                start_ns + second * SECOND,
                second * step,
                &metadata,
            ));
        }
    }
    bucket.send(&points);
    let query = |aggregation: Value, by: Value| {
        bucket.query(&json!({"aggregation": aggregation, "groupBy": "all", "groupByDimensions": by}))
    };
    let names = [
        "increase", "rate", "first", "last", "delta", "distinct", "timeAvg", "count",
    ];
    let whole = query(json!(names), json!(["host"]));
    let of = |name: &str| whole["data"][0]["values"]["v"][name].as_f64().unwrap();
    assert_eq!(
        of("increase"),
        119.0 * 11.0,
        "small print D10: per series, then added"
    );
    assert!((of("rate") - 11.0).abs() < 1e-9, "small print D10: rates add up");
    assert_eq!(
        (of("first"), of("last"), of("delta")),
        (0.0, 1_190.0, 1_190.0),
        "small print D10: of all points"
    );
    assert_eq!(of("count"), 240.0);
    assert_eq!(of("distinct"), 228.0, "small print D10: of all values");
    assert!(
        (of("timeAvg") - 324.5).abs() < 1.0,
        "small print D10: weighed by covered time: {}",
        of("timeAvg")
    );
    let apart = query(json!("increase"), json!(["core"]));
    assert_eq!(
        sums(&apart),
        [(json!({"core": "0"}), 119), (json!({"core": "1"}), 1_190)]
    );
}

#[test]
fn other_layouts_and_exports_have_the_dimensions() {
    let (_server, _, bucket, source) = scene_of(&metadata());
    let body = json!({"aggregation": "sum", "groupBy": "all", "groupByDimensions": ["host", "site"]});
    let mut columns = body.clone();
    columns["layout"] = json!("columns");
    let answer = bucket.query(&columns);
    let hosts = json!([null, "10", "9", "a", "a", "b"]);
    assert_eq!(
        answer["columns"]["dimensions"]["host"], hosts,
        "contract 11: grouped members likewise"
    );
    assert_eq!(
        answer["columns"]["dimensions"]["site"],
        json!(["1", "2", "2", "1", "2", "1"])
    );
    let export = |format: &str| {
        let mut body = body.clone();
        body["bucketId"] = json!(bucket.id);
        body["format"] = json!(format);
        body["filters"] = json!({"startTime": "2020-01-01T00:00:00Z"});
        let exported = call(&bucket.client, &bucket.admin, "POST", "/api/data/export", &body);
        assert_eq!(exported.status, 200, "{exported}");
        exported.text()
    };
    let csv = export("csv");
    let mut lines = csv.lines();
    let header = "timestamp,dataSourceId,dimensions.host,dimensions.site,v";
    assert_eq!(
        lines.next(),
        Some(header),
        "small print L4: dimensions as dimensions.name"
    );
    let first = format!("2020-01-01T00:00:00Z,{source},,1,4");
    assert_eq!(lines.next(), Some(first.as_str()), "null is empty: {csv}");
    let line: Value = serde_json::from_str(export("ndjson").lines().next().unwrap()).unwrap();
    assert_eq!(line["dimensions"], json!({"host": null, "site": "1"}), "{GROUPS}");
}

#[test]
fn a_field_named_dimensions_appears_only_in_values() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("s", &["dimensions"]);
    let point =
        json!({"dataSourceId": source, "timestamp": timestamp(now_ns() - HOUR), "values": {"dimensions": 4}});
    bucket.send(&[point]);
    let answer = bucket.query(&json!({"aggregation": "avg", "groupBy": "all"}));
    assert_eq!(answer["data"][0]["values"]["dimensions"], 4);
    assert!(
        answer["data"][0].get("dimensions").is_none(),
        "small print, what collides 4: only in values"
    );
}
