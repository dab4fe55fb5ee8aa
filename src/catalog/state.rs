//! The catalog's state and its lookups.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::collection::{Collection, Named};
use super::holdings::HoldingsTracker;
use super::interner::Interner;
use super::outbox::Outbox;
use super::registry::Registry;
use super::silence::Silences;
use super::{
    Annotation, Board, Bucket, Bytes, CallCounts, Delivery, EventBody, Key, KeyHash, LedgerTail,
    Organization, PendingTotals, Receiver, Revisions, Rule, Schema, Source, SourcePages, User, Webhook,
};
use crate::ids::ObjectId;

/// A map that each request reads. The server makes its keys, so that they need no hash function that withstands chosen ones.
type ById<K, V> = HashMap<K, V, RandomState>;

/// All objects and their indexes. Changed only by [`Catalog::apply`].
#[derive(Default)]
pub struct Catalog {
    pub(super) server_secret: Option<Bytes<32>>,
    pub(super) organizations: ById<ObjectId, OrganizationEntry>,
    /// Oldest first; organizations are never deleted.
    pub(super) organization_order: Vec<ObjectId>,
    pub(super) users: ById<ObjectId, Arc<User>>,
    pub(super) user_by_email: HashMap<Box<str>, ObjectId>,
    pub(super) user_by_reset: HashMap<KeyHash, ObjectId>,
    /// The organization that invites.
    pub(super) invitation_by_hash: HashMap<KeyHash, ObjectId>,
    /// A key is owned by its bucket, or by its organization if it has none.
    pub(super) keys: Registry<Key>,
    pub(super) key_by_hash: ById<KeyHash, Arc<Key>>,
    pub(super) buckets: ById<ObjectId, BucketEntry>,
    pub(super) bucket_by_ordinal: ById<u32, ObjectId>,
    pub(super) last_bucket_ordinal: u32,
    pub(super) sources: HashSet<SourceById, RandomState>,
    pub(super) schemas: Interner<Schema>,
    pub(super) kinds: Interner<str>,
    /// A rule is owned by the bucket of its source.
    pub(super) rules: Registry<Rule>,
    pub(super) webhooks: Registry<Webhook>,
    pub(super) silences: Silences,
    /// An annotation is owned by its bucket.
    pub(super) annotations: Registry<Annotation>,
    pub(super) boards: Registry<Board>,
    /// By the hashes of their links, also those that have expired.
    pub(super) board_by_share: HashMap<KeyHash, ObjectId>,
    pub(super) outbox: Outbox,
    pub(super) ledger: LedgerTail,
}

pub(super) struct OrganizationEntry {
    pub organization: Arc<Organization>,
    pub calls: Arc<CallCounts>,
    /// Time of creation and id of its users.
    pub members: BTreeSet<(i64, ObjectId)>,
    pub buckets: Collection<Bucket>,
    /// Counts of the organization's objects.
    pub holdings: HoldingsTracker,
    pub revisions: Revisions,
}

pub(super) struct BucketEntry {
    pub bucket: Arc<Bucket>,
    pub sources: Collection<Source>,
    pub next_source_ordinal: u32,
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
        let ids = self.organization_order.iter();
        ids.map(|id| &self.organizations[id].organization)
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

    /// All users.
    pub fn users(&self) -> impl Iterator<Item = &Arc<User>> {
        self.users.values()
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.keys.iter().map(|(_, key)| key)
    }

    /// A key.
    pub fn key(&self, id: ObjectId) -> Option<&Arc<Key>> {
        self.keys.get(id)
    }

    /// The key with this SHA-256.
    pub fn key_by_hash(&self, hash: &[u8; 32]) -> Option<&Arc<Key>> {
        self.key_by_hash.get(&Bytes(*hash))
    }

    /// The keys of a bucket, or those of an organization itself, oldest first.
    pub fn keys_of(&self, owner: ObjectId) -> impl Iterator<Item = &Arc<Key>> {
        self.keys.of(owner)
    }

    pub fn key_count(&self, owner: ObjectId) -> usize {
        self.keys.count_of(owner)
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
        let entry = self.organizations.get(&organization_id);
        entry.map_or(0, |entry| entry.buckets.members.len())
    }

    /// The buckets of an organization, oldest first.
    pub fn buckets_of(&self, organization_id: ObjectId) -> impl Iterator<Item = &Arc<Bucket>> {
        let entry = self.organizations.get(&organization_id).into_iter();
        entry.flat_map(|entry| entry.buckets.members.iter())
    }

    /// An organization's bucket with this exact name.
    pub fn bucket_by_name(&self, organization_id: ObjectId, name: &str) -> Option<&Arc<Bucket>> {
        self.organizations.get(&organization_id)?.buckets.by_name(name)
    }

    pub fn source(&self, id: ObjectId) -> Option<&Arc<Source>> {
        self.sources.get(&id).map(|it| &it.0)
    }

    /// The source with this ordinal in a bucket.
    pub fn source_by_ordinal(&self, bucket_id: ObjectId, ordinal: u32) -> Option<&Arc<Source>> {
        self.buckets.get(&bucket_id)?.sources.members.get(ordinal)
    }

    /// Whether all these sources of a bucket exist, by their ordinals.
    pub fn has_sources(&self, bucket_ordinal: u32, ordinals: &[u32]) -> bool {
        let id = self.bucket_by_ordinal.get(&bucket_ordinal);
        let bucket = id.and_then(|id| self.buckets.get(id));
        bucket.is_some_and(|bucket| {
            ordinals
                .iter()
                .all(|it| bucket.sources.members.get(*it).is_some())
        })
    }

    /// Whether a source of a bucket exists, by its ordinal, and is split by dimensions.
    pub fn is_split(&self, bucket_ordinal: u32, ordinal: u32) -> bool {
        let id = self.bucket_by_ordinal.get(&bucket_ordinal);
        let bucket = id.and_then(|id| self.buckets.get(id));
        let source = bucket.and_then(|bucket| bucket.sources.members.get(ordinal));
        source.is_some_and(|source| source.dimensions.is_some())
    }

    /// A bucket's source with this exact name.
    pub fn source_by_name(&self, bucket_id: ObjectId, name: &str) -> Option<&Arc<Source>> {
        self.buckets.get(&bucket_id)?.sources.by_name(name)
    }

    pub fn source_count(&self, bucket_id: ObjectId) -> usize {
        let entry = self.buckets.get(&bucket_id);
        entry.map_or(0, |entry| entry.sources.members.len())
    }

    /// The sources of a bucket, oldest first.
    pub fn sources_of(&self, bucket_id: ObjectId) -> impl Iterator<Item = &Arc<Source>> {
        let entry = self.buckets.get(&bucket_id).into_iter();
        entry.flat_map(|entry| entry.sources.members.iter())
    }

    /// The present sources of a bucket, for a query about all of them. Copies one pointer per 1,024 sources.
    pub fn source_pages_of(&self, bucket_id: ObjectId) -> SourcePages {
        let entry = self.buckets.get(&bucket_id).into_iter();
        SourcePages(
            entry
                .flat_map(|entry| entry.sources.members.pages())
                .cloned()
                .collect(),
        )
    }

    #[cfg(test)]
    pub(super) fn source_total(&self) -> usize {
        self.sources.len()
    }

    /// The contents of a bucket, except its points, which the engine counts.
    pub fn contents_of(&self, bucket_id: ObjectId) -> BucketContents {
        BucketContents {
            sources: self.source_count(bucket_id) as u64,
            keys: self.key_count(bucket_id) as u64,
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
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.iter().map(|(_, rule)| rule)
    }

    /// The rules of a bucket, oldest first.
    pub fn rules_of(&self, bucket_id: ObjectId) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.of(bucket_id)
    }

    pub fn rule_count(&self, bucket_id: ObjectId) -> usize {
        self.rules.count_of(bucket_id)
    }

    /// How many rules watch a source of the bucket.
    pub fn rule_count_of_source(&self, bucket_id: ObjectId, source_id: ObjectId) -> u64 {
        let of_source = |rule: &&Arc<Rule>| rule.source_id == source_id;
        self.rules_of(bucket_id).filter(of_source).count() as u64
    }

    pub fn webhook(&self, id: ObjectId) -> Option<&Arc<Webhook>> {
        self.webhooks.get(id)
    }

    /// The webhooks of an organization, oldest first.
    pub fn webhooks_of(&self, organization_id: ObjectId) -> impl Iterator<Item = &Arc<Webhook>> {
        self.webhooks.of(organization_id)
    }

    pub fn webhook_count(&self, organization_id: ObjectId) -> usize {
        self.webhooks.count_of(organization_id)
    }

    /// Counts of an organization's pending deliveries.
    pub fn owed(&self, organization_id: ObjectId) -> PendingTotals {
        self.outbox.figures_of(organization_id)
    }

    /// Approximate memory of the pending deliveries of all organizations, in bytes.
    pub fn owed_bytes(&self) -> u64 {
        self.outbox.bytes()
    }

    /// The body of an event that has pending deliveries.
    pub fn event_body(&self, event_id: ObjectId) -> Option<&Arc<EventBody>> {
        self.outbox.event(event_id)
    }

    /// All pending deliveries, in no particular order.
    pub fn pending_deliveries(&self) -> impl ExactSizeIterator<Item = &Arc<Delivery>> {
        self.outbox.iter()
    }

    pub fn pending_delivery(&self, id: ObjectId) -> Option<&Arc<Delivery>> {
        self.outbox.get(id)
    }

    /// The pending deliveries of a webhook or a rule, oldest first.
    pub fn pending_deliveries_of(&self, owner: ObjectId) -> impl DoubleEndedIterator<Item = &Arc<Delivery>> {
        self.outbox.of_owner(owner)
    }
}

/// Lookups of the organization that an object belongs to.
impl Catalog {
    pub(super) fn organization_of_bucket(&self, id: ObjectId) -> Option<ObjectId> {
        self.bucket(id).map(|bucket| bucket.organization_id)
    }

    /// That of the key's bucket, if it has one.
    pub(super) fn organization_of_key(&self, key: &Key) -> ObjectId {
        let of_bucket = key.bucket_id.and_then(|id| self.organization_of_bucket(id));
        of_bucket.unwrap_or(key.organization_id)
    }

    pub(super) fn organization_of_source(&self, id: ObjectId) -> Option<ObjectId> {
        self.organization_of_bucket(self.source(id)?.bucket_id)
    }

    pub(super) fn organization_of_rule(&self, id: ObjectId) -> Option<ObjectId> {
        self.organization_of_bucket(self.rule(id)?.bucket_id)
    }

    pub(super) fn organization_of_webhook(&self, id: ObjectId) -> Option<ObjectId> {
        self.webhook(id).map(|webhook| webhook.organization_id)
    }

    pub(super) fn organization_of_receiver(&self, receiver: &Receiver) -> Option<ObjectId> {
        match receiver {
            Receiver::Webhook(id) => self.organization_of_webhook(*id),
            Receiver::Rule { rule_id, .. } => self.organization_of_rule(*rule_id),
        }
    }
}

/// A source in a set by id. The id is read through the pointer, which takes less memory than a map.
pub(super) struct SourceById(pub Arc<Source>);

impl Borrow<ObjectId> for SourceById {
    fn borrow(&self) -> &ObjectId {
        &self.0.id
    }
}

impl Hash for SourceById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl PartialEq for SourceById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for SourceById {}
