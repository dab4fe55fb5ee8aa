//! What webhooks are told of an ingest: made of its body again, and only when one of them hears it, so that an ingest
//! nobody hears of pays nothing.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{IngestAnswer, Sent};
use crate::bucket::point_id;
use crate::catalog::{Bucket, CatalogHandle};
use crate::delivery::NewPoints;
use crate::ids::ObjectId;
use crate::ingest::json::{write_number, write_string};
use crate::ingest::timestamp;

/// The members of an object; of one that stands twice the last, as everywhere.
type Members<'a> = HashMap<Cow<'a, str>, &'a RawValue>;

/// A point as it stands in a body.
struct SentPoint<'a> {
    source_id: ObjectId,
    timestamp: Option<Cow<'a, str>>,
    values: Map<String, Value>,
    metadata: Option<&'a RawValue>,
}

impl<'a> SentPoint<'a> {
    /// `None` for what ingest does not store.
    fn read(json: &'a str) -> Option<Self> {
        let members: Members<'a> = serde_json::from_str(json).ok()?;
        let text =
            |name: &str| serde_json::from_str::<Option<Cow<'a, str>>>(members.get(name)?.get()).ok()?;
        Some(Self {
            source_id: text("dataSourceId")?.parse().ok()?,
            timestamp: text("timestamp"),
            values: serde_json::from_str(members.get("values")?.get()).ok()?,
            metadata: members
                .get("metadata")
                .copied()
                .filter(|metadata| metadata.get() != "null"),
        })
    }
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
struct Newest<'a> {
    point: SentPoint<'a>,
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
                values: measured(&newest.point.values)?,
                metadata: newest.point.metadata.map(ToOwned::to_owned),
                count: matches!(self.sent, Sent::Batch(_)).then_some(newest.count),
                received_at_ns: self.now_ns,
            })
        });
        found.collect()
    }

    fn newest(&self) -> BTreeMap<ObjectId, Newest<'_>> {
        let mut by_source: BTreeMap<ObjectId, Newest<'_>> = BTreeMap::new();
        for (place, entry) in self.stored().into_iter().enumerate() {
            let Some(point) = SentPoint::read(entry) else {
                continue;
            };
            let timestamp_ns = point.timestamp.as_deref().map(timestamp::parse);
            let Ok(timestamp_ns) = timestamp_ns.unwrap_or(Ok(self.now_ns)) else {
                continue;
            };
            let source_id = point.source_id;
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
    fn stored(&self) -> Vec<&str> {
        let body = match self.sent {
            Sent::Point(body) => return std::str::from_utf8(body).into_iter().collect(),
            Sent::Batch(body) => body,
        };
        let failed: HashSet<usize> = serde_json::from_slice::<Failed>(&self.answer.body)
            .map(|failed| failed.errors.into_iter().map(|entry| entry.index).collect())
            .unwrap_or_default();
        let members: Members<'_> = serde_json::from_slice(body).unwrap_or_default();
        let entries = members
            .get("dataPoints")
            .map(|entries| serde_json::from_str::<Vec<&RawValue>>(entries.get()));
        let entries = entries.and_then(Result::ok).unwrap_or_default().into_iter();
        let stored = entries.enumerate().filter(|(index, _)| !failed.contains(index));
        stored.map(|(_, entry)| entry.get()).collect()
    }
}

/// The values that were measured, as answers show them.
fn measured(values: &Map<String, Value>) -> Option<Box<RawValue>> {
    let mut json = vec![b'{'];
    for (name, value) in values.iter().filter(|(_, value)| !value.is_null()) {
        if json.len() > 1 {
            json.push(b',');
        }
        write_string(name, &mut json);
        json.push(b':');
        match value.as_f64() {
            Some(number) => write_number(number, &mut json),
            None => serde_json::to_writer(&mut json, value).ok()?,
        }
    }
    json.push(b'}');
    RawValue::from_string(String::from_utf8(json).ok()?).ok()
}
