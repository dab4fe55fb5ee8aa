//! Chapter 14, no. 58: a session is renewed while it is used.

use serde_json::{Value, json};

use super::forgery::{Forger, decoded};
use super::people::send;
use crate::scene;
use crate::support::client::Answer;
use crate::support::given::Account;
use crate::support::process::Server;

const HOUR: i64 = 3_600;

/// A token of the account's session that was issued so many hours ago.
fn aged(server: &Server, account: &Account, hours: i64) -> String {
    let forger = Forger::of(server, account);
    let issued = forger.claims["iat"].as_i64().unwrap() - hours * HOUR;
    forger.sign(&forger.with(&json!({"iat": issued, "exp": issued + 12 * HOUR})))
}

fn me(account: &Account, token: &str) -> Answer {
    send(account, token, "GET", "/api/auth/me", &Value::Null)
}

fn claim(token: &str, name: &str) -> Value {
    decoded(token.split('.').nth(1).unwrap())[name].clone()
}

#[test]
fn in_the_second_half_of_a_tokens_life_answers_carry_a_new_one() {
    let (server, account, _) = scene::bucket();
    assert_eq!(me(&account, &account.token).header("x-session-token"), None);
    assert_eq!(
        me(&account, &aged(&server, &account, 5)).header("x-session-token"),
        None
    );
    let old = aged(&server, &account, 7);
    let answer = me(&account, &old);
    let renewed = answer.header("x-session-token").unwrap().to_owned();
    answer.expect(200, "the token works as well");
    assert_eq!(answer.header("set-cookie"), None, "no page has asked");
    for name in ["sid", "auth_time", "sub"] {
        assert_eq!(
            claim(&renewed, name),
            claim(&account.token, name),
            "the same session"
        );
    }
    let lifetime = claim(&renewed, "exp").as_i64().unwrap() - claim(&renewed, "iat").as_i64().unwrap();
    assert_eq!(lifetime, 12 * HOUR);
    me(&account, &renewed).expect(200, "the new one works");
    let missing = send(
        &account,
        &old,
        "GET",
        "/api/buckets/000000000000000000000000",
        &Value::Null,
    );
    missing.refused(404, "also an error");
    assert!(missing.header("x-session-token").is_some(), "is an answer");
    let out = send(&account, &old, "POST", "/api/auth/logout", &Value::Null);
    out.expect(200, "logged out");
    assert_eq!(out.header("x-session-token"), None, "the session has ended");
    for token in [&old, &renewed, &account.token] {
        me(&account, token).refused(401, "no token of the session works");
    }
}

#[test]
fn a_session_in_a_cookie_is_renewed_by_a_cookie() {
    let (server, account, _) = scene::bucket();
    let request = |hours| {
        let cookie = format!("tidewatch_session={}", aged(&server, &account, hours));
        let request = account.client.get("/api/auth/me").header("Cookie", cookie);
        request.header("Sec-Fetch-Site", "same-origin").send()
    };
    assert_eq!(request(5).header("set-cookie"), None);
    let answer = request(7);
    let set = answer.header("set-cookie").unwrap();
    assert!(
        set.starts_with("tidewatch_session=ey") && set.contains("HttpOnly"),
        "{set}"
    );
    assert_eq!(answer.header("x-session-token"), None, "no script sees it");
    answer.expect(200, "me");
}

#[test]
fn no_token_outlives_thirty_days() {
    let (server, account, _) = scene::bucket();
    let forger = Forger::of(&server, &account);
    let now = forger.claims["iat"].as_i64().unwrap();
    let began = now - 30 * 24 * HOUR + HOUR;
    let claims = json!({"auth_time": began, "iat": now - 11 * HOUR, "exp": now + HOUR / 2});
    let answer = me(&account, &forger.sign(&forger.with(&claims)));
    let renewed = answer.header("x-session-token").unwrap();
    assert_eq!(claim(renewed, "exp"), began + 30 * 24 * HOUR);
    let last = json!({"auth_time": began, "iat": now - 11 * HOUR, "exp": now + HOUR});
    let answer = me(&account, &forger.sign(&forger.with(&last)));
    answer.expect(200, "valid to the end");
    assert_eq!(
        answer.header("x-session-token"),
        None,
        "a new one would not live longer"
    );
}

#[test]
fn a_token_of_a_session_without_a_record_is_refused() {
    let (server, account, _) = scene::bucket();
    let forger = Forger::of(&server, &account);
    for claims in [
        json!({"sid": 5}),
        json!({"sid": null}),
        json!({"auth_time": null}),
    ] {
        let refused = me(&account, &forger.sign(&forger.with(&claims)));
        let refused = refused.refused(401, "as versions before sessions had records issued them");
        assert!(refused["message"].as_str().unwrap().contains("sign in again"));
    }
}
