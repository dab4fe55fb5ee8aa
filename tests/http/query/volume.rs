//! More points than fit into a block, of every type, with gaps, late points and many different texts: the raw rows
//! equal the sent points, whether read from memory, from the log or from segments.

use serde_json::{Value, json};

use crate::scene::{self, array, column};
use crate::support::given::{Bucket, point};
use crate::support::process::Server;
use crate::support::time::{DAY, SECOND, now_ns, timestamp};

const POINTS: i64 = 24_000;

fn values(nth: i64, random: &mut fastrand::Rng) -> Value {
    let mut values = json!({"nth": nth});
    if random.u8(..) < 200 {
        // Never a whole number: it would be returned without its fraction, and JSON texts are compared here.
        values["level"] = json!(f64::from(random.i32(-10_000..10_000) * 10 + 5) / 100.0);
    }
    if random.u8(..) < 150 {
        values["text"] = match random.u8(..4) {
            0 => json!(format!("unique é {nth}")),
            1 => json!(""),
            _ => json!(["ebb", "flow", "slack \"water\"", "\u{1F30A}\n"][random.usize(..4)]),
        };
    }
    if random.bool() {
        values["valid"] = json!(random.bool());
    }
    values
}

/// All rows with these filters, read by cursor.
fn all_rows(bucket: &Bucket, filters: &Value, sort: &str) -> Vec<Value> {
    let mut body = json!({"filters": filters, "sort": sort, "limit": 7000, "downsampling": false});
    let mut rows = Vec::new();
    loop {
        let answer = bucket.query(&body);
        rows.extend(array(&answer, "/data"));
        if answer["metadata"]["hasMore"] == false {
            return rows;
        }
        body["cursor"] = answer["metadata"]["nextCursor"].clone();
    }
}

struct Sent {
    at: i64,
    source: usize,
    values: Value,
}

#[test]
fn every_value_of_many_blocks_is_returned() {
    let (server, _, bucket) = scene::bucket();
    check(server, &bucket);
}

#[test]
fn every_value_of_many_segments_is_returned() {
    let (server, _, bucket) = scene::sealing_bucket();
    check(server, &bucket);
}

fn check(mut server: Server, bucket: &Bucket) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let schema = json!({
        "nth": {"type": "number"}, "level": {"type": "number"}, "text": {"type": "string"}, "valid": {"type": "boolean"},
    });
    let sources: Vec<String> = (0..2)
        .map(|nth| bucket.source_with(&json!({"name": format!("gauge {nth}"), "schema": schema})))
        .collect();
    let start = now_ns() / SECOND * SECOND - DAY;
    let mut sent: Vec<Sent> = (0..POINTS)
        .map(|nth| {
            let late = if random.u8(..) < 12 {
                random.i64(0..10 * DAY)
            } else {
                0
            };
            let source = usize::from(random.u8(..5) == 0);
            Sent {
                at: start + nth * SECOND - late,
                source,
                values: values(nth, &mut random),
            }
        })
        .collect();
    bucket.send(
        &sent
            .iter()
            .map(|sent| point(&sources[sent.source], sent.at, &sent.values))
            .collect::<Vec<_>>(),
    );
    sent.sort_by_key(|sent| sent.at);

    for when in [
        "from memory",
        "after a kill",
        "after a stop",
        "after another stop",
    ] {
        match when {
            "from memory" => {}
            "after a kill" => server.kill(),
            _ => _ = server.stop(),
        }
        if when != "from memory" {
            server.launch();
        }
        let context = format!("{when}, seed {seed}");
        assert_rows(
            &all_rows(bucket, &json!({}), "asc"),
            sent.iter(),
            &sources,
            &context,
        );
        assert_rows(
            &all_rows(bucket, &json!({}), "desc"),
            sent.iter().rev(),
            &sources,
            &context,
        );
        for _ in 0..6 {
            let from = start + random.i64(-5 * DAY..POINTS * SECOND);
            let until = from + random.i64(1..DAY);
            let source = random.usize(..2);
            let filters = json!({
                "startTime": timestamp(from), "endTime": timestamp(until), "dataSourceIds": [sources[source]],
            });
            let expected = sent
                .iter()
                .filter(|sent| (from..=until).contains(&sent.at) && sent.source == source);
            assert_rows(
                &all_rows(bucket, &filters, "asc"),
                expected,
                &sources,
                &format!("{filters}, {context}"),
            );
        }
        let texts = sent
            .iter()
            .filter(|sent| sent.values.get("text").is_some())
            .map(|sent| sent.values["text"].clone());
        let found = column(
            &all_rows(bucket, &json!({"fields": ["text"]}), "asc"),
            "/values/text",
        );
        assert!(
            found == texts.collect::<Vec<_>>(),
            "contract 5: rows left with no value are not rows ({context})"
        );
    }
}

/// Full blocks without overlap are merged by another code path than small or late ones; only a series that is merged
/// repeatedly has them.
#[test]
fn a_long_series_survives_its_merges_in_order() {
    let (mut server, _, bucket) = scene::sealing_bucket();
    let source = bucket.source("gauge", &["nth"]);
    let start = now_ns() / SECOND * SECOND;
    let numbers: Vec<i64> = (0..80_000).collect();
    for part in numbers.chunks(1000) {
        let points: Vec<Value> = part
            .iter()
            .map(|nth| point(&source, start + nth * SECOND, &json!({"nth": nth})))
            .collect();
        bucket.send(&points);
    }
    for when in ["while it is sealed", "after a kill", "after a stop"] {
        match when {
            "while it is sealed" => {}
            "after a kill" => server.kill(),
            _ => _ = server.stop(),
        }
        if when != "while it is sealed" {
            server.launch();
        }
        let grouped = bucket.query(&json!({"aggregation": "count", "groupBy": "hour"}));
        let counted: i64 = array(&grouped, "/data")
            .iter()
            .filter_map(|row| row["nth"].as_i64())
            .sum();
        assert_eq!(
            counted, 80_000,
            "contract 5: grouped results equal the raw points, {when}"
        );
        let rows = column(&all_rows(&bucket, &json!({}), "asc"), "/values/nth");
        let found: Vec<i64> = rows.iter().filter_map(Value::as_i64).collect();
        assert!(
            found == numbers,
            "contract 4: every point is there once, {when}: {} rows",
            found.len()
        );
    }
}

#[track_caller]
fn assert_rows<'a>(
    rows: &[Value],
    expected: impl Iterator<Item = &'a Sent>,
    sources: &[String],
    context: &str,
) {
    let mut count = 0;
    for (nth, sent) in expected.enumerate() {
        let Some(row) = rows.get(nth) else {
            panic!("contract 4: row {nth} is missing: {} ({context})", sent.values)
        };
        let same = row["values"] == sent.values
            && row["timestamp"] == timestamp(sent.at)
            && row["dataSourceId"] == sources[sent.source];
        let expected = format!("{} at {}", sent.values, timestamp(sent.at));
        assert!(
            same,
            "contract 4: a stored point does not change: row {nth} is {row} instead of {expected} ({context})"
        );
        count += 1;
    }
    assert_eq!(
        rows.len(),
        count,
        "contract 4: nothing is there that was not sent ({context})"
    );
}
