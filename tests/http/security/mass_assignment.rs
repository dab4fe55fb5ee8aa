//! Read-only and internal members in all writes. The contract ignores unknown members, so except for ids, names and
//! times, each answer equals that of the same request without them.

use serde_json::{Map, Value, json};

use crate::routes::{Ids, OPERATOR_ROUTES, PUBLIC_ROUTES, ROUTES, Role, Route};
use crate::scene::{self, UNKNOWN_ID, array, call};
use crate::support::client::Client;
use crate::support::given::{Account, Bucket, text};
use crate::support::process::OPERATOR_TOKEN;

const CHOSEN_KEY: &str = "svc_a_chosen";

/// Members that routes accept by these names.
const NAMED: &[(&str, &[&str])] = &[
    (
        "POST /api/auth/signup",
        &["name", "organizationName", "email", "password"],
    ),
    (
        "POST /api/auth/invitations/accept",
        &["token", "name", "password"],
    ),
    ("POST /api/auth/reset", &["token"]),
    ("POST /api/organization/invitations", &["email", "role"]),
    ("PATCH /api/organization/members/{member}", &["role"]),
    (
        "POST /api/organization/keys",
        &["name", "label", "type", "expiresAt"],
    ),
    (
        "POST /api/buckets/{bucket}/keys",
        &["name", "label", "type", "expiresAt"],
    ),
    (
        "POST /api/buckets/{bucket}/sources",
        &["name", "type", "status", "schema"],
    ),
    (
        "PATCH /api/buckets/{bucket}/sources/{source}",
        &["name", "type", "status", "schema"],
    ),
    ("POST /api/data", &["bucketId", "dataSourceId"]),
    ("POST /api/data/batch", &["bucketId"]),
    ("POST /api/data/query", &["bucketId"]),
    ("POST /api/data/export", &["bucketId", "format"]),
    ("POST /api/data/delete", &["bucketId", "filters", "dryRun"]),
    (
        "POST /api/alerts",
        &["bucketId", "dataSourceId", "name", "status", "condition"],
    ),
    (
        "POST /api/alerts/backtest",
        &["bucketId", "dataSourceId", "name", "status", "condition"],
    ),
    (
        "POST /api/alerts/backtest/verdicts",
        &["bucketId", "dataSourceId", "name", "status", "condition"],
    ),
    ("PATCH /api/alerts/{plainRule}", &["name", "status", "condition"]),
    ("POST /api/silences", &["bucketId"]),
    ("POST /api/annotations", &["bucketId", "dataSourceId"]),
    ("PATCH /api/annotations/{annotation}", &["dataSourceId"]),
    ("POST /api/boards/{board}/share", &["expiresAt"]),
    ("POST /api/webhooks", &["bucketId", "status", "secret"]),
    ("PATCH /api/webhooks/{webhook}", &["bucketId", "status", "secret"]),
    ("PATCH /api/operator/organizations/{organization}", &["plan"]),
];

/// Members that an attacker may send: shown ones, stored ones, and guesses.
fn attacker_members(foreign: &Ids, organization: &str) -> Map<String, Value> {
    let (bucket, long_ago) = (&foreign.bucket, "2000-01-01T00:00:00Z");
    let whose = json!({
        "_id": bucket, "id": bucket, "bucketId": bucket, "dataSourceId": foreign.source, "userId": UNKNOWN_ID,
        "organizationId": organization, "organization": organization, "org_id": organization,
        "ownerId": UNKNOWN_ID, "owner": "me",
    });
    let who = json!({
        "user": {"role": "admin"}, "role": "admin", "roles": ["admin"], "isAdmin": true, "admin": true, "type": "admin",
        "scope": "organization", "permissions": ["*"], "__proto__": {"admin": true},
        "constructor": {"prototype": {"admin": true}},
    });
    let credentials = json!({
        "key": CHOSEN_KEY, "keyHash": "00", "key_hash": "00", "keyPrefix": "svc_a_", "keyPreview": "…aaaa",
        "token": "a.b.c", "passwordHash": "00", "passwordVersion": 99, "expiresAt": "2100-01-01T00:00:00Z",
    });
    let kept_by_the_server = json!({
        "createdAt": long_ago, "created_at": long_ago, "updatedAt": long_ago, "lastUsedAt": long_ago,
        "plan": "Free", "plans": {"name": "Free"}, "maxBuckets": 1_000_000, "maxApiCalls": null, "apiCalls": 0,
        "stats": {"totalDataPoints": 1_000_000}, "version": 99, "insertedCount": 1_000_000,
    });
    let of_rules_and_webhooks = json!({
        "status": "inactive", "state": "firing", "previousState": "firing", "lastOutcome": "met", "triggered": true,
        "lastTriggeredAt": long_ago, "lastEvaluatedAt": long_ago, "conditionClearedAt": long_ago,
        "nextDueAt": "2100-01-01T00:00:00Z", "parsedCondition": {"field": "level", "operator": "lt", "value": 0},
        "totalDeliveries": 99, "failedDeliveries": 99, "lastDeliveryStatus": "delivered",
    });
    [whose, who, credentials, kept_by_the_server, of_rules_and_webhooks]
        .iter()
        .flat_map(|some| some.as_object().unwrap().clone())
        .collect()
}

/// Removes members that differ between requests: ids, times, keys, names.
fn without_request_data(value: &Value) -> Value {
    let own = |text: &str| {
        let id = text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let moment = text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T';
        let credential = text.starts_with("svc_")
            || text.starts_with("whsec_")
            || text.starts_with("eyJ")
            || text.starts_with("inv_")
            || text.contains("/#/invitation/")
            || text.ends_with("@example.org");
        // The token of a link has no prefix; it ends the link's address.
        let link = text.rsplit('/').next().is_some_and(|token| token.len() == 43);
        id || moment || credential || link || text.starts_with('…') || text.starts_with("unique-")
    };
    match value {
        Value::String(text) if own(text) => json!("its own"),
        Value::Array(values) => values.iter().map(without_request_data).collect(),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| (name.clone(), without_request_data(value)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

struct Scene {
    client: Client,
    account: Account,
    bucket: Bucket,
    source: String,
}

impl Scene {
    /// New objects for the route, so that both requests have the same effect.
    fn ids(&self) -> Ids {
        let webhook = self.account.webhook(&json!({
            "url": "https://hooks.invalid/", "events": ["alert.triggered"], "status": "paused",
        }));
        let key = |path: &str, kind: &str| {
            let body = json!({"name": "a key", "type": kind});
            let request = self.client.post(path).bearer(&self.account.token).json(&body);
            text(&request.send().expect(201, "a key"), "/apiKey/_id")
        };
        let (board, share) = self.bucket.board();
        Ids {
            key: key(&format!("/api/buckets/{}/keys", self.bucket.id), "read"),
            organization_key: key("/api/organization/keys", "integration"),
            bucket: self.bucket.id.clone(),
            source: self.source.clone(),
            rule: self.bucket.evaluated_rule("judged", &self.source),
            plain_rule: self.bucket.rule(&json!({
                "dataSourceId": self.source, "name": "plain", "naturalLanguageQuery": "level > 5",
            })),
            silence: self.bucket.silence(),
            annotation: self.bucket.annotation(),
            board,
            share,
            webhook: text(&webhook, "/_id"),
            organization: self.account.organization_id.clone(),
            member: self.account.member("editor").id,
            ..Ids::all(UNKNOWN_ID)
        }
    }

    fn send(&self, route: &Route, ids: &Ids, more: &Map<String, Value>) -> (u16, Value) {
        let mut body: Value = serde_json::from_str(&route.body(ids).unwrap()).unwrap();
        for (name, value) in more {
            body[name] = value.clone();
        }
        let request = self.client.request(route.method, &route.path(ids)).json(&body);
        let answer = match route.roles {
            [] => request.send(),
            [Role::Operator] => request.bearer(OPERATOR_TOKEN).send(),
            _ => request.bearer(&self.account.token).send(),
        };
        // Of a file, the names of its columns.
        let body = match answer.header("content-type") {
            Some(kind) if kind.starts_with("text/csv") => Value::from(answer.text().lines().next()),
            _ => answer.json(),
        };
        (answer.status, without_request_data(&body))
    }

    /// All data visible to an admin, without the additions of the requests.
    fn state(&self) -> Value {
        let show = |path: &str| call(&self.client, &self.account.admin, "GET", path, &Value::Null).json();
        let bucket = show(&format!("/api/buckets/{}", self.bucket.id));
        let source = show(&format!(
            "/api/buckets/{}/sources/{}",
            self.bucket.id, self.source
        ));
        let state = json!({"organization": show("/api/organization"), "bucket": bucket, "source": source});
        let mut state = without_request_data(&state);
        for counts in ["/bucket/bucket/stats", "/source/dataSource/stats"] {
            *state.pointer_mut(counts).unwrap() = Value::Null;
        }
        state
    }
}

fn scene_of(client: &Client) -> Scene {
    let account = Account::sign_up(client);
    let bucket = account.bucket("tides");
    let source = bucket.source("gauge", &["level"]);
    Scene {
        client: client.clone(),
        account,
        bucket,
        source,
    }
}

#[test]
fn read_only_members_of_bodies_change_nothing() {
    let server = scene::server();
    let scene = scene_of(&server.client);
    let foreign = scene_of(&server.client);
    let foreign_ids = foreign.ids();
    let attacker = attacker_members(&foreign_ids, &foreign.account.organization_id);
    let state_of_foreign = foreign.state();
    let routes = ROUTES.iter().chain(OPERATOR_ROUTES).chain(PUBLIC_ROUTES);
    for route in routes.filter(|route| route.body.is_some()) {
        let route_name = format!("{} {}", route.method, route.path);
        let named = NAMED
            .iter()
            .find(|(known, _)| *known == route_name)
            .map_or(&[][..], |(_, named)| named);
        let mut more = attacker.clone();
        more.retain(|name, _| !named.contains(&name.as_str()));
        let without = scene.send(route, &scene.ids(), &Map::new());
        let before = scene.state();
        let with = scene.send(route, &scene.ids(), &more);
        let sentence = "contract 1: body fields that are not named are ignored";
        assert_eq!(with, without, "{sentence} ({route_name})");
        assert_eq!(
            without.0, route.success,
            "the request as such succeeds ({route_name}): {}",
            without.1
        );
        assert_eq!(
            scene.state(),
            before,
            "{sentence}: the state is as without them ({route_name})"
        );
    }
    assert_eq!(foreign.state(), state_of_foreign, "nothing of others has changed");
    assert!(
        foreign.bucket.rows(&json!({})).is_empty(),
        "nothing was written elsewhere"
    );
    let buckets = call(
        &server.client,
        &foreign.account.admin,
        "GET",
        "/api/buckets",
        &Value::Null,
    )
    .json();
    assert_eq!(array(&buckets, "/buckets").len(), 1, "nothing was made elsewhere");
    let keys = call(
        &server.client,
        "svc_a_chosen",
        "GET",
        "/api/buckets",
        &Value::Null,
    );
    keys.refused(401, "a key that a client chose is none");
}

/// Nested levels: entries of a batch, fields of a schema. The evaluation block is an exception of the contract.
#[test]
fn read_only_members_of_nested_objects_change_nothing() {
    let server = scene::server();
    let scene = scene_of(&server.client);
    let foreign = scene_of(&server.client).ids();
    let sentence = "contract 1: body fields that are not named are ignored";
    let entry = json!({
        "dataSourceId": scene.source, "values": {"level": 1}, "_id": foreign.rule, "bucketId": foreign.bucket,
        "createdAt": "2000-01-01T00:00:00Z", "organizationId": foreign.organization,
    });
    scene.bucket.batch(&[entry]).expect(201, sentence);
    let row = scene.bucket.rows(&json!({})).remove(0);
    assert_ne!(row["_id"], foreign.rule, "{sentence}");
    let created = scene.bucket.call(
        "POST",
        "/sources",
        &json!({"name": "other", "schema": {"level": {"type": "number", "_id": "x", "count": 5}}}),
    );
    let schema = created.expect(201, sentence)["dataSource"]["schema"].clone();
    assert_eq!(schema, json!({"level": {"type": "number"}}), "{sentence}");
    for name in [
        "state",
        "lastEvaluatedAt",
        "conditionClearedAt",
        "_id",
        "nextDueAt",
    ] {
        let mut block = crate::support::watch::evaluation("level");
        block[name] = json!("firing");
        let body = json!({
            "bucketId": scene.bucket.id, "dataSourceId": scene.source, "name": "judged",
            "naturalLanguageQuery": "level > 5", "evaluation": block,
        });
        let answer = call(&server.client, &scene.account.admin, "POST", "/api/alerts", &body);
        scene::assert_faults(
            &answer,
            &[&format!("evaluation/{name}")],
            "contract 1: unknown keys inside `evaluation` are 400",
        );
    }
}
