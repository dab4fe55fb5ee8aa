//! Chapter 14, no. 52: what owners, editors and viewers may do, on every route that takes the bearer token.

use serde_json::{Value, json};

use super::people::send;
use crate::routes::{Ids, LOG_OUT, ROUTES, Role, Route};
use crate::scene::{self, UNKNOWN_ID};
use crate::support::given::Account;

const ROLES: [&str; 3] = ["viewer", "editor", "owner"];

/// Requests that are no `GET` and change nothing, or only what belongs to the person.
const OF_VIEWERS: &[&str] = &[
    "POST /api/auth/password",
    "POST /api/auth/renew",
    "POST /api/auth/logout",
    "DELETE /api/auth/sessions/{session}",
    "POST /api/data/query",
    "POST /api/data/export",
    "POST /api/alerts/{rule}/backtest",
    "POST /api/alerts/{rule}/backtest/verdicts",
    "POST /api/alerts/backtest",
    "POST /api/alerts/backtest/verdicts",
];

const OF_OWNERS: &[&str] = &[
    "GET /api/organization/audit",
    "PATCH /api/organization",
    "POST /api/organization/keys",
    "DELETE /api/organization/keys/{organizationKey}",
    "POST /api/organization/keys/{organizationKey}/rotate",
    "PATCH /api/organization/members/{member}",
    "DELETE /api/organization/members/{member}",
    "POST /api/organization/members/{member}/reset",
    "GET /api/organization/invitations",
    "POST /api/organization/invitations",
    "GET /api/organization/invitations/{invitation}",
    "DELETE /api/organization/invitations/{invitation}",
];

fn least_role(route: &Route) -> &'static str {
    let name = format!("{} {}", route.method, route.path);
    if OF_OWNERS.contains(&name.as_str()) {
        "owner"
    } else if route.method == "GET" || OF_VIEWERS.contains(&name.as_str()) {
        "viewer"
    } else {
        "editor"
    }
}

fn rank(role: &str) -> usize {
    ROLES.iter().position(|known| *known == role).unwrap()
}

#[test]
fn every_route_is_open_to_the_roles_that_may_use_it() {
    let (_server, account, _) = scene::bucket();
    // Ids that never existed, so that nothing is used up: what is allowed is answered by 404 or 400 at the latest.
    let ids = Ids::all(UNKNOWN_ID);
    for role in ROLES {
        let member = account.member(role);
        for route in ROUTES.iter().filter(|route| route.roles.contains(&Role::Bearer)) {
            let (name, least) = (
                format!("{} {} by {role}", route.method, route.path),
                least_role(route),
            );
            let body = route.body(&ids).map(|body| serde_json::from_str(&body).unwrap());
            let body = body.unwrap_or(Value::Null);
            let answer = send(&account, &member.token, route.method, &route.path(&ids), &body);
            if rank(role) >= rank(least) {
                assert_ne!(answer.status, 403, "{name}: {answer}");
                assert_ne!(answer.status, 401, "{name}: {answer}");
                continue;
            }
            let refused = answer.refused(403, &name);
            let message = refused["message"].as_str().unwrap();
            assert!(
                message.contains(&format!("the role {least}")),
                "{name}: {message}"
            );
        }
        assert_eq!(ROUTES.last().unwrap().path, LOG_OUT);
        send(&account, &member.token, "GET", "/api/auth/me", &Value::Null)
            .refused(401, "the last request was a log-out");
    }
}

#[test]
fn a_role_is_shown_and_holds_from_the_next_request_on() {
    let (mut server, account, bucket) = scene::bucket();
    let member = account.member("viewer");
    let path = format!("/api/organization/members/{}", member.id);
    let role = |token: &str| {
        let me = send(&account, token, "GET", "/api/auth/me", &Value::Null).expect(200, "me");
        me["user"]["role"].clone()
    };
    let change = || {
        let path = format!("/api/buckets/{}", bucket.id);
        send(
            &account,
            &member.token,
            "PATCH",
            &path,
            &json!({"description": "x"}),
        )
    };
    assert_eq!(role(&account.token), "owner");
    assert_eq!(role(&member.token), "viewer");
    change().refused(403, "a viewer reads");
    let changed = account.as_owner("PATCH", &path, &json!({"role": "editor"}));
    let changed = changed.expect(200, "chapter 14, no. 51");
    assert_eq!(
        (&changed["member"]["_id"], &changed["member"]["role"]),
        (&json!(member.id), &json!("editor"))
    );
    change().expect(200, "an editor changes");
    server.kill();
    server.launch();
    change().expect(200, "also after a crash");
    account
        .as_owner("PATCH", &path, &json!({"role": "viewer"}))
        .expect(200, "and back");
    change().refused(403, "a viewer reads");
    for wrong in [json!({"role": "admin"}), json!({"role": null}), json!({})] {
        let answer = account.as_owner("PATCH", &path, &wrong);
        scene::assert_faults(&answer, &["role"], "chapter 14: owner, editor, viewer");
    }
}

#[test]
fn a_viewer_sees_what_is_due_and_claims_nothing() {
    let (_server, account, _) = scene::bucket();
    let (viewer, editor) = (account.member("viewer"), account.member("editor"));
    let due = |token: &str, query: &str| {
        let path = format!("/api/evaluations/due{query}");
        send(&account, token, "GET", &path, &Value::Null)
    };
    due(&viewer.token, "").expect(200, "polling changes nothing");
    due(&viewer.token, "?claim=60").refused(403, "a claim keeps rules from evaluators");
    due(&editor.token, "?claim=60").expect(200, "an editor claims");
}

#[test]
fn the_first_user_is_the_only_owner_of_a_new_organization() {
    let server = scene::server();
    let account = Account::sign_up(&server.client);
    let members = account.as_owner("GET", "/api/organization/members", &Value::Null);
    let members = members.expect(200, "chapter 14, no. 51");
    let first = &members["members"][0];
    assert_eq!(
        scene::members(first),
        ["_id", "createdAt", "createdBy", "email", "name", "role"]
    );
    assert_eq!(
        (&first["role"], &first["createdBy"]),
        (&json!("owner"), &Value::Null)
    );
    assert_eq!(members["pagination"]["total"], 1);
}
