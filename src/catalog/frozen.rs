//! A snapshot of the catalog in memory, which shares its objects with the live catalog.

use std::collections::HashSet;
use std::sync::Arc;

use super::body::EventBody;
use super::delivery::Delivery;
use super::ledger::{FrozenTail, bucket_owner};
use super::objects::{BucketImage, CallsImage, FrozenKey, OrganizationImage, Root, WebhookImage};
use super::pages::Page;
use super::rule::Rule;
use super::source::Source;
use super::state::Catalog;
use super::user::User;
use crate::ids::ObjectId;

/// A snapshot of the catalog. Taking it is cheap, because it shares pointers; encoding it is expensive and happens
/// while the catalog is in use.
///
/// Shared objects are immutable: as long as a snapshot holds one, the catalog changes a copy. Equal pointers in two
/// snapshots therefore mean equal objects. Data that changes behind a pointer, the last use of keys and the counts of
/// calls, is copied. The default is a catalog of which nothing was ever saved. It differs from an empty one, which has
/// a root. Lists are in no particular order, unless they say so.
#[derive(Default)]
pub struct Frozen {
    pub(super) root: Option<Root>,
    /// Oldest first.
    pub(super) organizations: Vec<OrganizationImage>,
    pub(super) calls: Vec<CallsImage>,
    pub(super) users: Vec<Arc<User>>,
    pub(super) buckets: Vec<BucketImage>,
    /// Pages of sources, each with its bucket.
    pub(super) pages: Vec<(ObjectId, Arc<Page<Source>>)>,
    pub(super) keys: Vec<FrozenKey>,
    pub(super) rules: Vec<Arc<Rule>>,
    pub(super) webhooks: Vec<WebhookImage>,
    pub(super) deliveries: Vec<Arc<Delivery>>,
    /// Bodies shared by deliveries.
    pub(super) events: Vec<Arc<EventBody>>,
    ledger_tail: FrozenTail,
}

impl Catalog {
    /// Takes a snapshot of the present state, without entries of the ledger that were added since its tail was frozen.
    /// Copies one pointer per resource, and one per 1,024 sources; sorts no objects.
    pub fn freeze(&self) -> Frozen {
        let organizations = (0..).zip(self.organizations());
        let organizations = organizations.map(|(position, organization)| OrganizationImage {
            position,
            organization: Arc::clone(organization),
        });
        let calls = self.organizations.iter().map(|(id, entry)| CallsImage {
            organization_id: *id,
            months: entry.calls.by_month(),
        });
        let buckets = self.buckets.values().map(|entry| BucketImage {
            bucket: Arc::clone(&entry.bucket),
            next_source_ordinal: entry.next_source_ordinal,
        });
        let pages = self.buckets.iter().flat_map(|(id, entry)| {
            let pages = entry.sources.pages();
            pages.map(|page| (*id, Arc::clone(page)))
        });
        let keys = self.keys.iter().map(|(ordinal, key)| FrozenKey {
            ordinal,
            key: Arc::clone(key),
            last_used_minute: key.last_used_minute(),
        });
        let webhooks = self.webhooks.iter().map(|(ordinal, webhook)| WebhookImage {
            ordinal,
            webhook: Arc::clone(webhook),
        });
        Frozen {
            root: Some(Root::of(self)),
            organizations: organizations.collect(),
            calls: calls.filter(|it| !it.months.is_empty()).collect(),
            users: self.users.values().cloned().collect(),
            buckets: buckets.collect(),
            pages: pages.collect(),
            keys: keys.collect(),
            rules: self.rules().cloned().collect(),
            webhooks: webhooks.collect(),
            deliveries: self.pending_deliveries().cloned().collect(),
            events: self.outbox.events().cloned().collect(),
            ledger_tail: self.ledger.frozen(),
        }
    }
}

impl Frozen {
    /// Entries of the ledger that no run file holds yet. They are not objects; the runs that the manifest names must
    /// include them.
    pub fn ledger_tail(&self) -> &FrozenTail {
        &self.ledger_tail
    }

    /// The same snapshot without the frozen tail, which would otherwise stay in memory as long as the snapshot.
    #[must_use]
    pub fn without_tail(self) -> Self {
        Frozen {
            ledger_tail: FrozenTail::default(),
            ..self
        }
    }

    pub fn bucket_ordinals(&self) -> HashSet<u32> {
        self.buckets.iter().map(|it| it.bucket.ordinal).collect()
    }

    /// Owners whose ledger entries are kept: rules, webhooks, buckets and organizations.
    pub fn ledger_owners(&self) -> HashSet<ObjectId> {
        let rules = self.rules.iter().map(|rule| rule.id);
        let webhooks = self.webhooks.iter().map(|it| it.webhook.id);
        let buckets = self.buckets.iter().map(|it| bucket_owner(it.bucket.ordinal));
        let organizations = self.organizations.iter().map(|it| it.organization.id);
        rules
            .chain(webhooks)
            .chain(buckets)
            .chain(organizations)
            .collect()
    }
}
