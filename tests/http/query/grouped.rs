//! Grouped results are exact: compared with the naive model for random points, late and out of order, with random
//! ranges, before and after restarts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::calendar::{UNITS, Unit, midnight};
use crate::model::{Grouping, Sample, assert_rows};
use crate::scene::{self, array};
use crate::support::given::Bucket;
use crate::support::process::Server;
use crate::support::time::{DAY, HOUR, MINUTE, SECOND, date_of, now_ns};

const AGGREGATIONS: [&str; 5] = ["avg", "sum", "min", "max", "count"];

fn sources(bucket: &Bucket) -> Vec<String> {
    let create = |nth: usize| {
        bucket.source_with(&json!({
            "name": format!("source {nth}"),
            "schema": {
                "level": {"type": "number"}, "depth": {"type": "number"}, "state": {"type": "string"},
                "valid": {"type": "boolean"},
            },
        }))
    };
    (0..3).map(create).collect()
}

/// Random points between two instants, most at whole seconds, half of them close to the previous one, so that cells
/// contain several points.
fn samples(
    random: &mut fastrand::Rng,
    sources: &[String],
    (from, until): (i64, i64),
    count: usize,
) -> Vec<Sample> {
    let mut around = from;
    let mut samples = Vec::with_capacity(count);
    while samples.len() < count {
        if random.bool() {
            around = random.i64(from..until);
        } else {
            around = (around + random.i64(-90 * SECOND..90 * SECOND)).clamp(from, until - 1);
        }
        let at = match random.u8(..4) {
            0 => Unit::Minute.start(around),
            1 => around,
            _ => around / SECOND * SECOND,
        };
        let mut values = BTreeMap::new();
        if random.u8(..) < 220 {
            values.insert("level", json!(f64::from(random.i32(-2_000..100_000)) / 100.0));
        }
        // Gaps of up to a third of the time, so that whole cells are empty.
        if random.bool() && (at - from).div_euclid((until - from) / 30) % 3 != 0 {
            values.insert("depth", json!(random.f64() * 1e4 + 1.0));
        }
        if values.is_empty() || random.u8(..) < 60 {
            values.insert("state", json!(["ebb", "flow", "slack"][random.usize(..3)]));
        }
        if random.u8(..) < 60 {
            values.insert("valid", json!(random.bool()));
        }
        let metadata = (random.u8(..) < 100).then(|| json!({"zone": random.i64(0..3)}));
        samples.push(Sample {
            source: sources[random.usize(..sources.len())].clone(),
            at,
            values,
            metadata,
        });
    }
    samples
}

fn grouping(
    random: &mut fastrand::Rng,
    samples: &[Sample],
    sources: &[String],
    (from, until): (i64, i64),
) -> Grouping {
    let mut grouping = Grouping::new(UNITS[random.usize(..5)], AGGREGATIONS[random.usize(..5)]);
    let bound = |random: &mut fastrand::Rng| match random.u8(..5) {
        0 => None,
        1 => Some(samples[random.usize(..samples.len())].at),
        2 => Some(UNITS[random.usize(..5)].start(random.i64(from..until))),
        3 => Some(UNITS[random.usize(..5)].start(random.i64(from..until)) - 1),
        _ => Some(random.i64(from..until)),
    };
    (grouping.from, grouping.until) = (bound(random), bound(random));
    if let (Some(from), Some(until)) = (grouping.from, grouping.until)
        && from >= until
    {
        (grouping.from, grouping.until) = (Some(until), Some(from + 1));
    }
    grouping.merge = random.bool();
    grouping.descending = random.u8(..) < 80;
    grouping.sources = sources.iter().filter(|_| random.u8(..) < 90).cloned().collect();
    if random.u8(..) < 100 {
        let fields: &[&'static str] = if grouping.aggregation == "count" {
            &["level", "depth", "state", "valid"]
        } else {
            &["level", "depth"]
        };
        grouping.fields = fields.iter().filter(|_| random.bool()).copied().collect();
    }
    grouping.zone = (random.u8(..) < 50).then(|| random.i64(0..3));
    grouping
}

/// Sends the points out of order in batches of random size, with restarts in between, and runs random queries.
fn check((mut server, bucket): (Server, Bucket), from: i64, until: i64, count: usize) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let sources = sources(&bucket);
    let mut samples = samples(&mut random, &sources, (from, until), count);
    // Mostly in order; one in five has a random delay.
    samples.sort_by_key(|sample| sample.at);
    let late: Vec<Sample> = (0..count / 5)
        .map(|_| samples.remove(random.usize(..samples.len())))
        .collect();
    for sample in late {
        samples.insert(random.usize(..=samples.len()), sample);
    }

    let check_query = |random: &mut fastrand::Rng, samples: &[Sample]| {
        let grouping = grouping(random, samples, &sources, (from, until));
        let answer = bucket.query(&grouping.body());
        let context = format!("seed {seed}, {} points, {}", samples.len(), grouping.body());
        assert_rows(&array(&answer, "/data"), &grouping.rows(samples), &context);
    };
    let mut sent = 0;
    while sent < count {
        let part = &samples[sent..(sent + random.usize(1..500)).min(count)];
        bucket.send(&part.iter().map(Sample::entry).collect::<Vec<Value>>());
        let before = sent;
        sent += part.len();
        let passed = |share: usize| before < share && sent >= share;
        if passed(count / 3) {
            server.stop();
            server.launch();
        } else if passed(count * 2 / 3) {
            server.kill();
            server.launch();
        }
        check_query(&mut random, &samples[..sent]);
    }
    for restart in 0..3 {
        for _ in 0..40 {
            check_query(&mut random, &samples);
        }
        if restart == 0 {
            server.kill();
        } else {
            server.stop();
        }
        server.launch();
    }
}

fn unsealed() -> (Server, Bucket) {
    let (server, _, bucket) = scene::bucket();
    (server, bucket)
}

fn sealing() -> (Server, Bucket) {
    let (server, _, bucket) = scene::sealing_bucket();
    (server, bucket)
}

/// Minutes with many points.
#[test]
fn over_half_an_hour() {
    let from = now_ns() / HOUR * HOUR;
    check(unsealed(), from, from + 30 * MINUTE, 3000);
}

/// The same in blocks that are merged repeatedly.
#[test]
fn over_half_an_hour_in_segments() {
    let from = now_ns() / HOUR * HOUR;
    check(sealing(), from, from + 30 * MINUTE, 9000);
}

/// Hours and days up to now, mostly in the past.
#[test]
fn over_three_weeks_ending_now() {
    let until = now_ns() / SECOND * SECOND;
    check(sealing(), until - 21 * DAY, until, 6000);
}

/// Weeks, months, a leap day and five year boundaries. All in the future: batches accept nothing older than 30 days.
#[test]
fn over_five_years() {
    let year = date_of(now_ns() / DAY).0 + 1;
    let (from, until) = (midnight(year, 11, 20), midnight(year + 5, 3, 10));
    check(unsealed(), from, until, 3000);
}

/// Includes a year that is divisible by 4 and not a leap year. In the future as well.
#[test]
fn over_the_turn_of_the_century() {
    let year = (date_of(now_ns() / DAY).0 / 100 + 1) * 100;
    let (from, until) = (midnight(year - 1, 12, 25), midnight(year, 3, 10));
    check(sealing(), from, until, 3000);
}
