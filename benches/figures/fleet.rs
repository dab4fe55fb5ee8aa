//! Many buckets and sources, and load that makes checkpoints due.
//!
//! An organization's commands are decided one at a time, so several organizations create concurrently and share syncs.

use std::ops::Range;
use std::thread;

use serde_json::{Value, json};

use crate::Outcome;
use crate::client::{Connection, request};
use crate::metrics::{CHECKPOINTS, LOG_TAIL, metric};
use crate::points::{BATCH, FIELDS, SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, Server};

const ORGANIZATIONS: usize = 32;

pub struct Bucket {
    /// Index of its account.
    pub account: usize,
    pub id: String,
    pub sources: Vec<String>,
}

pub struct Fleet {
    pub accounts: Vec<Account>,
    pub buckets: Vec<Bucket>,
}

impl Fleet {
    pub fn sign_up(server: &Server) -> Outcome<Self> {
        let accounts = (0..ORGANIZATIONS).map(|index| Account::sign_up(server, &format!("plant{index}")));
        Ok(Fleet {
            accounts: accounts.collect::<Outcome<_>>()?,
            buckets: Vec::new(),
        })
    }

    /// Creates this many more buckets with this many sources each, in all organizations concurrently.
    pub fn create(&mut self, server: &Server, buckets: usize, sources: usize) -> Outcome<()> {
        let before = self.buckets.len();
        let created: Vec<Outcome<Vec<Bucket>>> = thread::scope(|scope| {
            let threads: Vec<_> = self
                .accounts
                .iter()
                .enumerate()
                .map(|(index, account)| {
                    let count = buckets / ORGANIZATIONS + usize::from(index < buckets % ORGANIZATIONS);
                    let numbers = before..before + count;
                    scope.spawn(move || create_of(server, index, account, numbers, sources))
                })
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined
                .map(|joined| joined.unwrap_or_else(|_| Err("a client panicked".into())))
                .collect()
        });
        for buckets in created {
            self.buckets.extend(buckets?);
        }
        Ok(())
    }

    pub fn credential(&self, bucket: &Bucket) -> &str {
        &self.accounts[bucket.account].credential
    }
}

fn create_of(
    server: &Server,
    index: usize,
    account: &Account,
    numbers: Range<usize>,
    sources: usize,
) -> Outcome<Vec<Bucket>> {
    let mut connection = Connection::open(server.address)?;
    let number = json!({"type": "number"});
    let fields = FIELDS.iter();
    let schema: serde_json::Map<_, _> = fields
        .map(|field| ((*field).to_owned(), number.clone()))
        .collect();
    let mut create = |path: &str, body: &Value, pointer: &str| -> Outcome<String> {
        let answer = connection.json("POST", path, &account.credential, body)?;
        let id = answer.pointer(pointer).and_then(Value::as_str);
        Ok(id.ok_or_else(|| format!("no {pointer} in {answer}"))?.to_owned())
    };
    let mut created = Vec::with_capacity(numbers.len());
    for number in numbers {
        let body = json!({"name": format!("bucket {number}")});
        let id = create("/api/buckets", &body, "/bucket/_id")?;
        let path = format!("/api/buckets/{id}/sources");
        let source = |source| {
            let body = json!({"name": format!("source {source}"), "schema": schema});
            create(&path, &body, "/dataSource/_id")
        };
        created.push(Bucket {
            account: index,
            sources: (0..sources).map(source).collect::<Outcome<_>>()?,
            id,
        });
    }
    Ok(created)
}

/// Batches of one source, which fill the log until a checkpoint is due.
pub struct Filler {
    connection: Connection,
    credential: String,
    bucket: String,
    source: String,
    series: Series,
}

impl Filler {
    /// Creates a bucket for the filler.
    pub fn of(server: &Server, account: &mut Account) -> Outcome<Self> {
        let bucket = account.bucket("filler")?;
        Ok(Filler {
            connection: Connection::open(server.address)?,
            credential: account.credential.clone(),
            source: account.source(&bucket, "filler")?,
            bucket,
            series: Series::new(1, days_ago_ns(28)?, SECOND_NS / 10),
        })
    }

    pub fn send(&mut self) -> Outcome<()> {
        let body = self.series.batch(&self.bucket, &self.source, BATCH);
        let request = request("POST", "/api/data/batch", &self.credential, &body);
        self.connection.send_ok(&request).map(drop)
    }

    /// Sends until the log has this length, which must be less than `storage.checkpoint_bytes`.
    pub fn fill(&mut self, server: &Server, log_bytes: f64) -> Outcome<()> {
        while metric(server, LOG_TAIL)? < log_bytes {
            self.send()?;
        }
        Ok(())
    }

    /// Sends until the number of checkpoints exceeds `before`.
    pub fn until_checkpoint(&mut self, server: &Server, before: f64) -> Outcome<()> {
        while metric(server, CHECKPOINTS)? <= before {
            self.send()?;
        }
        Ok(())
    }
}
