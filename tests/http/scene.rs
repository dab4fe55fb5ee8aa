//! Scenes shared by most tests of this binary, and short forms of requests.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::client::{Answer, Client};
use crate::support::given::{Account, Bucket, text};
use crate::support::process::{Server, Setup};
use crate::support::time::{DAY, SECOND, now_ns, timestamp};

/// A well-formed id of no object.
pub const UNKNOWN_ID: &str = "0123456789abcdef01234567";

/// Longer than the age of any timestamp in the tests.
pub const RETENTION_DAYS_MAX: u32 = 1_000_000;

/// The time so many days from now, to the second.
pub fn in_days(days: i64) -> String {
    timestamp((now_ns() / SECOND) * SECOND + days * DAY)
}

pub fn server() -> Server {
    Server::start_with(Setup::unlimited())
}

pub fn server_with(key: &str, value: &str) -> Server {
    Server::start_with(Setup::unlimited().set(key, value))
}

/// A server and one account with a bucket that keeps all points.
pub fn bucket() -> (Server, Account, Bucket) {
    bucket_on(server())
}

/// The same on a server that seals points into segments continuously, so that small tests cover blocks, rollups and
/// merges.
pub fn sealing_bucket() -> (Server, Account, Bucket) {
    bucket_on(server_with("storage.checkpoint_bytes", "65536"))
}

/// The same on the given server.
pub fn bucket_on(server: Server) -> (Server, Account, Bucket) {
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket_with(&json!({"name": "tides", "retentionDays": RETENTION_DAYS_MAX}));
    (server, account, bucket)
}

/// The body with these members, which replace its own of the same names.
pub fn with_members(mut body: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body
}

/// Sends a request with an API key; `Value::Null` sends no body.
#[track_caller]
pub fn call(client: &Client, key: &str, method: &str, path: &str, body: &Value) -> Answer {
    let request = client.request(method, path).key(key);
    if body.is_null() {
        request.send()
    } else {
        request.json(body).send()
    }
}

impl Bucket {
    /// Sends a request with the admin key to `/api/buckets/<this>` followed by `below`.
    #[track_caller]
    pub fn call(&self, method: &str, below: &str, body: &Value) -> Answer {
        call(
            &self.client,
            &self.admin,
            method,
            &format!("/api/buckets/{}{below}", self.id),
            body,
        )
    }

    /// Creates a key of this bucket: `write` or `read`.
    #[track_caller]
    pub fn key(&self, kind: &str) -> String {
        let path = format!("/api/buckets/{}/keys", self.id);
        let answer = self
            .client
            .post(&path)
            .key(&self.admin)
            .json(&json!({"name": kind, "type": kind}))
            .send();
        text(
            &answer.expect(201, "spec: POST /api/buckets/:bucketId/keys"),
            "/apiKey/key",
        )
    }

    /// Creates a silence of this bucket; returns its id.
    #[track_caller]
    pub fn silence(&self) -> String {
        let body = json!({"bucketId": self.id, "until": "2200-01-01T00:00:00Z", "reason": "maintenance"});
        let created = call(&self.client, &self.admin, "POST", "/api/silences", &body);
        text(
            &created.expect(201, "contract 14: POST /api/silences"),
            "/silence/_id",
        )
    }

    /// Creates an annotation of this bucket; returns its id.
    #[track_caller]
    pub fn annotation(&self) -> String {
        let body = json!({"bucketId": self.id, "at": "2026-01-01T00:00:00Z", "text": "filter cleaned"});
        let created = call(&self.client, &self.admin, "POST", "/api/annotations", &body);
        text(
            &created.expect(201, "contract 14: POST /api/annotations"),
            "/annotation/_id",
        )
    }

    /// Creates a board of the organization, with a link to it; returns their ids.
    #[track_caller]
    pub fn board(&self) -> (String, String) {
        let body = json!({"name": "control room", "range": "24h", "panels": []});
        let created = call(&self.client, &self.admin, "POST", "/api/boards", &body);
        let board = text(
            &created.expect(201, "small print N.1: POST /api/boards"),
            "/board/_id",
        );
        let path = format!("/api/boards/{board}/share");
        let body = json!({"expiresAt": in_days(30)});
        let shared = call(&self.client, &self.admin, "POST", &path, &body);
        let share = text(&shared.expect(201, "small print N.9: POST …/share"), "/share/_id");
        (board, share)
    }

    /// Sends the points in batches of the largest size; all must be accepted.
    #[track_caller]
    pub fn send(&self, points: &[Value]) {
        for points in points.chunks(1000) {
            let body = json!({"bucketId": self.id, "dataPoints": points});
            let answer = self
                .client
                .post("/api/data/batch")
                .key(&self.admin)
                .json(&body)
                .send();
            let answer = answer.expect(201, "spec: a batch without faults is 201");
            assert_eq!(
                answer["insertedCount"],
                points.len(),
                "spec: `insertedCount` of a whole batch"
            );
        }
    }

    /// Sends POST /api/data; `point` lacks only the `bucketId`.
    #[track_caller]
    pub fn single(&self, point: &Value) -> Answer {
        let mut body = point.clone();
        body["bucketId"] = json!(self.id);
        self.client.post("/api/data").key(&self.admin).json(&body).send()
    }

    /// Sends POST /api/data/batch with these entries.
    #[track_caller]
    pub fn batch(&self, entries: &[Value]) -> Answer {
        let body = json!({"bucketId": self.id, "dataPoints": entries});
        self.client
            .post("/api/data/batch")
            .key(&self.admin)
            .json(&body)
            .send()
    }

    /// Sends POST /api/data/query; `body` lacks only the `bucketId`.
    #[track_caller]
    pub fn post_query(&self, body: &Value) -> Answer {
        let mut body = body.clone();
        body["bucketId"] = json!(self.id);
        self.client
            .post("/api/data/query")
            .key(&self.admin)
            .json(&body)
            .send()
    }

    /// All raw rows with these filters, in one answer.
    #[track_caller]
    pub fn rows(&self, filters: &Value) -> Vec<Value> {
        let answer = self.query(&json!({"filters": filters, "limit": 10_000, "downsampling": false}));
        assert_eq!(
            answer["metadata"]["hasMore"], false,
            "this test's points fit one answer"
        );
        array(&answer, "/data")
    }
}

/// The array at a JSON pointer, which must exist.
#[track_caller]
pub fn array(value: &Value, pointer: &str) -> Vec<Value> {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found
        .unwrap_or_else(|| panic!("an array is expected at {pointer} of {value}"))
        .clone()
}

/// The names of a JSON object's members, sorted.
pub fn members(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    names.sort_unstable();
    names
}

/// This member of every row, in order.
pub fn column(rows: &[Value], pointer: &str) -> Vec<Value> {
    rows.iter()
        .map(|row| row.pointer(pointer).cloned().unwrap_or(Value::Null))
        .collect()
}

/// The spellings of numbers with this name in a JSON text, in order.
pub fn spellings<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let member = format!("\"{name}\":");
    let mut found = Vec::new();
    for (at, _) in text.match_indices(&member) {
        let rest = text[at + member.len()..].trim_start();
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
        let number = &rest[..end.unwrap_or(rest.len())];
        if !number.is_empty() {
            found.push(number);
        }
    }
    found
}

/// Asserts that the faults of an answer have exactly these paths.
#[track_caller]
pub fn assert_faults(answer: &Answer, expected: &[&str], sentence: &str) {
    answer.refused(400, sentence);
    let mut found = answer.faults();
    found.dedup();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(
        found, expected,
        "contract 1: all faults of one body, each at its path ({sentence}): {answer}"
    );
}

/// Asserts the contract's form of a timestamp: UTC, `Z`, no fraction if it is zero, else the fewest of 3, 6 or 9 digits
/// that preserve it.
#[track_caller]
pub fn assert_timestamp(value: &Value, what: &str) {
    let text = value
        .as_str()
        .unwrap_or_else(|| panic!("contract 1: `{what}` is a timestamp, not {value}"));
    let shape: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let well_formed = match shape.strip_prefix("0000-00-00T00:00:00") {
        Some("Z") => true,
        Some(".000Z" | ".000000Z" | ".000000000Z") => !text.ends_with("000Z"),
        _ => false,
    };
    assert!(
        well_formed,
        "contract 1: `{what}` has no fraction or the fewest of 3, 6, 9 digits, and Z: {text}"
    );
}

/// All files below a directory.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}
