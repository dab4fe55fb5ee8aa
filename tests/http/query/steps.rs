//! Steps of `groupBy` beyond the five units: lengths, quarters, years, and the whole range.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, column, with_members};
use crate::support::given::{Bucket, point, text};
use crate::support::time::{DAY, HOUR, MINUTE, SECOND, now_ns, timestamp};

/// 1970-01-05T00:00:00Z, a Monday.
const MONDAY: i64 = 4 * DAY;
/// 2026-03-29T00:00:00Z: an hour before the start of summer time in Europe.
const SPRING: i64 = 1_774_742_400 * SECOND;

fn rows_by(bucket: &Bucket, group_by: &str, more: &Value) -> Vec<Value> {
    let body = json!({"aggregation": "count", "groupBy": group_by});
    let answer = bucket.query(&with_members(body, more));
    assert_eq!(
        answer["metadata"]["groupBy"], group_by,
        "small print A5: as it was sent"
    );
    array(&answer, "/data")
}

/// Starts of the rows and the numbers of their points.
fn counts_by(bucket: &Bucket, group_by: &str, more: &Value) -> Vec<(String, u64)> {
    let rows = rows_by(bucket, group_by, more);
    let row = |row: &Value| (text(row, "/timestamp"), row["values"]["level"].as_u64().unwrap());
    rows.iter().map(row).collect()
}

fn expected(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter()
        .map(|(start, count)| ((*start).to_owned(), *count))
        .collect()
}

#[test]
fn lengths_are_counted_from_a_monday() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (_server, _, bucket) = scene::sealing_bucket();
    let source = bucket.source("gauge", &["level"]);
    let first = now_ns() / SECOND * SECOND - 28 * DAY;
    let mut points: Vec<(i64, f64)> = Vec::new();
    let mut at = first;
    while at < first + 27 * DAY && points.len() < 20_000 {
        points.push((at, f64::from(random.u32(..1_000)) / 8.0));
        // Dense for a while, then with gaps.
        at += match random.u8(..100) {
            0 => random.i64(1..3 * DAY),
            1..10 => random.i64(1..HOUR),
            _ => random.i64(1..2 * MINUTE),
        };
    }
    for chunk in points.chunks(1_000) {
        let entries: Vec<Value> = chunk
            .iter()
            .map(|(at, level)| point(&source, *at, &json!({"level": level})))
            .collect();
        bucket.send(&entries);
    }
    let range = (first + 3 * DAY + 12_345, first + 25 * DAY);
    let lengths = [
        ("7s", 7 * SECOND),
        ("30s", 30 * SECOND),
        ("90s", 90 * SECOND),
        ("7m", 7 * MINUTE),
        ("15m", 15 * MINUTE),
        ("90m", 90 * MINUTE),
        ("5h", 5 * HOUR),
        ("6h", 6 * HOUR),
        ("36h", 36 * HOUR),
        ("2d", 2 * DAY),
        ("10d", 10 * DAY),
        ("2w", 14 * DAY),
        ("52w", 364 * DAY),
    ];
    for (group_by, length) in lengths {
        for (is_cut, within) in [(false, (i64::MIN, i64::MAX)), (true, range)] {
            let mut sums: BTreeMap<i64, f64> = BTreeMap::new();
            for (at, level) in points.iter().filter(|(at, _)| (within.0..=within.1).contains(at)) {
                let start = (at - MONDAY).div_euclid(length) * length + MONDAY;
                *sums.entry(start).or_default() += level;
            }
            let mut body = json!({"aggregation": "sum", "groupBy": group_by});
            if is_cut {
                body["filters"] = json!({"startTime": timestamp(within.0), "endTime": timestamp(within.1)});
            }
            let rows = array(&bucket.query(&body), "/data");
            let wanted: Vec<(Value, Value)> = sums
                .iter()
                .take(10_000)
                .map(|(start, sum)| (json!(timestamp(*start)), json!(sum)))
                .collect();
            let found: Vec<(Value, Value)> = column(&rows, "/timestamp")
                .into_iter()
                .zip(column(&rows, "/values/level"))
                .collect();
            assert_eq!(found.len(), wanted.len(), "{group_by}, cut: {is_cut}");
            for ((start, sum), (wanted_start, wanted_sum)) in found.iter().zip(&wanted) {
                assert_eq!(start, wanted_start, "{group_by}, cut: {is_cut}");
                let (sum, wanted_sum) = (sum.as_f64().unwrap(), wanted_sum.as_f64().unwrap());
                assert!(
                    (sum - wanted_sum).abs() <= 1e-9 * wanted_sum.abs(),
                    "{group_by} at {start}"
                );
            }
        }
    }
}

/// A bucket with a point every half hour from a day before that moment to a day after it.
fn around_spring() -> (crate::support::process::Server, Bucket) {
    let (server, account, _) = scene::bucket();
    let bucket = account.bucket_with(&json!({"name": "long", "retentionDays": scene::RETENTION_DAYS_MAX}));
    let source = bucket.source("gauge", &["level"]);
    // Sent singly: batches accept nothing older than 30 days.
    for nth in 0..96 {
        let one = point(&source, SPRING - DAY + nth * 30 * MINUTE, &json!({"level": nth}));
        bucket.single(&one).expect(201, "a point of the past");
    }
    (server, bucket)
}

#[test]
fn lengths_follow_the_clock_of_a_zone() {
    let (_server, bucket) = around_spring();
    let stockholm = json!({"timezone": "Europe/Stockholm"});
    assert_eq!(
        counts_by(&bucket, "36h", &stockholm),
        expected(&[
            ("2026-03-26T23:00:00Z", 22),
            ("2026-03-28T11:00:00Z", 70),
            ("2026-03-29T22:00:00Z", 4)
        ]),
        "a step of 35 hours"
    );
    assert_eq!(
        counts_by(&bucket, "2d", &stockholm),
        expected(&[("2026-03-27T23:00:00Z", 92), ("2026-03-29T22:00:00Z", 4)]),
        "calendar days"
    );
    let mut around = stockholm.clone();
    around["filters"] = json!({"startTime": "2026-03-28T20:00:00Z", "endTime": "2026-03-29T10:00:00Z"});
    assert_eq!(
        counts_by(&bucket, "5h", &around),
        expected(&[
            ("2026-03-28T20:00:00Z", 10),
            ("2026-03-29T01:00:00Z", 8),
            ("2026-03-29T05:00:00Z", 10),
            ("2026-03-29T10:00:00Z", 1)
        ]),
        "a start that was skipped is at the change"
    );
    for (zone, start) in [
        ("Europe/Stockholm", "2025-12-31T23:00:00Z"),
        ("Pacific/Auckland", "2025-12-31T11:00:00Z"),
        ("UTC", "2026-01-01T00:00:00Z"),
    ] {
        for step in ["quarter", "year"] {
            let rows = counts_by(&bucket, step, &json!({"timezone": zone}));
            assert_eq!(rows, expected(&[(start, 96)]), "{step} in {zone}");
        }
    }
    for step in ["90m", "15m", "7m"] {
        let zoned = counts_by(&bucket, step, &json!({"timezone": "Asia/Kolkata"}));
        assert_eq!(zoned, counts_by(&bucket, step, &json!({})), "small print C1");
    }
}

#[test]
fn quarters_and_years_are_those_of_the_calendar() {
    let (_server, account, _) = scene::bucket();
    let bucket = account.bucket_with(&json!({"name": "long", "retentionDays": scene::RETENTION_DAYS_MAX}));
    let source = bucket.source("gauge", &["level"]);
    for at in [
        "2019-12-31T23:59:59.999999999Z",
        "2020-01-01T00:00:00Z",
        "2020-02-29T12:00:00Z",
        "2020-03-31T23:59:59Z",
        "2020-04-01T00:00:00Z",
        "2020-09-30T23:59:59Z",
        "2020-10-01T00:00:00Z",
        "2021-01-01T00:00:00Z",
    ] {
        let one = json!({"dataSourceId": source, "timestamp": at, "values": {"level": 1}});
        bucket.single(&one).expect(201, "a point of the past");
    }
    assert_eq!(
        counts_by(&bucket, "quarter", &json!({})),
        expected(&[
            ("2019-10-01T00:00:00Z", 1),
            ("2020-01-01T00:00:00Z", 3),
            ("2020-04-01T00:00:00Z", 1),
            ("2020-07-01T00:00:00Z", 1),
            ("2020-10-01T00:00:00Z", 1),
            ("2021-01-01T00:00:00Z", 1)
        ])
    );
    assert_eq!(
        counts_by(&bucket, "year", &json!({"sort": "desc"})),
        expected(&[
            ("2021-01-01T00:00:00Z", 1),
            ("2020-01-01T00:00:00Z", 6),
            ("2019-01-01T00:00:00Z", 1)
        ])
    );
}

#[test]
fn the_whole_range_is_one_row() {
    let (_server, _, bucket) = scene::sealing_bucket();
    assert_eq!(
        rows_by(&bucket, "all", &json!({})),
        [] as [Value; 0],
        "small print B5: no point, no row"
    );
    let sources = [
        bucket.source("one", &["level"]),
        bucket.source("other", &["level"]),
    ];
    let start = now_ns() / SECOND * SECOND - 2 * DAY;
    for (nth, source) in (0..).zip(&sources) {
        let points: Vec<Value> = (0..600)
            .map(|minute| {
                let mut entry = point(
                    source,
                    start + nth * HOUR + minute * MINUTE,
                    &json!({"level": minute}),
                );
                let late = minute >= 300;
                entry["metadata"] = json!({"late": late, "tested": late || nth == 1});
                entry
            })
            .collect();
        bucket.send(&points);
    }
    let at = |ns: i64| timestamp(ns);
    let both = |ns: i64, count: u64| vec![(at(ns), count), (at(ns), count)];
    assert_eq!(
        counts_by(&bucket, "all", &json!({})),
        both(start, 600),
        "small print B5: at the earliest point of the whole answer"
    );
    assert_eq!(
        counts_by(&bucket, "all", &json!({"filters": {"metadata": {"late": true}}})),
        both(start + 300 * MINUTE, 300),
        "of those that match"
    );
    assert_eq!(
        counts_by(
            &bucket,
            "all",
            &json!({"filters": {"metadata": {"tested": true}}})
        ),
        [(at(start + HOUR), 300), (at(start + HOUR), 600)],
        "also if the source with the earliest point has later ones that match"
    );
    let from = start - DAY - 7;
    let filters = json!({"startTime": at(from), "endTime": at(start + 599 * MINUTE)});
    assert_eq!(
        counts_by(
            &bucket,
            "all",
            &json!({"filters": filters, "timezone": "Asia/Kolkata"})
        ),
        [(at(from), 600), (at(from), 540)],
        "small print B5: at startTime"
    );
    assert_eq!(
        counts_by(&bucket, "all", &json!({"mergeSources": true, "sort": "desc"})),
        [(at(start), 1_200)]
    );
    let page = counts_by(&bucket, "all", &json!({"limit": 1, "offset": 1}));
    assert_eq!(page, [(at(start), 600)]);
    let nothing = json!({"filters": {"startTime": at(start + 10 * DAY)}});
    assert_eq!(rows_by(&bucket, "all", &nothing), [] as [Value; 0]);
}

#[test]
fn steps_that_are_none_are_refused() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    for wrong in ["365d", "53w", "01m", "0s", "1.5h", "1M", " 1m", "1y", "-1d", ""] {
        let answer = bucket.post_query(&json!({"aggregation": "avg", "groupBy": wrong}));
        assert_faults(&answer, &["groupBy"], "small print B1");
    }
    let rule = |group_by: &str| {
        let input = json!({"key": "x", "field": "level", "aggregation": "avg", "groupBy": group_by});
        let body = json!({
            "bucketId": bucket.id, "dataSourceId": source, "name": "high", "naturalLanguageQuery": "level is high",
            "evaluation": {"intervalSeconds": 60, "windowSeconds": 3_600, "inputs": [input], "parameters": {}},
        });
        bucket
            .client
            .post("/api/alerts")
            .key(&account.admin)
            .json(&body)
            .send()
    };
    assert_faults(&rule("365d"), &["evaluation/inputs/0/groupBy"], "small print A2");
    rule("15m").expect(201, "small print A2: an input's groupBy is any step");
    let due = bucket
        .client
        .get("/api/evaluations/due")
        .key(&account.admin)
        .send();
    let due = due.expect(200, "contract 6: due rules");
    let query = &due["evaluations"][0]["inputs"][0]["query"];
    assert_eq!(query["groupBy"], "15m");
    bucket.query(query);
}
