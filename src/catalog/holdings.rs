//! What each organization has in the catalog: counts, and bytes of texts. Updated with every change, so that checking a
//! limit does not need a scan.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::bucket::Bucket;
use super::key::Key;
use super::rule::RuleSettings;
use super::schema::Schema;
use super::source::Source;
use super::state::Catalog;
use super::text_bytes::{self, of_bucket, of_key, of_rule, of_schema, of_source, of_webhook};
use super::user::User;
use super::webhook::{Webhook, WebhookSettings};
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
pub(super) struct Held {
    holdings: Holdings,
    /// Schemas by address, because the catalog has each only once, with the number of sources that share it.
    schemas: HashMap<usize, (Arc<Schema>, usize)>,
}

impl Held {
    pub const fn holdings(&self) -> Holdings {
        self.holdings
    }

    pub fn rename(&mut self, old: &str, new: &str) {
        self.change(old.len(), new.len());
    }

    pub fn add_user(&mut self, user: &User) {
        self.change(0, text_bytes::of_user(user));
    }

    pub fn add_key(&mut self, key: &Key) {
        self.holdings.keys += 1;
        self.change(0, of_key(&key.name));
    }

    pub fn remove_key(&mut self, key: &Key) {
        self.holdings.keys -= 1;
        self.change(of_key(&key.name), 0);
    }

    /// Buckets are not counted here, but where they are listed.
    pub fn replace_bucket(&mut self, old: Option<&Bucket>, new: Option<&Bucket>) {
        let bytes = |it: &Bucket| of_bucket(&it.name, it.description.as_deref());
        self.change(old.map_or(0, bytes), new.map_or(0, bytes));
    }

    pub fn add_source(&mut self, source: &Source) {
        self.holdings.sources += 1;
        self.change(
            0,
            of_source(&source.name, &source.kind, source.description.as_deref()),
        );
        let address = Arc::as_ptr(&source.schema).addr();
        let (schema, sources) = self
            .schemas
            .entry(address)
            .or_insert_with(|| (Arc::clone(&source.schema), 0));
        *sources += 1;
        if *sources == 1 {
            self.holdings.text_bytes += of_schema(&schema.fields) as u64;
        }
    }

    pub fn remove_source(&mut self, source: &Source) {
        self.holdings.sources -= 1;
        self.change(
            of_source(&source.name, &source.kind, source.description.as_deref()),
            0,
        );
        if let Entry::Occupied(mut shared) = self.schemas.entry(Arc::as_ptr(&source.schema).addr()) {
            shared.get_mut().1 -= 1;
            if shared.get().1 == 0 {
                shared.remove();
                self.change(of_schema(&source.schema.fields), 0);
            }
        }
    }

    pub fn add_rule(&mut self, settings: &RuleSettings) {
        self.holdings.rules += 1;
        self.change(0, of_rule(settings));
    }

    pub fn replace_rule(&mut self, old: &RuleSettings, new: &RuleSettings) {
        self.change(of_rule(old), of_rule(new));
    }

    pub fn remove_rule(&mut self, settings: &RuleSettings) {
        self.holdings.rules -= 1;
        self.change(of_rule(settings), 0);
    }

    /// Webhooks are not counted here, but where they are listed.
    pub fn add_webhook(&mut self, settings: &WebhookSettings) {
        self.change(0, of_webhook(settings));
    }

    pub fn replace_webhook(&mut self, old: &WebhookSettings, new: &WebhookSettings) {
        self.change(of_webhook(old), of_webhook(new));
    }

    pub fn remove_webhook(&mut self, webhook: &Webhook) {
        self.change(of_webhook(&webhook.settings), 0);
    }

    fn change(&mut self, old: usize, new: usize) {
        let bytes = &mut self.holdings.text_bytes;
        *bytes = *bytes + new as u64 - old as u64;
    }
}

impl Catalog {
    /// The counts of an organization.
    pub fn holdings(&self, organization_id: ObjectId) -> Holdings {
        let entry = self.organizations.get(&organization_id);
        entry.map_or_else(Holdings::default, |entry| entry.held.holdings())
    }

    /// Whether the organization has this schema, so that another source with it needs no more text bytes for it.
    pub fn has_schema(&self, organization_id: ObjectId, schema: &Schema) -> bool {
        let held = self.organizations.get(&organization_id).map(|entry| &entry.held);
        let shared = self.schemas.get(schema).map(|shared| Arc::as_ptr(shared).addr());
        held.zip(shared)
            .is_some_and(|(held, address)| held.schemas.contains_key(&address))
    }

    /// Updates the counts of an organization.
    pub(super) fn hold(&mut self, organization_id: ObjectId, note: impl FnOnce(&mut Held)) {
        if let Some(entry) = self.organizations.get_mut(&organization_id) {
            note(&mut entry.held);
        }
    }

    /// Updates the counts of the organization that owns a bucket.
    pub(super) fn hold_bucket(&mut self, bucket_id: ObjectId, note: impl FnOnce(&mut Held)) {
        if let Some(organization_id) = self.bucket(bucket_id).map(|bucket| bucket.organization_id) {
            self.hold(organization_id, note);
        }
    }
}
