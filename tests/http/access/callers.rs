//! The callers and the ids that the access matrix combines.

use serde_json::{Value, json};

use super::forgery::Forger;
use crate::routes::{Ids, Role};
use crate::scene::{UNKNOWN_ID, call};
use crate::support::given::{Account, Bucket, text};
use crate::support::process::{OPERATOR_TOKEN, Server};
use crate::support::waiting::until;

/// The relation of a caller to the bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// A credential of the organization, or a key of the bucket.
    Own,
    /// A key of another bucket of the organization.
    OtherBucket,
    /// A credential of another organization.
    Foreign,
    /// An invalid credential, or none.
    Nobody,
    /// Two credentials at once.
    Both,
}

pub struct Caller {
    pub name: &'static str,
    pub role: Role,
    pub relation: Relation,
    pub credentials: Vec<(&'static str, String)>,
}

/// The owner of the ids in a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdOwner {
    Own,
    /// Another bucket of the same organization.
    OtherBucket,
    Foreign,
    Deleted,
    NeverExisted,
    Malformed,
    /// Ids of another bucket's objects in a path of the caller's own bucket.
    PartOfOtherBucket,
    PartOfForeign,
    PartDeleted,
    PartThatNeverExisted,
}

pub struct Scene {
    pub account: Account,
    pub bucket: Bucket,
    /// The bucket of the other organization.
    pub foreign: Bucket,
    pub callers: Vec<Caller>,
    own: Ids,
    other: Ids,
    foreign_ids: Ids,
    deleted: Ids,
    deleted_parts: Ids,
}

fn key(text: &str) -> (&'static str, String) {
    ("X-API-Key", text.to_owned())
}

fn bearer(token: &str) -> (&'static str, String) {
    ("Authorization", format!("Bearer {token}"))
}

pub fn integration(account: &Account) -> (String, String) {
    organization_key(account, "integration")
}

/// Creates a key; returns its id and text.
fn organization_key(account: &Account, kind: &str) -> (String, String) {
    let request = account
        .client
        .post("/api/organization/keys")
        .bearer(&account.token);
    let created = request.json(&json!({"name": kind, "type": kind})).send().json();
    (text(&created, "/apiKey/_id"), text(&created, "/apiKey/key"))
}

/// Creates a key; returns its id and text.
pub fn bucket_key(bucket: &Bucket) -> (String, String) {
    let created = bucket
        .call("POST", "/keys", &json!({"name": "key", "type": "write"}))
        .json();
    (text(&created, "/apiKey/_id"), text(&created, "/apiKey/key"))
}

pub fn plain_rule(bucket: &Bucket, source: &str) -> String {
    bucket.rule(&json!({"dataSourceId": source, "name": "plain", "naturalLanguageQuery": "level > 5"}))
}

/// Creates a webhook with a finished delivery; returns both ids.
pub fn webhook(account: &Account) -> (String, String) {
    let webhook = account.webhook(&json!({
        "url": "https://hooks.invalid/tides", "events": ["bucket.updated"], "status": "paused",
        "retryConfig": {"maxRetries": 0},
    }));
    let id = text(&webhook, "/_id");
    let path = format!("/api/webhooks/{id}");
    let admin = |method: &str, path: &str| call(&account.client, &account.admin, method, path, &Value::Null);
    let test = admin("POST", &format!("{path}/test"));
    let delivery = text(&test.expect(202, "contract 7: a test is queued"), "/delivery/_id");
    until("contract 7: a delivery without retries has failed", || {
        let list = admin("GET", &format!("{path}/deliveries")).json();
        (list["deliveries"][0]["status"] == "failed").then_some(())
    });
    (id, delivery)
}

/// Creates one object of everything that has an id.
fn one_of_each(account: &Account, bucket: &Bucket) -> Ids {
    let source = bucket.source_with(&json!({
        "name": "gauge", "schema": {"level": {"type": "number"}}, "dimensions": ["host"]
    }));
    let (webhook, delivery) = webhook(account);
    let (board, share) = bucket.board();
    Ids {
        board,
        share,
        rule: bucket.evaluated_rule("judged", &source),
        plain_rule: plain_rule(bucket, &source),
        silence: bucket.silence(),
        annotation: bucket.annotation(),
        bucket: bucket.id.clone(),
        source,
        key: bucket_key(bucket).0,
        organization_key: integration(account).0,
        webhook,
        delivery,
        organization: account.organization_id.clone(),
        member: account.member("editor").id,
        invitation: account.invitation("viewer").id,
        session: account.session(),
    }
}

/// Deletes the objects; their parts are deleted with them.
fn delete_each(account: &Account, bucket: &Bucket, ids: &Ids) {
    let admin = |path: &str| {
        call(&bucket.client, &bucket.admin, "DELETE", path, &Value::Null)
            .expect(200, "what exists is deleted");
    };
    for rule in [&ids.rule, &ids.plain_rule] {
        admin(&format!("/api/alerts/{rule}"));
    }
    admin(&format!("/api/silences/{}", ids.silence));
    admin(&format!("/api/annotations/{}", ids.annotation));
    admin(&format!("/api/boards/{}", ids.board));
    admin(&format!("/api/buckets/{}/sources/{}", ids.bucket, ids.source));
    admin(&format!("/api/buckets/{}/keys/{}", ids.bucket, ids.key));
    admin(&format!("/api/organization/keys/{}", ids.organization_key));
    admin(&format!("/api/webhooks/{}", ids.webhook));
    for path in [
        format!("/api/organization/members/{}", ids.member),
        format!("/api/organization/invitations/{}", ids.invitation),
        format!("/api/auth/sessions/{}", ids.session),
    ] {
        let request = account.client.delete(&path).bearer(&account.token);
        request.send().expect(200, "what exists is deleted");
    }
}

impl Scene {
    pub fn on(server: &Server) -> Self {
        let account = Account::sign_up(&server.client);
        let bucket = account.bucket("tides");
        let other = account.bucket("other");
        let foreigner = Account::sign_up(&server.client);
        let foreign = foreigner.bucket("tides");
        let deleted_bucket = account.bucket("deleted");
        let deleted = one_of_each(&account, &deleted_bucket);
        delete_each(&account, &deleted_bucket, &deleted);
        deleted_bucket
            .call("DELETE", "", &Value::Null)
            .expect(200, "a bucket is deleted");
        let deleted_parts = one_of_each(&account, &bucket);
        delete_each(&account, &bucket, &deleted_parts);
        Self {
            callers: callers(server, &account, [&bucket, &other, &foreign], &foreigner),
            own: one_of_each(&account, &bucket),
            other: one_of_each(&account, &other),
            foreign_ids: one_of_each(&foreigner, &foreign),
            deleted,
            deleted_parts,
            account,
            bucket,
            foreign,
        }
    }

    pub fn ids(&self, owner: IdOwner) -> Ids {
        let within_own = |ids: &Ids| Ids {
            bucket: self.own.bucket.clone(),
            webhook: self.own.webhook.clone(),
            board: self.own.board.clone(),
            ..ids.clone()
        };
        let never = Ids::all(UNKNOWN_ID);
        match owner {
            IdOwner::Own => self.own.clone(),
            IdOwner::OtherBucket => self.other.clone(),
            IdOwner::Foreign => self.foreign_ids.clone(),
            // Organizations cannot be deleted.
            IdOwner::Deleted => Ids {
                organization: never.organization,
                ..self.deleted.clone()
            },
            IdOwner::NeverExisted => never,
            IdOwner::Malformed => Ids::all("NOT-AN-ID"),
            IdOwner::PartOfOtherBucket => within_own(&self.other),
            IdOwner::PartOfForeign => within_own(&self.foreign_ids),
            IdOwner::PartDeleted => within_own(&self.deleted_parts),
            IdOwner::PartThatNeverExisted => within_own(&never),
        }
    }
}

fn callers(server: &Server, account: &Account, buckets: [&Bucket; 3], foreigner: &Account) -> Vec<Caller> {
    use Relation::{Both, Foreign, Nobody, OtherBucket, Own};
    use Role::{Admin, Bearer, Integration, Operator, Read, Write};
    let [bucket, other, foreign] = buckets;
    let (deleted_id, deleted_key) = bucket_key(bucket);
    bucket
        .call("DELETE", &format!("/keys/{deleted_id}"), &Value::Null)
        .expect(200, "a key is deleted");
    let (deleted_admin_id, deleted_admin) = organization_key(account, "admin");
    let path = format!("/api/organization/keys/{deleted_admin_id}");
    call(&account.client, &account.admin, "DELETE", &path, &Value::Null).expect(200, "a key is deleted");
    let caller = |name, role, relation, credential| Caller {
        name,
        role,
        relation,
        credentials: vec![credential],
    };
    let forger = Forger::of(server, account);
    let long_ago = json!({"iat": 1_700_000_000, "nbf": 1_700_000_000, "exp": 1_700_043_200});
    let expired = forger.sign(&forger.with(&long_ago));
    let made_up = format!("svc_a_{}", "A".repeat(43));
    vec![
        caller("admin", Admin, Own, key(&account.admin)),
        caller("bearer", Bearer, Own, bearer(&account.token)),
        caller("write", Write, Own, key(&bucket.key("write"))),
        caller("read", Read, Own, key(&bucket.key("read"))),
        caller("integration", Integration, Own, key(&integration(account).1)),
        caller(
            "other bucket's write",
            Write,
            OtherBucket,
            key(&other.key("write")),
        ),
        caller("other bucket's read", Read, OtherBucket, key(&other.key("read"))),
        caller("foreign admin", Admin, Foreign, key(&foreigner.admin)),
        caller("foreign bearer", Bearer, Foreign, bearer(&foreigner.token)),
        caller("foreign write", Write, Foreign, key(&foreign.key("write"))),
        caller("foreign read", Read, Foreign, key(&foreign.key("read"))),
        caller(
            "foreign integration",
            Integration,
            Foreign,
            key(&integration(foreigner).1),
        ),
        caller("operator", Operator, Own, bearer(OPERATOR_TOKEN)),
        caller("operator's token as a key", Operator, Nobody, key(OPERATOR_TOKEN)),
        caller("deleted key", Write, Nobody, key(&deleted_key)),
        caller("deleted admin key", Admin, Nobody, key(&deleted_admin)),
        caller("made-up key", Admin, Nobody, key(&made_up)),
        caller("made-up token", Bearer, Nobody, bearer("a.b.c")),
        caller("expired token", Bearer, Nobody, bearer(&expired)),
        Caller {
            credentials: Vec::new(),
            ..caller("nobody", Bearer, Nobody, key(""))
        },
        Caller {
            credentials: vec![key(&account.admin), bearer(&account.token)],
            ..caller("admin and bearer at once", Admin, Both, key(""))
        },
    ]
}
