//! Points between an ingest and the webhooks subscribed to it. They stay plain data until a delivery is built, which
//! happens off the ingest path and only if there is room.

use std::sync::Arc;

use engine::rows::{NewestRows, Scalar};
use serde_json::value::RawValue;

use super::envelope::{Point, Received, delivery_to};
use crate::catalog::{Catalog, Delivery, Event, Source, Webhook};
use crate::ids::{ObjectId, ObjectIds};
use crate::ingest::json::{write_scalar, write_string};
use crate::timestamp::Timestamp;

/// The result of an ingest: everything `data.received` needs except the webhooks.
#[derive(Clone, Debug)]
pub struct NewPoints {
    /// The owner of the bucket.
    pub organization_id: ObjectId,
    pub bucket_id: ObjectId,
    /// The bucket's ordinal, part of every point id.
    pub bucket_ordinal: u32,
    /// Sequence number of the ingest's first row.
    pub first_sequence: u64,
    /// Whether this was a batch ingest, for which the body includes the number of points of the source.
    pub batch: bool,
    /// Time of ingest, UTC nanoseconds.
    pub received_at_ns: i64,
    /// The newest point of each source.
    pub rows: NewestRows,
}

impl NewPoints {
    /// Memory in use while queued.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.rows.memory_bytes()
    }

    /// The source of the row at `index`; `None` if it was deleted.
    pub(super) fn source<'c>(&self, catalog: &'c Catalog, index: usize) -> Option<&'c Arc<Source>> {
        catalog.source_by_ordinal(self.bucket_id, self.rows.rows().get(index)?.source)
    }

    /// The delivery to a webhook for the row at `index`, which belongs to `source`.
    pub(super) fn delivery(
        &self,
        index: usize,
        source: &Source,
        webhook: &Webhook,
        ids: &ObjectIds,
    ) -> Option<Delivery> {
        let row = self.rows.rows().get(index)?;
        // A source never loses a field, so every value has a name.
        let named = |(field, value)| Some((&*source.schema.fields.get(usize::from(field))?.name, value));
        let values = values_of(self.rows.values(row).filter_map(named))?;
        let metadata = self.rows.metadata(row).and_then(raw_json);
        let sequence = self.first_sequence + u64::from(row.place);
        let received = Received {
            data_source_id: source.id,
            data_source_name: &source.name,
            data_point: Point {
                id: Some(ObjectId::of_point(self.bucket_ordinal, sequence)),
                timestamp: Timestamp(row.timestamp_ns),
                values: &values,
                metadata: metadata.as_deref(),
            },
            data_point_count: self.batch.then_some(row.count),
        };
        let (event, bucket_id) = (Event::DataReceived, self.bucket_id);
        // The webhook may have been paused or its events changed since the ingest.
        webhook.receives(event, bucket_id).then(|| {
            delivery_to(
                webhook,
                event,
                Some(bucket_id),
                ids,
                self.received_at_ns,
                &received,
            )
        })
    }
}

/// The values of a point as a JSON object, written as in the API. `None` if that fails, which does not happen.
pub fn values_of<'v>(values: impl Iterator<Item = (&'v str, Scalar<'v>)>) -> Option<Box<RawValue>> {
    let mut json = vec![b'{'];
    for (name, value) in values {
        if json.len() > 1 {
            json.push(b',');
        }
        write_string(name, &mut json);
        json.push(b':');
        write_scalar(value, &mut json);
    }
    json.push(b'}');
    RawValue::from_string(String::from_utf8(json).ok()?).ok()
}

/// A JSON text; `None` if it is malformed.
pub fn raw_json(json: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(json.to_owned()).ok()
}

/// The webhooks that subscribe to ingests into a bucket.
pub(super) fn subscribers(
    catalog: &Catalog,
    organization_id: ObjectId,
    bucket_id: ObjectId,
) -> impl Iterator<Item = &Arc<Webhook>> {
    catalog
        .webhooks_of(organization_id)
        .filter(move |webhook| webhook.receives(Event::DataReceived, bucket_id))
}
