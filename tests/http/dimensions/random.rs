//! Random points with labels, and random questions, against a brute force over the points. `DIMENSIONS_SEED` repeats a
//! run.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{labelled, split_source};
use crate::scene::{self, array};
use crate::support::time::{HOUR, MINUTE, SECOND, now_ns, timestamp};

const POINTS: i64 = 4_000;
const QUESTIONS: usize = 200;

struct Point {
    source: usize,
    at_ns: i64,
    value: i64,
    labels: BTreeMap<&'static str, String>,
}

fn seed() -> u64 {
    let given = std::env::var("DIMENSIONS_SEED").ok();
    let seed = given.map_or_else(|| fastrand::u64(..), |text| text.parse().unwrap());
    println!("DIMENSIONS_SEED={seed}");
    seed
}

/// A step, a source and values of dimensions.
type GroupKey<'a> = (i64, Option<&'a str>, Vec<Option<&'a str>>);

/// Whether a matcher selects a value; `None` for a series without the dimension.
type Selects = Box<dyn Fn(Option<&str>) -> bool>;

/// A random matcher, and whether it passes a value.
fn matcher(random: &mut fastrand::Rng, name: &str) -> (Value, Selects) {
    let value = |random: &mut fastrand::Rng| format!("{name}{}", random.u8(0..9));
    match random.u8(0..6) {
        0 => {
            let one = value(random);
            (json!(one), Box::new(move |found| found == Some(&one)))
        }
        1 => {
            let some = [value(random), value(random)];
            (
                json!([some[0], some[1], null]),
                Box::new(move |found| found.is_none_or(|found| some.iter().any(|it| it == found))),
            )
        }
        2 => {
            let one = value(random);
            (json!({"not": one}), Box::new(move |found| found != Some(&one)))
        }
        3 => (json!({"not": null}), Box::new(|found| found.is_some())),
        4 => {
            let pattern = format!("{name}[0-3]");
            let name = name.to_owned();
            let passes = move |found: Option<&str>| {
                found
                    .and_then(|found| found.strip_prefix(&name)?.parse::<u8>().ok())
                    .is_some_and(|digit| digit < 4)
            };
            (json!({"matches": pattern}), Box::new(passes))
        }
        _ => {
            let name = name.to_owned();
            let pattern = format!("{name}[5-9]");
            let passes = move |found: Option<&str>| {
                found
                    .and_then(|found| found.strip_prefix(&name)?.parse::<u8>().ok())
                    .is_none_or(|digit| digit < 5)
            };
            (json!({"notMatches": pattern}), Box::new(passes))
        }
    }
}

#[test]
fn random_questions_agree_with_a_brute_force() {
    let mut random = fastrand::Rng::with_seed(seed());
    let (mut server, _, bucket) = scene::sealing_bucket();
    let sources = [
        split_source(&bucket, "all", &json!("all")),
        split_source(&bucket, "named", &json!(["a", "b"])),
        bucket.source("plain", &["v"]),
    ];
    let first_ns = (now_ns() / HOUR - 6) * HOUR;
    let mut points: Vec<Point> = Vec::new();
    let mut entries = Vec::new();
    for value in 0..POINTS {
        let source = random.usize(0..3);
        let at_ns = first_ns + random.i64(0..5 * HOUR / SECOND) * SECOND;
        let mut labels = BTreeMap::new();
        for name in ["a", "b", "c"] {
            if random.u8(0..4) > 0 {
                labels.insert(name, format!("{name}{}", random.u8(0..9)));
            }
        }
        entries.push(labelled(&sources[source], at_ns, value, &json!(labels)));
        labels.retain(|name, _| source == 0 || (source == 1 && *name != "c"));
        points.push(Point {
            source,
            at_ns,
            value,
            labels,
        });
    }
    for (round, entries) in entries.chunks(1_000).enumerate() {
        bucket.send(entries);
        if round == 1 {
            server.kill();
            server.launch();
        }
    }
    for _ in 0..QUESTIONS {
        let (start_ns, length) = (first_ns + random.i64(0..4 * HOUR), random.i64(MINUTE..5 * HOUR));
        let mut dimensions = serde_json::Map::new();
        let mut tests = Vec::new();
        for name in ["a", "b", "c"] {
            if random.u8(0..3) == 0 {
                let (matcher, passes) = matcher(&mut random, name);
                dimensions.insert(name.to_owned(), matcher);
                tests.push((name, passes));
            }
        }
        let filters = json!({
            "startTime": timestamp(start_ns), "endTime": timestamp(start_ns + length), "dimensions": dimensions
        });
        let selected: Vec<&Point> = points
            .iter()
            .filter(|point| (start_ns..=start_ns + length).contains(&point.at_ns))
            .filter(|point| {
                tests
                    .iter()
                    .all(|(name, passes)| passes(point.labels.get(name).map(String::as_str)))
            })
            .collect();
        let mut expected: Vec<i64> = selected.iter().map(|point| point.value).collect();
        expected.sort_unstable();
        let rows = bucket.rows(&filters);
        let mut found: Vec<i64> = rows
            .iter()
            .map(|row| row["values"]["v"].as_i64().unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{filters}");

        let by: Vec<&str> = ["c", "a", "b"].into_iter().filter(|_| random.bool()).collect();
        let is_merged = random.bool();
        let mut groups: BTreeMap<GroupKey<'_>, i64> = BTreeMap::new();
        for point in &selected {
            let source = (!is_merged).then(|| sources[point.source].as_str());
            let labels = by
                .iter()
                .map(|name| point.labels.get(name).map(String::as_str))
                .collect();
            *groups.entry((point.at_ns / HOUR, source, labels)).or_default() += point.value;
        }
        let body = json!({
            "filters": filters, "aggregation": "sum", "groupBy": "hour", "groupByDimensions": by,
            "mergeSources": is_merged
        });
        let answer = bucket.query(&body);
        let rows = array(&answer, "/data");
        let expected: Vec<Value> = groups
            .iter()
            .map(|((hour, source, labels), sum)| {
                let labels: serde_json::Map<String, Value> = by
                    .iter()
                    .zip(labels)
                    .map(|(name, value)| ((*name).to_owned(), json!(value)))
                    .collect();
                json!([timestamp(hour * HOUR), source, labels, sum])
            })
            .collect();
        let found: Vec<Value> = rows
            .iter()
            .map(|row| {
                let labels = row.get("dimensions").cloned().unwrap_or_else(|| json!({}));
                json!([row["timestamp"], row["dataSourceId"], labels, row["values"]["v"]])
            })
            .collect();
        assert_eq!(found, expected, "{body}");
    }
}
