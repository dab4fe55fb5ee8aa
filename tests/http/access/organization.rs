//! The organization and its own keys: admin and integration.

use serde_json::{Value, json};

use crate::scene::{self, array, call, column, members};
use crate::support::client::Answer;
use crate::support::given::{Account, text};

fn create(account: &Account, body: &Value) -> Answer {
    account
        .client
        .post("/api/organization/keys")
        .bearer(&account.token)
        .json(body)
        .send()
}

#[test]
fn the_organization_is_shown_and_renamed_by_admin_and_bearer() {
    let (_server, account, _) = scene::bucket();
    let by_key = call(
        &account.client,
        &account.admin,
        "GET",
        "/api/organization",
        &Value::Null,
    );
    let by_key = by_key.expect(200, "contract 2: GET /api/organization by admin key");
    let by_bearer = account
        .client
        .get("/api/organization")
        .bearer(&account.token)
        .send();
    assert_eq!(
        by_key,
        by_bearer.expect(200, "contract 2: GET /api/organization by bearer"),
        "both see the same"
    );
    assert_eq!(members(&by_key), ["organization"], "contract 2: {{organization}}");
    assert_eq!(
        by_key["organization"]["_id"], account.organization_id,
        "the caller's own organization"
    );

    let patched = call(
        &account.client,
        &account.admin,
        "PATCH",
        "/api/organization",
        &json!({"name": "  Tides "}),
    );
    let patched = patched.expect(200, "contract 2: PATCH {name}");
    assert_eq!(
        patched["organization"]["name"], "Tides",
        "contract 10: names of everything are stored trimmed"
    );
    let request = account
        .client
        .request("PATCH", "/api/organization")
        .bearer(&account.token);
    request
        .json(&json!({"name": "Ebb"}))
        .send()
        .expect(200, "contract 2: PATCH {name} by bearer");
    let shown = call(
        &account.client,
        &account.admin,
        "GET",
        "/api/organization",
        &Value::Null,
    )
    .json();
    assert_eq!(
        shown["organization"]["name"], "Ebb",
        "contract 2: the organization is renamed"
    );
}

#[test]
fn keys_are_shown_once_and_listed_without_their_secret() {
    let (_server, account, _) = scene::bucket();
    for (kind, prefix, named) in [("admin", "svc_a_", "name"), ("integration", "svc_i_", "label")] {
        let answer = create(&account, &json!({named: " Evaluator ", "type": kind}));
        let answer = answer.expect(201, "contract 2: POST /api/organization/keys");
        let key = &answer["apiKey"];
        super::bucket_keys::assert_created(&answer, prefix);
        assert_eq!(
            key["name"], "Evaluator",
            "contract 10: names of everything are stored trimmed"
        );
        assert_eq!(key["type"], kind, "contract 2: the type asked for");
        let used = call(
            &account.client,
            &text(key, "/key"),
            "GET",
            "/api/buckets",
            &Value::Null,
        );
        assert_eq!(
            used.status,
            if kind == "admin" { 200 } else { 403 },
            "spec: what a key of type {kind} may do: {used}"
        );

        let listed = call(
            &account.client,
            &account.admin,
            "GET",
            "/api/organization/keys",
            &Value::Null,
        );
        let text_of_list = listed.text();
        let listed = array(
            &listed.expect(200, "contract 2: GET /api/organization/keys"),
            "/apiKeys",
        );
        let entry = listed.iter().find(|entry| entry["_id"] == key["_id"]);
        let entry =
            entry.unwrap_or_else(|| panic!("contract 2: admin and integration keys are listed: {listed:?}"));
        super::bucket_keys::assert_listed(entry, &text(key, "/key"));
        assert!(
            !text_of_list.contains(&text(key, "/key")),
            "spec: the full key is never returned again"
        );
    }
}

#[test]
fn a_new_admin_key_needs_the_bearer() {
    let (_server, account, _) = scene::bucket();
    let by_admin = |kind: &str| {
        let body = json!({"name": "new", "type": kind});
        call(
            &account.client,
            &account.admin,
            "POST",
            "/api/organization/keys",
            &body,
        )
    };
    by_admin("admin").refused(403, "contract 2: an admin key asking for an admin key: 403");
    by_admin("integration").expect(201, "contract 2: an admin key creates integration keys");
    create(&account, &json!({"name": "new", "type": "admin"}))
        .expect(201, "contract 2: the bearer creates admin keys");
}

#[test]
fn a_deleted_key_is_401_at_once_and_after_a_restart() {
    let (mut server, account, _) = scene::bucket();
    for kind in ["admin", "integration"] {
        let created = create(&account, &json!({"name": "short-lived", "type": kind})).json();
        let (id, key) = (text(&created, "/apiKey/_id"), text(&created, "/apiKey/key"));
        let path = format!("/api/organization/keys/{id}");
        let deleted = call(&account.client, &account.admin, "DELETE", &path, &Value::Null);
        let deleted = deleted.expect(200, "contract 2: DELETE /api/organization/keys/:keyId");
        let expected = json!({"_id": id, "name": "short-lived", "type": kind});
        assert_eq!(
            deleted["deletedKey"], expected,
            "contract 2: {{message, deletedKey}}"
        );
        assert!(
            deleted["message"].is_string(),
            "contract 2: {{message, deletedKey}}"
        );
        for restarted in [false, true] {
            if restarted {
                server.kill();
                server.launch();
            }
            let used = call(&account.client, &key, "GET", "/api/buckets", &Value::Null);
            used.refused(401, "spec: a deleted key stops working immediately");
            let again = call(&account.client, &account.admin, "DELETE", &path, &Value::Null);
            again.refused(404, "contract 1: the id names nothing any more");
        }
    }
    let request = account
        .client
        .delete(&format!("/api/organization/keys/{}", scene::UNKNOWN_ID));
    request
        .bearer(&account.token)
        .send()
        .refused(404, "contract 1: an unknown id is 404");
}

#[test]
fn bucket_keys_are_not_listed_with_the_organization_keys() {
    let (_server, account, bucket) = scene::bucket();
    bucket.key("write");
    bucket.key("read");
    let listed = call(
        &account.client,
        &account.admin,
        "GET",
        "/api/organization/keys",
        &Value::Null,
    )
    .json();
    let types = column(&array(&listed, "/apiKeys"), "/type");
    assert!(
        types
            .iter()
            .all(|kind| *kind == "admin" || *kind == "integration"),
        "contract 2: the list is of admin and integration keys, not {types:?}"
    );
    let of_bucket = array(&bucket.call("GET", "/keys", &Value::Null).json(), "/apiKeys");
    assert_eq!(of_bucket.len(), 2, "spec: a bucket's list has its own keys only");
}
