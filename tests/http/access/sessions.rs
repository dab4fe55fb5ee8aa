//! Sessions and their tokens: which actions end a session, and which keep it.

use serde_json::{Value, json};

use super::forgery::decoded;
use super::log_in;
use crate::scene::{self, array};
use crate::support::client::Answer;
use crate::support::given::{Account, PASSWORD, text};

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
fn own_sessions_are_listed_and_ended_and_no_others() {
    let (mut server, account, _) = scene::bucket();
    let request = account
        .client
        .post("/api/auth/login")
        .header("User-Agent", "x".repeat(300));
    let body = json!({"email": account.email, "password": PASSWORD});
    let other = text(
        &request.json(&body).send().expect(200, "contract 2: log-in"),
        "/token",
    );
    let get = |token: &str, path: &str| account.client.get(path).bearer(token).send();
    let listed = get(&account.token, "/api/auth/sessions").expect(200, "chapter 14, no. 59");
    let sessions = array(&listed, "/sessions");
    assert_eq!(sessions.len(), 2);
    for (session, current) in sessions.iter().zip([true, false]) {
        assert_eq!(
            scene::members(session),
            [
                "_id",
                "address",
                "createdAt",
                "current",
                "lastUsedAt",
                "userAgent"
            ]
        );
        assert_eq!(
            (&session["current"], &session["address"]),
            (&json!(current), &json!("127.0.0.1"))
        );
        for name in ["createdAt", "lastUsedAt"] {
            scene::assert_timestamp(&session[name], name);
        }
        let used = text(session, "/lastUsedAt");
        assert!(used.ends_with(":00Z"), "exact to the minute: {used}");
    }
    assert_eq!(sessions[1]["userAgent"], "x".repeat(256), "a bound");
    let path = format!("/api/auth/sessions/{}", text(&sessions[1], "/_id"));
    let shown = get(&account.token, &path).expect(200, "one of them");
    assert_eq!(shown["session"]["_id"], sessions[1]["_id"]);
    let stranger = account.member("owner");
    get(&stranger.token, &path).refused(404, "one's own only");
    let end = |token: &str| account.client.delete(&path).bearer(token).send();
    end(&stranger.token).refused(404, "one's own only");
    me(&account, &other).expect(200, "it lasts");
    let ended = end(&account.token).expect(200, "ended");
    assert_eq!(ended["deletedSession"], json!({"_id": sessions[1]["_id"]}));
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        me(&account, &other).refused(401, "it holds at once and over a restart");
        end(&account.token).refused(404, "it is gone");
        let listed = get(&account.token, "/api/auth/sessions").expect(200, "listed");
        assert_eq!(array(&listed, "/sessions").len(), 1);
    }
}

#[test]
fn the_oldest_session_ends_beyond_the_limit() {
    let (_server, account, _) = scene::bucket();
    // `USER_SESSIONS_MAX` of `src/limits.rs`, besides the one of the sign-up.
    let tokens: Vec<String> = (0..100).map(|_| log_in(&account)).collect();
    me(&account, &account.token).refused(401, "the oldest has ended");
    for token in [&tokens[0], &tokens[99]] {
        me(&account, token).expect(200, "the others last");
    }
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
