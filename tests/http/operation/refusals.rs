//! While writes are refused, `/ready` reports it with the reason; checkpoints refused by the disk are retried with
//! delays.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use super::metrics::Metrics;
use crate::scene;
use crate::support::client::Answer;
use crate::support::given::point;
use crate::support::given::{Account, Bucket};
use crate::support::process::{Server, Setup};
use crate::support::time::now_ns;
use crate::support::waiting::until;

const FAILED: &str = "tidewatch_checkpoints_total{outcome=\"failed\"}";

/// Sends about 40 KB of log.
fn send(bucket: &Bucket, source: &str) -> Answer {
    let points: Vec<Value> = (0..10)
        .map(|number| {
            let mut point = point(source, now_ns(), &json!({"level": number}));
            // Unique and incompressible: it takes as much space in the log as in memory.
            let note: String = std::iter::repeat_with(fastrand::alphanumeric)
                .take(4_000)
                .collect();
            point["metadata"] = json!({"note": note});
            point
        })
        .collect();
    let body = json!({"bucketId": bucket.id, "dataPoints": points});
    let request = bucket.client.post("/api/data/batch").key(&bucket.admin);
    request.json(&body).send()
}

/// The directory of segments cannot be created, so that checkpoints fail until writes are refused; then it is repaired.
fn refuse_until_repaired(setup: Setup, why: &str) {
    let mut server = Server::start_with(setup);
    let bucket = Account::sign_up(&server.client).bucket("tides");
    let source = bucket.source("gauge", &["level"]);
    let obstacle = server.data_dir().join("segments");
    fs::write(&obstacle, "in the way").unwrap();

    let began = Instant::now();
    let refused = (0..1_000)
        .map(|_| send(&bucket, &source))
        .find(|it| it.status != 201);
    let refused = refused.unwrap_or_else(|| panic!("writes are never refused"));
    assert_eq!(refused.status, 503, "{refused}");
    for _ in 0..20 {
        assert_eq!(send(&bucket, &source).status, 503);
    }
    let ready = server.client.get("/ready").send();
    let body = ready.expect(503, "writes are refused");
    let message = body["message"].as_str().unwrap_or_default();
    assert!(message.contains(why), "{why}: {ready}");
    assert!(ready.header("retry-after").is_some(), "{ready}");
    let health = server.client.get("/health").send();
    assert_eq!(health.status, 200, "the process lives all the same: {health}");
    let tries = until("a checkpoint has failed", || {
        let tries = Metrics::of(&server.client).value(FAILED);
        (tries > 0.0).then_some(tries)
    });
    let tries_max = 2.0 + began.elapsed().as_secs_f64() / 2.0;
    assert!((1.0..=tries_max).contains(&tries), "{tries} failed tries");

    fs::remove_file(&obstacle).unwrap();
    until("a checkpoint has made room without a request", || {
        (server.client.get("/ready").send().status == 200).then_some(())
    });
    let taken = send(&bucket, &source);
    assert_eq!(taken.status, 201, "who is ready takes points: {taken}");
    assert!(server.stop().success(), "the last checkpoint is done");
}

#[test]
fn a_log_that_waits_for_a_checkpoint_is_not_ready() {
    let setup = Setup::unlimited()
        .set("storage.checkpoint_bytes", "65536")
        .set("wal.tail_bytes_max", "1048576");
    refuse_until_repaired(setup, "the log waits for a checkpoint");
}

#[test]
fn memory_that_waits_for_a_checkpoint_is_not_ready() {
    let setup = Setup::unlimited().set("storage.memory_bytes_max", "16777216");
    refuse_until_repaired(setup, "memory of points");
}

#[test]
fn the_last_checkpoint_of_a_stop_is_not_delayed_by_backoff() {
    let mut server = scene::server_with("storage.checkpoint_bytes", "65536");
    let bucket = Account::sign_up(&server.client).bucket("tides");
    let source = bucket.source("gauge", &["level"]);
    let obstacle = server.data_dir().join("segments");
    fs::write(&obstacle, "in the way").unwrap();
    until("a checkpoint has failed", || {
        send(&bucket, &source);
        (Metrics::of(&server.client).value(FAILED) > 0.0).then_some(())
    });
    fs::remove_file(&obstacle).unwrap();
    assert!(server.stop().success(), "the last checkpoint is done");
}
