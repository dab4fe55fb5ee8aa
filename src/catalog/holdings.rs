//! What each organization has in the catalog: counts, and bytes of texts. Updated with every change, so that checking a
//! limit does not need a scan.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::key::Key;
use super::rule::RuleSettings;
use super::schema::Schema;
use super::source::Source;
use super::state::Catalog;
use super::text_bytes::{of_key, of_rule, of_schema, of_source};
use crate::ids::ObjectId;

/// Counts of an organization's objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Data sources in all its buckets.
    pub sources: u64,
    /// Keys of the organization and of its buckets.
    pub keys: u64,
    pub rules: u64,
    /// Bytes of names, descriptions, schemas, rules and webhooks. A schema shared by several sources counts once.
    pub text_bytes: u64,
}

/// The counts, and the state needed to update them.
#[derive(Default)]
pub(super) struct HoldingsTracker {
    figures: Holdings,
    /// Schemas by address, because the catalog has each only once, with the number of sources that share it.
    schemas: HashMap<usize, (Arc<Schema>, usize)>,
}

impl HoldingsTracker {
    pub fn add_key(&mut self, key: &Key) {
        self.figures.keys += 1;
        self.replace_text(0, of_key(&key.name));
    }

    pub fn remove_key(&mut self, key: &Key) {
        self.figures.keys -= 1;
        self.replace_text(of_key(&key.name), 0);
    }

    pub fn add_source(&mut self, source: &Source) {
        self.figures.sources += 1;
        self.replace_text(0, of_source_itself(source));
        let shared = self.schemas.entry(Arc::as_ptr(&source.schema).addr());
        let (schema, sources) = shared.or_insert_with(|| (Arc::clone(&source.schema), 0));
        *sources += 1;
        if *sources == 1 {
            self.figures.text_bytes += of_schema(&schema.fields) as u64;
        }
    }

    pub fn remove_source(&mut self, source: &Source) {
        self.figures.sources -= 1;
        self.replace_text(of_source_itself(source), 0);
        if let Entry::Occupied(mut shared) = self.schemas.entry(Arc::as_ptr(&source.schema).addr()) {
            shared.get_mut().1 -= 1;
            if shared.get().1 == 0 {
                shared.remove();
                self.replace_text(of_schema(&source.schema.fields), 0);
            }
        }
    }

    pub fn add_rule(&mut self, settings: &RuleSettings) {
        self.figures.rules += 1;
        self.replace_text(0, of_rule(settings));
    }

    pub fn remove_rule(&mut self, settings: &RuleSettings) {
        self.figures.rules -= 1;
        self.replace_text(of_rule(settings), 0);
    }

    /// Replaces texts of `before` bytes by texts of `after` bytes. Called directly for users, buckets and webhooks, which
    /// are counted where they are listed.
    pub fn replace_text(&mut self, before: usize, after: usize) {
        let bytes = &mut self.figures.text_bytes;
        *bytes = *bytes + after as u64 - before as u64;
    }
}

fn of_source_itself(source: &Source) -> usize {
    of_source(&source.name, &source.kind, source.description.as_deref())
}

impl Catalog {
    /// The counts of an organization.
    pub fn holdings(&self, organization_id: ObjectId) -> Holdings {
        let entry = self.organizations.get(&organization_id);
        entry.map_or_else(Holdings::default, |entry| entry.holdings.figures)
    }

    /// Whether the organization has this schema, so that another source with it needs no more text bytes for it.
    pub fn has_schema(&self, organization_id: ObjectId, schema: &Schema) -> bool {
        let entry = self.organizations.get(&organization_id);
        let shared = self.schemas.get(schema).map(|shared| Arc::as_ptr(shared).addr());
        entry
            .zip(shared)
            .is_some_and(|(entry, address)| entry.holdings.schemas.contains_key(&address))
    }

    /// Updates the counts of an organization.
    pub(super) fn update_holdings(&mut self, id: ObjectId, change: impl FnOnce(&mut HoldingsTracker)) {
        if let Some(entry) = self.organizations.get_mut(&id) {
            change(&mut entry.holdings);
        }
    }

    /// Updates the counts of the organization that owns a bucket.
    pub(super) fn update_holdings_of_bucket(
        &mut self,
        bucket_id: ObjectId,
        change: impl FnOnce(&mut HoldingsTracker),
    ) {
        if let Some(organization_id) = self.organization_of_bucket(bucket_id) {
            self.update_holdings(organization_id, change);
        }
    }
}
