//! Small print C: the three listings.

use serde_json::{Value, json};

use super::{labelled, scene_of, split_source};
use crate::scene::{self, array, assert_faults, call, column};
use crate::support::time::{HOUR, SECOND, now_ns, timestamp};

fn get(bucket: &crate::support::given::Bucket, source: &str, below: &str) -> crate::support::client::Answer {
    bucket.call("GET", &format!("/sources/{source}/{below}"), &Value::Null)
}

fn metadata() -> Vec<Value> {
    vec![
        json!({"host": "b", "site": "1"}),
        json!({"host": "a", "site": "1"}),
        json!({"host": "a", "site": "2"}),
        json!({"host": "ab"}),
        json!({"a/b c%": "é&"}),
        json!({}),
        json!({"host": "b", "site": "1"}),
    ]
}

#[test]
fn dimensions_are_listed_by_name_with_their_numbers_of_values() {
    let (_server, _, bucket, source) = scene_of(&metadata());
    let listed = get(&bucket, &source, "dimensions").expect(200, "contract 12: GET …/dimensions");
    let expected = json!([
        {"name": "a/b c%", "values": 1}, {"name": "host", "values": 3}, {"name": "site", "values": 2}
    ]);
    assert_eq!(
        listed["dimensions"], expected,
        "small print C2: by name; C4: values"
    );
    assert_eq!(listed["pagination"]["total"], 3);
    let page = get(&bucket, &source, "dimensions?limit=1&offset=1").expect(200, "small print C1");
    assert_eq!(page["dimensions"], json!([{"name": "host", "values": 3}]));
    assert_eq!(
        page["pagination"],
        json!({"limit": 1, "offset": 1, "total": 3, "hasMore": true})
    );
    let named = split_source(&bucket, "named", &json!(["z", "host"]));
    let at_ns = now_ns() - HOUR;
    bucket.send(&[labelled(&named, at_ns, 1, &json!({"host": "x", "other": "y"}))]);
    let listed = get(&bucket, &named, "dimensions").json();
    let expected = json!([{"name": "host", "values": 1}, {"name": "z", "values": 0}]);
    assert_eq!(
        listed["dimensions"], expected,
        "small print C3: of a list all names, also without values"
    );
    let plain = bucket.source("plain", &["v"]);
    let listed = get(&bucket, &plain, "dimensions").json();
    assert_eq!(listed["dimensions"], json!([]), "small print C3: of null none");
}

#[test]
fn values_are_listed_by_their_bytes_and_by_prefix() {
    let (_server, _, bucket, source) = scene_of(&metadata());
    let listed = get(&bucket, &source, "dimensions/host").expect(200, "contract 12: GET …/dimensions/:name");
    let expected =
        json!([{"value": "a", "series": 2}, {"value": "ab", "series": 1}, {"value": "b", "series": 1}]);
    assert_eq!(listed["values"], expected, "small print C2, C4");
    for (prefix, expected) in [("a", 2), ("ab", 1), ("A", 0), ("", 3), ("abc", 0)] {
        let listed = get(&bucket, &source, &format!("dimensions/host?prefix={prefix}")).json();
        assert_eq!(
            array(&listed, "/values").len(),
            expected,
            "small print C4: prefix is literal, case counts: {prefix:?}"
        );
        assert_eq!(listed["pagination"]["total"], expected);
    }
    let listed = get(&bucket, &source, "dimensions/a%2Fb%20c%25")
        .expect(200, "small print C3: / inside is encoded too");
    assert_eq!(listed["values"], json!([{"value": "é&", "series": 1}]));
    get(&bucket, &source, "dimensions/nobody").expect(404, "small print C3: another name");
    let named = split_source(&bucket, "named", &json!(["z"]));
    let listed =
        get(&bucket, &named, "dimensions/z").expect(200, "small print C3: a listed name without values");
    assert_eq!(listed["values"], json!([]));
    get(&bucket, &named, "dimensions/y").expect(404, "small print C3");
    let unknown = bucket.call(
        "GET",
        &format!("/sources/{}/dimensions", scene::UNKNOWN_ID),
        &Value::Null,
    );
    unknown.expect(404, "small print C1: unknown source");
}

#[test]
fn series_are_listed_with_their_statistics() {
    let (_server, _, bucket, source) = scene_of(&metadata());
    let listed = get(&bucket, &source, "series").expect(200, "contract 12: GET …/series");
    let series = array(&listed, "/series");
    assert_eq!(series.len(), 6, "{listed}");
    assert_eq!(series[0]["dimensions"], json!({"host": "b", "site": "1"}));
    assert_eq!(series[0]["totalDataPoints"], 2);
    let rows = bucket.rows(&json!({"dimensions": {"host": "b"}}));
    let times = [rows[0]["timestamp"].clone(), rows[1]["timestamp"].clone()];
    assert_eq!(
        [
            series[0]["firstDataPoint"].clone(),
            series[0]["lastDataPoint"].clone()
        ],
        times
    );
    assert!(
        series.iter().any(|it| it["dimensions"] == json!({})),
        "small print B5: the series with none"
    );
    assert!(
        series.iter().all(|it| it["dimensions"]
            .as_object()
            .unwrap()
            .values()
            .all(Value::is_string)),
        "small print C5: no nulls"
    );
    let mut paged = Vec::new();
    for offset in 0..6 {
        let page = get(&bucket, &source, &format!("series?limit=1&offset={offset}")).json();
        paged.extend(array(&page, "/series"));
    }
    assert_eq!(
        paged, series,
        "small print C2: one stable order that paging keeps"
    );
    for (query, expected) in [
        ("host=a", 2),
        ("host=a&site=2", 1),
        ("host=a&host=b", 3),
        ("host=zz", 0),
        ("host=", 0),
        ("a/b%20c%25=%C3%A9%26", 1),
    ] {
        let found = get(&bucket, &source, &format!("series?{query}")).expect(200, "small print C6");
        assert_eq!(
            array(&found, "/series").len(),
            expected,
            "small print C6: {query}"
        );
    }
    assert_faults(
        &get(&bucket, &source, "series?nobody=1"),
        &["nobody"],
        "small print C6: a name the source has not",
    );
    let plain = bucket.source("plain", &["v"]);
    let at_ns = now_ns() - HOUR;
    bucket.send(&[
        labelled(&plain, at_ns, 1, &json!({"host": "x"})),
        labelled(&plain, at_ns + SECOND, 2, &json!({})),
    ]);
    let listed = get(&bucket, &plain, "series").json();
    let expected = json!([{
        "dimensions": {}, "totalDataPoints": 2, "firstDataPoint": timestamp(at_ns), "lastDataPoint": timestamp(at_ns + SECOND)
    }]);
    assert_eq!(
        listed["series"], expected,
        "small print C5: a source without dimensions has one series, {{}}"
    );
}

#[test]
fn series_without_points_are_in_no_listing() {
    let (_server, _, bucket, source) = scene_of(&metadata());
    let gone = json!({"bucketId": bucket.id, "filters": {"dimensions": {"host": "b"}}});
    let deleted = call(&bucket.client, &bucket.admin, "POST", "/api/data/delete", &gone);
    assert_eq!(
        deleted.expect(200, "small print M2: dimensions is a filter")["deletedCount"],
        2
    );
    let values = get(&bucket, &source, "dimensions/host").json();
    assert_eq!(
        column(&array(&values, "/values"), "/value"),
        ["a", "ab"],
        "small print B6: in no listing"
    );
    let series = get(&bucket, &source, "series").json();
    assert_eq!(array(&series, "/series").len(), 5);
    let shown = bucket
        .call("GET", &format!("/sources/{source}"), &Value::Null)
        .json();
    assert_eq!(
        shown["dataSource"]["stats"]["seriesCount"], 5,
        "small print B6: series that have a visible point now"
    );
    bucket.send(&[labelled(
        &source,
        now_ns() - HOUR,
        7,
        &json!({"host": "b", "site": "1"}),
    )]);
    let series = get(&bucket, &source, "series?host=b").json();
    assert_eq!(
        series["series"][0]["totalDataPoints"], 1,
        "the series is there again"
    );
}

#[test]
fn expired_points_are_in_no_listing() {
    let (_server, account, _) = scene::bucket();
    let bucket = account.bucket_with(&json!({"name": "short", "retentionDays": 1}));
    let source = split_source(&bucket, "cpu", &json!("all"));
    let edge_ns = now_ns() - 24 * HOUR;
    bucket.send(&[
        labelled(
            &source,
            edge_ns + 5 * SECOND,
            1,
            &json!({"host": "old", "gone": "x"}),
        ),
        labelled(&source, now_ns(), 2, &json!({"host": "new"})),
    ]);
    let hosts = || {
        column(
            &array(&get(&bucket, &source, "dimensions/host").json(), "/values"),
            "/value",
        )
    };
    crate::support::waiting::until("the old point expires", || (hosts() == ["new"]).then_some(()));
    let names = get(&bucket, &source, "dimensions").json();
    assert_eq!(
        names["dimensions"],
        json!([{"name": "host", "values": 1}]),
        "small print C3: in visible points"
    );
    let unknown = bucket.post_query(&json!({"filters": {"dimensions": {"gone": "x"}}}));
    assert_faults(
        &unknown,
        &["filters/dimensions/gone"],
        "small print D6: the names of its points",
    );
}
