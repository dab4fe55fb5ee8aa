//! Loads the catalog from its objects at a restart.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::SnapshotError;
use super::body::{Body, EventBody, EventName};
use super::object_key::{Kind, ObjectKey};
use super::objects::{
    BucketImage, CallsImage, DeliveryBodyImage, DeliveryStateImage, KeyImage, OBJECTS_VERSION,
    OrganizationImage, Root, Version, WebhookImage,
};
use super::pages::Page;
use super::registry::{Owned, Registry};
use super::rule::Rule;
use super::source::Source;
use super::source_image::SourcesImage;
use super::state::Catalog;
use super::user::User;
use crate::ids::ObjectId;

/// Builds a catalog from its objects: the newest version of each, without deleted ones, in ascending order of their
/// keys. The root comes first, so that an older program stops at its version before it misreads anything.
///
/// The loaded catalog equals the saved one, including the order of lists. All objects that a checkpoint writes become
/// valid at once, so every object that another one needs exists. If one does not, data was lost, and loading fails.
/// Needed are: organizations of users, webhooks and calls; organizations and buckets of keys; organizations of buckets;
/// buckets of sources; sources of rules; body and state of each delivery, and the event whose body it shares. A
/// delivery does not need its receiver.
#[derive(Default)]
pub struct CatalogLoader {
    last: Option<ObjectKey>,
    /// Holds the values that many sources share. The sources and all other objects are added at the end.
    catalog: Catalog,
    root: Option<Root>,
    organizations: Vec<OrganizationImage>,
    calls: Vec<CallsImage>,
    users: Vec<User>,
    buckets: Vec<BucketImage>,
    keys: Vec<KeyImage>,
    sources: Vec<Arc<Source>>,
    rules: Vec<Rule>,
    webhooks: Vec<WebhookImage>,
    /// By owner and id.
    bodies: BTreeMap<(ObjectId, ObjectId), DeliveryBodyImage<'static>>,
    states: Vec<(ObjectId, DeliveryStateImage<'static>)>,
    events: HashMap<ObjectId, Arc<EventBody>>,
}

impl CatalogLoader {
    /// A loader without objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object.
    ///
    /// # Errors
    /// Names the object: its content is damaged or belongs to another object, its kind or version is from a newer
    /// program, or its key is not greater than the previous one.
    pub fn push(&mut self, key: &ObjectKey, content: &[u8]) -> Result<(), SnapshotError> {
        let is_next = self.last.is_none_or(|last| last < *key);
        ensure(is_next, || SnapshotError::OutOfOrder { key: *key })?;
        self.last = Some(*key);
        match Kind::of(key).ok_or(SnapshotError::UnknownKind { key: *key })? {
            Kind::Root => {
                decode::<Version>(key, content)?.check(OBJECTS_VERSION)?;
                self.root = Some(decode_checked(key, content, |_| ObjectKey::root())?);
            }
            Kind::Organization => {
                let key_of = |it: &OrganizationImage| ObjectKey::organization(it.organization.id);
                self.organizations.push(decode_checked(key, content, key_of)?);
            }
            Kind::Calls => {
                let key_of = |it: &CallsImage| ObjectKey::calls(it.organization_id);
                self.calls.push(decode_checked(key, content, key_of)?);
            }
            Kind::User => self.users.push(decode_checked(key, content, ObjectKey::user)?),
            Kind::Bucket => {
                let key_of = |it: &BucketImage| ObjectKey::bucket(it.bucket.id);
                self.buckets.push(decode_checked(key, content, key_of)?);
            }
            Kind::Key => {
                let key_of = |it: &KeyImage| ObjectKey::key(&it.key);
                self.keys.push(decode_checked(key, content, key_of)?);
            }
            Kind::Sources => self.add_sources(key, content)?,
            Kind::Rule => self.rules.push(decode_checked(key, content, ObjectKey::rule)?),
            Kind::Webhook => {
                let key_of = |it: &WebhookImage| ObjectKey::webhook(&it.webhook);
                self.webhooks.push(decode_checked(key, content, key_of)?);
            }
            kind @ (Kind::DeliveryBody | Kind::SharedDelivery) => {
                let key_of = |it: &DeliveryBodyImage<'_>| kind.key(it.receiver.owner(), it.id);
                let image = decode_checked(key, content, key_of)?;
                self.bodies.insert((key.owner, key.id), image);
            }
            Kind::DeliveryState => {
                // A state does not name its owner.
                let key_of = |it: &DeliveryStateImage<'_>| Kind::DeliveryState.key(key.owner, it.id);
                self.states
                    .push((key.owner, decode_checked(key, content, key_of)?));
            }
            Kind::Event => {
                let event = decode_checked(key, content, ObjectKey::event)?;
                self.events.insert(event.id, Arc::new(event));
            }
        }
        Ok(())
    }

    fn add_sources(&mut self, key: &ObjectKey, content: &[u8]) -> Result<(), SnapshotError> {
        let image: SourcesImage = decode(key, content)?;
        for source in image.into_sources(&mut self.catalog)? {
            check_key(key, sources_key(&source))?;
            self.sources.push(source);
        }
        Ok(())
    }

    /// Returns the catalog, after all objects were pushed.
    ///
    /// # Errors
    /// Names the missing object and the one that needs it. The root is always needed: a catalog that was never saved
    /// has no objects and needs no loader. Also fails for an object whose ordinal is greater than the last one
    /// assigned.
    pub fn finish(mut self) -> Result<Catalog, SnapshotError> {
        let root = self.root.ok_or(SnapshotError::NoRoot)?;
        self.catalog.server_secret = root.server_secret;
        self.catalog.last_bucket_ordinal = root.last_bucket_ordinal;
        self.catalog.keys.last_ordinal = root.last_key_ordinal;
        self.catalog.rules.last_ordinal = root.last_rule_ordinal;
        self.catalog.webhooks.last_ordinal = root.last_webhook_ordinal;
        self.finish_organizations()?;
        self.finish_buckets()?;
        self.finish_keys()?;
        self.finish_sources()?;
        self.finish_rules()?;
        self.finish_webhooks()?;
        self.finish_deliveries()?;
        Ok(self.catalog)
    }

    fn finish_organizations(&mut self) -> Result<(), SnapshotError> {
        self.organizations.sort_unstable_by_key(|image| image.position);
        for image in self.organizations.drain(..) {
            self.catalog.insert_organization(image.organization);
        }
        for image in self.calls.drain(..) {
            let id = image.organization_id;
            self.catalog.needs_organization(id, ObjectKey::calls(id))?;
            for (month, calls) in image.months {
                self.catalog.restore_calls(id, month, calls);
            }
        }
        for user in self.users.drain(..) {
            let key = ObjectKey::user(&user);
            self.catalog.needs_organization(user.organization_id, key)?;
            self.catalog.insert_user(user);
        }
        Ok(())
    }

    fn finish_buckets(&mut self) -> Result<(), SnapshotError> {
        for image in self.buckets.drain(..) {
            let bucket = image.bucket;
            let key = ObjectKey::bucket(bucket.id);
            self.catalog.needs_organization(bucket.organization_id, key)?;
            check_ordinal(bucket.ordinal <= self.catalog.last_bucket_ordinal, key)?;
            self.catalog.insert_bucket(bucket, image.next_source_ordinal);
        }
        Ok(())
    }

    fn finish_keys(&mut self) -> Result<(), SnapshotError> {
        for KeyImage { ordinal, key } in self.keys.drain(..) {
            let needed_by = ObjectKey::key(&key);
            self.catalog.needs_organization(key.organization_id, needed_by)?;
            if let Some(bucket_id) = key.bucket_id {
                self.catalog.needs_bucket(bucket_id, needed_by)?;
            }
            check_object(&self.catalog.keys, &key, ordinal, needed_by)?;
            self.catalog.insert_key(ordinal, key);
        }
        Ok(())
    }

    fn finish_sources(&mut self) -> Result<(), SnapshotError> {
        self.catalog.sources.reserve(self.sources.len());
        for source in self.sources.drain(..) {
            let key = sources_key(&source);
            let bucket = self.catalog.buckets.get(&source.bucket_id);
            let bucket = bucket.ok_or_else(|| missing("bucket", source.bucket_id, key))?;
            check_ordinal(source.ordinal < bucket.next_source_ordinal, key)?;
            self.catalog.insert_source(source);
        }
        Ok(())
    }

    fn finish_rules(&mut self) -> Result<(), SnapshotError> {
        for rule in self.rules.drain(..) {
            let key = ObjectKey::rule(&rule);
            self.catalog.needs_bucket(rule.bucket_id, key)?;
            let source = self.catalog.source(rule.source_id);
            let is_in_bucket = source.is_some_and(|source| source.bucket_id == rule.bucket_id);
            ensure(is_in_bucket, || missing("data source", rule.source_id, key))?;
            check_object(&self.catalog.rules, &rule, rule.ordinal, key)?;
            self.catalog.insert_rule(rule);
        }
        Ok(())
    }

    fn finish_webhooks(&mut self) -> Result<(), SnapshotError> {
        for WebhookImage { ordinal, webhook } in self.webhooks.drain(..) {
            let key = ObjectKey::webhook(&webhook);
            self.catalog.needs_organization(webhook.organization_id, key)?;
            check_object(&self.catalog.webhooks, &webhook, ordinal, key)?;
            self.catalog.insert_webhook(ordinal, webhook);
        }
        Ok(())
    }

    fn finish_deliveries(&mut self) -> Result<(), SnapshotError> {
        for (owner, state) in self.states.drain(..) {
            let key = Kind::DeliveryState.key(owner, state.id);
            let body = self.bodies.remove(&(owner, state.id));
            let body = body.ok_or_else(|| missing("the body of delivery", state.id, key))?;
            let mut delivery = body.with(state);
            if let Body::Named(EventName { event_id, .. }) = delivery.body {
                let event = self.events.get(&event_id);
                let event = event.ok_or_else(|| missing("event", event_id, key))?;
                delivery.body = Body::Shared(Arc::clone(event));
            }
            self.catalog.restore_delivery(delivery);
        }
        match self.bodies.keys().next() {
            None => Ok(()),
            Some((owner, id)) => {
                let key = Kind::DeliveryBody.key(*owner, *id);
                Err(missing("the state of delivery", *id, key))
            }
        }
    }
}

impl Catalog {
    fn needs_organization(&self, id: ObjectId, needed_by: ObjectKey) -> Result<(), SnapshotError> {
        ensure(self.organization(id).is_some(), || {
            missing("organization", id, needed_by)
        })
    }

    fn needs_bucket(&self, id: ObjectId, needed_by: ObjectKey) -> Result<(), SnapshotError> {
        ensure(self.bucket(id).is_some(), || missing("bucket", id, needed_by))
    }
}

fn ensure(holds: bool, error: impl FnOnce() -> SnapshotError) -> Result<(), SnapshotError> {
    if holds { Ok(()) } else { Err(error()) }
}

fn decode<T: DeserializeOwned>(key: &ObjectKey, content: &[u8]) -> Result<T, SnapshotError> {
    rmp_serde::from_slice(content).map_err(|cause| SnapshotError::MalformedObject { key: *key, cause })
}

/// Decodes an object, and checks that it belongs to the key.
fn decode_checked<T: DeserializeOwned>(
    key: &ObjectKey,
    content: &[u8],
    key_of: impl FnOnce(&T) -> ObjectKey,
) -> Result<T, SnapshotError> {
    let object = decode(key, content)?;
    check_key(key, key_of(&object))?;
    Ok(object)
}

fn check_key(key: &ObjectKey, of_content: ObjectKey) -> Result<(), SnapshotError> {
    ensure(of_content == *key, || SnapshotError::Misplaced { key: *key })
}

/// The key of the page that holds a source.
fn sources_key(source: &Source) -> ObjectKey {
    ObjectKey::sources(source.bucket_id, Page::<Source>::number_of(source.ordinal))
}

fn missing(what: &'static str, id: ObjectId, needed_by: ObjectKey) -> SnapshotError {
    SnapshotError::Missing { what, id, needed_by }
}

/// Checks that the ordinal of an object was assigned.
/// Checks that the ordinal of an object was assigned, and to no other object.
fn check_object<T: Owned + Clone>(
    registry: &Registry<T>,
    object: &T,
    ordinal: u64,
    key: ObjectKey,
) -> Result<(), SnapshotError> {
    check_ordinal(ordinal <= registry.last_ordinal, key)?;
    let is_free = !registry.is_taken(object.owner(), ordinal);
    ensure(is_free, || SnapshotError::OrdinalTaken { key })
}

fn check_ordinal(is_assigned: bool, key: ObjectKey) -> Result<(), SnapshotError> {
    ensure(is_assigned, || SnapshotError::OrdinalNotGiven { key })
}
