//! What webhooks are told of an ingest: made of its body again, and only when one of them hears it, so that an ingest
//! nobody hears of pays nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::{IngestAnswer, Sent};
use crate::bucket::point_id;
use crate::catalog::{Bucket, CatalogHandle};
use crate::delivery::NewPoints;
use crate::ids::ObjectId;
use crate::ingest::timestamp;

/// A point as it stands in a body.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SentPoint {
    data_source_id: String,
    #[serde(default)]
    timestamp: Option<String>,
    values: Map<String, Value>,
    #[serde(default)]
    metadata: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SentBatch<'a> {
    #[serde(borrow)]
    data_points: Vec<&'a RawValue>,
}

/// The entries of a batch that were not stored, as its answer says.
#[derive(Deserialize)]
struct Failed {
    #[serde(default)]
    errors: Vec<FailedEntry>,
}

#[derive(Deserialize)]
struct FailedEntry {
    index: usize,
}

/// An ingest that was stored.
pub(super) struct Stored<'a> {
    pub bucket: &'a Arc<Bucket>,
    pub sent: Sent<'a>,
    pub answer: &'a IngestAnswer,
    pub first_sequence: u64,
    pub now_ns: i64,
}

/// The newest stored point of a source, and how many there are.
struct Newest {
    point: SentPoint,
    timestamp_ns: i64,
    sequence: u64,
    count: u32,
}

impl Stored<'_> {
    /// One for each source that got points.
    pub fn points(&self, catalog: &CatalogHandle) -> Vec<NewPoints> {
        let found = self.newest().into_iter().filter_map(|(source_id, newest)| {
            let source = catalog.read(|catalog| catalog.source(source_id).cloned())?;
            let id = point_id(self.bucket.ordinal, newest.sequence);
            Some(NewPoints {
                organization_id: self.bucket.organization_id,
                bucket_id: self.bucket.id,
                source_id,
                source_name: source.name.clone(),
                point_id: std::str::from_utf8(&id).ok()?.into(),
                timestamp_ns: newest.timestamp_ns,
                values: to_raw_value(&measured(newest.point.values)).ok()?,
                metadata: newest.point.metadata.filter(|metadata| metadata.get() != "null"),
                count: matches!(self.sent, Sent::Batch(_)).then_some(newest.count),
                received_at_ns: self.now_ns,
            })
        });
        found.collect()
    }

    fn newest(&self) -> BTreeMap<ObjectId, Newest> {
        let mut by_source: BTreeMap<ObjectId, Newest> = BTreeMap::new();
        for (place, point) in self.stored().into_iter().enumerate() {
            let timestamp = point.timestamp.as_deref();
            let timestamp_ns = timestamp.map_or(Ok(self.now_ns), timestamp::parse);
            let (Ok(source_id), Ok(timestamp_ns)) = (point.data_source_id.parse(), timestamp_ns) else {
                continue;
            };
            let newest = Newest {
                point,
                timestamp_ns,
                sequence: self.first_sequence + place as u64,
                count: 1,
            };
            match by_source.entry(source_id) {
                std::collections::btree_map::Entry::Vacant(entry) => drop(entry.insert(newest)),
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    let count = entry.get().count + 1;
                    // Of two with one timestamp, the later one.
                    if newest.timestamp_ns >= entry.get().timestamp_ns {
                        entry.insert(newest);
                    }
                    entry.get_mut().count = count;
                }
            }
        }
        by_source
    }

    /// The points that were stored, in the order of their sequences.
    fn stored(&self) -> Vec<SentPoint> {
        let body = match self.sent {
            Sent::Point(body) => return serde_json::from_slice(body).into_iter().collect(),
            Sent::Batch(body) => body,
        };
        let failed: HashSet<usize> = serde_json::from_slice::<Failed>(&self.answer.body)
            .map(|failed| failed.errors.into_iter().map(|entry| entry.index).collect())
            .unwrap_or_default();
        let entries = serde_json::from_slice::<SentBatch<'_>>(body)
            .map(|batch| batch.data_points)
            .unwrap_or_default();
        let entries = entries.into_iter().enumerate();
        entries
            .filter(|(index, _)| !failed.contains(index))
            .filter_map(|(_, entry)| serde_json::from_str(entry.get()).ok())
            .collect()
    }
}

/// The values that were measured, with numbers as answers show them.
fn measured(values: Map<String, Value>) -> HashMap<String, Value> {
    let shown = |value: Value| match value.as_f64() {
        Some(number) if number.fract() == 0.0 && number.abs() < 9e15 => Value::from(number as i64),
        _ => value,
    };
    values
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name, shown(value)))
        .collect()
}
