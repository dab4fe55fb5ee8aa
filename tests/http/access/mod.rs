//! Chapter 2: accounts, organizations, keys, plans; the permissions of callers and refusals.

mod accounts;
mod audit;
mod bucket_keys;
mod callers;
mod cookie;
mod forgery;
mod key_lives;
mod login;
mod matrix;
mod members;
mod organization;
pub mod people;
mod plans;
pub mod quota;
mod renewal;
mod resets;
mod roles;
mod scopes;
mod sessions;
mod sign_ups;
mod tokens;

use serde_json::json;

use crate::support::given::{Account, PASSWORD, text};

/// Logs in again; returns the token.
#[track_caller]
fn log_in(account: &Account) -> String {
    let request = account.client.post("/api/auth/login");
    let answer = request
        .json(&json!({"email": account.email, "password": PASSWORD}))
        .send();
    text(&answer.expect(200, "contract 2: log-in"), "/token")
}
