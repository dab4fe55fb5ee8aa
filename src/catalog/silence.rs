//! Silences: times in which triggers are not delivered, for an organization, a bucket, or some rules.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::registry::{Owned, Registry};
use super::text_bytes::of_silence;
use super::{Catalog, Rule};
use crate::clock::MINUTE_NS;
use crate::ids::ObjectId;

/// How long a silence stays in the catalog after its end: what happened before the end may be decided a little later.
const KEPT_AFTER_END_NS: i64 = MINUTE_NS;
/// How many ended silences of its organization a new silence removes at most. More than one, so that the ended ones of an
/// organization that makes new ones become fewer.
const ENDED_REMOVED_MAX: usize = 8;

/// A time in which rules that fire are not delivered. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    pub id: ObjectId,
    pub organization_id: ObjectId,
    /// As given; `None` where only the rules say it, or the whole organization is meant.
    pub bucket_id: Option<ObjectId>,
    /// The rules that it is about; `None` for all rules of the bucket or of the organization. Rules that were deleted
    /// since are still named.
    pub alert_ids: Option<Vec<ObjectId>>,
    /// The buckets of its rules, or its bucket; empty if it is about the whole organization.
    pub bucket_ids: Vec<ObjectId>,
    /// From this time on it is no longer in force, in UTC nanoseconds.
    pub until_ns: i64,
    pub reason: Box<str>,
    /// From this time on it is in force, in UTC nanoseconds.
    pub created_at_ns: i64,
    /// The key or the user that created it.
    pub created_by: ObjectId,
}

impl Silence {
    /// Whether it is about the whole organization.
    pub fn is_of_organization(&self) -> bool {
        self.bucket_ids.is_empty()
    }

    /// Whether it is about the bucket or rules in it.
    pub fn touches(&self, bucket_id: ObjectId) -> bool {
        self.is_of_organization() || self.bucket_ids.contains(&bucket_id)
    }

    /// Whether it is about this bucket or rules in it, and nothing else.
    pub fn is_within(&self, bucket_id: ObjectId) -> bool {
        self.bucket_ids == [bucket_id]
    }

    pub const fn has_ended(&self, now_ns: i64) -> bool {
        self.until_ns <= now_ns
    }

    const fn is_in_force(&self, at_ns: i64) -> bool {
        self.created_at_ns <= at_ns && !self.has_ended(at_ns)
    }

    fn text_bytes(&self) -> usize {
        of_silence(&self.reason, self.subjects().len())
    }

    /// What it is about: its rules, else its bucket, else the organization.
    fn subjects(&self) -> &[ObjectId] {
        match (&self.alert_ids, &self.bucket_id) {
            (Some(rules), _) => rules,
            (None, Some(bucket)) => std::slice::from_ref(bucket),
            (None, None) => std::slice::from_ref(&self.organization_id),
        }
    }
}

impl Owned for Silence {
    fn id(&self) -> ObjectId {
        self.id
    }

    fn owner(&self) -> ObjectId {
        self.organization_id
    }
}

/// Silences by their ends: end, id.
type ByEnd = BTreeSet<(i64, ObjectId)>;

/// All silences, and those of each rule, bucket and organization.
#[derive(Default)]
pub(super) struct Silences {
    /// Changed only by [`Silences::insert`] and [`Silences::remove`].
    pub registry: Registry<Silence>,
    /// By what they are about.
    by_subject: HashMap<ObjectId, ByEnd>,
    /// By organization.
    by_organization: HashMap<ObjectId, ByEnd>,
}

impl Silences {
    /// Adds a silence. Silences do not change: one that is there stays.
    fn insert(&mut self, ordinal: u64, silence: Arc<Silence>) {
        if self.registry.contains(silence.id) {
            return;
        }
        let place = (silence.until_ns, silence.id);
        for subject in silence.subjects() {
            self.by_subject.entry(*subject).or_default().insert(place);
        }
        let of_organization = self.by_organization.entry(silence.organization_id);
        of_organization.or_default().insert(place);
        self.registry.insert(ordinal, silence);
    }

    fn remove(&mut self, id: ObjectId) -> Option<Arc<Silence>> {
        let silence = self.registry.remove(id)?;
        let place = (silence.until_ns, id);
        for subject in silence.subjects() {
            take(&mut self.by_subject, *subject, place);
        }
        take(&mut self.by_organization, silence.organization_id, place);
        Some(silence)
    }

    /// Silences of an organization that ended long enough ago to be removed, the earliest first.
    fn removable(&self, organization_id: ObjectId, now_ns: i64) -> impl Iterator<Item = ObjectId> {
        let ended = self.by_organization.get(&organization_id).into_iter().flatten();
        let last_end_ns = now_ns.saturating_sub(KEPT_AFTER_END_NS);
        ended
            .take_while(move |(until_ns, _)| *until_ns <= last_end_ns)
            .map(|(_, id)| *id)
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.by_subject.is_empty() && self.by_organization.is_empty() && self.registry.iter().next().is_none()
    }

    /// The silence about this rule, bucket or organization that is in force at this time; of several, one that ends last.
    fn about(&self, subject: ObjectId, at_ns: i64) -> Option<&Arc<Silence>> {
        let by_end = self.by_subject.get(&subject)?.iter().rev();
        let open = by_end.take_while(|(until_ns, _)| *until_ns > at_ns);
        let mut silences = open.filter_map(|(_, id)| self.registry.get(*id));
        silences.find(|silence| silence.is_in_force(at_ns))
    }
}

/// Removes a place from the set of this owner, and the set with its last place.
fn take(sets: &mut HashMap<ObjectId, ByEnd>, owner: ObjectId, place: (i64, ObjectId)) {
    if let Some(set) = sets.get_mut(&owner) {
        set.remove(&place);
        if set.is_empty() {
            sets.remove(&owner);
        }
    }
}

impl Catalog {
    /// The silence that mutes an event of a rule at this time, if there is one. Deliveries of such an event are not made.
    /// Looks only at silences about the rule, its bucket and its organization.
    pub fn silence_of(&self, rule: &Rule, at_ns: i64) -> Option<&Arc<Silence>> {
        let organization_id = self.organization_of_bucket(rule.bucket_id)?;
        [rule.id, rule.bucket_id, organization_id]
            .into_iter()
            .find_map(|subject| self.silences.about(subject, at_ns))
    }

    /// A silence, which may have ended.
    pub fn silence(&self, id: ObjectId) -> Option<&Arc<Silence>> {
        self.silences.registry.get(id)
    }

    /// The silences of an organization, oldest first. Some may have ended.
    pub fn silences_of(&self, organization_id: ObjectId) -> impl Iterator<Item = &Arc<Silence>> {
        self.silences.registry.of(organization_id)
    }

    /// How many silences of an organization count towards its limit: all but those that new ones will remove.
    pub fn silence_count(&self, organization_id: ObjectId, now_ns: i64) -> usize {
        let removable = self.silences.removable(organization_id, now_ns).count();
        self.silences.registry.count_of(organization_id) - removable
    }

    /// Text bytes of the ended silences that a new one removes.
    pub fn silence_bytes_freed(&self, organization_id: ObjectId, now_ns: i64) -> usize {
        let gone = self.silences.removable(organization_id, now_ns);
        let gone = gone.take(ENDED_REMOVED_MAX).filter_map(|id| self.silence(id));
        gone.map(|silence| silence.text_bytes()).sum()
    }

    /// Adds a new silence and removes some that have ended. Has no effect if its organization does not exist.
    pub(super) fn create_silence(&mut self, silence: &Silence) {
        let ended = self
            .silences
            .removable(silence.organization_id, silence.created_at_ns);
        let ended: Vec<_> = ended.take(ENDED_REMOVED_MAX).collect();
        ended.into_iter().for_each(|id| self.delete_silence(id));
        if !self.silences.registry.contains(silence.id) {
            let ordinal = self.silences.registry.next_ordinal();
            self.insert_silence(ordinal, Arc::new(silence.clone()));
        }
    }

    /// Adds a silence that has an ordinal already.
    pub(super) fn insert_silence(&mut self, ordinal: u64, silence: Arc<Silence>) {
        if self.organization(silence.organization_id).is_some() {
            let bytes = silence.text_bytes();
            self.update_holdings(silence.organization_id, |it| it.replace_text(0, bytes));
            self.silences.insert(ordinal, silence);
        }
    }

    pub(super) fn delete_silence(&mut self, id: ObjectId) {
        if let Some(silence) = self.silences.remove(id) {
            let bytes = silence.text_bytes();
            self.update_holdings(silence.organization_id, |it| it.replace_text(bytes, 0));
        }
    }

    /// Removes the silences of which no bucket is left. Called after a bucket of the organization was deleted.
    pub(super) fn delete_silences_without_bucket(&mut self, organization_id: ObjectId) {
        let is_left = |bucket_id: &ObjectId| self.bucket(*bucket_id).is_some();
        let of_organization = self.silences_of(organization_id);
        let gone = of_organization
            .filter(|silence| !silence.is_of_organization() && !silence.bucket_ids.iter().any(is_left));
        let gone: Vec<_> = gone.map(|silence| silence.id).collect();
        gone.into_iter().for_each(|id| self.delete_silence(id));
    }
}
