//! Series that lose their points and come back, over deletions, checkpoints, restarts and kills.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use serde_json::{Value, json};

use super::{labelled, split_source};
use crate::scene::{self, call};
use crate::support::given::{Account, Bucket};
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

/// A bucket on a server that seals points continuously, and tells when it forgets series.
fn telling_bucket() -> (Server, Account, Bucket) {
    let setup = Setup::unlimited()
        .set("storage.checkpoint_bytes", "65536")
        .set("log.filter", "info,tidewatch::checkpoint=debug");
    scene::bucket_on(Server::start_with(setup))
}

/// How often the running server has told that it has forgotten series.
fn times_told(server: &Server) -> usize {
    let is_told = |line: &&String| line.contains("series without points were forgotten");
    server.output_lines().iter().filter(is_told).count()
}

/// Deletes the points of hosts; returns their number.
#[track_caller]
fn delete(bucket: &Bucket, hosts: &[String]) -> Value {
    let body = json!({"bucketId": bucket.id, "filters": {"dimensions": {"host": hosts}}});
    let answer = call(&bucket.client, &bucket.admin, "POST", "/api/data/delete", &body);
    answer.expect(200, "contract 11: delete")["deletedCount"].clone()
}

/// How points are sent.
#[derive(Clone, Copy)]
enum Sent {
    AsPoints,
    /// Of series that the server remembers by their keys.
    AsLines,
}

/// Sends a value of a source `pods` with each metadata, at that time.
#[track_caller]
fn send(bucket: &Bucket, source: &str, sent: Sent, values: &[(i64, i64, Value)]) {
    match sent {
        Sent::AsPoints => {
            let points = values
                .iter()
                .map(|(at_ns, value, metadata)| labelled(source, *at_ns, *value, metadata));
            bucket.send(&points.collect::<Vec<_>>());
        }
        Sent::AsLines => {
            let lines = values.iter().map(|(at_ns, value, metadata)| {
                let metadata = metadata.as_object().unwrap().iter();
                let tags = metadata.map(|(name, text)| format!(",{name}={}", text.as_str().unwrap()));
                format!("pods{} v={value} {at_ns}\n", tags.collect::<String>())
            });
            let path = format!("/write?bucket={}", bucket.id);
            let request = bucket.client.post(&path).key(&bucket.admin);
            let answer = request.bytes(lines.collect::<String>().as_bytes()).send();
            assert_eq!(answer.status, 204, "{answer}");
        }
    }
}

#[test]
fn a_series_that_lost_its_points_comes_back_with_new_ones_only() {
    let seed = std::env::var("TIDEWATCH_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(12);
    println!("TIDEWATCH_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut server, _, bucket) = telling_bucket();
    let source = split_source(&bucket, "pods", &json!("all"));
    let first_ns = now_ns() - 20 * HOUR;
    let mut model = BTreeMap::<String, BTreeSet<i64>>::new();
    let (mut value, mut forgotten) = (0, 0);
    for round in 0..12 {
        let mut sent = Vec::new();
        for _ in 0..500 {
            // The hosts move on, and some of before come back.
            let host = format!("h{}", random.i64(0..HOSTS) + round * 10);
            let metadata = json!({"host": host, "zone": format!("z{}", value % 3)});
            sent.push((first_ns + value * SECOND, value, metadata));
            model.entry(host).or_default().insert(value);
            value += 1;
        }
        let way = [Sent::AsPoints, Sent::AsLines, Sent::AsLines][random.usize(0..3)];
        send(&bucket, &source, way, &sent);
        let gone: Vec<String> = model.keys().filter(|_| random.u8(0..3) == 0).cloned().collect();
        let deleted = delete(&bucket, &gone);
        let of_gone = gone
            .iter()
            .filter_map(|host| model.remove(host))
            .map(|points| points.len());
        assert_eq!(deleted, of_gone.sum::<usize>());
        forgotten += times_told(&server);
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

/// Hosts come and go on several connections while checkpoints forget those that have gone.
#[test]
fn points_on_their_way_keep_their_series_while_others_are_forgotten() {
    const THREADS: i64 = 4;
    const ROUNDS: i64 = 42;
    let (mut server, _, bucket) = telling_bucket();
    let source = split_source(&bucket, "pods", &json!("all"));
    let first_ns = now_ns() - 20 * HOUR;
    // An organization has one deletion at a time.
    let turn = Mutex::new(());
    let churn = |thread: i64| {
        let mut left = BTreeMap::<String, BTreeSet<i64>>::new();
        for round in 0..ROUNDS {
            // The same few hosts each time, so that those that have gone come back at once.
            let hosts: Vec<String> = (0..3).map(|nth| format!("t{thread}-{nth}")).collect();
            let values = (0..60).map(|nth| (thread * ROUNDS + round) * 60 + nth);
            let of_host = |value: i64| &hosts[(value % 3) as usize];
            let sent = values
                .clone()
                .map(|value| (first_ns + value * SECOND, value, json!({"host": of_host(value)})));
            let way = if thread % 2 == 0 {
                Sent::AsPoints
            } else {
                Sent::AsLines
            };
            send(&bucket, &source, way, &sent.collect::<Vec<_>>());
            for value in values {
                left.entry(of_host(value).clone()).or_default().insert(value);
            }
            let gone = if round % 4 == 3 { &hosts[..] } else { &hosts[..2] };
            let of_gone = gone.iter().filter_map(|host| left.remove(host));
            let _turn = turn.lock();
            assert_eq!(
                delete(&bucket, gone),
                of_gone.map(|points| points.len()).sum::<usize>()
            );
        }
        left
    };
    let model: BTreeMap<String, BTreeSet<i64>> = std::thread::scope(|scope| {
        let churn = &churn;
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || churn(thread)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(points(&bucket), model);
    assert!(times_told(&server) > 0, "no checkpoint has forgotten a series");
    server.kill();
    server.launch();
    assert_eq!(points(&bucket), model);
    assert_eq!(listed(&bucket, &source), model.keys().cloned().collect());
}

/// Regression: while a source had no dimensions, merges dropped the entries of its series, but not from memory. Points that
/// came after the dimensions were back were lost with the next restart.
#[test]
fn points_after_dimensions_were_removed_and_set_again_are_kept() {
    for way in [Sent::AsPoints, Sent::AsLines] {
        check_dimensions_set_again(way);
    }
}

fn check_dimensions_set_again(way: Sent) {
    let (mut server, _, bucket) = telling_bucket();
    let source = split_source(&bucket, "pods", &json!("all"));
    let other = split_source(&bucket, "others", &json!("all"));
    let first_ns = now_ns() - HOUR;
    let send = |source: &str, way: Sent, host: &str, value: i64| {
        let at_ns = first_ns + value * SECOND;
        send(&bucket, source, way, &[(at_ns, value, json!({"host": host}))]);
    };
    let set = |dimensions: &Value| {
        let path = format!("/sources/{source}");
        bucket
            .call("PATCH", &path, &json!({"dimensions": dimensions}))
            .expect(200, "small print A: dimensions of a source without points");
    };
    // The second time the series is there, and may be remembered.
    send(&source, way, "a", 0);
    send(&source, way, "a", 1);
    delete(&bucket, &["a".to_owned()]);
    set(&Value::Null);
    // Each deletion takes a checkpoint, and writes the index of the other source.
    for round in 1..8 {
        send(&other, Sent::AsPoints, &format!("o{round}"), round);
        delete(&bucket, &["nobody".to_owned(), format!("o{round}")]);
    }
    set(&json!("all"));
    send(&source, way, "a", 9);
    server.stop();
    server.launch();
    let expected = BTreeMap::from([("a".to_owned(), BTreeSet::from([9]))]);
    assert_eq!(points(&bucket), expected);
    assert_eq!(listed(&bucket, &source), expected.keys().cloned().collect());
}
