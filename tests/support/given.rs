//! Preconditions of most tests: an account, its admin key, buckets, sources, points. Each step asserts that the server
//! answered according to the contract, so that a test's assertions are only about its subject.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use super::client::Client;
use super::time::timestamp;

pub const PASSWORD: &str = "correct horse battery";

/// One organization: the bearer token of its first user, and one admin key.
#[derive(Clone)]
pub struct Account {
    pub client: Client,
    pub email: String,
    pub token: String,
    pub organization_id: String,
    pub admin: String,
}

impl Account {
    #[track_caller]
    pub fn sign_up(client: &Client) -> Self {
        static ACCOUNTS: AtomicU32 = AtomicU32::new(0);
        let email = format!("user{}@example.com", ACCOUNTS.fetch_add(1, Ordering::Relaxed));
        let body =
            json!({"email": email, "password": PASSWORD, "name": "Ada", "organizationName": "Tide Lab"});
        let answer = client
            .post("/api/auth/signup")
            .json(&body)
            .send()
            .expect(201, "contract 2: sign-up");
        let token = text(&answer, "/token");
        let request = client.post("/api/organization/keys").bearer(&token);
        let key = request.json(&json!({"name": "admin", "type": "admin"})).send();
        let admin = text(
            &key.expect(201, "contract 2: a bearer creates admin keys"),
            "/apiKey/key",
        );
        Self {
            client: client.clone(),
            email,
            token,
            organization_id: text(&answer, "/organization/_id"),
            admin,
        }
    }

    #[track_caller]
    pub fn bucket(&self, name: &str) -> Bucket {
        self.bucket_with(&json!({"name": name}))
    }

    #[track_caller]
    pub fn bucket_with(&self, body: &Value) -> Bucket {
        let answer = self
            .client
            .post("/api/buckets")
            .key(&self.admin)
            .json(body)
            .send();
        let id = text(&answer.expect(201, "spec: POST /api/buckets"), "/bucket/_id");
        Bucket {
            client: self.client.clone(),
            id,
            admin: self.admin.clone(),
        }
    }
}

/// A bucket with the admin key of its organization.
#[derive(Clone)]
pub struct Bucket {
    pub client: Client,
    pub id: String,
    pub admin: String,
}

impl Bucket {
    /// A source with one number field for each name.
    #[track_caller]
    pub fn source(&self, name: &str, fields: &[&str]) -> String {
        let schema: serde_json::Map<String, Value> = fields
            .iter()
            .map(|field| ((*field).to_owned(), json!({"type": "number"})))
            .collect();
        self.source_with(&json!({"name": name, "schema": schema}))
    }

    #[track_caller]
    pub fn source_with(&self, body: &Value) -> String {
        let path = format!("/api/buckets/{}/sources", self.id);
        let answer = self.client.post(&path).key(&self.admin).json(body).send();
        text(
            &answer.expect(201, "spec: POST /api/buckets/:bucketId/sources"),
            "/dataSource/_id",
        )
    }

    /// Sends a query of this bucket that must succeed; `body` lacks only the `bucketId`.
    #[track_caller]
    pub fn query(&self, body: &Value) -> Value {
        let mut body = body.clone();
        body["bucketId"] = json!(self.id);
        let answer = self
            .client
            .post("/api/data/query")
            .key(&self.admin)
            .json(&body)
            .send();
        answer.expect(200, &format!("spec: POST /api/data/query with {body}"))
    }
}

/// A data point in the form of ingestion; without `bucketId`, it is an entry of a batch.
pub fn point(source_id: &str, at_ns: i64, values: &Value) -> Value {
    json!({"dataSourceId": source_id, "timestamp": timestamp(at_ns), "values": values})
}

/// The string at a JSON pointer, which must exist.
#[track_caller]
pub fn text(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found
        .unwrap_or_else(|| panic!("a string is expected at {pointer} of {value}"))
        .to_owned()
}
