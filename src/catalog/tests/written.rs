//! The snapshot format of older programs: used to test its reader and to compare catalogs for equality.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::calls::MonthDay;
use crate::catalog::frozen::Frozen;
use crate::catalog::key::Key;
use crate::catalog::objects::{BucketImage, FrozenKey};
use crate::catalog::snapshot::{Image, VERSION};
use crate::catalog::source_image::SourcesImage;
use crate::ids::ObjectId;

impl Frozen {
    /// The bytes of a snapshot, with the ordinals of the buckets that had a manifest. Equal catalogs give equal bytes.
    pub(super) fn encode(&self, manifests: &[u32]) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        let ordinals = self.bucket_ordinals_by_id();
        let mut buckets = self.buckets.clone();
        buckets.sort_unstable_by_key(|it| it.bucket.ordinal);
        let mut pages: Vec<_> = self.pages.iter().collect();
        pages.sort_unstable_by_key(|(bucket_id, page)| (ordinals[bucket_id], page.number()));
        let sources = SourcesImage::of(pages.iter().flat_map(|(_, page)| page.iter()));
        let mut webhooks: Vec<_> = self.webhooks.iter().collect();
        webhooks.sort_unstable_by_key(|it| it.ordinal);
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
            calls: self.calls_in_order(),
            users: sorted(&self.users, |user| user.id),
            buckets,
            keys: self.keys_in_order(&ordinals),
            schemas: sources.schemas,
            sources: sources.sources,
            last_rule_ordinal: root.last_rule_ordinal,
            rules: sorted(&self.rules, |rule| rule.ordinal),
            webhooks: webhooks.iter().map(|it| (*it.webhook).clone()).collect(),
            deliveries: sorted(&self.deliveries, |delivery| delivery.id),
            manifests: manifests.to_vec(),
            ledger_runs: Vec::new(),
        })
    }

    fn bucket_ordinals_by_id(&self) -> HashMap<ObjectId, u32> {
        let of_bucket = |it: &BucketImage| (it.bucket.id, it.bucket.ordinal);
        self.buckets.iter().map(of_bucket).collect()
    }

    /// Sorted by organization, then by month.
    fn calls_in_order(&self) -> Vec<(ObjectId, MonthDay, u64)> {
        let totals = self.calls.iter().flat_map(|it| {
            let months = it.months.iter();
            months.map(|(month, calls)| (it.organization_id, *month, *calls))
        });
        let mut totals: Vec<_> = totals.collect();
        totals.sort_unstable();
        totals
    }

    /// Keys of organizations, then keys of buckets by bucket ordinal; oldest first.
    fn keys_in_order(&self, ordinals: &HashMap<ObjectId, u32>) -> Vec<Key> {
        let mut keys: Vec<&FrozenKey> = self.keys.iter().collect();
        keys.sort_unstable_by_key(|it| (it.key.bucket_id.and_then(|id| ordinals.get(&id)), it.ordinal));
        let used = |it: &&FrozenKey| it.key.with_last_used_minute(it.last_used_minute);
        keys.iter().map(used).collect()
    }
}

fn sorted<T: Clone, K: Ord>(unsorted: &[Arc<T>], key: impl Fn(&T) -> K) -> Vec<T> {
    let mut sorted: Vec<T> = unsorted.iter().map(|it| (**it).clone()).collect();
    sorted.sort_unstable_by_key(|it| key(it));
    sorted
}
