//! Chapter 14, no. 57: an owner's link with which a member sets a new password.

use serde_json::{Value, json};

use super::people::{Member, send};
use crate::scene;
use crate::support::client::Answer;
use crate::support::given::{Account, PASSWORD, text};

const NEW_PASSWORD: &str = "staple battery horse";

fn link(account: &Account, member: &Member) -> String {
    let path = format!("/api/organization/members/{}/reset", member.id);
    let created = account
        .as_owner("POST", &path, &Value::Null)
        .expect(201, "no. 51");
    assert_eq!(scene::members(&created["reset"]), ["expiresAt", "token", "url"]);
    let token = text(&created, "/reset/token");
    let url = format!("{}/#/reset/{token}", account.client.base());
    assert_eq!(created["reset"]["url"], url);
    token
}

fn reset(account: &Account, token: &str, password: &str) -> Answer {
    let body = json!({"token": token, "newPassword": password});
    account.client.post("/api/auth/reset").json(&body).send()
}

fn me(account: &Account, token: &str) -> Answer {
    send(account, token, "GET", "/api/auth/me", &Value::Null)
}

fn log_in(account: &Account, email: &str, password: &str) -> Answer {
    let body = json!({"email": email, "password": password});
    account.client.post("/api/auth/login").json(&body).send()
}

#[test]
fn a_link_sets_the_password_once_and_ends_all_sessions_when_it_is_used() {
    let (mut server, account, _) = scene::bucket();
    let member = account.member("viewer");
    let token = link(&account, &member);
    me(&account, &member.token).expect(200, "not before it is used");
    log_in(&account, &member.email, PASSWORD).expect(200, "not before it is used");
    server.kill();
    server.launch();
    let answer = reset(&account, &token, "short");
    scene::assert_faults(&answer, &["newPassword"], "a password has 10 characters");
    let used = reset(&account, &token, NEW_PASSWORD).expect(200, "as log-in, also after a crash");
    assert_eq!(
        scene::members(&used),
        ["expiresAt", "message", "organization", "token", "user"]
    );
    assert_eq!(used["user"]["_id"], member.id);
    me(&account, &text(&used, "/token")).expect(200, "the new session");
    me(&account, &member.token).refused(401, "all sessions ended");
    reset(&account, &token, NEW_PASSWORD).refused(404, "one use");
    log_in(&account, &member.email, PASSWORD).refused(401, "the old password");
    log_in(&account, &member.email, NEW_PASSWORD).expect(200, "the new one");
}

#[test]
fn a_newer_link_ends_the_older_one() {
    let (_server, account, _) = scene::bucket();
    let member = account.member("editor");
    let (older, newer) = (link(&account, &member), link(&account, &member));
    reset(&account, &older, NEW_PASSWORD).refused(404, "a newer link ends the older");
    for wrong in ["", "rst_", &newer[..20]] {
        reset(&account, wrong, NEW_PASSWORD).refused(404, "no such link");
    }
    account
        .accept(&newer)
        .refused(404, "a link to reset a password is no invitation");
    reset(&account, &newer, NEW_PASSWORD).expect(200, "the newer one works");
}

#[test]
fn who_is_locked_out_gets_in_by_a_link() {
    let (_server, account, _) = scene::bucket();
    let member = account.member("editor");
    for _ in 0..10 {
        log_in(&account, &member.email, "wrong password").refused(401, "wrong");
    }
    log_in(&account, &member.email, PASSWORD).refused(429, "locked");
    let token = link(&account, &member);
    reset(&account, &token, NEW_PASSWORD).expect(200, "a link needs no password");
    log_in(&account, &member.email, NEW_PASSWORD).expect(200, "and ends the lock");
}

#[test]
fn the_link_of_a_removed_member_is_not_found() {
    let (_server, account, _) = scene::bucket();
    let member = account.member("editor");
    let token = link(&account, &member);
    let path = format!("/api/organization/members/{}", member.id);
    account
        .as_owner("DELETE", &path, &Value::Null)
        .expect(200, "removed");
    reset(&account, &token, NEW_PASSWORD).refused(404, "the member is gone");
}
