//! What each organization has in the catalog: counts, and bytes of texts. Updated with every change, so that checking a
//! limit does not need a scan.

use std::collections::HashMap;
use std::sync::Arc;

use super::text_bytes::{of_annotation, of_key, of_rule, of_schema, of_source};
use super::{AnnotationSettings, Catalog, Key, RuleSettings, Schema, Source};
use crate::ids::ObjectId;

/// Counts of an organization's objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Data sources in all its buckets.
    pub sources: u64,
    /// Keys of the organization and of its buckets.
    pub keys: u64,
    pub rules: u64,
    /// Annotations in all its buckets.
    pub annotations: u64,
    /// Bytes of names, descriptions, schemas, rules, webhooks, silences, annotations and boards. A schema shared by several
    /// sources counts once.
    pub text_bytes: u64,
}

/// The counts, and the state needed to update them.
#[derive(Default)]
pub(super) struct HoldingsTracker {
    figures: Holdings,
    /// Schemas by address, because the catalog has each only once, with the number of sources that share it.
    schemas: HashMap<usize, (Arc<Schema>, i64)>,
}

impl HoldingsTracker {
    /// Counts a key that is added, if `by` is 1, or removed, if it is −1. The same holds for sources, rules
    /// and annotations.
    pub fn count_key(&mut self, by: i64, key: &Key) {
        self.count(|it| &mut it.keys, by, of_key(&key.name));
    }

    pub fn count_rule(&mut self, by: i64, settings: &RuleSettings) {
        self.count(|it| &mut it.rules, by, of_rule(settings));
    }

    pub fn count_annotation(&mut self, by: i64, settings: &AnnotationSettings) {
        self.count(|it| &mut it.annotations, by, of_annotation(&settings.text));
    }

    pub fn count_source(&mut self, by: i64, source: &Source) {
        let description = source.description.as_deref();
        let bytes = of_source(&source.name, &source.kind, description);
        self.count(|it| &mut it.sources, by, bytes);
        let address = Arc::as_ptr(&source.schema).addr();
        let shared = self.schemas.entry(address);
        let (_, sources) = shared.or_insert_with(|| (Arc::clone(&source.schema), 0));
        *sources += by;
        match (by, *sources) {
            (1, 1) => self.replace_text(0, of_schema(&source.schema.fields)),
            (_, 0) => {
                self.schemas.remove(&address);
                self.replace_text(of_schema(&source.schema.fields), 0);
            }
            _ => {}
        }
    }

    fn count(&mut self, counter: fn(&mut Holdings) -> &mut u64, by: i64, text_bytes: usize) {
        let count = counter(&mut self.figures);
        *count = count.wrapping_add_signed(by);
        let bytes = &mut self.figures.text_bytes;
        *bytes = bytes.wrapping_add_signed(by * text_bytes as i64);
    }

    /// Replaces texts of `before` bytes by texts of `after` bytes. Called directly for users, buckets, webhooks,
    /// silences and boards, which are counted where they are listed.
    pub fn replace_text(&mut self, before: usize, after: usize) {
        let bytes = &mut self.figures.text_bytes;
        *bytes = *bytes + after as u64 - before as u64;
    }
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

    /// Updates the counts of an organization, if there is one.
    pub(super) fn update_holdings(
        &mut self,
        id: impl Into<Option<ObjectId>>,
        change: impl FnOnce(&mut HoldingsTracker),
    ) {
        if let Some(entry) = id.into().and_then(|id| self.organizations.get_mut(&id)) {
            change(&mut entry.holdings);
        }
    }
}
