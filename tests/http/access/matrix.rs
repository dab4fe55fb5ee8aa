//! Every route × every kind of caller. The expectation follows from the route's entry alone, so a new route is
//! covered by being listed.

use serde_json::{Value, json};

use crate::routes::{Ids, ROUTES, Role, Route};
use crate::scene::{self, call};
use crate::support::client::{Answer, Client};
use crate::support::given::{Account, Bucket, text};
use crate::support::waiting::until;

/// What a caller is to the bucket the request names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    Own,
    OtherBucket,
    Foreign,
    Nobody,
}

struct Caller {
    name: &'static str,
    role: Role,
    standing: Standing,
    credential: Option<(&'static str, String)>,
}

fn key(text: &str) -> Option<(&'static str, String)> {
    Some(("X-API-Key", text.to_owned()))
}

fn bearer(token: &str) -> Option<(&'static str, String)> {
    Some(("Authorization", format!("Bearer {token}")))
}

fn integration(account: &Account) -> (String, String) {
    let request = account
        .client
        .post("/api/organization/keys")
        .bearer(&account.token);
    let created = request
        .json(&json!({"name": "evaluator", "type": "integration"}))
        .send()
        .json();
    (text(&created, "/apiKey/_id"), text(&created, "/apiKey/key"))
}

fn bucket_key(bucket: &Bucket) -> (String, String) {
    let created = bucket
        .call("POST", "/keys", &json!({"name": "key", "type": "write"}))
        .json();
    (text(&created, "/apiKey/_id"), text(&created, "/apiKey/key"))
}

fn plain_rule(bucket: &Bucket, source: &str) -> String {
    bucket.rule(&json!({"dataSourceId": source, "name": "plain", "naturalLanguageQuery": "level > 5"}))
}

/// A webhook with a delivery that has ended.
fn webhook(account: &Account) -> (String, String) {
    let webhook = account.webhook(&json!({
        "url": "https://hooks.invalid/tides", "events": ["bucket.updated"], "status": "paused",
        "retryConfig": {"maxRetries": 0},
    }));
    let id = text(&webhook, "/_id");
    let path = format!("/api/webhooks/{id}");
    let test = call(
        &account.client,
        &account.admin,
        "POST",
        &format!("{path}/test"),
        &Value::Null,
    );
    let delivery = text(&test.expect(202, "contract 7: a test is queued"), "/delivery/_id");
    let list = format!("{path}/deliveries");
    until("contract 7: a delivery without retries has failed", || {
        let list = call(&account.client, &account.admin, "GET", &list, &Value::Null).json();
        (list["deliveries"][0]["status"] == "failed").then_some(())
    });
    (id, delivery)
}

struct Scene {
    account: Account,
    bucket: Bucket,
    ids: Ids,
    callers: Vec<Caller>,
}

fn scene_of(client: &Client) -> Scene {
    let account = Account::sign_up(client);
    let bucket = account.bucket("tides");
    let other = account.bucket("other");
    let foreigner = Account::sign_up(client);
    let foreign = foreigner.bucket("tides");
    let source = bucket.source("gauge", &["level"]);
    let (organization_key, integration_key) = integration(&account);
    let (bucket_key_id, _) = bucket_key(&bucket);
    let (deleted_id, deleted_key) = bucket_key(&bucket);
    bucket
        .call("DELETE", &format!("/keys/{deleted_id}"), &Value::Null)
        .expect(200, "a key is deleted");
    let caller = |name, role, standing, credential| Caller {
        name,
        role,
        standing,
        credential,
    };
    let callers = vec![
        caller("admin", Role::Admin, Standing::Own, key(&account.admin)),
        caller("bearer", Role::Bearer, Standing::Own, bearer(&account.token)),
        caller("write", Role::Write, Standing::Own, key(&bucket.key("write"))),
        caller("read", Role::Read, Standing::Own, key(&bucket.key("read"))),
        caller(
            "integration",
            Role::Integration,
            Standing::Own,
            key(&integration_key),
        ),
        caller(
            "other bucket's write",
            Role::Write,
            Standing::OtherBucket,
            key(&other.key("write")),
        ),
        caller(
            "other bucket's read",
            Role::Read,
            Standing::OtherBucket,
            key(&other.key("read")),
        ),
        caller(
            "foreign admin",
            Role::Admin,
            Standing::Foreign,
            key(&foreigner.admin),
        ),
        caller(
            "foreign bearer",
            Role::Bearer,
            Standing::Foreign,
            bearer(&foreigner.token),
        ),
        caller(
            "foreign write",
            Role::Write,
            Standing::Foreign,
            key(&foreign.key("write")),
        ),
        caller(
            "foreign read",
            Role::Read,
            Standing::Foreign,
            key(&foreign.key("read")),
        ),
        caller(
            "foreign integration",
            Role::Integration,
            Standing::Foreign,
            key(&integration(&foreigner).1),
        ),
        caller("deleted key", Role::Write, Standing::Nobody, key(&deleted_key)),
        caller(
            "made-up key",
            Role::Admin,
            Standing::Nobody,
            key(&format!("svc_a_{}", "A".repeat(43))),
        ),
        caller("made-up token", Role::Bearer, Standing::Nobody, bearer("a.b.c")),
        caller("nobody", Role::Bearer, Standing::Nobody, None),
    ];
    let (webhook, delivery) = webhook(&account);
    let ids = Ids {
        rule: bucket.judged_rule("judged", &source),
        plain_rule: plain_rule(&bucket, &source),
        bucket: bucket.id.clone(),
        source,
        key: bucket_key_id,
        organization_key,
        webhook,
        delivery,
    };
    Scene {
        account,
        bucket,
        ids,
        callers,
    }
}

fn expected(route: &Route, caller: &Caller) -> u16 {
    match caller.standing {
        Standing::Nobody => 401,
        _ if !route.roles.contains(&caller.role) => 403,
        Standing::OtherBucket if route.names_a_bucket() => 403,
        Standing::Foreign if route.names_a_resource() => 404,
        _ => route.success,
    }
}

/// Whether a success uses up what it names.
fn consumes(route: &Route) -> bool {
    route.method == "DELETE" || route.path.ends_with("/verdict")
}

/// What a success may use up: made for it.
fn expendable(scene: &Scene, route: &Route) -> Ids {
    let mut ids = scene.ids.clone();
    if route.path.ends_with("{organizationKey}") {
        ids.organization_key = integration(&scene.account).0;
    } else if route.path.ends_with("{key}") {
        ids.key = bucket_key(&scene.bucket).0;
    } else if route.path.ends_with("{source}") {
        ids.source = scene
            .bucket
            .source(&format!("expendable {}", fastrand::u64(..)), &["level"]);
    } else if route.path.ends_with("{plainRule}") {
        ids.plain_rule = plain_rule(&scene.bucket, &scene.ids.source);
    } else if route.path.contains("{rule}") {
        ids.rule = scene.bucket.judged_rule("expendable", &scene.ids.source);
    } else if route.path.ends_with("{webhook}") {
        ids.webhook = webhook(&scene.account).0;
    } else {
        ids.bucket = scene
            .account
            .bucket(&format!("expendable {}", fastrand::u64(..)))
            .id;
    }
    ids
}

fn ask(client: &Client, route: &Route, caller: &Caller, ids: &Ids) -> Answer {
    let mut request = client.request(route.method, &route.path(ids));
    if let Some((header, value)) = &caller.credential {
        request = request.header(header, value.as_str());
    }
    match route.body(ids) {
        Some(body) => request.body(body).send(),
        None => request.send(),
    }
}

#[test]
fn every_route_answers_every_caller_as_its_entry_says() {
    let server = scene::server();
    let scene = scene_of(&server.client);
    for route in ROUTES {
        for caller in &scene.callers {
            let expected = expected(route, caller);
            let ids = if consumes(route) && expected == 200 {
                expendable(&scene, route)
            } else {
                scene.ids.clone()
            };
            let answer = ask(&server.client, route, caller, &ids);
            let sentence = format!(
                "contract 1, 2: {} {} by {}",
                route.method, route.path, caller.name
            );
            if expected < 300 {
                answer.expect(expected, &sentence);
                continue;
            }
            let body = answer.refused(expected, &sentence);
            if caller.standing == Standing::OtherBucket && route.roles.contains(&caller.role) {
                assert_eq!(
                    body["message"], "API key does not have access to this bucket",
                    "spec: the message of 403 for another bucket ({sentence})"
                );
            }
        }
    }
    // Nothing that was refused has happened.
    let bucket = &scene.bucket;
    bucket
        .call("GET", "", &Value::Null)
        .expect(200, "the bucket was not deleted");
    let source = format!("/sources/{}", scene.ids.source);
    bucket
        .call("GET", &source, &Value::Null)
        .expect(200, "the source was not deleted");
    assert_eq!(
        bucket.shown(&scene.ids.rule)["lastOutcome"],
        Value::Null,
        "nobody has judged the rule"
    );
    bucket.shown(&scene.ids.plain_rule);
    let path = format!("/api/webhooks/{}", scene.ids.webhook);
    call(&server.client, &scene.account.admin, "GET", &path, &Value::Null)
        .expect(200, "the webhook was not deleted");
    let keys = bucket.call("GET", "/keys?limit=1000", &Value::Null).text();
    assert!(keys.contains(&scene.ids.key), "the key was not deleted");
    let keys = call(
        &server.client,
        &scene.account.admin,
        "GET",
        "/api/organization/keys?limit=1000",
        &Value::Null,
    );
    assert!(
        keys.text().contains(&scene.ids.organization_key),
        "the organization's key was not deleted"
    );
    let allowed = ["admin", "bearer", "write"].len();
    let both_endpoints = 2 * allowed;
    assert_eq!(
        bucket.rows(&json!({})).len(),
        both_endpoints,
        "only the points that were acknowledged are stored"
    );
}

/// A caller of another organization cannot tell a foreign id from one that names nothing.
#[test]
fn foreign_and_missing_ids_answer_alike() {
    let server = scene::server();
    let scene = scene_of(&server.client);
    let missing = Ids::all(scene::UNKNOWN_ID);
    for route in ROUTES.iter().filter(|route| route.names_a_resource()) {
        for caller in scene
            .callers
            .iter()
            .filter(|caller| caller.standing == Standing::Foreign)
        {
            if !route.roles.contains(&caller.role) {
                continue;
            }
            let of_foreign = ask(&server.client, route, caller, &scene.ids);
            let of_missing = ask(&server.client, route, caller, &missing);
            let sentence = format!(
                "contract 1: a key never learns whether a foreign id exists ({} {} by {})",
                route.method, route.path, caller.name
            );
            assert_eq!(of_foreign.status, 404, "{sentence}: {of_foreign}");
            let hidden = |answer: &Answer, ids: &Ids| {
                let text = answer.text();
                ids.each().iter().fold(text, |text, id| text.replace(id, "ID"))
            };
            assert_eq!(
                hidden(&of_foreign, &scene.ids),
                hidden(&of_missing, &missing),
                "{sentence}"
            );
        }
    }
}
