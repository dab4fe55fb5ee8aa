//! Real series end to end: sent, the server killed, and every grouped answer compared with values computed from the
//! file.

use std::path::Path;

use serde_json::{Value, json};

use crate::calendar::Unit;
use crate::model::{Grouping, Sample, assert_rows};
use crate::scene::{self, array, column};
use crate::support::given::Bucket;
use crate::support::process::Server;
use crate::support::time::{DAY, MINUTE, SECOND, now_ns, timestamp};

/// The rows of a file in order, as (UTC nanoseconds, spelling of the number).
fn series(file: &str) -> Vec<(i64, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let row = |line: &str| {
        let (at, value) = line.split_once(',').unwrap();
        let number = |range: std::ops::Range<usize>| at[range].parse::<i64>().unwrap();
        let midnight = crate::calendar::midnight(number(0..4), number(5..7), number(8..10));
        let seconds = number(11..13) * 3600 + number(14..16) * 60 + number(17..19);
        (midnight + seconds * SECOND, value.trim().to_owned())
    };
    text.lines().skip(1).map(row).collect()
}

/// Shifts the series by whole minutes so that its newest point is current.
fn ending_now(mut series: Vec<(i64, String)>) -> Vec<(i64, String)> {
    let newest = series.iter().map(|(at, _)| *at).max().unwrap();
    let shift = (now_ns() - newest) / MINUTE * MINUTE;
    series.iter_mut().for_each(|(at, _)| *at += shift);
    series
}

fn entry(source: &str, (at, number): &(i64, String)) -> String {
    format!(
        r#"{{"dataSourceId":"{source}","timestamp":"{}","values":{{"value":{number}}}}}"#,
        timestamp(*at)
    )
}

/// Sends points within the age limit in batches, older ones singly over several connections.
fn send(bucket: &Bucket, source: &str, series: &[(i64, String)]) {
    let limit = now_ns() - 30 * DAY + 10 * MINUTE;
    let (old, young): (Vec<_>, Vec<_>) = series.iter().partition(|(at, _)| *at < limit);
    std::thread::scope(|scope| {
        for part in old.chunks(old.len().div_ceil(16).max(1)) {
            scope.spawn(move || {
                for row in part {
                    let body = format!(r#"{{"bucketId":"{}",{}"#, bucket.id, &entry(source, row)[1..]);
                    let answer = bucket
                        .client
                        .post("/api/data")
                        .key(&bucket.admin)
                        .body(body)
                        .send();
                    answer.expect(
                        201,
                        "contract 4: a single point may be as old as the bucket's retention allows",
                    );
                }
            });
        }
    });
    for part in young.chunks(1000) {
        let entries: Vec<String> = part.iter().map(|row| entry(source, row)).collect();
        let body = format!(
            r#"{{"bucketId":"{}","dataPoints":[{}]}}"#,
            bucket.id,
            entries.join(",")
        );
        let answer = bucket
            .client
            .post("/api/data/batch")
            .key(&bucket.admin)
            .body(body)
            .send();
        assert_eq!(
            answer.expect(201, "a whole batch")["insertedCount"],
            part.len(),
            "spec: insertedCount"
        );
    }
}

fn check((mut server, bucket): (Server, Bucket), file: &str) {
    let series = ending_now(series(file));
    assert!(series.len() >= 5_000, "{file} has enough rows to mean something");
    let source = bucket.source("series", &["value"]);
    send(&bucket, &source, &series);
    let samples: Vec<Sample> = series
        .iter()
        .map(|(at, number)| Sample::number(&source, *at, "value", number.parse().unwrap()))
        .collect();
    for when in ["at once", "after a kill", "after a stop", "after another kill"] {
        match when {
            "at once" => {}
            "after a stop" => _ = server.stop(),
            _ => server.kill(),
        }
        if when != "at once" {
            server.launch();
        }
        for unit in [Unit::Hour, Unit::Day, Unit::Week, Unit::Month] {
            for aggregation in ["avg", "min", "max", "sum", "count"] {
                let grouping = Grouping::new(unit, aggregation);
                let rows = array(&bucket.query(&grouping.body()), "/data");
                assert_rows(
                    &rows,
                    &grouping.rows(&samples),
                    &format!("{file} by {unit:?}, {aggregation}, {when}"),
                );
            }
        }
        let stats = bucket
            .call("GET", &format!("/sources/{source}"), &Value::Null)
            .json();
        assert_eq!(
            stats["dataSource"]["stats"]["totalDataPoints"],
            samples.len(),
            "{file}: totalDataPoints {when}"
        );
    }
    assert_raw(&bucket, &series, file);
}

/// Asserts that raw pages contain every number of the file in order of its timestamp.
fn assert_raw(bucket: &Bucket, series: &[(i64, String)], file: &str) {
    let mut expected = series.to_vec();
    expected.sort_by_key(|(at, _)| *at);
    let mut body = json!({"limit": 3000, "downsampling": false});
    let mut found = Vec::new();
    loop {
        let answer = bucket.query(&body);
        let rows = array(&answer, "/data");
        found.extend(
            column(&rows, "/timestamp")
                .into_iter()
                .zip(column(&rows, "/values/value")),
        );
        if answer["metadata"]["hasMore"] == false {
            break;
        }
        body["cursor"] = answer["metadata"]["nextCursor"].clone();
    }
    assert_eq!(
        found.len(),
        expected.len(),
        "{file}: every point is a raw row, once"
    );
    for (nth, ((at, value), (sent_at, sent))) in found.iter().zip(&expected).enumerate() {
        assert_eq!(*at, timestamp(*sent_at), "{file}: the timestamp of row {nth}");
        let near = value
            .as_f64()
            .is_some_and(|value| (value / sent.parse::<f64>().unwrap() - 1.0).abs() < 1e-15);
        assert!(
            near,
            "{file}: the number of row {nth} is {value} instead of {sent}"
        );
    }
}

#[test]
fn machine_temperature_queries_agree_with_the_file() {
    let (server, _, bucket) = scene::bucket();
    check((server, bucket), "machine_temperature_system_failure.csv");
}

#[test]
fn taxi_counts_agree_with_the_file() {
    let (server, _, bucket) = scene::sealing_bucket();
    check((server, bucket), "nyc_taxi.csv");
}
