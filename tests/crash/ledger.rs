//! The requests of the writers and the answers of the server.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::support::given::{Bucket, point};

/// A sent point. Its number, the value of the field `number`, is unique in the whole test.
#[derive(Clone)]
pub struct Sent {
    pub number: u64,
    pub bucket: usize,
    pub source: usize,
    pub at: i64,
    /// Bytes of text in its metadata, so that few points make a long log.
    pub ballast: usize,
}

impl Sent {
    /// Different for every point; `None` without ballast.
    pub fn metadata(&self) -> Option<Value> {
        (self.ballast > 0).then(|| json!({"of": self.number, "ballast": "x".repeat(self.ballast)}))
    }
}

/// One ingest request.
#[derive(Clone)]
pub struct Operation {
    pub points: Vec<Sent>,
    pub batch: bool,
    /// Whether the batch has a faulty entry among valid ones.
    pub faulty: bool,
    pub idempotency_key: Option<String>,
    pub body: String,
}

impl Operation {
    pub fn new(
        points: Vec<Sent>,
        batch: bool,
        faulty: bool,
        idempotency_key: Option<String>,
        places: &[Place],
    ) -> Self {
        let place = &places[points[0].bucket];
        let entry = |sent: &Sent| {
            let values = json!({"number": sent.number, "half": sent.number as f64 / 2.0});
            let mut entry = point(&place.sources[sent.source], sent.at, &values);
            if let Some(metadata) = sent.metadata() {
                entry["metadata"] = metadata;
            }
            entry
        };
        let mut entries: Vec<Value> = points.iter().map(entry).collect();
        let body = if batch {
            if faulty {
                entries.insert(
                    entries.len() / 2,
                    json!({"dataSourceId": place.sources[0], "values": {"number": "none"}}),
                );
            }
            json!({"bucketId": place.bucket.id, "dataPoints": entries})
        } else {
            entries[0]["bucketId"] = json!(place.bucket.id);
            entries.swap_remove(0)
        };
        Self {
            points,
            batch,
            faulty,
            idempotency_key,
            body: body.to_string(),
        }
    }

    pub fn path(&self) -> &'static str {
        if self.batch {
            "/api/data/batch"
        } else {
            "/api/data"
        }
    }

    /// The expected successful answer.
    pub fn success(&self) -> u16 {
        if self.faulty { 207 } else { 201 }
    }
}

/// A bucket and its sources.
pub struct Place {
    pub bucket: Bucket,
    pub sources: Vec<String>,
}

#[derive(Default)]
pub struct Ledger {
    /// Points that must be present, by number.
    pub acknowledged: HashMap<u64, Sent>,
    /// Acknowledged requests with a key, and the text of the answer.
    pub replayable: Vec<(Operation, String)>,
    /// Requests without an answer: each is present completely or not at all.
    pub unknown: Vec<Operation>,
    /// The observed ids of points, by number.
    pub ids: HashMap<u64, String>,
    /// All acknowledged requests in order, if they are recorded.
    pub history: Option<Vec<Operation>>,
    /// Created sources, with whether their deletion was acknowledged (`None`: requested, without an answer).
    pub created: HashMap<String, Option<bool>>,
}

impl Ledger {
    pub fn acknowledge(&mut self, operation: &Operation) {
        for sent in &operation.points {
            self.acknowledged.insert(sent.number, sent.clone());
        }
        if let Some(history) = &mut self.history {
            history.push(operation.clone());
        }
    }
}
