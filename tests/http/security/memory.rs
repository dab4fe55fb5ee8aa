//! Many concurrent requests of the largest size: the server accepts as many as fit into its memory and refuses the
//! others.

use std::fmt::Write as _;
use std::sync::Barrier;
use std::thread;

use serde_json::json;

use super::process::{resident_bytes, resident_bytes_max};
use crate::general::bodies::gzip;
use crate::scene;

const CLIENTS: usize = 64;
const ENTRIES: usize = 1_000;
const BODY_BYTES_MAX: usize = 10_485_760;
const BUDGET_BYTES: u64 = 64 << 20;
/// The budget covers stored points. In addition, bodies take a quarter of it, each in a few forms, and the allocator
/// keeps memory of earlier bodies. Without a budget, the total would be gigabytes.
const BESIDE_BYTES: u64 = 384 << 20;

/// A batch of the largest size, in which each point has different metadata.
fn batch(bucket: &str, source: &str, nth: usize) -> Vec<u8> {
    let filler = "x".repeat(BODY_BYTES_MAX / ENTRIES - 200);
    let mut body = format!("{{\"bucketId\":\"{bucket}\",\"dataPoints\":[");
    for entry in 0..ENTRIES {
        let comma = if entry == 0 { "" } else { "," };
        write!(
            body,
            "{comma}{{\"dataSourceId\":\"{source}\",\"values\":{{\"level\":1}},\
             \"metadata\":{{\"of\":\"{nth} {entry}\",\"filler\":\"{filler}\"}}}}"
        )
        .unwrap();
    }
    body.push_str("]}");
    assert!(body.len() <= BODY_BYTES_MAX, "{} bytes", body.len());
    gzip(body.as_bytes())
}

#[test]
fn sixty_four_of_the_largest_requests_at_once_stay_within_the_memory() {
    let server = scene::server_with("storage.memory_bytes_max", &BUDGET_BYTES.to_string());
    let account = crate::support::given::Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    let source = bucket.source("gauge", &["level"]);
    let bodies: Vec<Vec<u8>> = (0..8).map(|nth| batch(&bucket.id, &source, nth)).collect();
    let before = resident_bytes(&server);
    let together = Barrier::new(CLIENTS);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|nth| {
                let (bodies, bucket, together) = (&bodies, &bucket, &together);
                scope.spawn(move || {
                    let request = bucket
                        .client
                        .post("/api/data/batch")
                        .key(&bucket.admin)
                        .header("Content-Encoding", "gzip")
                        .body(bodies[nth % bodies.len()].clone());
                    together.wait();
                    let answer = request.send();
                    if answer.status != 201 {
                        answer.refused(503, "contract 1: memory budget reached: 503");
                        assert!(
                            answer.header("retry-after").is_some(),
                            "contract 1: 503 with Retry-After: {answer}"
                        );
                    }
                    answer.status
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let grown = resident_bytes_max(&server).saturating_sub(before);
    let taken = statuses.iter().filter(|status| **status == 201).count();
    assert!(taken > 0, "at least one of them must be accepted: {statuses:?}");
    assert!(taken < CLIENTS, "this was to be more than there is memory for");
    assert!(
        grown <= BUDGET_BYTES + BESIDE_BYTES,
        "the server grew by {} MiB, {taken} of {CLIENTS} were taken",
        grown >> 20
    );
    let point = json!({"dataSourceId": source, "values": {"level": 1}});
    crate::support::waiting::until("the server is itself again", || {
        (bucket.single(&point).status == 201).then_some(())
    });
}
