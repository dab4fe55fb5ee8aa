//! Small print D: `filters.dimensions`.

use serde_json::{Value, json};

use super::{labelled, scene_of, split_source, values};
use crate::scene::{self, array, assert_faults, column};
use crate::support::time::{HOUR, now_ns};

/// Hosts by the place of their points; 4 has none, 5 has an empty one.
fn hosts() -> Vec<Value> {
    vec![
        json!({"host": "a", "site": "1"}),
        json!({"host": "b", "site": "1"}),
        json!({"host": "ab", "site": "2"}),
        json!({"host": "a\nb", "site": "2"}),
        json!({"site": "3"}),
        json!({"host": "", "site": "3"}),
        json!({"host": "é7"}),
    ]
}

#[test]
fn each_matcher_selects_its_series() {
    let (_server, _, bucket, _) = scene_of(&hosts());
    for (matcher, expected) in [
        (json!("a"), vec![0]),
        (json!(["a", "b", "zz"]), vec![0, 1]),
        (json!(["a", null]), vec![0, 4]),
        (json!(null), vec![4]),
        (json!(""), vec![5]),
        (json!({"not": "a"}), vec![1, 2, 3, 4, 5, 6]),
        (json!({"not": null}), vec![0, 1, 2, 3, 5, 6]),
        (json!({"not": ["a", "b", null]}), vec![2, 3, 5, 6]),
        (json!({"matches": "a"}), vec![0]),
        (json!({"matches": "a.*"}), vec![0, 2]),
        (json!({"matches": "(?s)a.*"}), vec![0, 2, 3]),
        (json!({"matches": ".*"}), vec![0, 1, 2, 5, 6]),
        (json!({"matches": ""}), vec![5]),
        (json!({"matches": "a|ab"}), vec![0, 2]),
        (json!({"matches": ".\\d"}), vec![6]),
        (json!({"matches": "\\w+"}), vec![0, 1, 2]),
        (json!({"notMatches": "a.*"}), vec![1, 3, 4, 5, 6]),
        (json!({"notMatches": ".*"}), vec![3, 4]),
    ] {
        let found = values(&bucket, &json!({"host": matcher}));
        assert_eq!(found, expected, "small print D: {matcher}");
    }
    let both = values(&bucket, &json!({"host": {"not": "a"}, "site": ["1", "2"]}));
    assert_eq!(both, [1, 2, 3], "all must hold");
    assert_eq!(
        values(&bucket, &json!({})).len(),
        7,
        "small print D5: {{}} is no filter"
    );
    let rows = bucket.rows(&json!({"dimensions": {"site": "1"}, "metadata": {"host": "b"}}));
    assert_eq!(
        column(&rows, "/values/v"),
        [1],
        "small print D5: both filters must hold"
    );
}

#[test]
fn the_shape_of_matchers_is_checked() {
    let (_server, _, bucket, _) = scene_of(&hosts());
    let query = |dimensions: Value| bucket.post_query(&json!({"filters": {"dimensions": dimensions}}));
    for (dimensions, path) in [
        (json!({"host": []}), "filters/dimensions/host"),
        (json!({"host": {}}), "filters/dimensions/host"),
        (json!({"host": 1}), "filters/dimensions/host"),
        (
            json!({"host": {"not": "a", "matches": "b"}}),
            "filters/dimensions/host",
        ),
        (json!({"host": {"like": "a"}}), "filters/dimensions/host/like"),
        (json!({"host": ["a", 1]}), "filters/dimensions/host/1"),
        (
            json!({"host": {"not": ["a", true]}}),
            "filters/dimensions/host/not/1",
        ),
        (
            json!({"host": {"matches": "a(?=b)"}}),
            "filters/dimensions/host/matches",
        ),
        (
            json!({"host": {"notMatches": "(a)\\1"}}),
            "filters/dimensions/host/notMatches",
        ),
        (
            json!({"host": {"matches": "(((a{1000}){1000}){1000})"}}),
            "filters/dimensions/host/matches",
        ),
        (json!({"nobody": "a"}), "filters/dimensions/nobody"),
    ] {
        assert_faults(
            &query(dimensions.clone()),
            &[path],
            &format!("small print D: {dimensions}"),
        );
    }
    let unknown = query(json!({"nobody": "a"}));
    assert!(
        unknown.text().contains("host"),
        "small print D6: names the available ones: {unknown}"
    );
}

#[test]
fn a_name_is_unknown_only_if_no_selected_source_has_it() {
    let (_server, _, bucket, cpu) = scene_of(&hosts());
    let (plain, listed) = (
        bucket.source("plain", &["v"]),
        split_source(&bucket, "listed", &json!(["line"])),
    );
    let empty = split_source(&bucket, "empty", &json!("all"));
    let query = |sources: &[&str], name: &str| {
        bucket.post_query(&json!({"filters": {"dataSourceIds": sources, "dimensions": {name: "a"}}}))
    };
    let sentence = "small print D6: the name of a selected source";
    query(&[&cpu], "host").expect(200, sentence);
    query(&[&listed], "line").expect(200, "small print D6: a listed name, also without points");
    query(&[&empty], "anything").expect(200, "small print D6: every name while it has no points");
    query(&[&cpu, &listed], "line").expect(200, sentence);
    assert_faults(
        &query(&[&plain], "host"),
        &["filters/dimensions/host"],
        "small print D6: null has none",
    );
    assert_faults(&query(&[&cpu], "line"), &["filters/dimensions/line"], sentence);
    let unknown_source = query(&[scene::UNKNOWN_ID], "nobody");
    assert_eq!(unknown_source.status, 404, "small print D6: after 404");
    let at_ns = now_ns() - HOUR;
    bucket.send(&[labelled(&plain, at_ns, 99, &json!({"host": "a"}))]);
    assert_eq!(
        values(&bucket, &json!({"host": "a"})),
        [0],
        "a source without dimensions lacks the name"
    );
    assert!(
        values(&bucket, &json!({"host": null})).contains(&99),
        "small print D6: a source that lacks a name another has: absent there"
    );
    assert!(
        values(&bucket, &json!({"host": {"not": "b"}})).contains(&99),
        "small print D1: absent matches"
    );
}

#[test]
fn a_cursor_belongs_to_its_dimension_filter() {
    let (_server, _, bucket, _) = scene_of(&hosts());
    let query = |dimensions: Value, cursor: Value| {
        bucket.post_query(&json!({"filters": {"dimensions": dimensions}, "limit": 1, "cursor": cursor}))
    };
    let filter = json!({"host": {"not": "a"}});
    let first = query(filter.clone(), Value::Null).expect(200, "a page");
    let cursor = first["metadata"]["nextCursor"].clone();
    let second = query(filter, cursor.clone()).expect(200, "small print D7: the same filter");
    assert_eq!(column(&array(&second, "/data"), "/values/v"), [2]);
    let other = query(json!({"host": {"not": "b"}}), cursor);
    assert_faults(&other, &["cursor"], "small print D7: 400 at cursor with another");
}

#[test]
fn downsampling_counts_matching_points_only() {
    let (_server, _, bucket) = scene::bucket();
    let source = split_source(&bucket, "cpu", &json!("all"));
    let first_ns = now_ns() - 2 * HOUR;
    let points = (0..1_200).map(|place| {
        let host = if place % 2 == 0 { "even" } else { "odd" };
        labelled(
            &source,
            first_ns + place * 5_000_000_000,
            place,
            &json!({"host": host, "few": place / 1_000}),
        )
    });
    bucket.send(&points.collect::<Vec<_>>());
    let query =
        |dimensions: Value| bucket.query(&json!({"filters": {"dimensions": dimensions}, "limit": 10_000}));
    let averages = query(json!({"host": "even"}));
    assert_eq!(
        averages["metadata"]["downsampling"]["expectedPoints"], 600,
        "small print E4: the matching series' points"
    );
    for row in array(&averages, "/data") {
        let (count, min) = (
            &row["stats"]["v"]["count"],
            row["stats"]["v"]["min"].as_i64().unwrap(),
        );
        assert!(
            count.as_i64().unwrap() <= 7 && min % 2 == 0,
            "small print E4: averages are of matching points only: {row}"
        );
    }
    let few = query(json!({"few": "1"}));
    assert_eq!(
        array(&few, "/data").len(),
        200,
        "few matching points are not downsampled"
    );
    let most = bucket.query(&json!({"filters": {"dimensions": {"host": "odd"}}, "maxPoints": 600}));
    assert_eq!(
        array(&most, "/data").len(),
        600,
        "small print O1: maxPoints counts per source: raw"
    );
    let fewer = bucket.query(&json!({"filters": {"dimensions": {"host": "odd"}}, "maxPoints": 599}));
    assert_eq!(
        fewer["metadata"]["downsampling"]["expectedPoints"], 600,
        "small print J1: the exact count"
    );
}
