//! Chapter 14, nos. 61 to 63: who changed what, and from where.

use serde_json::{Value, json};

use super::callers::{IdOwner, Scene};
use super::matrix::{disposable_ids, uses_up};
use super::people::send;
use crate::routes::{ROUTES, Role, Route};
use crate::scene::{self, call};
use crate::support::client::Answer;
use crate::support::given::{Account, PASSWORD, point, text};
use crate::support::process::Setup;
use crate::support::time::{SECOND, now_ns};

const AUDIT: &str = "/api/organization/audit";

/// The action that a successful request leaves in the audit; `None` for requests that change nothing that is audited.
fn action(route: &Route) -> Option<&'static str> {
    let name = format!("{} {}", route.method, route.path);
    Some(match name.as_str() {
        "PATCH /api/organization" => "organization.updated",
        "PATCH /api/organization/members/{member}" | "POST /api/organization/members/{member}/reset" => {
            "member.updated"
        }
        "DELETE /api/organization/members/{member}" => "member.deleted",
        "POST /api/organization/invitations" => "invitation.created",
        "DELETE /api/organization/invitations/{invitation}" => "invitation.deleted",
        "POST /api/organization/keys" | "POST /api/buckets/{bucket}/keys" => "key.created",
        "DELETE /api/organization/keys/{organizationKey}" | "DELETE /api/buckets/{bucket}/keys/{key}" => {
            "key.deleted"
        }
        "POST /api/organization/keys/{organizationKey}/rotate"
        | "POST /api/buckets/{bucket}/keys/{key}/rotate" => "key.rotated",
        "POST /api/buckets" => "bucket.created",
        "PATCH /api/buckets/{bucket}" => "bucket.updated",
        "DELETE /api/buckets/{bucket}" => "bucket.deleted",
        "POST /api/buckets/{bucket}/sources" => "source.created",
        "PATCH /api/buckets/{bucket}/sources/{source}" => "source.updated",
        "DELETE /api/buckets/{bucket}/sources/{source}" => "source.deleted",
        "POST /api/alerts" => "rule.created",
        "PATCH /api/alerts/{plainRule}" => "rule.updated",
        "DELETE /api/alerts/{plainRule}" => "rule.deleted",
        "POST /api/silences" => "mute.created",
        "DELETE /api/silences/{silence}" => "mute.deleted",
        "POST /api/annotations" => "annotation.created",
        "PATCH /api/annotations/{annotation}" => "annotation.updated",
        "DELETE /api/annotations/{annotation}" => "annotation.deleted",
        "POST /api/boards" | "POST /api/boards/import" | "POST /api/boards/{board}/copy" => "board.created",
        "PATCH /api/boards/{board}"
        | "POST /api/boards/{board}/share"
        | "DELETE /api/boards/{board}/shares/{share}" => "board.updated",
        "DELETE /api/boards/{board}" => "board.deleted",
        "POST /api/webhooks" => "webhook.created",
        "PATCH /api/webhooks/{webhook}" => "webhook.updated",
        "DELETE /api/webhooks/{webhook}" => "webhook.deleted",
        _ => return None,
    })
}

fn page(account: &Account, parameters: &str) -> Value {
    let path = format!("{AUDIT}{parameters}");
    account
        .as_owner("GET", &path, &Value::Null)
        .expect(200, "chapter 14: the audit")
}

fn total(account: &Account) -> u64 {
    page(account, "?limit=1")["pagination"]["total"].as_u64().unwrap()
}

/// The newest entries.
fn newest(account: &Account, count: usize) -> Vec<Value> {
    page(account, &format!("?limit={count}"))["audit"]
        .as_array()
        .unwrap()
        .clone()
}

fn last(account: &Account) -> Value {
    newest(account, 1).remove(0)
}

#[test]
fn each_accepted_change_has_one_entry_and_nothing_else_has() {
    let server = scene::server();
    let scene = Scene::on(&server);
    let account = &scene.account;
    for route in ROUTES.iter().filter(|route| route.roles.contains(&Role::Bearer)) {
        let ids = match uses_up(route) {
            true => disposable_ids(&scene, route),
            false => scene.ids(IdOwner::Own),
        };
        let name = format!("{} {}", route.method, route.path);
        let before = total(account);
        let body = route.body(&ids).map(|body| serde_json::from_str(&body).unwrap());
        let path = route.path(&ids);
        let answer = account.as_owner(route.method, &path, &body.unwrap_or_default());
        assert_eq!(answer.status, route.success, "{name}: {answer}");
        if route.path == crate::routes::LOG_OUT {
            continue;
        }
        let added = total(account) - before;
        match action(route) {
            None => assert_eq!(added, 0, "no. 62: {name}"),
            Some(action) => {
                assert_eq!(added, 1, "no. 62: {name}");
                let entry = last(account);
                assert_eq!(entry["action"], action, "{name}: {entry}");
                assert_eq!(
                    scene::members(&entry),
                    ["_id", "action", "actor", "address", "at", "changes", "target"]
                );
                let (kind, _) = action.split_once('.').unwrap();
                assert_eq!(entry["target"]["kind"], kind, "{name}");
                assert_eq!(entry["actor"]["kind"], "user", "{name}");
                assert_eq!(entry["address"], "127.0.0.1", "{name}");
                assert!(
                    !entry["changes"].as_object().unwrap().is_empty(),
                    "{name}: {entry}"
                );
            }
        }
    }
}

#[test]
fn an_entry_says_who_changed_what_and_survives_a_kill() {
    let (mut server, account, bucket) = scene::bucket();
    let path = format!("/api/buckets/{}", bucket.id);
    let patch = json!({"name": "ebb", "description": "Hall 3"});
    call(&account.client, &account.admin, "PATCH", &path, &patch).expect(200, "spec");
    server.kill();
    server.launch();
    let entry = last(&account);
    let keys = account.as_owner("GET", "/api/organization/keys", &Value::Null);
    let keys = keys.expect(200, "spec")["apiKeys"].clone();
    let admin = &keys[0];
    assert_eq!(
        entry["actor"],
        json!({"kind": "key", "_id": admin["_id"], "name": admin["name"]})
    );
    assert_eq!(
        entry["target"],
        json!({"kind": "bucket", "_id": bucket.id, "name": "tides"}),
        "the name before the change"
    );
    assert_eq!(
        entry["changes"],
        json!({
            "name": {"old": "tides", "new": "ebb"},
            "description": {"old": null, "new": "Hall 3"},
        })
    );
    let before = total(&account);
    call(&account.client, &account.admin, "PATCH", &path, &patch).expect(200, "the same again");
    call(
        &account.client,
        &account.admin,
        "PATCH",
        &path,
        &json!({"retentionDays": 0}),
    )
    .refused(400, "refused");
    assert_eq!(
        total(&account),
        before,
        "no. 62: changes that change nothing, refused ones"
    );
}

#[test]
fn the_newest_entries_come_first() {
    let (_server, account, _) = scene::bucket();
    let names = ["one", "two", "three"];
    for name in names {
        account
            .as_owner("PATCH", "/api/organization", &json!({"name": name}))
            .expect(200, "spec");
    }
    let entries = newest(&account, 3);
    let shown: Vec<_> = entries
        .iter()
        .map(|entry| entry["changes"]["name"]["new"].clone())
        .collect();
    assert_eq!(shown, ["three", "two", "one"]);
    let second = page(&account, "?limit=1&offset=1")["audit"][0].clone();
    assert_eq!(second, entries[1]);
    let oldest = page(&account, "?limit=1000")["audit"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(oldest["action"], "organization.created", "the sign-up");
    scene::assert_faults(
        &account.as_owner("GET", &format!("{AUDIT}?limit=0"), &Value::Null),
        &["limit"],
        "contract 1",
    );
}

#[test]
fn secrets_are_not_in_the_audit() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("s", &["level"]);
    let (one, other) = ("first secret of a webhook", "second secret of a webhook");
    let webhook = account.webhook(&json!({
        "url": "https://hooks.invalid/a", "events": ["alert.triggered"], "secret": one,
    }));
    let path = format!("/api/webhooks/{}", text(&webhook, "/_id"));
    account
        .as_owner("PATCH", &path, &json!({"secret": other}))
        .expect(200, "spec");
    let changed = last(&account);
    assert_eq!(
        changed["changes"],
        json!({"secret": {"old": "hidden", "new": "hidden"}})
    );
    let routing = "0123456789abcdef0123456789abcdef";
    let pager = json!({"format": "pagerduty", "routingKey": routing});
    account.as_owner("PATCH", &path, &pager).expect(200, "chapter 14");
    assert_eq!(
        last(&account)["changes"]["routingKey"],
        json!({"old": "hidden", "new": "hidden"})
    );
    let new_password = "another horse battery";
    let body = json!({"currentPassword": PASSWORD, "newPassword": new_password});
    let changed = account
        .as_owner("POST", "/api/auth/password", &body)
        .expect(200, "spec");
    let token = text(&changed, "/token");
    let keys = account.client.post("/api/organization/keys").bearer(&token);
    let key = keys
        .json(&json!({"name": "k", "type": "integration"}))
        .send()
        .expect(201, "spec");
    let read = |path: &str| send(&account, &token, "GET", path, &Value::Null).expect(200, "the audit");
    let all = read(&format!("{AUDIT}?limit=1000")).to_string();
    for secret in [
        one,
        other,
        routing,
        PASSWORD,
        new_password,
        &text(&key, "/apiKey/key"),
        &account.admin,
    ] {
        assert!(!all.contains(secret), "no. 62: never a secret");
    }
    assert!(
        all.contains(r#""password":{"old":"hidden","new":"hidden"}"#),
        "{all}"
    );
    assert!(all.contains(&source));
}

#[test]
fn a_deletion_of_points_is_audited_with_its_filters_and_count() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("s", &["level"]);
    let start_ns = now_ns() - 1_000 * SECOND;
    let points: Vec<_> = (0..10)
        .map(|second| point(&source, start_ns + second * SECOND, &json!({"level": second})))
        .collect();
    let batch = json!({"bucketId": bucket.id, "dataPoints": points});
    call(&account.client, &account.admin, "POST", "/api/data/batch", &batch).expect(201, "spec");
    let before = total(&account);
    let delete = |body: &Value| {
        account
            .as_owner("POST", "/api/data/delete", body)
            .expect(200, "small print M")
    };
    let filters = json!({"dataSourceIds": [source], "values": {"level": {"gte": 7}}});
    delete(&json!({"bucketId": bucket.id, "filters": filters, "dryRun": true}));
    assert_eq!(total(&account), before, "a dry run changes nothing");
    delete(&json!({"bucketId": bucket.id, "filters": filters}));
    let entry = last(&account);
    assert_eq!(entry["action"], "data.deleted");
    assert_eq!(
        entry["target"],
        json!({"kind": "data", "_id": bucket.id, "name": "tides"})
    );
    assert_eq!(
        entry["changes"],
        json!({"filters": filters, "deletedCount": 3}),
        "small print M10"
    );
    delete(&json!({"bucketId": bucket.id, "filters": filters}));
    assert_eq!(total(&account), before + 1, "no. 62: nothing was deleted");
}

#[test]
fn long_values_are_cut_and_filters_are_whole_up_to_their_limit() {
    /// Of `src/limits.rs`.
    const VALUE_BYTES_MAX: usize = 4_096;
    const FILTERS_BYTES_MAX: usize = 65_536;
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("s", &["level"]);
    let description = "ä".repeat(VALUE_BYTES_MAX);
    let path = format!("/api/buckets/{}", bucket.id);
    account
        .as_owner("PATCH", &path, &json!({"description": description}))
        .expect(200, "spec");
    let shown = text(&last(&account), "/changes/description/new");
    assert_eq!(shown, format!("{}…", "ä".repeat(VALUE_BYTES_MAX / 2)));
    let delete = |filters: &Value| {
        let at_ns = now_ns() - SECOND;
        let batch =
            json!({"bucketId": bucket.id, "dataPoints": [point(&source, at_ns, &json!({"level": 1}))]});
        call(&account.client, &account.admin, "POST", "/api/data/batch", &batch).expect(201, "spec");
        let body = json!({"bucketId": bucket.id, "filters": filters});
        account
            .as_owner("POST", "/api/data/delete", &body)
            .expect(200, "small print M");
        last(&account)["changes"]["filters"].clone()
    };
    let named = |times: usize| json!({"dataSourceIds": vec![&source; times]});
    // Quotes, a comma and 24 digits.
    let times = FILTERS_BYTES_MAX / 27 - 1;
    assert_eq!(delete(&named(times)), named(times));
    let cut = delete(&named(times + 2));
    assert_eq!(
        cut.as_str().expect("a text").len(),
        FILTERS_BYTES_MAX + '…'.len_utf8()
    );
}

#[test]
fn who_joins_signs_up_or_sets_a_password_is_the_actor() {
    let (_server, account, _) = scene::bucket();
    let member = account.member("editor");
    let entry = last(&account);
    assert_eq!(entry["action"], "member.created");
    assert_eq!(
        entry["actor"],
        json!({"kind": "user", "_id": member.id, "name": "Grace"})
    );
    assert_eq!(entry["target"]["_id"], json!(member.id));
    assert_eq!(entry["changes"]["role"], json!({"old": null, "new": "editor"}));
    let path = format!("/api/organization/members/{}/reset", member.id);
    let reset = account
        .as_owner("POST", &path, &Value::Null)
        .expect(201, "no. 57");
    let token = text(&reset, "/reset/token");
    let body = json!({"token": token, "newPassword": "another horse battery"});
    account
        .client
        .post("/api/auth/reset")
        .json(&body)
        .send()
        .expect(200, "no. 57");
    let [set, made] = newest(&account, 2).try_into().unwrap();
    assert_eq!(
        (&set["action"], &set["actor"]["_id"]),
        (&json!("member.updated"), &json!(member.id))
    );
    assert_eq!(
        set["changes"],
        json!({"password": {"old": "hidden", "new": "hidden"}})
    );
    assert_eq!(
        made["changes"]["reset"]["new"]["expiresAt"],
        reset["reset"]["expiresAt"]
    );
    assert!(!made.to_string().contains(&token));
}

#[test]
fn the_operator_is_named_and_organizations_see_only_their_own() {
    let setup = Setup::unlimited().set("operator.token", "token of the operator");
    let server = crate::support::process::Server::start_with(setup);
    let (account, other) = (Account::sign_up(&server.client), Account::sign_up(&server.client));
    let path = format!("/api/operator/organizations/{}", account.organization_id);
    let request = server
        .client
        .request("PATCH", &path)
        .bearer("token of the operator");
    request
        .json(&json!({"plan": "Pro"}))
        .send()
        .expect(200, "contract 3");
    let entry = last(&account);
    assert_eq!(
        entry["actor"],
        json!({"kind": "operator", "_id": null, "name": "operator"})
    );
    assert_eq!(entry["changes"]["plan"]["new"], "Pro");
    let entries = page(&other, "")["audit"].clone();
    let actions = scene::column(entries.as_array().unwrap(), "/action");
    assert_eq!(
        actions,
        ["key.created", "organization.created"],
        "sign-up makes both"
    );
}

#[test]
fn acknowledgements_are_audited_and_verdicts_are_not() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("s", &["level"]);
    let rule = bucket.evaluated_rule("high", &source);
    let evaluator = account.evaluator();
    let before = total(&account);
    evaluator
        .verdict(&rule, &json!({"outcome": "met"}))
        .expect(200, "chapter 6");
    assert_eq!(total(&account), before, "no. 62: not verdicts");
    let path = format!("/api/alerts/{rule}/acknowledge");
    account
        .as_owner("POST", &path, &json!({"note": "on my way"}))
        .expect(200, "no. 28");
    let entry = last(&account);
    assert_eq!(entry["action"], "rule.acknowledged");
    assert_eq!(
        entry["target"],
        json!({"kind": "rule", "_id": rule, "name": "high"})
    );
    assert_eq!(
        entry["changes"],
        json!({"note": {"old": null, "new": "on my way"}})
    );
}

/// A rename with such a header; the address that the audit has of it.
fn address_of(account: &Account, forwarded: Option<&str>) -> Value {
    let request = account
        .client
        .request("PATCH", "/api/organization")
        .bearer(&account.token);
    let request = match forwarded {
        Some(list) => request.header("X-Forwarded-For", list),
        None => request,
    };
    let name = format!("organization {}", fastrand::u64(..));
    let answer: Answer = request.json(&json!({"name": name})).send();
    answer.expect(200, "spec");
    last(account)["address"].clone()
}

#[test]
fn only_trusted_proxies_say_where_a_request_comes_from() {
    let account = |server: &crate::support::process::Server| Account::sign_up(&server.client);
    let server = scene::server();
    let alone = account(&server);
    assert_eq!(
        address_of(&alone, Some("203.0.113.9")),
        "127.0.0.1",
        "no. 63: by default none"
    );
    let behind = |networks: &str| scene::server_with("server.trusted_proxies", networks);
    let server = behind("127.0.0.0/8,10.0.0.0/8");
    let account_behind = account(&server);
    assert_eq!(
        address_of(&account_behind, Some("198.51.100.1, 203.0.113.9, 10.1.2.3")),
        "203.0.113.9"
    );
    assert_eq!(address_of(&account_behind, None), "127.0.0.1");
    let sessions = account_behind.as_owner("GET", "/api/auth/sessions", &Value::Null);
    let sessions = sessions.expect(200, "no. 59")["sessions"].clone();
    assert_eq!(sessions[0]["address"], "127.0.0.1");
    let request = server
        .client
        .post("/api/auth/login")
        .header("X-Forwarded-For", "203.0.113.9");
    let body = json!({"email": account_behind.email, "password": PASSWORD});
    request.json(&body).send().expect(200, "spec");
    let sessions = account_behind.as_owner("GET", "/api/auth/sessions", &Value::Null);
    let sessions = sessions.expect(200, "no. 59")["sessions"].clone();
    assert_eq!(sessions[1]["address"], "203.0.113.9", "no. 63: for sessions");
}
