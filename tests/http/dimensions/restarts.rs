//! Series over checkpoints, merges, restarts and kills.

use serde_json::{Value, json};

use super::{labelled, split_source, values};
use crate::scene::{self, array, column};
use crate::support::time::{HOUR, SECOND, now_ns};

#[test]
fn series_are_found_by_their_labels_after_stops_and_kills() {
    let (mut server, _, bucket) = scene::sealing_bucket();
    let source = split_source(&bucket, "cpu", &json!("all"));
    let other = split_source(&bucket, "other", &json!(["host"]));
    let first_ns = now_ns() - 2 * HOUR;
    let mut sent = 0;
    for round in 0..6_i64 {
        // Of each round, half of the hosts are new.
        let points: Vec<Value> = (0..400)
            .map(|place| {
                let host = round * 10 + place % 20;
                let at_ns = first_ns + (round * 400 + place) * SECOND;
                labelled(
                    &source,
                    at_ns,
                    host,
                    &json!({"host": format!("h{host}"), "parity": host % 2}),
                )
            })
            .collect();
        sent += points.len();
        bucket.send(&points);
        bucket.send(&[labelled(&other, first_ns, round, &json!({"host": "h1"}))]);
        match round % 3 {
            0 => server.kill(),
            1 => drop(server.stop()),
            _ => continue,
        }
        server.launch();
    }
    assert_eq!(
        values(&bucket, &json!({"host": {"matches": "h.*"}})).len(),
        sent + 6
    );
    for host in [0, 9, 10, 35, 69] {
        let rows =
            bucket.rows(&json!({"dataSourceIds": [source], "dimensions": {"host": format!("h{host}")}}));
        let expected = (0..6)
            .filter(|round| (round * 10..round * 10 + 20).contains(&host))
            .count()
            * 20;
        assert_eq!(rows.len(), expected, "h{host}");
        assert!(
            column(&rows, "/values/v").iter().all(|value| *value == host),
            "only its points"
        );
    }
    let grouped = bucket.query(&json!({
        "aggregation": "count", "groupBy": "all", "groupByDimensions": ["parity"], "filters": {"dataSourceIds": [source]}
    }));
    let counts = column(&array(&grouped, "/data"), "/values/v");
    assert_eq!(counts, [sent / 2, sent / 2]);
    let shown = bucket
        .call("GET", &format!("/sources/{source}"), &Value::Null)
        .json();
    assert_eq!(shown["dataSource"]["stats"]["seriesCount"], 70);
    bucket.send(&[labelled(
        &source,
        now_ns() - HOUR,
        0,
        &json!({"parity": 0, "host": "h0"}),
    )]);
    let shown = bucket
        .call("GET", &format!("/sources/{source}"), &Value::Null)
        .json();
    assert_eq!(
        shown["dataSource"]["stats"]["seriesCount"], 70,
        "a known series is found again, whatever the order of names"
    );
}

#[test]
fn a_deleted_source_takes_its_series_with_it() {
    let (mut server, _, bucket) = scene::sealing_bucket();
    let first_ns = now_ns() - 2 * HOUR;
    let make = |name: &str| {
        let source = split_source(&bucket, name, &json!("all"));
        let points: Vec<Value> = (0..50)
            .map(|host| labelled(&source, first_ns + host * SECOND, host, &json!({"host": host})))
            .collect();
        bucket.send(&points);
        source
    };
    let (gone, kept) = (make("gone"), make("kept"));
    server.stop();
    server.launch();
    let deleted = bucket
        .call("DELETE", &format!("/sources/{gone}"), &Value::Null)
        .expect(200, "delete");
    assert_eq!(deleted["deletedResources"]["dataPoints"], 50);
    for _ in 0..2 {
        assert_eq!(
            bucket.rows(&json!({})).len(),
            50,
            "only those of the other source"
        );
        let series = bucket
            .call("GET", &format!("/sources/{kept}/series?host=7"), &Value::Null)
            .json();
        assert_eq!(series["pagination"]["total"], 1);
        server.kill();
        server.launch();
    }
    let again = make("gone");
    assert_eq!(
        bucket
            .rows(&json!({"dataSourceIds": [again], "dimensions": {"host": "7"}}))
            .len(),
        1
    );
}
