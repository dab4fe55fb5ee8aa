//! A snapshot of the catalog in memory, which shares its objects with the live catalog.

use std::collections::HashSet;
use std::sync::Arc;

use super::body::EventBody;
use super::bucket::Bucket;
use super::calls::CallTotals;
use super::delivery::Delivery;
use super::key::Key;
use super::ledger::{FrozenTail, bucket_owner};
use super::objects::Root;
use super::organization::Organization;
use super::pages::Page;
use super::rule::Rule;
use super::source::Source;
use super::state::Catalog;
use super::user::User;
use super::webhook::Webhook;
use crate::ids::ObjectId;

/// A snapshot of the catalog. Taking it is cheap, because it shares pointers; encoding it is expensive and happens
/// while the catalog is in use.
///
/// Shared objects are immutable: as long as a snapshot holds one, the catalog changes a copy. Equal pointers in two
/// snapshots therefore mean equal objects. Data that changes behind a pointer, the last use of keys and the counts of
/// calls, is copied. The default is a catalog of which nothing was ever saved. It differs from an empty one, which has
/// a root.
#[derive(Default)]
pub struct Frozen {
    pub(super) root: Option<Root>,
    /// Oldest first.
    pub(super) organizations: Vec<FrozenOrganization>,
    pub(super) users: Vec<Arc<User>>,
    pub(super) buckets: Vec<FrozenBucket>,
    /// Of each organization and of each bucket, oldest first.
    pub(super) keys: Vec<FrozenKey>,
    pub(super) rules: Vec<Arc<Rule>>,
    /// Of each organization, oldest first.
    pub(super) webhooks: Vec<FrozenWebhook>,
    pub(super) deliveries: Vec<Arc<Delivery>>,
    /// Bodies shared by deliveries, in no particular order.
    pub(super) events: Vec<Arc<EventBody>>,
    ledger_tail: FrozenTail,
}

pub(super) struct FrozenOrganization {
    pub organization: Arc<Organization>,
    pub calls: CallTotals,
}

pub(super) struct FrozenBucket {
    pub bucket: Arc<Bucket>,
    pub next_source_ordinal: u32,
    pub sources: Vec<Arc<Page<Source>>>,
}

pub(super) struct FrozenKey {
    pub key: Arc<Key>,
    pub last_used_minute: u32,
}

pub(super) struct FrozenWebhook {
    pub ordinal: u64,
    pub webhook: Arc<Webhook>,
}

impl Catalog {
    /// Takes a snapshot of the present state, without entries of the ledger that were added since its tail was frozen.
    /// Copies one pointer per resource, and one per 1,024 sources; sorts nothing.
    pub fn freeze(&self) -> Frozen {
        let organizations = self.organizations_with_calls();
        let organizations = organizations.map(|(organization, calls)| FrozenOrganization {
            organization,
            calls: calls.frozen(),
        });
        let buckets = self.buckets.values().map(|entry| FrozenBucket {
            bucket: Arc::clone(&entry.bucket),
            next_source_ordinal: entry.next_source_ordinal,
            sources: entry.sources.pages().cloned().collect(),
        });
        let mut keys = Vec::with_capacity(self.keys.len());
        let of_organizations = self.organizations().flat_map(|it| self.organization_keys(it.id));
        let of_buckets = self.buckets.values().flat_map(|entry| &entry.keys);
        keys.extend(of_organizations.chain(of_buckets).map(|key| FrozenKey {
            key: Arc::clone(key),
            last_used_minute: key.last_used_minute(),
        }));
        let webhooks = self.organizations().flat_map(|it| self.outbox.webhooks_of(it.id));
        Frozen {
            root: Some(Root::of(self)),
            organizations: organizations.collect(),
            users: self.users.values().cloned().collect(),
            buckets: buckets.collect(),
            keys,
            rules: self.rules().cloned().collect(),
            webhooks: webhooks
                .map(|entry| FrozenWebhook {
                    ordinal: entry.ordinal,
                    webhook: Arc::clone(&entry.webhook),
                })
                .collect(),
            deliveries: self.pending_deliveries().cloned().collect(),
            events: self.outbox.owed().events().cloned().collect(),
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
