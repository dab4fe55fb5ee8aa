//! The limit of sign-ups per address.

use serde_json::json;

use crate::scene;
use crate::support::client::{Answer, Client};
use crate::support::given::PASSWORD;

fn sign_up(client: &Client, email: &str) -> Answer {
    client
        .post("/api/auth/signup")
        .json(&json!({"email": email, "password": PASSWORD, "name": "Ada"}))
        .send()
}

#[test]
fn sign_ups_per_address_and_hour_are_limited() {
    let server = scene::server_with("accounts.signups_per_hour_max", "3");
    let client = &server.client;
    sign_up(client, "a@example.com").expect(201, "the first");
    sign_up(client, "a@example.com")
        .refused(409, "one that fails counts: it tells whether an email is known");
    client
        .post("/api/auth/signup")
        .body("{}")
        .send()
        .refused(400, "a malformed one asks for nothing");
    sign_up(client, "b@example.com").expect(201, "the third");
    for _ in 0..2 {
        let refused = sign_up(client, "c@example.com");
        refused.refused(429, "sign-ups have a bound per address");
        let wait = refused
            .header("retry-after")
            .and_then(|text| text.parse::<u32>().ok());
        assert!(
            wait.is_some_and(|seconds| (1..=3_600).contains(&seconds)),
            "429 carries Retry-After: {wait:?}"
        );
    }
    let body = json!({"email": "a@example.com", "password": PASSWORD});
    client
        .post("/api/auth/login")
        .json(&body)
        .send()
        .expect(200, "signing in has its own bound");
}

#[test]
fn no_sign_up_is_refused_without_a_limit() {
    let server = scene::server_with("accounts.signups_per_hour_max", "0");
    for nth in 0..5 {
        sign_up(&server.client, &format!("a{nth}@example.com")).expect(201, "no bound");
    }
}
