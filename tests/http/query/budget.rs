//! A query uses the memory that its answer needs and is refused beyond its budget: the server survives, and the error
//! tells the client how to narrow the query.

use std::fs;

use serde_json::{Map, Value, json};

use crate::scene::{self, array};
use crate::support::client::Answer;
use crate::support::given::{Bucket, point};
use crate::support::process::{Server, Setup};
use crate::support::time::{DAY, MINUTE, SECOND, now_ns, timestamp};

const FIELDS: usize = 200;
const POINTS: i64 = 60_000;
const INTERVAL: i64 = 30 * SECOND;
const MEMORY_BYTES_MAX: &str = "4194304";
/// What the process may take beyond the memory of a query: pages of the program and of segments, opened blocks and the
/// allocator's own. It is about 45 MB in a process that has just started; every cell of every field would be 300 MB.
const HELD_BYTES_MAX: u64 = 100 << 20;

fn field(nth: i64) -> String {
    format!("f{:03}", nth % FIELDS as i64)
}

/// Declares many fields and sends points with one of them each, from the beginning of a minute.
fn fill_wide_source(bucket: &Bucket) -> i64 {
    let schema: Map<String, Value> = (0..FIELDS as i64)
        .map(|nth| (field(nth), json!({"type": "number"})))
        .collect();
    let source = bucket.source_with(&json!({"name": "wide", "schema": schema}));
    let start = (now_ns() - 25 * DAY) / MINUTE * MINUTE;
    for from in (0..POINTS).step_by(1_000) {
        let points: Vec<Value> = (from..from + 1_000)
            .map(|nth| point(&source, start + nth * INTERVAL, &json!({field(nth): nth})))
            .collect();
        bucket.send(&points);
    }
    start
}

/// Peak memory of the process in bytes.
pub(super) fn peak_bytes(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

#[track_caller]
fn assert_too_large(answer: &Answer) {
    assert_eq!(
        answer.status, 400,
        "contract 11: over the budget is 400: {answer}"
    );
    let body: Value = serde_json::from_str(&answer.text()).unwrap();
    assert_eq!(body["error"], "Validation Error");
    let message = body["message"].as_str().unwrap();
    for way_out in [
        "query.memory_bytes_max",
        "shorter range",
        "coarser unit",
        "fewer fields",
        "smaller limit",
    ] {
        assert!(
            message.contains(way_out),
            "contract 11: names what to narrow: {message}"
        );
    }
}

/// Regression: a grouped query held every cell with every declared field, regardless of `limit`.
#[test]
fn a_wide_source_costs_only_the_requested_fields() {
    for in_segments in [false, true] {
        let setup = |checkpoint_bytes| {
            Setup::unlimited()
                .set("query.memory_bytes_max", MEMORY_BYTES_MAX)
                .set("storage.checkpoint_bytes", checkpoint_bytes)
        };
        let checkpoint_bytes = if in_segments { "65536" } else { "67108864" };
        let (mut server, _, bucket) = scene::bucket_on(Server::start_with(setup(checkpoint_bytes)));
        let start = fill_wide_source(&bucket);
        if in_segments {
            // Checkpoints and merges go on behind the last write, and hold up to 60 MB: they must not happen beside the
            // queries.
            server.stop();
            server.configure(setup("67108864"));
            server.launch();
        }
        let before = peak_bytes(&server);
        for (sort, first) in [("asc", 0), ("desc", POINTS / 2 - 1)] {
            for offset in [0, 10] {
                let answer = bucket.query(&json!({
                    "aggregation": "avg", "groupBy": "minute", "limit": 1, "offset": offset, "sort": sort,
                }));
                let minute = if sort == "asc" {
                    first + offset
                } else {
                    first - offset
                };
                let rows = array(&answer, "/data");
                assert_eq!(rows.len(), 1);
                assert_eq!(
                    rows[0]["timestamp"],
                    timestamp(start + minute * MINUTE),
                    "{sort} {offset}"
                );
                let (one, other) = (2 * minute, 2 * minute + 1);
                assert_eq!(rows[0]["values"], json!({field(one): one, field(other): other}));
                assert_eq!(answer["metadata"]["hasMore"], true);
            }
        }
        let all = json!({"aggregation": "count", "groupBy": "minute", "limit": 1_000});
        assert_eq!(array(&bucket.query(&all), "/data").len(), 1_000);
        // Most of these rows would have to be kept to skip them.
        assert_too_large(&bucket.post_query(
            &json!({"aggregation": "avg", "groupBy": "minute", "offset": 28_000, "limit": 10_000}),
        ));
        let held = peak_bytes(&server).saturating_sub(before);
        assert!(
            held < HELD_BYTES_MAX,
            "{held} bytes more for queries of {MEMORY_BYTES_MAX}"
        );
        let months = bucket.query(&json!({"aggregation": "count", "groupBy": "month"}));
        let counted: i64 = array(&months, "/data")
            .iter()
            .flat_map(|row| row["values"].as_object().unwrap().values())
            .filter_map(Value::as_i64)
            .sum();
        assert_eq!(counted, POINTS, "the server lives and answers");
        let page = bucket.query(&json!({"limit": 10, "sort": "desc", "downsampling": false}));
        assert_eq!(array(&page, "/data").len(), 10);
    }
}
