//! `maxPoints`: points if they are few enough, else averages by the finest step with few enough rows.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, column};
use crate::support::given::{Bucket, point};
use crate::support::time::{DAY, HOUR, MINUTE, SECOND, now_ns, timestamp};

/// The steps and their lengths.
const STEPS: [(&str, i64); 13] = [
    ("1s", SECOND),
    ("5s", 5 * SECOND),
    ("15s", 15 * SECOND),
    ("30s", 30 * SECOND),
    ("minute", MINUTE),
    ("5m", 5 * MINUTE),
    ("15m", 15 * MINUTE),
    ("30m", 30 * MINUTE),
    ("hour", HOUR),
    ("3h", 3 * HOUR),
    ("6h", 6 * HOUR),
    ("12h", 12 * HOUR),
    ("day", DAY),
];

fn level(nth: i64) -> f64 {
    (nth * 37 % 101) as f64
}

fn send(bucket: &Bucket, source: &str, start: i64, interval: i64, count: i64) {
    let points = (0..count).map(|nth| point(source, start + nth * interval, &json!({"level": level(nth)})));
    bucket.send(&points.collect::<Vec<_>>());
}

fn step_of(answer: &Value) -> &str {
    answer["metadata"]["groupBy"].as_str().unwrap_or("raw")
}

#[test]
fn the_step_is_the_finest_within_max_points_per_source() {
    let (mut server, _, bucket) = scene::bucket();
    let start = (now_ns() / DAY - 20) * DAY;
    let intervals = [SECOND / 2, 7 * SECOND, MINUTE, 700 * SECOND, 2 * HOUR];
    let sources: Vec<(String, i64)> = intervals
        .into_iter()
        .map(|interval| {
            let source = bucket.source(&format!("each {interval} ns"), &["level"]);
            send(&bucket, &source, start, interval, 1_200);
            (source, interval)
        })
        .collect();
    for restarted in [false, true] {
        if restarted {
            server.stop();
            server.launch();
        }
        for ((source, interval), points_max) in sources.iter().zip([100, 250, 599, 1_000, 1_199]) {
            let body = json!({"maxPoints": points_max, "filters": {"dataSourceIds": [source]}});
            let answer = bucket.query(&body);
            let last = start + 1_199 * interval;
            let steps = |length: i64| last / length - start / length + 1;
            let (name, length) = STEPS
                .into_iter()
                .find(|(_, length)| steps(*length) <= points_max)
                .unwrap();
            assert_eq!(
                step_of(&answer),
                name,
                "small print J2: {interval} ns, {points_max}"
            );
            assert_eq!(
                answer["metadata"]["downsampling"],
                json!({"groupBy": name, "expectedPoints": 1_200})
            );
            assert_eq!(answer["metadata"]["downsamplingApplied"], true);
            assert_eq!(answer["metadata"]["aggregation"], "avg");
            let rows = array(&answer, "/data");
            assert!(rows.len() <= points_max as usize);
            let mut expected: std::collections::BTreeMap<i64, Vec<f64>> = Default::default();
            for nth in 0..1_200 {
                let at = (start + nth * interval) / length * length;
                expected.entry(at).or_default().push(level(nth));
            }
            assert_eq!(rows.len(), expected.len());
            for (row, (at, values)) in rows.iter().zip(expected) {
                assert_eq!(row["timestamp"], timestamp(at));
                let average = values.iter().sum::<f64>() / values.len() as f64;
                let found = row["values"]["level"].as_f64().unwrap();
                assert!(
                    (found - average).abs() <= 1e-9 * average.abs(),
                    "{row}: {average}"
                );
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let stats = &row["stats"]["level"];
                assert_eq!(
                    (stats["min"].as_f64(), stats["count"].as_u64()),
                    (Some(least), Some(values.len() as u64))
                );
            }
        }
    }
}

#[test]
fn few_points_are_returned_raw_regardless_of_the_source() {
    let (_server, _, bucket) = scene::bucket();
    let body = json!({"name": "gauge", "schema": {"level": {"type": "number"}}, "downsampling": false});
    let source = bucket.source_with(&body);
    let start = now_ns() / DAY * DAY;
    send(&bucket, &source, start, SECOND, 150);
    let until = |nth: i64| json!({"endTime": timestamp(start + nth * SECOND)});
    let raw = bucket.query(&json!({"maxPoints": 100, "filters": until(99)}));
    assert_eq!(
        (step_of(&raw), array(&raw, "/data").len()),
        ("raw", 100),
        "J5: all rows without a limit"
    );
    assert!(raw["data"][0].get("_id").is_some(), "raw rows have ids");
    let grouped = bucket.query(&json!({"maxPoints": 100, "filters": until(100)}));
    assert_eq!(
        step_of(&grouped),
        "5s",
        "J1: counted exactly, whatever the sources' downsampling"
    );
    let empty = bucket.query(&json!({"maxPoints": 100, "filters": {"startTime": timestamp(start + DAY)}}));
    assert_eq!((step_of(&empty), &empty["data"]), ("raw", &json!([])));
}

#[test]
fn booleans_become_the_share_of_true_and_strings_are_omitted() {
    let (_server, _, bucket) = scene::bucket();
    let schema = json!({"on": {"type": "boolean"}, "level": {"type": "number"}, "mode": {"type": "string"}});
    let source = bucket.source_with(&json!({"name": "pump", "schema": schema}));
    let start = (now_ns() / DAY - 1) * DAY;
    // On for the first 12 s of each minute, for 100 minutes: a value at each change, and a level in between.
    let points: Vec<Value> = (0..100)
        .flat_map(|minute| {
            let at = start + minute * MINUTE;
            [
                point(&source, at, &json!({"on": true, "mode": "run"})),
                point(&source, at + 6 * SECOND, &json!({"level": minute})),
                point(&source, at + 12 * SECOND, &json!({"on": false})),
            ]
        })
        .collect();
    bucket.send(&points);
    let answer =
        bucket.query(&json!({"maxPoints": 100, "filters": {"endTime": timestamp(start + 100 * MINUTE)}}));
    assert_eq!(step_of(&answer), "minute");
    let rows = array(&answer, "/data");
    assert_eq!(rows.len(), 100);
    for (nth, row) in rows.iter().enumerate() {
        let share = row["values"]["on"].as_f64().unwrap();
        assert!((share - 0.2).abs() < 1e-9, "12 s of 60: {row}");
        assert_eq!(row["values"]["level"], nth, "{row}");
        assert!(row["values"].get("mode").is_none(), "strings are left out: {row}");
        assert_eq!(row["stats"]["on"], json!({"min": 0, "max": 1, "count": 2}), "J6");
    }
    let only = json!({"maxPoints": 100, "filters": {"fields": ["mode"]}});
    assert_eq!(
        step_of(&bucket.query(&only)),
        "raw",
        "J4: no number or boolean field selected"
    );
    let coarser = bucket.query(
        &json!({"maxPoints": 100, "layout": "columns", "filters": {"fields": ["on"],
        "startTime": timestamp(start + 12 * SECOND), "endTime": timestamp(start + 90 * MINUTE)}}),
    );
    assert_eq!(
        coarser["columns"]["values"]["on"][0], 0.0,
        "what held before the range does not count"
    );
}

#[test]
fn max_points_excludes_other_row_selections() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    for (member, value) in [("aggregation", json!("avg")), ("downsampling", json!(false))] {
        let mut body = json!({"maxPoints": 500, "groupBy": null});
        body[member] = value;
        if member == "aggregation" {
            body["groupBy"] = json!("hour");
        }
        assert_faults(&bucket.post_query(&body), &["maxPoints"], "small print J4");
    }
    for points_max in [json!(99), json!(10_001), json!("500"), json!(100.5)] {
        assert_faults(
            &bucket.post_query(&json!({"maxPoints": points_max})),
            &["maxPoints"],
            "contract 11: 100 to 10,000",
        );
    }
    let start = now_ns() / HOUR * HOUR;
    send(&bucket, &source, start, SECOND, 300);
    let first = bucket.query(&json!({"limit": 10, "downsampling": false}));
    let cursor = &first["metadata"]["nextCursor"];
    let behind = bucket.query(&json!({"maxPoints": 100, "cursor": cursor}));
    assert_eq!(
        (step_of(&behind), array(&behind, "/data").len()),
        ("raw", 290),
        "J5: a cursor goes on raw"
    );
    let found = column(&array(&behind, "/data"), "/values/level");
    assert_eq!(found[0], level(10));
}
