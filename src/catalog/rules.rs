//! Rules by id, and in order of creation within their bucket.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::rule::Rule;
use crate::ids::ObjectId;

#[derive(Default)]
pub(super) struct Rules {
    by_id: HashMap<ObjectId, Arc<Rule>>,
    /// By ordinal: oldest first.
    by_bucket: HashMap<ObjectId, BTreeMap<u64, ObjectId>>,
    pub last_ordinal: u64,
}

impl Rules {
    pub fn get(&self, id: ObjectId) -> Option<&Arc<Rule>> {
        self.by_id.get(&id)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Rule>> {
        self.by_id.values()
    }

    /// Oldest first.
    pub fn of_bucket(&self, bucket_id: ObjectId) -> impl Iterator<Item = &Arc<Rule>> {
        let ids = self.by_bucket.get(&bucket_id);
        ids.into_iter()
            .flat_map(BTreeMap::values)
            .filter_map(|id| self.by_id.get(id))
    }

    pub fn count_of_bucket(&self, bucket_id: ObjectId) -> usize {
        self.by_bucket.get(&bucket_id).map_or(0, BTreeMap::len)
    }

    pub fn insert(&mut self, rule: Arc<Rule>) {
        let of_bucket = self.by_bucket.entry(rule.bucket_id).or_default();
        of_bucket.insert(rule.ordinal, rule.id);
        self.by_id.insert(rule.id, rule);
    }

    pub fn change(&mut self, id: ObjectId, change: impl FnOnce(&mut Rule)) {
        if let Some(rule) = self.by_id.get_mut(&id) {
            change(Arc::make_mut(rule));
        }
    }

    pub fn remove(&mut self, id: ObjectId) -> Option<Arc<Rule>> {
        let rule = self.by_id.remove(&id)?;
        if let Some(of_bucket) = self.by_bucket.get_mut(&rule.bucket_id) {
            of_bucket.remove(&rule.ordinal);
        }
        Some(rule)
    }

    /// Returns the rules that were removed with the bucket.
    pub fn remove_bucket(&mut self, bucket_id: ObjectId) -> Vec<Arc<Rule>> {
        let ids = self.by_bucket.remove(&bucket_id).unwrap_or_default();
        ids.values().filter_map(|id| self.by_id.remove(id)).collect()
    }

    /// Returns the rules that were removed with the source.
    pub fn remove_source(&mut self, bucket_id: ObjectId, source_id: ObjectId) -> Vec<Arc<Rule>> {
        let of_source = |rule: &&Arc<Rule>| rule.source_id == source_id;
        let doomed = self.of_bucket(bucket_id).filter(of_source);
        let doomed: Vec<_> = doomed.map(|rule| rule.id).collect();
        doomed.into_iter().filter_map(|id| self.remove(id)).collect()
    }
}
