//! `limit` and `offset` compared with the complete list.

use serde_json::{Value, json};

use crate::scene::{self, array, column};
use crate::support::given::{Bucket, point};
use crate::support::time::{DAY, MINUTE, SECOND, now_ns};

/// Sends points of two sources, with ties and late ones, some of which a restart seals.
fn fill(bucket: &Bucket, random: &mut fastrand::Rng, count: i64) {
    let sources = [bucket.source("a", &["level"]), bucket.source("b", &["level"])];
    let start = now_ns();
    let entry = |number: i64, random: &mut fastrand::Rng| {
        let late = if random.u8(..) < 40 {
            random.i64(0..DAY) / SECOND * SECOND
        } else {
            0
        };
        point(
            &sources[random.usize(..2)],
            start + number / 3 * SECOND - late,
            &json!({"level": number}),
        )
    };
    let entries: Vec<Value> = (0..count).map(|number| entry(number, random)).collect();
    bucket.send(&entries);
}

#[test]
fn raw_pages_are_slices_of_the_whole() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut server, _, bucket) = scene::bucket();
    fill(&bucket, &mut random, 3000);
    server.stop();
    server.launch();
    for sort in ["asc", "desc"] {
        let page = |limit: usize, offset: usize| {
            let body = json!({"limit": limit, "offset": offset, "sort": sort, "downsampling": false});
            let answer = bucket.query(&body);
            (
                column(&array(&answer, "/data"), "/_id"),
                answer["metadata"].clone(),
            )
        };
        let (all, metadata) = page(10_000, 0);
        assert_eq!(all.len(), 3000, "limit 10000 shows all");
        assert_eq!(metadata["hasMore"], false, "nothing is behind the last row");
        for nth in 0..60 {
            let limit = [1, 2, 99, 1000, 3000, random.usize(1..3000)][nth % 6];
            let offset = [0, 1, 2999, 3000, 3001, random.usize(0..3000)][random.usize(..6)];
            let (found, metadata) = page(limit, offset);
            let end = (offset + limit).min(all.len());
            let expected = all.get(offset..end).unwrap_or_default();
            let context = format!("limit {limit}, offset {offset}, {sort}, seed {seed}");
            assert_eq!(found, expected, "spec: offset is a skip count ({context})");
            assert_eq!(
                metadata["count"],
                expected.len(),
                "contract 5: count is the number of rows ({context})"
            );
            assert_eq!(metadata["limit"], limit, "spec: metadata.limit ({context})");
            assert_eq!(metadata["offset"], offset, "spec: metadata.offset ({context})");
            assert_eq!(
                metadata["hasMore"],
                offset + limit < all.len(),
                "spec: metadata.hasMore ({context})"
            );
            let cursor = metadata["nextCursor"].is_string();
            assert_eq!(
                cursor,
                offset + limit < all.len(),
                "contract 5: nextCursor with more to come ({context})"
            );
        }
    }
}

#[test]
fn default_limits_are_100_raw_and_10000_grouped() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let start = now_ns() / MINUTE * MINUTE;
    let points: Vec<Value> = (0..10_500)
        .map(|nth| point(&source, start + nth * MINUTE, &json!({"level": nth})))
        .collect();
    bucket.send(&points);
    let raw = bucket.query(&json!({"downsampling": false}));
    assert_eq!(
        array(&raw, "/data").len(),
        100,
        "contract 5: limit absent: 100 for raw rows"
    );
    assert_eq!(
        raw["metadata"]["limit"], 100,
        "contract 5: limit absent: 100 for raw rows"
    );
    let most = bucket.query(&json!({"downsampling": false, "limit": 10_000}));
    assert_eq!(array(&most, "/data").len(), 10_000, "spec: limit max 10000");
    assert_eq!(most["metadata"]["hasMore"], true, "500 points follow");

    let by_minute = json!({"aggregation": "max", "groupBy": "minute"});
    let grouped = bucket.query(&by_minute);
    let rows = array(&grouped, "/data");
    assert_eq!(
        rows.len(),
        10_000,
        "contract 5: grouped answers give all rows up to 10000"
    );
    let metadata = &grouped["metadata"];
    assert_eq!(
        (&metadata["count"], &metadata["hasMore"]),
        (&json!(10_000), &json!(true)),
        "contract 5: count and hasMore"
    );
    let mut rest = by_minute.clone();
    rest["offset"] = json!(10_000);
    let rest = bucket.query(&rest);
    assert_eq!(array(&rest, "/data").len(), 500, "the rest follows the offset");
    assert_eq!(
        rest["metadata"]["hasMore"], false,
        "nothing is behind the last row"
    );
    let numbers: Vec<i64> = [rows, array(&rest, "/data")]
        .concat()
        .iter()
        .filter_map(|row| row["level"].as_i64())
        .collect();
    assert_eq!(
        numbers,
        (0..10_500).collect::<Vec<_>>(),
        "pages of a grouped answer put together are the whole"
    );
}

#[test]
fn grouped_pages_are_slices_of_the_whole() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (_server, _, bucket) = scene::bucket();
    fill(&bucket, &mut random, 1500);
    for (sort, merge) in [("asc", false), ("desc", false), ("asc", true), ("desc", true)] {
        let query = |paging: &Value| {
            let mut body =
                json!({"aggregation": "sum", "groupBy": "minute", "sort": sort, "mergeSources": merge});
            for (name, value) in paging.as_object().into_iter().flatten() {
                body[name] = value.clone();
            }
            bucket.query(&body)
        };
        let all = array(&query(&json!({})), "/data");
        for _ in 0..12 {
            let (limit, offset) = (random.usize(1..all.len() + 5), random.usize(0..all.len() + 5));
            let page = query(&json!({"limit": limit, "offset": offset}));
            let end = (offset + limit).min(all.len());
            let expected = all.get(offset..end).unwrap_or_default();
            let context = format!("limit {limit}, offset {offset}, {sort}, merge {merge}, seed {seed}");
            assert_eq!(
                array(&page, "/data"),
                expected,
                "spec: pages of grouped rows ({context})"
            );
            let shown = json!([
                page["metadata"]["count"],
                page["metadata"]["limit"],
                page["metadata"]["offset"],
                page["metadata"]["hasMore"]
            ]);
            let right = json!([expected.len(), limit, offset, offset + limit < all.len()]);
            assert_eq!(
                shown, right,
                "contract 5: metadata of a grouped answer ({context})"
            );
        }
    }
}
