//! Combined filters, raw and grouped, compared with the naive model.

use serde_json::{Value, json};

use crate::calendar::Unit;
use crate::model::{Grouping, Sample, assert_rows};
use crate::scene::{self, array, column};
use crate::support::time::{DAY, HOUR, SECOND, now_ns, timestamp};

/// A query with a metadata filter cannot use rollups; its answer must still be exact.
#[test]
fn grouped_answers_under_a_metadata_filter_are_exact() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut server, _, bucket) = scene::bucket();
    let sources = [bucket.source("a", &["level"]), bucket.source("b", &["level"])];
    let start = now_ns() / DAY * DAY;
    let samples: Vec<Sample> = (0..2000)
        .map(|_| {
            let at = start + random.i64(0..4 * DAY / SECOND) * SECOND;
            let mut sample = Sample::number(&sources[random.usize(..2)], at, "level", random.f64() * 100.0);
            sample.metadata = random.bool().then(|| json!({"zone": random.i64(0..3)}));
            sample
        })
        .collect();
    bucket.send(&samples.iter().map(Sample::entry).collect::<Vec<_>>());
    for restarted in [false, true] {
        if restarted {
            server.stop();
            server.launch();
        }
        for aggregation in ["avg", "sum", "min", "max", "count"] {
            for unit in [Unit::Minute, Unit::Hour, Unit::Day] {
                let mut grouping = Grouping::new(unit, aggregation);
                grouping.zone = Some(random.i64(0..4));
                grouping.merge = random.bool();
                grouping.from = random.bool().then(|| start + random.i64(0..2 * DAY));
                let rows = array(&bucket.query(&grouping.body()), "/data");
                let context = format!("{} after a stop: {restarted}, seed {seed}", grouping.body());
                assert_rows(&rows, &grouping.rows(&samples), &context);
            }
        }
    }
}

#[test]
fn all_filters_combine() {
    let (_server, _, bucket) = scene::bucket();
    let sources = [
        bucket.source("a", &["level", "depth"]),
        bucket.source("b", &["level", "depth"]),
    ];
    let start = now_ns() / HOUR * HOUR;
    let entry = |nth: i64| {
        let values = if nth % 5 == 0 {
            json!({"depth": nth})
        } else {
            json!({"level": nth, "depth": nth})
        };
        let mut entry =
            crate::support::given::point(&sources[nth as usize % 2], start + nth * SECOND, &values);
        entry["metadata"] = json!({"third": nth % 3 == 0});
        entry
    };
    bucket.send(&(0..300).map(entry).collect::<Vec<Value>>());
    let filters = json!({
        "dataSourceIds": [sources[1]], "fields": ["level"], "metadata": {"third": true},
        "startTime": timestamp(start + 30 * SECOND), "endTime": timestamp(start + 201 * SECOND),
    });
    let expected: Vec<Value> = (30..=201)
        .filter(|nth| nth % 2 == 1 && nth % 3 == 0 && nth % 5 != 0)
        .map(|nth| json!({"level": nth}))
        .collect();
    assert_eq!(
        column(&bucket.rows(&filters), "/values"),
        expected,
        "contract 5: every filter holds"
    );
}
