//! How older programs wrote the catalog as a whole: what is read of it is tested with, and equal catalogs are told by it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::calls::MonthDay;
use crate::catalog::frozen::{Frozen, FrozenBucket, FrozenKey};
use crate::catalog::key::Key;
use crate::catalog::objects::BucketImage;
use crate::catalog::snapshot::{Image, VERSION};
use crate::catalog::source_image;
use crate::ids::ObjectId;

impl Frozen {
    /// The snapshot's bytes, which name the buckets that had a manifest by their ordinals. Equal catalogs give equal
    /// bytes.
    pub(super) fn encode(&self, manifests: &[u32]) -> Result<Vec<u8>, rmp_serde::encode::Error> {
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
            ledger_runs: Vec::new(),
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
