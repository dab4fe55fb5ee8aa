//! Points on their way from an ingest to the webhooks that hear of them.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::envelope::{Named, Point, Received, deliveries};
use crate::catalog::{Catalog, Delivery, Event, Webhook};
use crate::ids::{ObjectId, ObjectIds};
use crate::timestamp::Timestamp;

/// What an ingest brought to one source: all of a `data.received` but for the webhook.
#[derive(Clone, Debug)]
pub struct NewPoints {
    /// The bucket's owner.
    pub organization_id: ObjectId,
    /// The source's bucket.
    pub bucket_id: ObjectId,
    /// The source.
    pub source_id: ObjectId,
    /// Its name.
    pub source_name: Box<str>,
    /// Id of the newest point.
    pub point_id: Box<str>,
    /// Its time, UTC nanoseconds.
    pub timestamp_ns: i64,
    /// Its values, an object.
    pub values: Box<RawValue>,
    /// Its metadata, an object; `None` when it has none.
    pub metadata: Option<Box<RawValue>>,
    /// How many points of this source the batch brought; `None` for a single ingest.
    pub count: Option<u32>,
    /// When they were ingested, UTC nanoseconds.
    pub received_at_ns: i64,
}

impl NewPoints {
    /// Bytes that it takes while it waits.
    pub(super) fn bytes(&self) -> usize {
        let metadata = self.metadata.as_ref().map_or(0, |metadata| metadata.get().len());
        size_of::<Self>() + self.source_name.len() + self.point_id.len() + self.values.get().len() + metadata
    }

    /// The webhooks that are told.
    pub(super) fn hearers(&self, catalog: &Catalog) -> Vec<Arc<Webhook>> {
        hearers(catalog, self.organization_id, self.bucket_id)
            .cloned()
            .collect()
    }

    pub(super) fn deliveries(&self, webhooks: &[Arc<Webhook>], ids: &ObjectIds) -> Vec<Delivery> {
        let received = Received {
            bucket_id: self.bucket_id,
            source: Named {
                id: self.source_id,
                name: &self.source_name,
            },
            point_id: &self.point_id,
            point: Point {
                timestamp: Timestamp(self.timestamp_ns),
                values: &self.values,
                metadata: self.metadata.as_deref(),
            },
            point_count: self.count,
            received_at_ns: self.received_at_ns,
        };
        let body = |webhook_id| received.body(webhook_id);
        deliveries(
            Event::DataReceived,
            self.bucket_id,
            webhooks,
            ids,
            self.received_at_ns,
            body,
        )
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
