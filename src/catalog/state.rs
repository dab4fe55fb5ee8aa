//! The catalog's state and its lookups.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::Bytes;
use super::body::EventBody;
use super::bucket::Bucket;
use super::calls::CallCounts;
use super::collection::{Collection, Named};
use super::delivery::Delivery;
use super::holdings::Held;
use super::interner::Interner;
use super::key::{Key, KeyHash};
use super::ledger::LedgerTail;
use super::organization::Organization;
use super::outbox::Outbox;
use super::owed::OwedFigures;
use super::revisions::Revisions;
use super::rule::Rule;
use super::rules::Rules;
use super::schema::Schema;
use super::source::Source;
use super::source_pages::SourcePages;
use super::user::User;
use super::webhook::Webhook;
use crate::ids::ObjectId;

/// All objects and their indexes. Changed only by [`Catalog::apply`].
#[derive(Default)]
pub struct Catalog {
    pub(super) server_secret: Option<Bytes<32>>,
    pub(super) organizations: HashMap<ObjectId, OrganizationEntry>,
    /// Oldest first; organizations are never deleted.
    pub(super) organization_order: Vec<ObjectId>,
    pub(super) users: HashMap<ObjectId, Arc<User>>,
    pub(super) user_by_email: HashMap<Box<str>, ObjectId>,
    pub(super) keys: HashMap<ObjectId, Arc<Key>>,
    pub(super) key_by_hash: HashMap<KeyHash, Arc<Key>>,
    /// Ordinal of the newest key.
    pub(super) last_key_ordinal: u64,
    pub(super) buckets: HashMap<ObjectId, BucketEntry>,
    pub(super) bucket_by_ordinal: HashMap<u32, ObjectId>,
    pub(super) last_bucket_ordinal: u32,
    pub(super) sources: SourceIndex,
    pub(super) schemas: Interner<Schema>,
    pub(super) kinds: Interner<str>,
    pub(super) rules: Rules,
    pub(super) outbox: Outbox,
    pub(super) ledger: LedgerTail,
}

pub(super) struct OrganizationEntry {
    pub organization: Arc<Organization>,
    pub calls: Arc<CallCounts>,
    pub buckets: Collection<Bucket>,
    /// Keys of the organization itself, oldest first; those of its buckets are in the buckets.
    pub keys: Vec<Arc<Key>>,
    /// Counts of the organization's objects.
    pub held: Held,
    pub revisions: Revisions,
}

pub(super) struct BucketEntry {
    pub bucket: Arc<Bucket>,
    pub sources: Collection<Source>,
    pub next_source_ordinal: u32,
    /// Oldest first.
    pub keys: Vec<Arc<Key>>,
}

impl Named for Bucket {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Source {
    fn name(&self) -> &str {
        &self.name
    }
}

/// What a bucket's deletion removes, and what its statistics count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketContents {
    pub sources: u64,
    /// Keys of the bucket.
    pub keys: u64,
    /// Alert rules on its sources.
    pub alert_rules: u64,
}

impl Catalog {
    /// The secret that signs bearer tokens; `None` before the first start is complete.
    pub fn server_secret(&self) -> Option<&[u8; 32]> {
        self.server_secret.as_ref().map(|secret| &secret.0)
    }

    pub fn organization(&self, id: ObjectId) -> Option<&Arc<Organization>> {
        self.organizations.get(&id).map(|entry| &entry.organization)
    }

    /// All organizations, oldest first.
    pub fn organizations(&self) -> impl ExactSizeIterator<Item = &Arc<Organization>> {
        self.organization_order
            .iter()
            .map(|id| &self.organizations[id].organization)
    }

    /// All organizations with their call counts, oldest first.
    pub(super) fn organizations_with_calls(
        &self,
    ) -> impl ExactSizeIterator<Item = (Arc<Organization>, Arc<CallCounts>)> {
        self.organization_order.iter().map(|id| {
            let entry = &self.organizations[id];
            (Arc::clone(&entry.organization), Arc::clone(&entry.calls))
        })
    }

    /// An organization and its call counts.
    pub fn organization_with_calls(&self, id: ObjectId) -> Option<(&Arc<Organization>, &Arc<CallCounts>)> {
        let entry = self.organizations.get(&id)?;
        Some((&entry.organization, &entry.calls))
    }

    pub fn user(&self, id: ObjectId) -> Option<&Arc<User>> {
        self.users.get(&id)
    }

    /// The user with this email address, trimmed and in lower case.
    pub fn user_by_email(&self, email: &str) -> Option<&Arc<User>> {
        self.users.get(self.user_by_email.get(email)?)
    }

    /// The key with this SHA-256.
    pub fn key_by_hash(&self, hash: &[u8; 32]) -> Option<&Arc<Key>> {
        self.key_by_hash.get(&Bytes(*hash))
    }

    /// The keys of an organization itself, oldest first.
    pub fn organization_keys(&self, organization_id: ObjectId) -> &[Arc<Key>] {
        self.organizations
            .get(&organization_id)
            .map_or(&[], |entry| &entry.keys)
    }

    /// The keys of a bucket, oldest first.
    pub fn bucket_keys(&self, bucket_id: ObjectId) -> &[Arc<Key>] {
        self.buckets.get(&bucket_id).map_or(&[], |entry| &entry.keys)
    }

    pub fn bucket(&self, id: ObjectId) -> Option<&Arc<Bucket>> {
        self.buckets.get(&id).map(|entry| &entry.bucket)
    }

    /// The greatest ordinal that a bucket has had. Ordinals are never reused.
    pub fn last_bucket_ordinal(&self) -> u32 {
        self.last_bucket_ordinal
    }

    pub fn bucket_by_ordinal(&self, ordinal: u32) -> Option<&Arc<Bucket>> {
        self.bucket(*self.bucket_by_ordinal.get(&ordinal)?)
    }

    /// All buckets, in no particular order.
    pub fn buckets(&self) -> impl Iterator<Item = &Arc<Bucket>> {
        self.buckets.values().map(|entry| &entry.bucket)
    }

    pub fn bucket_count(&self, organization_id: ObjectId) -> usize {
        self.organizations
            .get(&organization_id)
            .map_or(0, |entry| entry.buckets.len())
    }

    /// The buckets of an organization, oldest first.
    pub fn buckets_of(&self, organization_id: ObjectId) -> impl Iterator<Item = &Arc<Bucket>> {
        self.organizations
            .get(&organization_id)
            .into_iter()
            .flat_map(|entry| entry.buckets.iter())
    }

    /// An organization's bucket with this exact name.
    pub fn bucket_by_name(&self, organization_id: ObjectId, name: &str) -> Option<&Arc<Bucket>> {
        self.organizations.get(&organization_id)?.buckets.by_name(name)
    }

    pub fn source(&self, id: ObjectId) -> Option<&Arc<Source>> {
        self.sources.get(id)
    }

    /// The source with this ordinal in a bucket.
    pub fn source_by_ordinal(&self, bucket_id: ObjectId, ordinal: u32) -> Option<&Arc<Source>> {
        self.buckets.get(&bucket_id)?.sources.get(ordinal)
    }

    /// Whether all these sources of a bucket exist, by their ordinals.
    pub fn has_sources(&self, bucket_ordinal: u32, ordinals: &[u32]) -> bool {
        let id = self.bucket_by_ordinal.get(&bucket_ordinal);
        let bucket = id.and_then(|id| self.buckets.get(id));
        bucket.is_some_and(|bucket| ordinals.iter().all(|it| bucket.sources.get(*it).is_some()))
    }

    /// A bucket's source with this exact name.
    pub fn source_by_name(&self, bucket_id: ObjectId, name: &str) -> Option<&Arc<Source>> {
        self.buckets.get(&bucket_id)?.sources.by_name(name)
    }

    pub fn source_count(&self, bucket_id: ObjectId) -> usize {
        self.buckets
            .get(&bucket_id)
            .map_or(0, |entry| entry.sources.len())
    }

    /// The sources of a bucket, oldest first.
    pub fn sources_of(&self, bucket_id: ObjectId) -> impl Iterator<Item = &Arc<Source>> {
        self.buckets
            .get(&bucket_id)
            .into_iter()
            .flat_map(|entry| entry.sources.iter())
    }

    /// The present sources of a bucket, for a query about all of them. Copies one pointer per 1,024 sources.
    pub fn source_pages_of(&self, bucket_id: ObjectId) -> SourcePages {
        let entry = self.buckets.get(&bucket_id).into_iter();
        SourcePages(entry.flat_map(|entry| entry.sources.pages()).cloned().collect())
    }

    #[cfg(test)]
    pub(super) fn source_total(&self) -> usize {
        self.sources.len()
    }

    /// The contents of a bucket, except its points, which the engine counts.
    pub fn contents_of(&self, bucket_id: ObjectId) -> BucketContents {
        BucketContents {
            sources: self.source_count(bucket_id) as u64,
            keys: self.bucket_keys(bucket_id).len() as u64,
            alert_rules: self.rule_count(bucket_id) as u64,
        }
    }

    pub fn rule(&self, id: ObjectId) -> Option<&Arc<Rule>> {
        self.rules.get(id)
    }

    /// Entries of the ledger that no run file holds yet.
    pub fn ledger(&self) -> &LedgerTail {
        &self.ledger
    }

    /// All rules, in no particular order.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = &Arc<Rule>> {
        self.rules.iter()
    }

    /// The rules of a bucket, oldest first.
    pub fn rules_of(&self, bucket_id: ObjectId) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.of_bucket(bucket_id)
    }

    pub fn rule_count(&self, bucket_id: ObjectId) -> usize {
        self.rules.count_of_bucket(bucket_id)
    }

    /// How many rules watch a source of the bucket.
    pub fn rule_count_of_source(&self, bucket_id: ObjectId, source_id: ObjectId) -> u64 {
        let of_source = |rule: &&Arc<Rule>| rule.source_id == source_id;
        self.rules_of(bucket_id).filter(of_source).count() as u64
    }

    pub fn webhook(&self, id: ObjectId) -> Option<&Arc<Webhook>> {
        self.outbox.webhook(id)
    }

    /// The webhooks of an organization, oldest first.
    pub fn webhooks_of(&self, organization_id: ObjectId) -> impl Iterator<Item = &Arc<Webhook>> {
        self.outbox
            .webhooks_of(organization_id)
            .map(|entry| &entry.webhook)
    }

    pub fn webhook_count(&self, organization_id: ObjectId) -> usize {
        self.outbox.webhook_count(organization_id)
    }

    /// Counts of an organization's pending deliveries.
    pub fn owed(&self, organization_id: ObjectId) -> OwedFigures {
        self.outbox.owed().of(organization_id)
    }

    /// Approximate memory of the pending deliveries of all organizations, in bytes.
    pub fn owed_bytes(&self) -> u64 {
        self.outbox.owed().bytes()
    }

    /// The body of an event that has pending deliveries.
    pub fn event_body(&self, event_id: ObjectId) -> Option<&Arc<EventBody>> {
        self.outbox.owed().event(event_id)
    }

    /// All pending deliveries, in no particular order.
    pub fn pending_deliveries(&self) -> impl ExactSizeIterator<Item = &Arc<Delivery>> {
        self.outbox.pending()
    }

    pub fn pending_delivery(&self, id: ObjectId) -> Option<&Arc<Delivery>> {
        self.outbox.pending_delivery(id)
    }

    /// The pending deliveries of a webhook or a rule, oldest first.
    pub fn pending_deliveries_of(&self, owner: ObjectId) -> impl DoubleEndedIterator<Item = &Arc<Delivery>> {
        self.outbox.pending_of(owner)
    }
}

/// Sources by id. The table holds only the shared pointers; the id is read through them.
#[derive(Default)]
pub(super) struct SourceIndex {
    table: HashTable<Arc<Source>>,
    hasher: RandomState,
}

impl SourceIndex {
    pub fn get(&self, id: ObjectId) -> Option<&Arc<Source>> {
        self.table
            .find(self.hasher.hash_one(id), |source| source.id == id)
    }

    /// Inserts a source or replaces it by a new version.
    pub fn insert(&mut self, source: Arc<Source>) {
        let hasher = &self.hasher;
        let (hash, id) = (hasher.hash_one(source.id), source.id);
        let entry = self
            .table
            .entry(hash, |other| other.id == id, |other| hasher.hash_one(other.id));
        match entry {
            Entry::Occupied(mut held) => *held.get_mut() = source,
            Entry::Vacant(vacant) => drop(vacant.insert(source)),
        }
    }

    /// Reserves capacity for more sources.
    pub fn reserve(&mut self, additional: usize) {
        let hasher = &self.hasher;
        self.table.reserve(additional, |other| hasher.hash_one(other.id));
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn remove(&mut self, id: ObjectId) {
        if let Ok(entry) = self
            .table
            .find_entry(self.hasher.hash_one(id), |source| source.id == id)
        {
            entry.remove();
        }
    }
}
