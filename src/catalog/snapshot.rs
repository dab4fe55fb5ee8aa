//! The whole catalog as bytes, as it was written at each checkpoint before there were objects (FORMAT.md, "Snapshot").

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Bytes;
use super::SnapshotError;
use super::calls::MonthDay;
use super::delivery::Delivery;
use super::frozen::{Frozen, FrozenBucket, FrozenKey};
use super::key::Key;
use super::objects::BucketImage;
use super::organization::Organization;
use super::rule::Rule;
use super::schema::Schema;
use super::source_image::{self, SourceImage};
use super::state::Catalog;
use super::user::User;
use super::webhook::Webhook;
use crate::ids::ObjectId;

/// Rises when an older program could misread the snapshot; added members do not raise it.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Image {
    version: u32,
    #[serde(default)]
    server_secret: Option<Bytes<32>>,
    #[serde(default)]
    last_bucket_ordinal: u32,
    #[serde(default)]
    organizations: Vec<Arc<Organization>>,
    #[serde(default)]
    calls: Vec<(ObjectId, MonthDay, u64)>,
    #[serde(default)]
    users: Vec<Arc<User>>,
    #[serde(default)]
    buckets: Vec<BucketImage>,
    #[serde(default)]
    keys: Vec<Arc<Key>>,
    #[serde(default)]
    schemas: Vec<Arc<Schema>>,
    #[serde(default)]
    sources: Vec<SourceImage>,
    #[serde(default)]
    last_rule_ordinal: u64,
    #[serde(default)]
    rules: Vec<Arc<Rule>>,
    #[serde(default)]
    webhooks: Vec<Arc<Webhook>>,
    #[serde(default)]
    deliveries: Vec<Arc<Delivery>>,
    /// Not the catalog's: which buckets had a manifest on the disk before this was written.
    #[serde(default)]
    manifests: Vec<u32>,
    #[serde(default)]
    ledger_runs: Vec<u64>,
}

impl Catalog {
    /// Reads a snapshot: the catalog, and the ordinals given to [`Frozen::encode`].
    ///
    /// # Errors
    /// Bytes that are no snapshot, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Vec<u32>), SnapshotError> {
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
        image
            .rules
            .into_iter()
            .for_each(|rule| catalog.rules.insert(rule));
        image
            .webhooks
            .into_iter()
            .for_each(|webhook| catalog.outbox.insert_webhook(Arc::unwrap_or_clone(webhook)));
        image
            .deliveries
            .into_iter()
            .for_each(|delivery| catalog.outbox.owe(delivery));
        catalog.ledger.set_runs(image.ledger_runs);
        Ok((catalog, image.manifests))
    }
}

impl Frozen {
    /// The snapshot's bytes, which name the buckets that have a manifest by their ordinals. Equal catalogs give equal
    /// bytes.
    ///
    /// # Errors
    /// Never for what a catalog holds; the encoder's type says so all the same.
    pub fn encode(&self, manifests: &[u32]) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        let mut buckets: Vec<&FrozenBucket> = self.buckets.iter().collect();
        buckets.sort_unstable_by_key(|it| it.bucket.ordinal);
        let pages = buckets.iter().flat_map(|it| &it.sources);
        let (schemas, sources) = source_image::images(pages.flat_map(|page| page.iter()));
        let root = self.root.unwrap_or_default();
        rmp_serde::to_vec_named(&Image {
            version: VERSION,
            server_secret: root.server_secret,
            last_bucket_ordinal: root.last_bucket_ordinal,
            organizations: self
                .organizations
                .iter()
                .map(|it| Arc::clone(&it.organization))
                .collect(),
            calls: self.calls().collect(),
            users: sorted(&self.users, |user| user.id),
            buckets: buckets.iter().map(|it| BucketImage::of(it)).collect(),
            keys: self.keys_in_order(),
            schemas,
            sources,
            last_rule_ordinal: root.last_rule_ordinal,
            rules: sorted(&self.rules, |rule| rule.ordinal),
            webhooks: self.webhooks.iter().map(|it| Arc::clone(&it.webhook)).collect(),
            deliveries: sorted(&self.deliveries, |delivery| delivery.id),
            manifests: manifests.to_vec(),
            ledger_runs: self.ledger_runs().to_vec(),
        })
    }

    /// By organization, then month.
    fn calls(&self) -> impl Iterator<Item = (ObjectId, MonthDay, u64)> {
        self.organizations.iter().flat_map(|it| {
            let id = it.organization.id;
            it.calls.iter().map(move |total| (id, total.month, total.calls))
        })
    }

    /// Those of organizations, then those of buckets by the buckets' ordinals.
    fn keys_in_order(&self) -> Vec<Arc<Key>> {
        let ordinals = self.buckets.iter().map(|it| (it.bucket.id, it.bucket.ordinal));
        let ordinals: HashMap<ObjectId, u32> = ordinals.collect();
        let mut keys: Vec<&FrozenKey> = self.keys.iter().collect();
        // Stable: within an organization or a bucket they stand oldest first.
        keys.sort_by_key(|it| it.key.bucket_id.and_then(|id| ordinals.get(&id)));
        let used = |it: &&FrozenKey| Arc::new(it.key.with_last_used_minute(it.last_used_minute));
        keys.iter().map(used).collect()
    }
}

fn sorted<T, K: Ord>(unsorted: &[Arc<T>], key: impl Fn(&T) -> K) -> Vec<Arc<T>> {
    let mut sorted = unsorted.to_vec();
    sorted.sort_unstable_by_key(|it| key(it));
    sorted
}
