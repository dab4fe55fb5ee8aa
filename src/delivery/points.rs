//! Points between an ingest and the webhooks subscribed to it. They stay plain data until a delivery is built, which
//! happens off the ingest path and only if there is room.

use std::sync::Arc;

use engine::rows::{NewestRow, NewestRows};
use serde_json::value::RawValue;

use super::envelope::{Named, Point, Received, delivery_to};
use crate::catalog::{Catalog, Delivery, Event, Schema, Source, Webhook};
use crate::ids::{ObjectId, ObjectIds};
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
    /// Formats a point as the API shows it.
    pub show: Show,
}

/// A point as the API shows it: its id, and its values as an object.
pub struct Shown {
    pub id: String,
    pub values: Box<RawValue>,
}

/// Formats one of these points. `None` if that is impossible, which does not happen.
pub type Show = fn(&NewPoints, &NewestRow<'_>, &Schema) -> Option<Shown>;

impl NewPoints {
    /// Memory in use while queued.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.rows.memory_bytes()
    }

    /// The subscribed webhooks.
    pub(super) fn subscribers(&self, catalog: &Catalog) -> Vec<Arc<Webhook>> {
        subscribers(catalog, self.organization_id, self.bucket_id)
            .cloned()
            .collect()
    }

    /// The source of the row at `index`; `None` if it was deleted.
    pub(super) fn source<'c>(&self, catalog: &'c Catalog, index: usize) -> Option<&'c Arc<Source>> {
        catalog.source_by_ordinal(self.bucket_id, self.rows.get(index)?.source)
    }

    /// The delivery to a webhook for the row at `index`, which belongs to `source`.
    pub(super) fn delivery(
        &self,
        index: usize,
        source: &Source,
        webhook: &Webhook,
        ids: &ObjectIds,
    ) -> Option<Delivery> {
        let row = self.rows.get(index)?;
        let shown = (self.show)(self, &row, &source.schema)?;
        let metadata = row.metadata.map(ToOwned::to_owned);
        let metadata = metadata.and_then(|json| RawValue::from_string(json).ok());
        let received = Received {
            bucket_id: self.bucket_id,
            source: Named {
                id: source.id,
                name: &source.name,
            },
            point_id: &shown.id,
            point: Point {
                timestamp: Timestamp(row.timestamp_ns),
                values: &shown.values,
                metadata: metadata.as_deref(),
            },
            point_count: self.batch.then_some(row.count),
            received_at_ns: self.received_at_ns,
        };
        let body = |webhook_id| received.body(webhook_id);
        let event = Event::DataReceived;
        // The webhook may have been paused or its events changed since the ingest.
        webhook
            .hears(event, self.bucket_id)
            .then(|| delivery_to(webhook, event, ids, self.received_at_ns, body))
    }
}

/// The webhooks that subscribe to ingests into a bucket.
pub(super) fn subscribers(
    catalog: &Catalog,
    organization_id: ObjectId,
    bucket_id: ObjectId,
) -> impl Iterator<Item = &Arc<Webhook>> {
    catalog
        .webhooks_of(organization_id)
        .filter(move |webhook| webhook.hears(Event::DataReceived, bucket_id))
}
