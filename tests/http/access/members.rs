//! Chapter 14, nos. 51 to 56: members and invitations.

use std::thread;

use serde_json::{Value, json};

use super::people::{new_email, send};
use crate::scene::{self, array, column};
use crate::support::given::{Account, PASSWORD, text};
use crate::support::process::Setup;

const INVITATIONS: &str = "/api/organization/invitations";
const MEMBERS: &str = "/api/organization/members";

/// Open invitations of an organization (`src/limits.rs`).
const INVITATIONS_MAX: usize = 100;

fn invite(account: &Account, email: &str, role: &str) -> crate::support::client::Answer {
    account.as_owner("POST", INVITATIONS, &json!({"email": email, "role": role}))
}

#[test]
fn an_invitation_makes_one_member_and_its_link_is_shown_once() {
    let (mut server, account, _) = scene::bucket();
    let email = new_email();
    let created = invite(&account, &format!(" {} ", email.to_uppercase()), "viewer");
    let created = created.expect(201, "chapter 14, no. 53");
    let invitation = &created["invitation"];
    assert_eq!(
        scene::members(invitation),
        [
            "_id",
            "createdAt",
            "createdBy",
            "email",
            "expiresAt",
            "role",
            "token",
            "url"
        ]
    );
    assert_eq!(
        (&invitation["email"], &invitation["role"]),
        (&json!(email), &json!("viewer"))
    );
    let token = text(invitation, "/token");
    let url = format!("{}/#/invitation/{token}", account.client.base());
    assert_eq!(invitation["url"], url);
    let path = format!("{INVITATIONS}/{}", text(invitation, "/_id"));
    for shown in [
        account.as_owner("GET", &path, &Value::Null).expect(200, "shown")["invitation"].clone(),
        account
            .as_owner("GET", INVITATIONS, &Value::Null)
            .expect(200, "listed")["invitations"][0]
            .clone(),
    ] {
        assert_eq!(
            scene::members(&shown),
            ["_id", "createdAt", "createdBy", "email", "expiresAt", "role"],
            "no. 53: token and url are shown this once"
        );
    }
    server.kill();
    server.launch();
    let joined = account
        .accept(&token)
        .expect(201, "as sign-up, also after a crash");
    assert_eq!(
        scene::members(&joined),
        ["expiresAt", "message", "organization", "token", "user"]
    );
    let user = &joined["user"];
    assert_eq!(
        (&user["email"], &user["name"], &user["role"]),
        (&json!(email), &json!("Grace"), &json!("viewer"))
    );
    assert_eq!(joined["organization"]["_id"], account.organization_id);
    account.accept(&token).refused(404, "no. 53: one use");
    account
        .as_owner("GET", &path, &Value::Null)
        .refused(404, "it is used up");
    let member = account
        .as_owner("GET", MEMBERS, &Value::Null)
        .expect(200, "listed")["members"][1]
        .clone();
    assert_eq!(
        (&member["_id"], &member["createdBy"]),
        (&user["_id"], &invitation["createdBy"])
    );
    let login = json!({"email": email, "password": PASSWORD});
    let login = account.client.post("/api/auth/login").json(&login).send();
    login.expect(200, "the account is like any other");
}

#[test]
fn a_link_that_was_withdrawn_or_never_was_is_not_found() {
    let (_server, account, _) = scene::bucket();
    let invitation = account.invitation("editor");
    let path = format!("{INVITATIONS}/{}", invitation.id);
    let withdrawn = account
        .as_owner("DELETE", &path, &Value::Null)
        .expect(200, "withdrawn");
    assert_eq!(withdrawn["deletedInvitation"], json!({"_id": invitation.id}));
    for token in [&*invitation.token, "inv_", "", "x", &invitation.token[..40]] {
        account.accept(token).refused(404, "no. 53");
    }
    let other = account.invitation("editor");
    let reset = json!({"token": other.token, "newPassword": PASSWORD});
    let reset = account.client.post("/api/auth/reset").json(&reset).send();
    reset.refused(404, "an invitation is no link to reset a password");
    let answer = account
        .client
        .post("/api/auth/invitations/accept")
        .json(&json!({"token": 5}))
        .send();
    scene::assert_faults(&answer, &["name", "password", "token"], "all faults together");
    let long = json!({"token": "x".repeat(129), "name": "n", "password": PASSWORD});
    let answer = account
        .client
        .post("/api/auth/invitations/accept")
        .json(&long)
        .send();
    scene::assert_faults(&answer, &["token"], "a token has a bound");
}

#[test]
fn an_address_that_has_an_account_is_refused_when_inviting_and_when_accepting() {
    let (server, account, _) = scene::bucket();
    let other = Account::sign_up(&server.client);
    for taken in [&account.email, &other.email] {
        invite(&account, taken, "viewer").refused(409, "no. 53: in any organization");
    }
    let invitation = account.invitation("viewer");
    let sign_up = json!({"email": invitation.email, "password": PASSWORD, "name": "Early"});
    let sign_up = server.client.post("/api/auth/signup").json(&sign_up).send();
    sign_up.expect(201, "an invitation reserves nothing");
    account
        .accept(&invitation.token)
        .refused(409, "no. 53: and when accepting");
}

#[test]
fn an_invitation_works_while_sign_up_is_closed() {
    let (mut server, account, _) = scene::bucket();
    let invitation = account.invitation("viewer");
    server.kill();
    server.configure(Setup::unlimited().set("accounts.signup", "false"));
    server.launch();
    let sign_up = json!({"email": new_email(), "password": PASSWORD, "name": "n"});
    let sign_up = account.client.post("/api/auth/signup").json(&sign_up).send();
    sign_up.refused(403, "sign-up is closed");
    account.accept(&invitation.token).expect(201, "no. 53");
}

#[test]
fn a_removed_member_is_out_at_once_and_its_address_is_free() {
    let (mut server, account, _) = scene::bucket();
    let member = account.member("editor");
    let path = format!("{MEMBERS}/{}", member.id);
    let removed = account
        .as_owner("DELETE", &path, &Value::Null)
        .expect(200, "removed");
    assert_eq!(removed["deletedMember"], json!({"_id": member.id}));
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        let me = send(&account, &member.token, "GET", "/api/auth/me", &Value::Null);
        me.refused(401, "no. 56: 401 at once");
    }
    account
        .as_owner("DELETE", &path, &Value::Null)
        .refused(404, "it is gone");
    let again = invite(&account, &member.email, "viewer").expect(201, "no. 54: free again");
    account
        .accept(&text(&again, "/invitation/token"))
        .expect(201, "no. 54");
}

#[test]
fn members_of_others_are_not_found() {
    let (server, account, _) = scene::bucket();
    let other = Account::sign_up(&server.client);
    let (member, invitation) = (other.member("editor"), other.invitation("editor"));
    let null = Value::Null;
    let foreign = format!("{MEMBERS}/{}", member.id);
    account
        .as_owner("PATCH", &foreign, &json!({"role": "viewer"}))
        .refused(404, "foreign");
    account
        .as_owner("DELETE", &foreign, &null)
        .refused(404, "foreign");
    account
        .as_owner("POST", &format!("{foreign}/reset"), &null)
        .refused(404, "foreign");
    let foreign = format!("{INVITATIONS}/{}", invitation.id);
    account.as_owner("GET", &foreign, &null).refused(404, "foreign");
    account
        .as_owner("DELETE", &foreign, &null)
        .refused(404, "foreign");
    let mine = account.as_owner("GET", MEMBERS, &null).expect(200, "mine");
    assert_eq!(
        column(&array(&mine, "/members"), "/email"),
        [json!(account.email)]
    );
}

#[test]
fn an_organization_keeps_an_owner_also_when_two_demote_each_other() {
    let (_server, account, _) = scene::bucket();
    let me = account
        .as_owner("GET", "/api/auth/me", &Value::Null)
        .expect(200, "me");
    let own = text(&me, "/user/_id");
    let path = format!("{MEMBERS}/{own}");
    account
        .as_owner("PATCH", &path, &json!({"role": "editor"}))
        .refused(409, "no. 55");
    account
        .as_owner("DELETE", &path, &Value::Null)
        .refused(409, "no. 55");
    account
        .as_owner("PATCH", &path, &json!({"role": "owner"}))
        .expect(200, "no change");
    for round in 0..10 {
        let other = account.member("owner");
        let demote = |token: &str, id: &str| {
            let path = format!("{MEMBERS}/{id}");
            send(&account, token, "PATCH", &path, &json!({"role": "editor"})).status
        };
        let statuses = thread::scope(|scope| {
            let first = scope.spawn(|| demote(&account.token, &other.id));
            let second = demote(&other.token, &own);
            [first.join().unwrap(), second]
        });
        let changed = statuses.iter().filter(|status| **status == 200).count();
        assert_eq!(changed, 1, "no. 55, round {round}: {statuses:?}");
        assert!(
            statuses.iter().any(|status| [403, 409].contains(status)),
            "{statuses:?}"
        );
        // Whoever is left makes the first one the only owner again.
        if statuses[1] == 200 {
            let back = send(&account, &other.token, "PATCH", &path, &json!({"role": "owner"}));
            back.expect(200, "an owner makes an owner");
        }
        let gone = account.as_owner("DELETE", &format!("{MEMBERS}/{}", other.id), &Value::Null);
        gone.expect(200, "one of two owners is removed, or an editor");
    }
}

#[test]
fn open_invitations_are_bounded() {
    let (_server, account, _) = scene::bucket();
    let first = account.invitation("viewer");
    for _ in 1..INVITATIONS_MAX {
        account.invitation("viewer");
    }
    let refused = invite(&account, &new_email(), "viewer").refused(403, "a named bound");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("100 open invitations") && message.contains("withdraw"),
        "{message}"
    );
    let path = format!("{INVITATIONS}/{}", first.id);
    account
        .as_owner("DELETE", &path, &Value::Null)
        .expect(200, "withdrawn");
    account.invitation("viewer");
}
