//! Sessions and their tokens: which actions end a session, and which keep it.

use serde_json::{Value, json};

use super::forgery::decoded;
use super::log_in;
use crate::scene;
use crate::support::client::Answer;
use crate::support::given::{Account, text};

fn me(account: &Account, token: &str) -> Answer {
    account.client.get("/api/auth/me").bearer(token).send()
}

fn post(account: &Account, path: &str, token: &str) -> Answer {
    account.client.post(path).bearer(token).send()
}

fn claims(token: &str) -> Value {
    decoded(token.split('.').nth(1).unwrap_or_default())
}

#[test]
fn a_log_out_ends_only_its_session_even_after_a_crash() {
    let (mut server, account, _) = scene::bucket();
    let (left, other) = (log_in(&account), log_in(&account));
    let renewed = text(
        &post(&account, "/api/auth/renew", &left).expect(200, "renewed"),
        "/token",
    );
    me(&account, &left).expect(200, "the old one is valid until it expires");
    post(&account, "/api/auth/logout", &renewed).expect(200, "logged out");
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        for token in [&left, &renewed] {
            me(&account, token).refused(401, "no token of the session works any more");
            post(&account, "/api/auth/renew", token).refused(401, "nor can it be renewed");
            post(&account, "/api/auth/logout", token).refused(401, "nor ended again");
        }
        for token in [&other, &account.token] {
            me(&account, token).expect(200, "other sessions stay valid");
        }
    }
}

#[test]
fn a_renewed_token_keeps_its_session_and_lasts_12_hours() {
    let (_server, account, _) = scene::bucket();
    let answer = post(&account, "/api/auth/renew", &account.token).expect(200, "renewed");
    let (before, after) = (claims(&account.token), claims(&text(&answer, "/token")));
    for name in ["sid", "auth_time", "sub"] {
        assert!(!after[name].is_null(), "{name}");
        assert_eq!(before[name], after[name], "{name}");
    }
    assert_eq!(
        after["exp"]
            .as_i64()
            .zip(after["iat"].as_i64())
            .map(|(exp, iat)| exp - iat),
        Some(12 * 3_600)
    );
    assert_eq!(answer["user"]["email"], account.email);
    account
        .client
        .post("/api/auth/renew")
        .key(&account.admin)
        .send()
        .refused(403, "a key has no session");
}

#[test]
fn sign_up_status_is_public() {
    let server = scene::server();
    let state = || {
        server
            .client
            .get("/api/auth/status")
            .send()
            .expect(200, "no credential is needed")
    };
    assert_eq!(state(), json!({"open": true, "first": true}));
    Account::sign_up(&server.client);
    assert_eq!(state(), json!({"open": true, "first": false}));
    let closed = scene::server_with("accounts.signup", "false");
    let state = closed.client.get("/api/auth/status").send().expect(200, "closed");
    assert_eq!(state, json!({"open": false, "first": true}));
}
