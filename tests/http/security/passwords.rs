//! The time of an answer must not reveal which emails have an account.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::scene;
use crate::support::client::Client;
use crate::support::given::Account;

/// Less than the number of failures that blocks an email.
const ROUNDS: usize = 9;

fn failing(client: &Client, email: &str) -> Duration {
    let body = json!({"email": email, "password": "not the password"});
    let started = Instant::now();
    let answer = client.post("/api/auth/login").json(&body).send();
    let took = started.elapsed();
    answer.refused(401, "contract 2: wrong email or password: 401");
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The requests alternate, so that other load affects both. An answer without verifying a password takes a hundredth of
/// the time, so a factor of two separates it from noise.
#[test]
fn an_unknown_email_is_refused_as_slowly_as_a_known_one() {
    let (_server, account, _) = scene::bucket();
    let other = Account::sign_up(&account.client);
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for nth in 0..ROUNDS {
        known.push(failing(&account.client, &account.email));
        unknown.push(failing(&account.client, &format!("nobody{nth}@example.com")));
        known.push(failing(&account.client, &other.email));
        unknown.push(failing(&account.client, &format!("no-one{nth}@example.com")));
    }
    let (known, unknown) = (median(known), median(unknown));
    assert!(
        known < unknown * 2 && unknown < known * 2,
        "contract 2: the same 401, in the same time: {known:?} for known emails, {unknown:?} for others"
    );
}
