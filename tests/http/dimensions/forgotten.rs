//! Series that lose their points and come back, over deletions, checkpoints, restarts and kills.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{labelled, split_source};
use crate::scene::{self, call};
use crate::support::given::Bucket;
use crate::support::process::{Server, Setup};
use crate::support::time::{HOUR, SECOND, now_ns};

const HOSTS: i64 = 40;

/// The values of the points by host.
#[track_caller]
fn points(bucket: &Bucket) -> BTreeMap<String, BTreeSet<i64>> {
    let mut found = BTreeMap::<String, BTreeSet<i64>>::new();
    for row in bucket.rows(&json!({})) {
        let host = row["metadata"]["host"].as_str().unwrap().to_owned();
        let is_new = found
            .entry(host)
            .or_default()
            .insert(row["values"]["v"].as_i64().unwrap());
        assert!(is_new, "once: {row}");
    }
    found
}

/// The hosts that the listing of series has.
#[track_caller]
fn listed(bucket: &Bucket, source: &str) -> BTreeSet<String> {
    let path = format!("/sources/{source}/series?limit=1000");
    let answer = bucket
        .call("GET", &path, &Value::Null)
        .expect(200, "small print C: series");
    let series = answer["series"].as_array().unwrap().iter();
    series
        .map(|series| series["dimensions"]["host"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_series_that_lost_its_points_comes_back_with_new_ones_only() {
    let seed = std::env::var("TIDEWATCH_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(12);
    println!("TIDEWATCH_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let setup = Setup::unlimited()
        .set("storage.checkpoint_bytes", "65536")
        .set("log.filter", "info,tidewatch::checkpoint=debug");
    let (mut server, _, bucket) = scene::bucket_on(Server::start_with(setup));
    let source = split_source(&bucket, "pods", &json!("all"));
    let first_ns = now_ns() - 20 * HOUR;
    let mut model = BTreeMap::<String, BTreeSet<i64>>::new();
    let (mut value, mut forgotten) = (0, 0);
    for round in 0..12 {
        let mut sent = Vec::new();
        for _ in 0..500 {
            // The hosts move on, and some of before come back.
            let host = format!("h{}", random.i64(0..HOSTS) + round * 10);
            sent.push(labelled(
                &source,
                first_ns + value * SECOND,
                value,
                &json!({"host": host, "zone": format!("z{}", value % 3)}),
            ));
            model.entry(host).or_default().insert(value);
            value += 1;
        }
        bucket.send(&sent);
        let gone: Vec<String> = model.keys().filter(|_| random.u8(0..3) == 0).cloned().collect();
        let body = json!({"bucketId": bucket.id, "filters": {"dimensions": {"host": gone}}});
        let answer = call(&bucket.client, &bucket.admin, "POST", "/api/data/delete", &body);
        let deleted = answer.expect(200, "contract 11: delete")["deletedCount"].clone();
        let of_gone = gone
            .iter()
            .filter_map(|host| model.remove(host))
            .map(|points| points.len());
        assert_eq!(deleted, of_gone.sum::<usize>());
        let is_told = |line: &String| line.contains("series without points were forgotten");
        forgotten += server.output_lines().iter().filter(|line| is_told(line)).count();
        match random.u8(0..6) {
            0 | 1 => {
                server.kill();
                server.launch();
            }
            2 | 3 => {
                server.stop();
                server.launch();
            }
            _ => {}
        }
        assert_eq!(points(&bucket), model, "round {round}");
        assert_eq!(listed(&bucket, &source), model.keys().cloned().collect());
    }
    assert!(forgotten > 0, "no checkpoint has forgotten a series");
}
