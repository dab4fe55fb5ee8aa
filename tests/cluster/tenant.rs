//! An organization of the load: what it has, and what its clients were answered.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::client::Client;
use crate::given::{Account, Bucket, point, text};
use crate::record::{KeyLife, Outcome, Read, Row, RuleLife, Span, Verdict, Write, time_of};
use crate::time::{HOUR, now_ns, timestamp};
use crate::world::World;

/// Nanoseconds between two times of points.
const STEP_NS: i64 = 1_000_000;

pub struct Tenant {
    /// The address of its first user.
    pub email: String,
    pub bucket: Bucket,
    pub source: String,
    /// A key that may post verdicts.
    pub evaluator: String,
    pub shard: u16,
    /// The next unused number of a point.
    pub next: AtomicU64,
    /// The time of the first point.
    first_ns: i64,
    pub writes: Mutex<Vec<Write>>,
    pub reads: Mutex<Vec<Read>>,
    pub keys: Mutex<Vec<Key>>,
    pub rules: Mutex<Vec<Rule>>,
    pub unexpected: Mutex<Vec<String>>,
}

pub struct Key {
    /// Its id and its text, if its creation was acknowledged.
    pub known: Option<(String, String)>,
    pub life: KeyLife,
}

pub struct Rule {
    /// Its id, if its creation was acknowledged.
    pub id: Option<String>,
    pub name: String,
    pub creation: (Span, Outcome),
    pub verdicts: Vec<(Span, Verdict)>,
    pub due: Vec<(Span, bool)>,
    /// Verdicts that clients of the load are still to post.
    pub to_post: usize,
}

impl Rule {
    pub fn life(&self) -> RuleLife {
        RuleLife {
            name: self.name.clone(),
            creation: self.creation,
            verdicts: self.verdicts.clone(),
            due: self.due.clone(),
            listed: 0,
            history: Vec::new(),
            triggers: 0,
            deliveries: Default::default(),
        }
    }
}

impl Tenant {
    /// A new organization, made through this client.
    pub fn sign_up(world: &World, client: &Client) -> Self {
        let account = Account::sign_up(client);
        let bucket = account.bucket("tides");
        let request = client.post("/api/organization/keys").bearer(&account.token);
        let answer = request
            .json(&json!({"name": "evaluator", "type": "integration"}))
            .send();
        let answer = answer.expect(201, "contract 2: a bearer creates integration keys");
        let evaluator = text(&answer, "/apiKey/key");
        let shard = world.sql(&format!(
            "SELECT shard FROM directory WHERE email = '{}' AND organization = '{}'",
            account.email, account.organization_id
        ));
        Tenant {
            email: account.email,
            source: bucket.source("gauge", &["number", "level"]),
            bucket,
            evaluator,
            shard: shard.parse().unwrap(),
            next: AtomicU64::new(0),
            first_ns: (now_ns() - HOUR) / STEP_NS * STEP_NS,
            writes: Mutex::default(),
            reads: Mutex::default(),
            keys: Mutex::default(),
            rules: Mutex::default(),
            unexpected: Mutex::default(),
        }
    }

    /// Numbers for new points.
    pub fn take_numbers(&self, count: u64) -> std::ops::Range<u64> {
        let first = self.next.fetch_add(count, Ordering::SeqCst);
        first..first + count
    }

    pub fn timestamp(&self, time: u64) -> String {
        timestamp(self.first_ns + time as i64 * STEP_NS)
    }

    /// The body of a request with these points.
    pub fn points(&self, numbers: std::ops::Range<u64>, is_batch: bool, ballast: usize) -> Value {
        let entry = |number: u64| {
            let at = self.first_ns + time_of(number) as i64 * STEP_NS;
            let mut entry = point(&self.source, at, &json!({"number": number, "level": 1}));
            if ballast > 0 {
                entry["metadata"] = json!({"of": number, "ballast": "x".repeat(ballast)});
            }
            entry
        };
        let mut entries: Vec<Value> = numbers.map(entry).collect();
        if is_batch {
            return json!({"bucketId": self.bucket.id, "dataPoints": entries});
        }
        entries[0]["bucketId"] = json!(self.bucket.id);
        entries.swap_remove(0)
    }

    /// Notes a key that is about to be made; returns its place.
    pub fn add_key(&self, name: String, span: Span) -> usize {
        let mut keys = self.keys.lock().unwrap();
        keys.push(Key {
            known: None,
            life: KeyLife {
                name,
                creation: (span, Outcome::Unknown),
                deletion: None,
                uses: Vec::new(),
                listed: 0,
            },
        });
        keys.len() - 1
    }
}

/// The rows of an answer to a query.
pub fn rows(answer: &Value) -> Vec<Row> {
    let row = |row: &Value| Row {
        number: row["values"]["number"].as_u64().unwrap_or(u64::MAX),
        id: row["_id"].as_str().unwrap_or("?").to_owned(),
    };
    let rows = answer["data"].as_array();
    rows.map(|rows| rows.iter().map(row).collect())
        .unwrap_or_default()
}
