//! What readers see during writes.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use serde_json::{Value, json};

use crate::scene::{self, array};
use crate::support::given::{Bucket, point};
use crate::support::time::{HOUR, SECOND, now_ns};

const BATCH: i64 = 90;

fn counted(bucket: &Bucket) -> i64 {
    let query = json!({"aggregation": "count", "groupBy": "hour", "mergeSources": true});
    let rows = array(&bucket.query(&query), "/data");
    rows.iter()
        .filter_map(|row| row["values"]["level"].as_i64())
        .sum()
}

/// Batches over three sources, some of them late: every count and every list of raw rows contains only whole batches.
#[test]
fn a_batch_is_visible_atomically() {
    let (_server, _, bucket) = scene::bucket();
    let sources = [
        bucket.source("a", &["level"]),
        bucket.source("b", &["level"]),
        bucket.source("c", &["level"]),
    ];
    let start = now_ns() / HOUR * HOUR;
    let acknowledged = AtomicI64::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for batch in 0..40 {
                let late = if batch % 3 == 0 { 48 * HOUR } else { 0 };
                let entry = |nth: i64| {
                    let at = start - late + (batch * BATCH + nth) * SECOND;
                    point(&sources[(nth % 3) as usize], at, &json!({"level": 1}))
                };
                bucket.send(&(0..BATCH).map(entry).collect::<Vec<Value>>());
                acknowledged.fetch_add(BATCH, Ordering::SeqCst);
            }
            done.store(true, Ordering::SeqCst);
        });
        let sentence = "contract 4: a batch's accepted entries appear together, or not at all";
        while !done.load(Ordering::SeqCst) {
            let before = acknowledged.load(Ordering::SeqCst);
            let count = counted(&bucket);
            assert_eq!(
                count % BATCH,
                0,
                "{sentence} (grouped over several sources and cells): {count}"
            );
            assert!(
                count >= before,
                "what was acknowledged is counted: {count} after {before} acknowledgements"
            );
            let rows = bucket.rows(&json!({})).len() as i64;
            assert_eq!(rows % BATCH, 0, "{sentence} (raw): {rows}");
            assert!(
                rows >= count,
                "what was seen once stays: {rows} rows after a count of {count}"
            );
        }
    });
    assert_eq!(
        counted(&bucket),
        40 * BATCH,
        "every acknowledged point is counted in the end"
    );
}

/// Many concurrent connections to many sources and buckets: each acknowledged point is present once.
#[test]
fn concurrent_writes_are_neither_lost_nor_doubled() {
    let (mut server, account, bucket) = scene::bucket();
    let buckets = [bucket, account.bucket("second"), account.bucket("third")];
    let sources: Vec<Vec<String>> = buckets
        .iter()
        .map(|bucket| {
            (0..3)
                .map(|nth| bucket.source(&format!("gauge {nth}"), &["level"]))
                .collect()
        })
        .collect();
    let start = now_ns();
    std::thread::scope(|scope| {
        for writer in 0..8_i64 {
            let (buckets, sources) = (&buckets, &sources);
            scope.spawn(move || {
                for nth in 0..40 {
                    let number = writer * 1000 + nth;
                    let of = (number % 3) as usize;
                    let source = &sources[of][(number / 3 % 3) as usize];
                    let point = point(source, start + number * SECOND, &json!({"level": number}));
                    buckets[of].single(&point).expect(201, "a point under load");
                }
            });
        }
    });
    let numbers: Vec<i64> = (0..8)
        .flat_map(|writer| (0..40).map(move |nth| writer * 1000 + nth))
        .collect();
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        let rows: Vec<Value> = buckets
            .iter()
            .flat_map(|bucket| bucket.rows(&json!({})))
            .collect();
        let mut found: Vec<i64> = rows
            .iter()
            .filter_map(|row| row["values"]["level"].as_i64())
            .collect();
        found.sort_unstable();
        assert_eq!(
            found, numbers,
            "contract 4: acknowledged means durable, each once (after a kill: {restarted})"
        );
    }
}
