//! Points on their way from an ingest to the webhooks that hear of them: plain data until a delivery is made of it, which
//! is far from the ingest and only for what there is room for.

use std::sync::Arc;

use engine::rows::{NewestRow, NewestRows};
use serde_json::value::RawValue;

use super::envelope::{Named, Point, Received, delivery_to};
use crate::catalog::{Catalog, Delivery, Event, Schema, Source, Webhook};
use crate::ids::{ObjectId, ObjectIds};
use crate::timestamp::Timestamp;

/// What an ingest brought: all of its `data.received` but for the webhooks.
#[derive(Clone, Debug)]
pub struct NewPoints {
    /// The bucket's owner.
    pub organization_id: ObjectId,
    pub bucket_id: ObjectId,
    /// The bucket's ordinal, of which the ids of points are made.
    pub bucket_ordinal: u32,
    /// Sequence of the ingest's first row.
    pub first_sequence: u64,
    /// Whether it was a batch, of which the points of each source are counted.
    pub batch: bool,
    /// When they were ingested, UTC nanoseconds.
    pub received_at_ns: i64,
    /// The newest point of each source.
    pub rows: NewestRows,
    /// How answers show a point.
    pub show: Show,
}

/// A point as answers show it: its id, and its values as an object.
pub struct Shown {
    /// Id of the point.
    pub id: String,
    pub values: Box<RawValue>,
}

/// Shows a point of these; `None` where it cannot be, which does not happen.
pub type Show = fn(&NewPoints, &NewestRow<'_>, &Schema) -> Option<Shown>;

impl NewPoints {
    /// Bytes that it takes while it waits.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.rows.memory_bytes()
    }

    /// The webhooks that are told.
    pub(super) fn hearers(&self, catalog: &Catalog) -> Vec<Arc<Webhook>> {
        hearers(catalog, self.organization_id, self.bucket_id)
            .cloned()
            .collect()
    }

    /// The source of the row at this place; `None` when it has been deleted.
    pub(super) fn source<'c>(&self, catalog: &'c Catalog, index: usize) -> Option<&'c Arc<Source>> {
        catalog.source_by_ordinal(self.bucket_id, self.rows.get(index)?.source)
    }

    /// What a webhook is told of the row at this place, which is one of `source`.
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
        // It may have been paused, or told to hear of other events, since the points came.
        webhook
            .hears(event, self.bucket_id)
            .then(|| delivery_to(webhook, event, ids, self.received_at_ns, body))
    }
}

/// The webhooks that hear of ingests into a bucket.
pub(super) fn hearers(
    catalog: &Catalog,
    organization_id: ObjectId,
    bucket_id: ObjectId,
) -> impl Iterator<Item = &Arc<Webhook>> {
    catalog
        .webhooks_of(organization_id)
        .filter(move |webhook| webhook.hears(Event::DataReceived, bucket_id))
}
