//! The old format of the catalog: all of it as one sequence of bytes, written at each checkpoint before objects were
//! introduced (FORMAT.md, "Snapshot").

use std::sync::Arc;

use serde::Deserialize;
#[cfg(test)]
use serde::Serialize;

use super::objects::{BucketImage, SourcesImage, Version};
use super::{
    Bytes, Catalog, Delivery, Key, MonthDay, Organization, Rule, Schema, SnapshotError, Source, User, Webhook,
};
use crate::ids::ObjectId;

/// The only version of the format.
pub(super) const VERSION: u32 = 1;

/// The contents of a snapshot.
#[derive(Default)]
pub struct Snapshot {
    pub catalog: Catalog,
    /// Ordinals of the buckets that had a manifest of their own at that time.
    pub manifests: Vec<u32>,
    /// The run files of the ledger in use, oldest first.
    pub ledger_runs: Vec<u64>,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
#[serde(default)]
pub(super) struct Image {
    pub version: u32,
    pub server_secret: Option<Bytes<32>>,
    pub last_bucket_ordinal: u32,
    pub organizations: Vec<Arc<Organization>>,
    pub calls: Vec<(ObjectId, MonthDay, u64)>,
    pub users: Vec<Arc<User>>,
    pub buckets: Vec<BucketImage>,
    pub keys: Vec<Key>,
    pub schemas: Vec<Arc<Schema>>,
    pub sources: Vec<Source<u32>>,
    pub last_rule_ordinal: u64,
    pub rules: Vec<Arc<Rule>>,
    pub webhooks: Vec<Webhook>,
    pub deliveries: Vec<Delivery>,
    /// Not part of the catalog: the buckets that had a manifest on disk before this was written.
    pub manifests: Vec<u32>,
    pub ledger_runs: Vec<u64>,
}

impl Catalog {
    /// Decodes a snapshot.
    ///
    /// # Errors
    /// The bytes are not a snapshot, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Snapshot, SnapshotError> {
        let version: Version = rmp_serde::from_slice(bytes).map_err(SnapshotError::Malformed)?;
        version.check(VERSION)?;
        let image: Image = rmp_serde::from_slice(bytes).map_err(SnapshotError::Malformed)?;
        let mut catalog = Self {
            server_secret: image.server_secret,
            last_bucket_ordinal: image.last_bucket_ordinal,
            ..Self::default()
        };
        image
            .organizations
            .into_iter()
            .for_each(|organization| catalog.insert_organization(organization));
        image
            .calls
            .into_iter()
            .for_each(|(organization_id, month, calls)| catalog.restore_calls(organization_id, month, calls));
        image.users.into_iter().for_each(|user| catalog.insert_user(user));
        image
            .buckets
            .into_iter()
            .for_each(|it| catalog.insert_bucket(it.bucket, it.next_source_ordinal));
        image.keys.into_iter().for_each(|key| catalog.add_key(key));
        let sources = SourcesImage {
            schemas: image.schemas,
            sources: image.sources,
        };
        for source in sources.into_sources(&mut catalog)? {
            catalog.insert_source(source);
        }
        catalog.rules.last_ordinal = image.last_rule_ordinal;
        image.rules.into_iter().for_each(|rule| catalog.insert_rule(rule));
        image
            .webhooks
            .into_iter()
            .for_each(|webhook| catalog.add_webhook(webhook));
        image
            .deliveries
            .into_iter()
            .for_each(|delivery| catalog.restore_delivery(delivery));
        Ok(Snapshot {
            catalog,
            manifests: image.manifests,
            ledger_runs: image.ledger_runs,
        })
    }
}
