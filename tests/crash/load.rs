//! Writers that run until the server is killed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::ledger::{Ledger, Operation, Place, Sent};
use crate::support::client::{Answer, Client};
use crate::support::given::text;
use crate::support::time::{DAY, SECOND, now_ns};

pub const WRITERS: u64 = 8;

pub struct Load<'a> {
    pub client: &'a Client,
    pub places: &'a [Place],
    pub ledger: &'a Mutex<Ledger>,
    /// The next unused number of a point.
    pub numbers: &'a AtomicU64,
    /// Bytes of ballast in each point.
    pub ballast: usize,
    /// Requests answered so far.
    pub answered: AtomicU64,
}

/// Sends the request with its key; `None` if no answer decides its outcome.
pub fn send(client: &Client, admin: &str, operation: &Operation) -> Option<Answer> {
    let mut request = client.post(operation.path()).key(admin);
    if let Some(key) = &operation.idempotency_key {
        request = request.header("Idempotency-Key", key.as_str());
    }
    let answer = request.body(operation.body.as_str()).try_send().ok()?;
    (answer.status != 503).then_some(answer)
}

impl Load<'_> {
    /// Runs one writer: sends requests one after another until one gets no answer.
    pub fn write(&self, mut random: fastrand::Rng) {
        loop {
            let operation = self.operation(&mut random);
            let admin = &self.places[operation.points[0].bucket].bucket.admin;
            let answer = send(self.client, admin, &operation);
            let mut ledger = self.ledger.lock().unwrap();
            let Some(answer) = answer else {
                ledger.unknown.push(operation);
                return;
            };
            assert_eq!(
                answer.status,
                operation.success(),
                "contract 4: a good request under load: {answer}"
            );
            ledger.acknowledge(&operation);
            if operation.idempotency_key.is_some() {
                ledger.replayable.push((operation, answer.text()));
            }
            self.answered.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Single points and batches over all buckets, one in three late, one in four with a key.
    fn operation(&self, random: &mut fastrand::Rng) -> Operation {
        let batch = random.bool();
        let count = if batch { random.u64(1..40) } else { 1 };
        let bucket = random.usize(..self.places.len());
        let first = self.numbers.fetch_add(count, Ordering::Relaxed);
        let now = now_ns() / SECOND * SECOND;
        let late = random.u8(..3) == 0;
        let sent = |number| Sent {
            number,
            bucket,
            source: random.usize(..self.places[bucket].sources.len()),
            at: if late {
                now - random.i64(0..20 * DAY) / SECOND * SECOND
            } else {
                now + number as i64
            },
            ballast: self.ballast,
        };
        let points: Vec<Sent> = (first..first + count).map(sent).collect();
        let key = (random.u8(..4) == 0).then(|| format!("key {first}"));
        let faulty = batch && random.u8(..5) == 0;
        Operation::new(points, batch, faulty, key, self.places)
    }

    /// Creates sources and deletes half of them, until the server is killed.
    pub fn churn(&self, mut random: fastrand::Rng) {
        let place = &self.places[0];
        let path = format!("/api/buckets/{}/sources", place.bucket.id);
        loop {
            let name = format!("source {}", random.u64(..));
            let body = json!({"name": name, "schema": {"number": {"type": "number"}}});
            let Ok(answer) = self
                .client
                .post(&path)
                .key(&place.bucket.admin)
                .json(&body)
                .try_send()
            else {
                return;
            };
            let id = text(
                &answer.expect(201, "spec: a source is created under load"),
                "/dataSource/_id",
            );
            self.ledger
                .lock()
                .unwrap()
                .created
                .insert(id.clone(), Some(false));
            if random.bool() {
                self.ledger.lock().unwrap().created.insert(id.clone(), None);
                let Ok(answer) = self
                    .client
                    .delete(&format!("{path}/{id}"))
                    .key(&place.bucket.admin)
                    .try_send()
                else {
                    return;
                };
                let deleted: Value = answer.expect(200, "contract 3: a source is deleted under load");
                assert_eq!(
                    deleted["deletedDataSource"]["_id"], id,
                    "contract 3: deletedDataSource"
                );
                self.ledger.lock().unwrap().created.insert(id, Some(true));
            }
        }
    }
}
