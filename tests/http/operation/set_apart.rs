//! One bucket whose files fail, without an effect on the others.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::scene;
use crate::support::given::{Account, Bucket};
use crate::support::process::{Server, Setup};
use crate::support::waiting::until;

const CHECKPOINT_BYTES: &str = "1048576";
/// The greatest length of the log while checkpoints keep up: a few files of 1 MiB each.
const LOG_BYTES_MAX: u64 = 4 << 20;

/// Two buckets of two organizations, each with a source.
fn two_buckets(server: &Server) -> [(Bucket, String); 2] {
    [0, 1].map(|_| {
        let bucket = Account::sign_up(&server.client).bucket("plant");
        let source = bucket.source("gauge", &["level"]);
        (bucket, source)
    })
}

fn store(bucket: &Bucket, source: &str, text: &str) {
    let point = json!({"dataSourceId": source, "values": {"level": 1}, "metadata": {"text": text}});
    bucket.single(&point).expect(201, "a point");
}

fn points(bucket: &Bucket) -> Option<u64> {
    let answer = bucket.post_query(&json!({"bucketId": bucket.id, "limit": 10_000, "downsampling": false}));
    (answer.status == 200).then(|| {
        answer.json()["data"]
            .as_array()
            .map_or(0, |rows| rows.len() as u64)
    })
}

fn set_apart(server: &Server) -> Value {
    let ready = server.client.get("/ready").send();
    let body = ready.expect(200, "the others are served");
    body["setApart"].clone()
}

#[test]
fn a_bucket_that_does_not_open_answers_503_and_others_work() {
    let mut server = scene::server();
    let [(failing, failing_source), (other, other_source)] = two_buckets(&server);
    store(&failing, &failing_source, "");
    store(&other, &other_source, "");
    assert!(server.stop().success());
    let (segment, whole) = damage_first_bucket(&server);

    server.launch();
    assert_eq!(set_apart(&server), json!([failing.id]));
    assert_eq!(points(&other), Some(1));
    store(&other, &other_source, "");
    let base = format!("/api/buckets/{}", failing.id);
    let point = json!({"dataSourceId": failing_source, "values": {"level": 2}});
    let refused = [
        failing.post_query(&json!({"bucketId": failing.id})),
        failing.single(&point),
        server.client.get(&base).key(&failing.admin).send(),
        server
            .client
            .get(&format!("{base}/sources"))
            .key(&failing.admin)
            .send(),
    ];
    for answer in refused {
        let body = answer.expect(503, "the bucket is set apart");
        let message = body["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("set apart") && !message.contains("segment"),
            "{answer}"
        );
        assert!(answer.header("retry-after").is_some(), "{answer}");
    }
    let metrics = server.client.get("/metrics").send();
    assert!(
        metrics.text().contains("tidewatch_buckets_set_apart 1\n"),
        "{metrics}"
    );

    assert!(server.stop().success());
    fs::write(segment, whole).unwrap();
    server.launch();
    assert_eq!(set_apart(&server), Value::Null);
    assert_eq!((points(&failing), points(&other)), (Some(1), Some(2)));
}

/// Regression: one bucket prevented the shared log from being trimmed: 503 for every client, permanently.
#[test]
fn a_bucket_set_apart_does_not_prevent_trimming_the_log() {
    let setup = Setup::unlimited().set("storage.checkpoint_bytes", CHECKPOINT_BYTES);
    let mut server = Server::start_with(setup);
    let [(failing, failing_source), (other, other_source)] = two_buckets(&server);
    store(&failing, &failing_source, "");
    store(&other, &other_source, "");
    assert!(server.stop().success());
    let (segment, whole) = damage_first_bucket(&server);
    server.launch();

    let text = "x".repeat(16_000);
    let mut stored = 1;
    (0..600).for_each(|_| {
        store(&other, &other_source, &text);
        stored += 1;
    });
    until("the log is trimmed", || {
        let metrics = server.client.get("/metrics").send().text();
        let tail = metrics
            .lines()
            .find_map(|line| line.strip_prefix("tidewatch_log_tail_bytes "));
        (tail?.parse::<u64>().ok()? < LOG_BYTES_MAX).then_some(())
    });
    assert_eq!(set_apart(&server), json!([failing.id]));
    assert_eq!(points(&other), Some(stored));
    assert_eq!(points(&failing), None);
    server.kill();
    fs::write(segment, whole).unwrap();
    server.launch();
    assert_eq!((points(&failing), points(&other)), (Some(1), Some(stored)));
}

/// Damages the entries of the bucket with the lowest ordinal in the only segment; returns its path and original bytes.
fn damage_first_bucket(server: &Server) -> (PathBuf, Vec<u8>) {
    let segments = scene::files(&server.data_dir().join("segments"));
    let [segment] = segments.as_slice() else {
        panic!("one segment: {segments:?}");
    };
    let whole = fs::read(segment).unwrap();
    let number = |at: usize| u64::from_le_bytes(*whole[at..].first_chunk().unwrap()) as usize;
    // The trailer has the offset of the table, whose first row has that of the bucket's entries.
    let table = number(whole.len() - 24);
    let entries = number(table + 24);
    let mut damaged = whole.clone();
    damaged[entries + 2] ^= 1;
    fs::write(segment, damaged).unwrap();
    (segment.clone(), whole)
}
