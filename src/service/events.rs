//! The deliveries of events that no limit refuses. Older deliveries make room for them.

use std::sync::Arc;

use serde::Serialize;

use super::Service;
use super::allowance::trigger_room;
use crate::catalog::{Bucket, Catalog, CatalogHandle, Event, NewDeliveries};
use crate::config::Config;
use crate::delivery::new_deliveries;
use crate::ids::ObjectIds;

/// Makes them.
#[derive(Clone)]
pub struct Events {
    pub(super) catalog: CatalogHandle,
    pub(super) ids: Arc<ObjectIds>,
    config: Arc<Config>,
}

impl Events {
    pub fn new(catalog: CatalogHandle, ids: Arc<ObjectIds>, config: Arc<Config>) -> Self {
        Self { catalog, ids, config }
    }

    /// One delivery for each webhook that subscribes to the event, and room for them.
    pub(super) fn to_webhooks(
        &self,
        event: Event,
        bucket: &Bucket,
        now_ns: i64,
        data: &impl Serialize,
    ) -> NewDeliveries {
        let (subscribers, room) = self.catalog.read(|catalog: &Catalog| {
            let webhooks = catalog.webhooks_of(bucket.organization_id);
            let subscribers = webhooks.filter(|webhook| webhook.receives(event, bucket.id));
            let room = trigger_room(&self.config, catalog, bucket.organization_id);
            (subscribers.cloned().collect::<Vec<_>>(), room)
        });
        let new = new_deliveries(event, bucket.id, &subscribers, &self.ids, now_ns, data);
        NewDeliveries {
            room: Some(room),
            ..new
        }
    }
}

impl Service {
    pub(super) fn events(&self) -> Events {
        let ids = Arc::clone(&self.resources.ids);
        Events::new(self.catalog.clone(), ids, Arc::clone(&self.config))
    }
}
