//! The old format of the catalog: all of it as one sequence of bytes, written at each checkpoint before objects were
//! introduced (FORMAT.md, "Snapshot").

use std::sync::Arc;

use serde::Deserialize;
#[cfg(test)]
use serde::Serialize;

use super::Bytes;
use super::SnapshotError;
use super::calls::MonthDay;
use super::delivery::Delivery;
use super::key::Key;
use super::objects::BucketImage;
use super::organization::Organization;
use super::rule::Rule;
use super::schema::Schema;
use super::source_image::SourceImage;
use super::state::Catalog;
use super::user::User;
use super::webhook::Webhook;
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

#[derive(Deserialize)]
#[cfg_attr(test, derive(Serialize))]
pub(super) struct Image {
    pub(super) version: u32,
    #[serde(default)]
    pub(super) server_secret: Option<Bytes<32>>,
    #[serde(default)]
    pub(super) last_bucket_ordinal: u32,
    #[serde(default)]
    pub(super) organizations: Vec<Arc<Organization>>,
    #[serde(default)]
    pub(super) calls: Vec<(ObjectId, MonthDay, u64)>,
    #[serde(default)]
    pub(super) users: Vec<Arc<User>>,
    #[serde(default)]
    pub(super) buckets: Vec<BucketImage>,
    #[serde(default)]
    pub(super) keys: Vec<Arc<Key>>,
    #[serde(default)]
    pub(super) schemas: Vec<Arc<Schema>>,
    #[serde(default)]
    pub(super) sources: Vec<SourceImage>,
    #[serde(default)]
    pub(super) last_rule_ordinal: u64,
    #[serde(default)]
    pub(super) rules: Vec<Arc<Rule>>,
    #[serde(default)]
    pub(super) webhooks: Vec<Arc<Webhook>>,
    #[serde(default)]
    pub(super) deliveries: Vec<Arc<Delivery>>,
    /// Not part of the catalog: the buckets that had a manifest on disk before this was written.
    #[serde(default)]
    pub(super) manifests: Vec<u32>,
    #[serde(default)]
    pub(super) ledger_runs: Vec<u64>,
}

impl Catalog {
    /// Decodes a snapshot.
    ///
    /// # Errors
    /// The bytes are not a snapshot, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Snapshot, SnapshotError> {
        let image: Image = rmp_serde::from_slice(bytes).map_err(SnapshotError::Malformed)?;
        if image.version > VERSION {
            return Err(SnapshotError::UnknownVersion {
                found: image.version,
                known: VERSION,
            });
        }
        let mut catalog = Self {
            server_secret: image.server_secret,
            last_bucket_ordinal: image.last_bucket_ordinal,
            ..Self::default()
        };
        image
            .organizations
            .into_iter()
            .for_each(|it| catalog.insert_organization(Arc::unwrap_or_clone(it)));
        catalog.restore_calls(&image.calls);
        image
            .users
            .into_iter()
            .for_each(|user| catalog.insert_user(Arc::unwrap_or_clone(user)));
        for BucketImage {
            bucket,
            next_source_ordinal,
        } in image.buckets
        {
            catalog.insert_bucket(Arc::unwrap_or_clone(bucket), next_source_ordinal);
        }
        image
            .keys
            .into_iter()
            .for_each(|key| catalog.insert_key(Arc::unwrap_or_clone(key)));
        let schemas = catalog.shared_schemas(image.schemas);
        for source in image.sources {
            let source = catalog.source_of(source, &schemas)?;
            catalog.insert_source(source);
        }
        catalog.rules.last_ordinal = image.last_rule_ordinal;
        image.rules.into_iter().for_each(|rule| catalog.insert_rule(rule));
        image
            .webhooks
            .into_iter()
            .for_each(|webhook| catalog.insert_webhook(Arc::unwrap_or_clone(webhook)));
        image
            .deliveries
            .into_iter()
            .for_each(|delivery| catalog.restore_delivery(Arc::unwrap_or_clone(delivery)));
        Ok(Snapshot {
            catalog,
            manifests: image.manifests,
            ledger_runs: image.ledger_runs,
        })
    }
}
