//! The time limits of the table *Limits*: they share one wait of thirty seconds, on a server with the default
//! configuration.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::scene::{array, server_with};
use crate::support::client::Client;
use crate::support::given::{Account, text};
use crate::support::receiver::{Receiver, status};
use crate::support::waiting::until_within;

const LIMIT: Duration = Duration::from_secs(30);
/// Tolerance for delays on two busy cores.
const LATE_MAX: Duration = Duration::from_secs(10);

/// Sends half a body; returns the answer and the time it took.
fn half_a_request(client: &Client, key: &str) -> (String, Duration) {
    let base = client.base();
    let address = base.trim_start_matches("http://");
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(LIMIT + LATE_MAX)).unwrap();
    let head = format!(
        "POST /api/buckets HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\n\r\n{{\"name\":"
    );
    let started = Instant::now();
    connection.write_all(head.as_bytes()).unwrap();
    let mut first = [0; 12];
    connection.read_exact(&mut first).unwrap();
    (String::from_utf8_lossy(&first).into_owned(), started.elapsed())
}

#[test]
fn request_timeout_webhook_timeout_and_webhook_retries() {
    let server = server_with("webhooks.allow_private_networks", "true");
    let account = Account::sign_up(&server.client);
    // The receiver answers after the time limit.
    let receiver = Receiver::answering(|request, _| {
        if request.path == "/silent" {
            thread::park_timeout(LIMIT + LATE_MAX);
        }
        status(500)
    });
    let deliveries = |path: &str, retry: Value| {
        let body = json!({"url": receiver.url(path), "events": ["bucket.updated"], "retryConfig": retry});
        let id = text(&account.webhook(&body), "/_id");
        let test = account.client.post(&format!("/api/webhooks/{id}/test"));
        test.key(&account.admin)
            .send()
            .expect(202, "contract 7: a test is queued");
        format!("/api/webhooks/{id}/deliveries")
    };
    let silent = deliveries("/silent", json!({"maxRetries": 0}));
    let failing = deliveries("/failing", json!({}));
    let (answer, after) = half_a_request(&server.client, &account.admin);
    let sentence = "spec, Limits: Request timeout: 30 seconds";
    assert_eq!(answer, "HTTP/1.1 503", "{sentence}");
    assert!(
        (LIMIT..LIMIT + LATE_MAX).contains(&after),
        "{sentence}, not {after:?}"
    );

    let attempts = |path: &str| {
        until_within(LATE_MAX, "the delivery has failed", || {
            let list = account.client.get(path).key(&account.admin).send().json();
            let delivery = &list["deliveries"][0];
            (delivery["status"] == "failed").then(|| array(delivery, "/attempts"))
        })
    };
    assert_eq!(
        attempts(&failing).len(),
        1 + 3,
        "spec, Limits: Webhook retries: 3"
    );
    let silent = attempts(&silent);
    let waited = silent[0]["durationMs"].as_u64().map(Duration::from_millis);
    assert!(
        waited.is_some_and(|waited| (LIMIT..LIMIT + LATE_MAX).contains(&waited)),
        "spec, Limits: Webhook timeout: 30 s, not {waited:?}"
    );
}
