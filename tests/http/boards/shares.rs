//! Links to boards (small print N.9).

use serde_json::{Value, json};

use super::{body_with, create, send};
use crate::scene::{self, UNKNOWN_ID, array, assert_faults, assert_timestamp, in_days};
use crate::support::client::{Answer, Client};
use crate::support::given::{Account, text};
use crate::support::time::{SECOND, now_ns, timestamp};
use crate::support::waiting::until;

/// Makes a link to a board; returns it.
#[track_caller]
pub fn share(account: &Account, board: &str, expires_at: &str) -> Value {
    let body = json!({"expiresAt": expires_at});
    let shared = send(account, "POST", &format!("/{board}/share"), &body);
    shared.expect(201, "small print N.9: POST …/share")["share"].clone()
}

/// Asks for the board of a link.
pub fn open(client: &Client, token: &str) -> Answer {
    client.get(&format!("/api/shared/{token}")).send()
}

#[test]
fn a_link_shows_its_board_until_it_is_removed() {
    let (mut server, account, _bucket) = scene::bucket();
    let board = create(&account, &body_with(&json!([])));
    let id = text(&board, "/_id");
    let ends = in_days(366);
    let made = share(&account, &id, &ends);
    let token = text(&made, "/token");
    assert!(
        token.len() >= 32
            && token
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'),
        "small print N.9: at least 32 base64url characters, not {token}"
    );
    let url = format!("{}/#/shared/{token}", server.client.base());
    assert_timestamp(&made["createdAt"], "createdAt");
    let share_id = text(&made, "/_id");
    assert_eq!(
        made,
        json!({"_id": share_id, "token": token, "url": url, "expiresAt": ends, "createdAt": made["createdAt"]}),
        "small print N.9"
    );
    let shown = open(&server.client, &token);
    assert_eq!(shown.header("etag"), Some("\"1\""));
    assert!(
        shown.header("x-ratelimit-limit").is_none(),
        "small print N.9: no quota"
    );
    assert_eq!(shown.expect(200, "small print N.9"), json!({"board": board}));
    send(&account, "PATCH", &format!("/{id}"), &json!({"name": "Hall"})).expect(200, "changed");
    server.kill();
    server.launch();
    let shown = open(&server.client, &token).expect(200, "a link survives a restart");
    assert_eq!(shown["board"]["name"], "Hall", "small print N.9: as it is now");
    assert_eq!(shown["board"]["version"], 2, "a link is no change of the board");
    let list = send(&account, "GET", &format!("/{id}/shares"), &Value::Null).json();
    assert_eq!(
        list["shares"],
        json!([{"_id": share_id, "expiresAt": ends, "createdAt": made["createdAt"]}]),
        "small print N.9: the token this once"
    );
    let path = format!("/{id}/shares/{share_id}");
    let removed = send(&account, "DELETE", &path, &Value::Null).expect(200, "small print N.1");
    assert_eq!(removed["deletedShare"], json!({"_id": share_id}));
    open(&server.client, &token).refused(404, "small print N.9: revoked");
    send(&account, "DELETE", &path, &Value::Null).expect(404, "it is gone");
    let other = text(&share(&account, &id, &ends), "/token");
    send(&account, "DELETE", &format!("/{id}"), &Value::Null).expect(200, "deleted");
    open(&server.client, &other).refused(404, "small print N.9: its board deleted");
}

#[test]
fn links_end_and_are_bounded() {
    let (server, account, _bucket) = scene::bucket();
    let id = text(&create(&account, &body_with(&json!([]))), "/_id");
    let path = format!("/{id}/share");
    for body in [
        json!({}),
        json!({"expiresAt": null}),
        json!({"expiresAt": "soon"}),
        json!({"expiresAt": in_days(-1)}),
        json!({"expiresAt": in_days(367)}),
    ] {
        let refused = send(&account, "POST", &path, &body);
        assert_faults(
            &refused,
            &["expiresAt"],
            "small print N.9: required, in the future, at most 366 days",
        );
    }
    let soon = text(&share(&account, &id, &timestamp(now_ns() + 5 * SECOND)), "/token");
    open(&server.client, &soon).expect(200, "not yet");
    until("small print N.9: expired", || {
        (open(&server.client, &soon).status == 404).then_some(())
    });
    let list = send(&account, "GET", &format!("/{id}/shares"), &Value::Null).json();
    assert_eq!(
        list["pagination"]["total"], 0,
        "links that show nothing are not listed"
    );
    let ends = in_days(1);
    let first = share(&account, &id, &ends);
    for _ in 1..100 {
        share(&account, &id, &ends);
    }
    send(&account, "POST", &path, &json!({"expiresAt": ends})).refused(409, "100 links of a board");
    let list = send(&account, "GET", &format!("/{id}/shares?limit=2"), &Value::Null).json();
    assert_eq!(
        array(&list, "/shares")[0]["_id"],
        first["_id"],
        "contract 1: oldest first"
    );
    let path = format!("/{id}/shares/{}", text(&first, "/_id"));
    send(&account, "DELETE", &path, &Value::Null).expect(200, "removed");
    share(&account, &id, &ends);
}

#[test]
fn a_token_opens_nothing_else_and_nothing_else_opens_its_board() {
    let (server, account, bucket) = scene::bucket();
    let id = text(&create(&account, &body_with(&json!([]))), "/_id");
    let token = text(&share(&account, &id, &in_days(1)), "/token");
    for path in ["/api/boards", "/api/buckets", "/api/organization", "/api/changes"] {
        let as_key = server.client.get(path).key(&token).send();
        as_key.refused(401, "small print N.9: no credential anywhere else");
        let as_bearer = server.client.get(path).bearer(&token).send();
        as_bearer.refused(401, "small print N.9: no credential anywhere else");
    }
    let mut other = token.clone();
    other.replace_range(..1, if token.starts_with('A') { "B" } else { "A" });
    for unknown in [
        &*other,
        &token[..42],
        &*format!("{token}A"),
        &bucket.admin,
        UNKNOWN_ID,
        "%00",
    ] {
        let refused = open(&server.client, unknown).refused(404, "small print N.9: unknown");
        assert!(refused["details"].is_null() || refused["details"] == json!([]));
    }
    let foreigner = Account::sign_up(&server.client);
    let path = format!("/{id}/share");
    send(&foreigner, "POST", &path, &json!({"expiresAt": in_days(1)})).expect(404, "contract 1: always 404");
    send(&foreigner, "GET", &format!("/{id}/shares"), &Value::Null).expect(404, "contract 1: always 404");
}

#[test]
fn a_link_takes_sixty_requests_a_minute() {
    let (server, account, _bucket) = scene::bucket();
    let id = text(&create(&account, &body_with(&json!([]))), "/_id");
    let [busy, quiet] = [1, 2].map(|days| text(&share(&account, &id, &in_days(days)), "/token"));
    let began_ns = now_ns();
    for _ in 0..60 {
        open(&server.client, &busy).expect(200, "small print N.9: 60 a minute");
    }
    let refused = open(&server.client, &busy);
    assert!(
        now_ns() - began_ns < 60 * SECOND,
        "this machine is too slow for the test"
    );
    let wait: u32 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    refused.refused(429, "small print N.9: limited per link");
    open(&server.client, &quiet).expect(200, "small print N.9: per link");
}
