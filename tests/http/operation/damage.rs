//! A damaged block of points: queries that need it fail, it is reported to the operator, and nothing else is affected.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::scene::{self, array, call};
use crate::support::given::{Account, Bucket, point};
use crate::support::process::Server;
use crate::support::time::{HOUR, MINUTE, now_ns};
use crate::support::waiting::until;

/// Lengths of the magic, and of the head before a block.
const MAGIC_BYTES: usize = 8;
const HEAD_BYTES: usize = 12;
/// Hours with one point a minute, which fit into one block.
const HOURS: i64 = 48;

/// A bucket with one source, whose points are in one block of the only segment; returns also the path of that file.
fn one_block(server: &mut Server, account: &Account) -> (Bucket, String, PathBuf) {
    let bucket = account.bucket("plant");
    let source = bucket.source("gauge", &["level"]);
    let newest_ns = now_ns() - MINUTE;
    let points =
        (0..HOURS * 60).map(|minute| point(&source, newest_ns - minute * MINUTE, &json!({"level": minute})));
    bucket.send(&points.collect::<Vec<Value>>());
    assert!(server.stop().success());
    let segments = scene::files(&server.data_dir().join("segments"));
    let [segment] = segments.as_slice() else {
        panic!("one segment: {segments:?}");
    };
    (bucket, source, segment.clone())
}

/// Flips a bit in the first section of the first block, that of the timestamps.
fn damage_first_block(segment: &PathBuf) {
    let mut bytes = fs::read(segment).unwrap();
    let block = MAGIC_BYTES + HEAD_BYTES;
    let header_bytes = u32::from_le_bytes(*bytes[block..].first_chunk().unwrap()) as usize;
    bytes[block + 8 + header_bytes + 3] ^= 1;
    fs::write(segment, bytes).unwrap();
}

fn metric(server: &Server, name: &str) -> u64 {
    let metrics = server.client.get("/metrics").send().text();
    let value = metrics
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

/// Regression: the log line named neither file nor bucket, and `/ready` and `/metrics` showed nothing.
#[test]
fn a_damaged_block_is_reported_logged_and_counted() {
    let mut server = scene::server();
    let account = Account::sign_up(&server.client);
    let (bucket, source, segment) = one_block(&mut server, &account);
    damage_first_block(&segment);
    server.launch();
    let ready = server
        .client
        .get("/ready")
        .send()
        .expect(200, "no query has read it yet");
    assert_eq!(ready["damagedBlocks"], Value::Null);

    for count in 1..=2 {
        let refused = bucket.post_query(&json!({"limit": 10, "downsampling": false}));
        let body = refused.expect(500, "its rows do not read");
        let id = body["requestId"].as_str().unwrap_or_default().to_owned();
        assert!(
            !refused.text().contains("segment"),
            "nothing of files for clients: {refused}"
        );
        let line = until("the log says why", || {
            server.output_lines().into_iter().find(|line| line.contains(&id))
        });
        let at = format!("offset {}", MAGIC_BYTES + HEAD_BYTES);
        for word in [segment.to_str().unwrap(), &at, &bucket.id, &source] {
            assert!(line.contains(word), "{word} is not in: {line}");
        }
        assert_eq!(metric(&server, "tidewatch_damaged_reads_total"), count);
        assert_eq!(metric(&server, "tidewatch_damaged_blocks"), 1, "it is one block");
    }
    let ready = server.client.get("/ready").send().expect(200, "writes are taken");
    assert_eq!(ready["damagedBlocks"], 1);
    bucket
        .single(&json!({"dataSourceId": source, "values": {"level": 1}}))
        .expect(201, "writes are taken");
}

/// Regression: one damaged block of one bucket made the overview of the whole organization a 500.
#[test]
fn a_damaged_block_does_not_affect_lists_and_the_overview() {
    let mut server = scene::server();
    let account = Account::sign_up(&server.client);
    let (bucket, source, segment) = one_block(&mut server, &account);
    damage_first_block(&segment);
    server.launch();
    let other = account.bucket("other");
    let other_source = other.source("gauge", &["level"]);
    other.send(&[point(&other_source, now_ns() - HOUR, &json!({"level": 1}))]);

    // The beginning of the day is within the block.
    let overview = || {
        let answer = call(
            &account.client,
            &account.admin,
            "GET",
            "/api/analytics/overview",
            &Value::Null,
        );
        answer.expect(200, "the other buckets have nothing to do with it")["overview"].clone()
    };
    let whole = overview();
    assert_eq!(
        whole["totals"]["dataPoints"],
        HOURS * 60 + 1,
        "counted without reading the block"
    );
    assert_eq!(whole["recentActivity"]["dataPointsLast24h"], 1, "what reads");
    assert_eq!(whole["incompleteBuckets"], json!([bucket.id]));
    assert_eq!(metric(&server, "tidewatch_damaged_blocks"), 1);
    assert_eq!(
        metric(&server, "tidewatch_damaged_reads_total"),
        0,
        "no query failed"
    );
    until("the log names the file", || {
        let lines = server.output_lines();
        lines
            .iter()
            .any(|line| line.contains(segment.to_str().unwrap()))
            .then_some(())
    });

    // A shorter retention.
    bucket
        .call("PATCH", "", &json!({"retentionDays": 1}))
        .expect(200, "a shorter retention");
    let listed = bucket
        .call("GET", "/sources", &Value::Null)
        .expect(200, "the list of sources");
    assert_eq!(array(&listed, "/dataSources")[0]["_id"], json!(source));
    bucket.call("GET", "", &Value::Null).expect(200, "the bucket");
    let buckets = call(
        &account.client,
        &account.admin,
        "GET",
        "/api/buckets",
        &Value::Null,
    );
    assert_eq!(
        array(&buckets.expect(200, "the list of buckets"), "/buckets").len(),
        2
    );
    let overview = overview();
    assert_eq!(overview["totals"]["dataPoints"], 1);
    assert_eq!(overview["incompleteBuckets"], json!([bucket.id]));
}
