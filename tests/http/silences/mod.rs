//! Silences (contract 14, "Mutes"): what they stop, and who may create them.

mod access;
mod bounds;
mod muting;

use serde_json::{Value, json};

use crate::scene::{call, with_members};
use crate::support::client::Answer;
use crate::support::given::{Account, text};
use crate::support::time::{SECOND, now_ns, timestamp};

/// A time so many seconds from now.
fn in_seconds(seconds: i64) -> String {
    timestamp(now_ns() + seconds * SECOND)
}

/// The body of a silence of an hour, with these members in addition.
fn silence(more: &Value) -> Value {
    with_members(json!({"until": in_seconds(3_600), "reason": "maintenance"}), more)
}

fn post(account: &Account, key: &str, more: &Value) -> Answer {
    call(&account.client, key, "POST", "/api/silences", &silence(more))
}

/// Creates a silence; returns its id.
#[track_caller]
fn create(account: &Account, more: &Value) -> String {
    let answer = post(account, &account.admin, more).expect(201, "contract 14: POST /api/silences");
    text(&answer, "/silence/_id")
}

fn at(account: &Account, key: &str, method: &str, id: &str) -> Answer {
    let path = format!("/api/silences/{id}");
    call(&account.client, key, method, &path, &Value::Null)
}

/// The ids of the listed silences.
#[track_caller]
fn listed(account: &Account, key: &str) -> Vec<String> {
    let answer = call(
        &account.client,
        key,
        "GET",
        "/api/silences?limit=1000",
        &Value::Null,
    );
    let answer = answer.expect(200, "contract 14: GET /api/silences");
    let silences = crate::scene::array(&answer, "/silences");
    assert_eq!(answer["pagination"]["total"], silences.len(), "all of them");
    silences.iter().map(|silence| text(silence, "/_id")).collect()
}
