//! Successful and failed log-ins.

use serde_json::{Value, json};

use crate::scene::{self, members};
use crate::support::client::{Answer, Client};
use crate::support::given::{Account, PASSWORD};
use crate::support::time::{HOUR, MINUTE, now_ns, timestamp};

fn log_in(client: &Client, email: &str, password: &str) -> Answer {
    client
        .post("/api/auth/login")
        .json(&json!({"email": email, "password": password}))
        .send()
}

#[track_caller]
fn assert_throttled(answer: &Answer, sentence: &str) {
    answer.refused(429, sentence);
    let seconds = answer
        .header("retry-after")
        .and_then(|text| text.parse::<u32>().ok());
    let within = seconds.is_some_and(|seconds| (1..=15 * 60).contains(&seconds));
    assert!(
        within,
        "contract 2: 429 with `Retry-After`, within the 15 minutes: {:?}",
        answer.header("retry-after")
    );
}

#[test]
fn login_answers_as_sign_up_does() {
    let (_server, account, _) = scene::bucket();
    let before = now_ns();
    let answer =
        log_in(&account.client, &account.email, PASSWORD).expect(200, "contract 2: POST /api/auth/login");
    assert_eq!(
        members(&answer),
        ["expiresAt", "message", "organization", "token", "user"],
        "contract 2: login answers the same shape as sign-up"
    );
    assert_eq!(
        answer["organization"]["_id"], account.organization_id,
        "contract 2: the user's organization"
    );
    let expires = answer["expiresAt"].as_str().unwrap_or_default().to_owned();
    let earliest = timestamp(before / 1_000_000_000 * 1_000_000_000 + 12 * HOUR - MINUTE);
    let latest = timestamp(now_ns() + 12 * HOUR + MINUTE);
    let in_time = earliest.as_str() <= expires.as_str() && expires.as_str() <= latest.as_str();
    assert!(
        in_time,
        "contract 2: the bearer token is valid for 12 h, not until {expires}"
    );
}

#[test]
fn wrong_email_and_wrong_password_are_the_same_401() {
    let (_server, account, _) = scene::bucket();
    let wrong_password = log_in(&account.client, &account.email, "wrong password");
    let wrong_email = log_in(&account.client, "nobody@example.com", PASSWORD);
    let sentence = "contract 2: wrong email or password: the same 401";
    assert_eq!(
        wrong_password.refused(401, sentence),
        wrong_email.refused(401, sentence),
        "{sentence}"
    );
}

#[test]
fn ten_failures_of_one_email_block_only_that_email() {
    let (_server, account, _) = scene::bucket();
    let client = &account.client;
    let other = Account::sign_up(client);
    for _ in 0..10 {
        log_in(client, &account.email, "wrong password")
            .refused(401, "contract 2: up to 10 failures are 401");
    }
    let sentence = "contract 2: after 10 failures in 15 minutes for one email: 429, for right passwords too";
    assert_throttled(&log_in(client, &account.email, "wrong password"), sentence);
    assert_throttled(&log_in(client, &account.email, PASSWORD), sentence);
    let shouted = account.email.to_uppercase();
    assert_throttled(
        &log_in(client, &format!(" {shouted} "), PASSWORD),
        "contract 2: emails are compared without case",
    );
    log_in(client, &other.email, PASSWORD).expect(200, "contract 2: another email is not closed");
    client
        .get("/api/auth/me")
        .bearer(&account.token)
        .send()
        .expect(200, "contract 2: tokens go on working");
}

#[test]
fn failures_of_unknown_emails_count_the_same() {
    let server = scene::server();
    for _ in 0..10 {
        log_in(&server.client, "nobody@example.com", PASSWORD)
            .refused(401, "contract 2: up to 10 failures are 401");
    }
    let answer = log_in(&server.client, "nobody@example.com", PASSWORD);
    assert_throttled(&answer, "contract 2: 10 failures for one email, known or not");
}

#[test]
fn a_success_clears_the_failures_of_its_email() {
    let (_server, account, _) = scene::bucket();
    for _ in 0..2 {
        for _ in 0..9 {
            log_in(&account.client, &account.email, "wrong password")
                .refused(401, "contract 2: up to 10 failures are 401");
        }
        let sentence = "contract 10: a successful login clears that email's failures";
        log_in(&account.client, &account.email, PASSWORD).expect(200, sentence);
    }
}

#[test]
fn fifty_failures_from_one_address_block_it() {
    let (_server, account, _) = scene::bucket();
    for nth in 0..50 {
        let email = format!("nobody{}@example.com", nth / 5);
        log_in(&account.client, &email, PASSWORD)
            .refused(401, "contract 2: up to 50 failures of an address are 401");
    }
    let sentence = "contract 2: after 50 failures from one address: 429, for right passwords too";
    assert_throttled(&log_in(&account.client, &account.email, PASSWORD), sentence);
}

#[test]
fn a_malformed_login_is_400_and_not_a_failure() {
    let (_server, account, _) = scene::bucket();
    for body in [
        Value::Null,
        json!({"email": account.email}),
        json!({"password": PASSWORD, "email": 5}),
    ] {
        for _ in 0..6 {
            account
                .client
                .post("/api/auth/login")
                .json(&body)
                .send()
                .refused(400, "contract 1: shape is 400");
        }
    }
    log_in(&account.client, &account.email, PASSWORD).expect(200, "contract 2: only failures count");
}

/// With a stolen token, an attacker could otherwise guess the password to keep access.
#[test]
fn wrong_current_passwords_are_limited_as_log_ins_are() {
    let (server, account, _) = scene::bucket();
    let change = |current: &str| {
        let body = json!({"currentPassword": current, "newPassword": "another battery"});
        server
            .client
            .post("/api/auth/password")
            .bearer(&account.token)
            .json(&body)
            .send()
    };
    for guess in 0..10 {
        change(&format!("wrong password {guess}")).refused(401, "contract 2: a wrong current password");
    }
    assert_throttled(&change("wrong password"), "the eleventh");
    assert_throttled(&change(PASSWORD), "the right one, too");
    // Other accounts, and log-ins, are counted separately.
    log_in(&server.client, &account.email, PASSWORD).expect(200, "a log-in");
    let other = Account::sign_up(&server.client);
    let body = json!({"currentPassword": PASSWORD, "newPassword": "another battery"});
    let request = server.client.post("/api/auth/password").bearer(&other.token);
    request.json(&body).send().expect(200, "another account");
}
