//! Chapter 7: webhooks, their events, deliveries and results.

mod addresses;
mod deliveries;
mod envelopes;
mod events;
mod formats;
mod mail;
mod mail_server;
mod registration;
mod retries;
mod rule_url;
mod signatures;

use serde_json::{Value, json};

use crate::scene::{self, call};
use crate::support::given::{Account, Bucket, text};
use crate::support::process::Server;
use crate::support::receiver::{Receiver, status};
use crate::support::waiting::until;

const EVENTS: [&str; 3] = ["alert.triggered", "bucket.updated", "data.received"];

/// A server that may call receivers on this machine, one account, one bucket.
fn scene() -> (Server, Account, Bucket) {
    let server = scene::server_with("webhooks.allow_private_networks", "true");
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    (server, account, bucket)
}

/// A receiver that answers every request with 200.
fn receiver() -> Receiver {
    Receiver::answering(|_, _| status(200))
}

/// Creates a webhook at this path of the receiver; returns its id.
#[track_caller]
fn hook(account: &Account, receiver: &Receiver, path: &str, events: &[&str]) -> String {
    text(
        &account.webhook(&json!({"url": receiver.url(path), "events": events})),
        "/_id",
    )
}

#[track_caller]
fn admin(account: &Account, method: &str, path: &str, body: &Value) -> crate::support::client::Answer {
    call(&account.client, &account.admin, method, path, body)
}

/// The deliveries of a webhook, or of a rule's URL, newest first.
#[track_caller]
fn deliveries(account: &Account, of: &str) -> Vec<Value> {
    let answer = admin(
        account,
        "GET",
        &format!("/api/{of}/deliveries?limit=1000"),
        &Value::Null,
    );
    scene::array(&answer.expect(200, "contract 7: GET deliveries"), "/deliveries")
}

/// The deliveries, after this many of them have ended.
#[track_caller]
fn wait_until_ended(account: &Account, of: &str, count: usize) -> Vec<Value> {
    until(&format!("{count} deliveries of {of} have ended"), || {
        let listed = deliveries(account, of);
        let ended = listed.iter().filter(|delivery| delivery["status"] != "pending");
        (ended.count() >= count).then_some(listed)
    })
}

/// PATCHes the bucket, which emits `bucket.updated`.
#[track_caller]
fn update(bucket: &Bucket, description: &str) {
    bucket
        .call("PATCH", "", &json!({"description": description}))
        .expect(200, "contract 3: PATCH of a bucket");
}

/// Sends a test event to a webhook; returns the delivery.
#[track_caller]
fn send_test(account: &Account, webhook: &str) -> Value {
    let answer = admin(
        account,
        "POST",
        &format!("/api/webhooks/{webhook}/test"),
        &Value::Null,
    );
    let answer = answer.expect(202, "contract 7: POST /api/webhooks/:id/test gives 202");
    answer["delivery"].clone()
}
