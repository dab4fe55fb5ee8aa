//! Large answers are produced in pieces as clients read them, and memory for slow clients is bounded.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::budget::peak_bytes;
use crate::boards;
use crate::scene::{self, array};
use crate::support::given::{Account, Bucket, point};
use crate::support::process::{Server, Setup};
use crate::support::time::{MINUTE, SECOND, now_ns};
use crate::support::waiting::until;

const ROWS: i64 = 2_000;
const TEXT_BYTES: usize = 15_000;
const MEMORY_BYTES_MAX: &str = "8388608";

/// A unique and incompressible text.
fn random_text(nth: i64) -> String {
    let mut random = fastrand::Rng::with_seed(nth as u64);
    (0..TEXT_BYTES).map(|_| random.alphanumeric()).collect()
}

fn wide_rows(bucket: &Bucket, rows: i64) {
    let sources = [bucket.source("one", &["nth"]), bucket.source("other", &["nth"])];
    let start = (now_ns() - rows * SECOND) / MINUTE * MINUTE;
    for from in (0..rows).step_by(500) {
        let points: Vec<Value> = (from..rows.min(from + 500))
            .map(|nth| {
                let mut point = point(
                    &sources[usize::from(nth % 3 == 0)],
                    start + nth * SECOND,
                    &json!({"nth": nth}),
                );
                point["metadata"] = json!({"note": random_text(nth)});
                point
            })
            .collect();
        bucket.send(&points);
    }
}

fn assert_is_whole(answer: &Value, rows: i64, context: &str) {
    let found = array(answer, "/data");
    assert_eq!(found.len() as i64, rows, "contract 5: {context}");
    for (nth, row) in (0..).zip(&found) {
        assert_eq!(row["values"]["nth"], nth, "contract 5: in order, {context}");
        assert!(
            row["metadata"]["note"] == random_text(nth),
            "contract 4: as sent, {context}: {nth}"
        );
    }
    assert_eq!(answer["metadata"]["count"], rows, "contract 5: {context}");
}

/// Regression: an answer of 30 MB was built in memory as a whole.
#[test]
fn an_answer_may_exceed_the_memory_of_a_query() {
    for checkpoint_bytes in ["67108864", "1048576"] {
        let setup = Setup::unlimited()
            .set("query.memory_bytes_max", MEMORY_BYTES_MAX)
            .set("storage.checkpoint_bytes", checkpoint_bytes);
        let (_server, _, bucket) = scene::bucket_on(Server::start_with(setup));
        wide_rows(&bucket, ROWS);
        let body = json!({"bucketId": bucket.id, "limit": 10_000, "downsampling": false});
        for coding in ["identity", "gzip", "zstd"] {
            let request = bucket.client.post("/api/data/query").key(&bucket.admin);
            let answer = request.header("Accept-Encoding", coding).json(&body).send();
            assert_eq!(answer.status, 200, "contract 5: {answer}");
            let plain = match coding {
                "zstd" => zstd::stream::decode_all(answer.body.as_slice()).unwrap(),
                "gzip" => {
                    let mut plain = Vec::new();
                    let mut decoder = flate2::read::GzDecoder::new(answer.body.as_slice());
                    decoder.read_to_end(&mut plain).unwrap();
                    plain
                }
                _ => answer.body.clone(),
            };
            let answer: Value = serde_json::from_slice(&plain).unwrap();
            assert_is_whole(&answer, ROWS, coding);
            assert_eq!(answer["metadata"]["hasMore"], false);
            assert!(answer["metadata"].get("nextCursor").is_none());
        }
        // A page that ends within the rows, and the next page.
        let page = bucket.query(&json!({"limit": 700, "offset": 0, "downsampling": false}));
        assert_is_whole(&page, 700, "a page");
        assert_eq!(page["metadata"]["hasMore"], true);
        let cursor = &page["metadata"]["nextCursor"];
        let next = bucket.query(&json!({"limit": 10_000, "cursor": cursor, "downsampling": false}));
        let rows = array(&next, "/data");
        assert_eq!(rows.len() as i64, ROWS - 700);
        assert_eq!(rows[0]["values"]["nth"], 700);
        let behind = bucket.query(&json!({"limit": 10_000, "offset": 1_800, "downsampling": false}));
        assert_eq!(array(&behind, "/data")[0]["values"]["nth"], 1_800);
        assert_eq!(behind["metadata"]["count"], ROWS - 1_800);
    }
}

/// An answer shows the state at its request, however slowly its client reads.
#[test]
fn a_slowly_read_answer_shows_the_state_at_its_request() {
    let (_server, _, bucket) = scene::bucket_on(Server::start_with(Setup::unlimited()));
    wide_rows(&bucket, ROWS);
    let mut stream = send_query(&bucket, 10_000);
    let mut head = [0; 1_024];
    stream.read_exact(&mut head).unwrap();
    assert!(head.starts_with(b"HTTP/1.1 200"));
    let late = bucket.source("late", &["nth"]);
    bucket.send(&[point(&late, now_ns() - 20 * MINUTE, &json!({"nth": -1}))]);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let text = String::from_utf8(rest).unwrap();
    assert!(!text.contains("\"nth\":-1"), "a row of later");
    assert!(
        text.contains(&format!(r#""metadata":{{"count":{ROWS},"#)),
        "the end"
    );
}

/// Sends a query on its own connection; its answer is not read.
fn send_query(bucket: &Bucket, limit: u32) -> TcpStream {
    let body = json!({"bucketId": bucket.id, "limit": limit, "downsampling": false}).to_string();
    let key = format!("X-API-Key: {}\r\n", bucket.admin);
    send_post(bucket, "/api/data/query", &key, &body)
}

/// Sends a request on its own connection; its answer is not read.
fn send_post(bucket: &Bucket, path: &str, headers: &str, body: &str) -> TcpStream {
    let base = bucket.client.base();
    let address = base.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Reads the first line of each answer, and returns how many requests were refused.
fn refused_of(unread: &mut [TcpStream]) -> usize {
    let is_refused = |stream: &mut TcpStream| {
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        match &status {
            b"HTTP/1.1 200" => false,
            b"HTTP/1.1 503" => true,
            other => panic!("{}", String::from_utf8_lossy(other)),
        }
    };
    unread
        .iter_mut()
        .map(is_refused)
        .filter(|refused| *refused)
        .count()
}

/// Regression: answers to the holders of links counted for nobody, so that one link could have any number of them wait.
#[test]
fn unread_answers_to_a_link_count_for_its_organization() {
    let setup = Setup::unlimited().set("server.answer_bytes_max", "16777216");
    let (_server, account, bucket) = scene::bucket_on(Server::start_with(setup));
    wide_rows(&bucket, ROWS);
    let mut panel = boards::panel(&bucket.id);
    panel["query"]["limit"] = json!(10_000);
    let board = boards::create(&account, &boards::body_with(&json!([panel])));
    let id = board["_id"].as_str().unwrap();
    let link = boards::share(&account, id, &scene::in_days(1));
    let path = format!("/api/shared/{}/panels/0", link["token"].as_str().unwrap());
    let mut unread: Vec<TcpStream> = (0..30).map(|_| send_post(&bucket, &path, "", "")).collect();
    assert_eq!(refused_of(&mut unread), 30 - 8, "half of the room");
    let own = bucket.post_query(&json!({"limit": 10_000, "downsampling": false}));
    assert_eq!(own.status, 503, "the organization's room is used up: {own}");
}

/// Regression: each unread answer of 10,000 such rows held 160 MB: 40 of them killed a server with 1.5 GB.
#[test]
fn unread_answers_hold_one_piece_each_and_are_bounded() {
    let setup = Setup::unlimited().set("server.answer_bytes_max", "16777216");
    let (server, _, bucket) = scene::bucket_on(Server::start_with(setup));
    wide_rows(&bucket, ROWS);
    let before = peak_bytes(&server);
    let mut unread: Vec<TcpStream> = (0..60).map(|_| send_query(&bucket, 10_000)).collect();
    assert_eq!(
        refused_of(&mut unread),
        60 - 8,
        "half of the room is one organization's, and a piece counts for a megabyte"
    );
    // Small queries, and large ones of another organization, are still answered.
    assert_eq!(
        array(
            &bucket.query(&json!({"limit": 1, "downsampling": false})),
            "/data"
        )
        .len(),
        1
    );
    let other = Account::sign_up(&server.client).bucket("neighbour");
    wide_rows(&other, 100);
    assert_is_whole(
        &other.query(&json!({"limit": 100, "downsampling": false})),
        100,
        "a neighbour",
    );
    let held = peak_bytes(&server).saturating_sub(before);
    assert!(
        held < 200 << 20,
        "{held} bytes for 60 answers of {} bytes",
        ROWS as usize * TEXT_BYTES
    );
    drop(unread);
    until("the memory is released", || {
        let answer = bucket.post_query(&json!({"limit": 1_000, "downsampling": false}));
        (answer.status == 200).then_some(())
    });
}
