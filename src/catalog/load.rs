//! Loads the catalog from its objects at a restart.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::SnapshotError;
use super::body::{Body, EventBody, EventName};
use super::object_key::{Kind, ObjectKey};
use super::objects::{
    BucketImage, CallsImage, DeliveryBodyImage, DeliveryStateImage, KeyImage, OBJECTS_VERSION,
    OrganizationImage, Root, SourcesImage, WebhookImage,
};
use super::pages::Page;
use super::rule::Rule;
use super::source::Source;
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
    rules: Vec<Arc<Rule>>,
    webhooks: Vec<WebhookImage>,
    /// By owner and id.
    bodies: BTreeMap<(ObjectId, ObjectId), DeliveryBodyImage>,
    states: Vec<(ObjectId, DeliveryStateImage)>,
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
        if self.last.is_some_and(|last| last >= *key) {
            return Err(SnapshotError::OutOfOrder { key: *key });
        }
        self.last = Some(*key);
        let kind = Kind::of(key).ok_or(SnapshotError::UnknownKind { key: *key })?;
        if self.add(kind, key, content)? == *key {
            Ok(())
        } else {
            Err(SnapshotError::Misplaced { key: *key })
        }
    }

    /// Returns the key of the object that the content belongs to.
    fn add(&mut self, kind: Kind, key: &ObjectKey, content: &[u8]) -> Result<ObjectKey, SnapshotError> {
        Ok(match kind {
            Kind::Root => {
                let Version { version: found } = decode(key, content)?;
                if found > OBJECTS_VERSION {
                    let known = OBJECTS_VERSION;
                    return Err(SnapshotError::UnknownVersion { found, known });
                }
                self.root = Some(decode(key, content)?);
                ObjectKey::root()
            }
            Kind::Organization => {
                let image: OrganizationImage = decode(key, content)?;
                let placed = ObjectKey::organization(image.organization.id);
                self.organizations.push(image);
                placed
            }
            Kind::Calls => {
                let image: CallsImage = decode(key, content)?;
                let placed = ObjectKey::calls(image.organization_id);
                self.calls.push(image);
                placed
            }
            Kind::User => {
                let user: User = decode(key, content)?;
                let placed = ObjectKey::user(&user);
                self.users.push(user);
                placed
            }
            Kind::Bucket => {
                let image: BucketImage = decode(key, content)?;
                let placed = ObjectKey::bucket(image.bucket.id);
                self.buckets.push(image);
                placed
            }
            Kind::Key => {
                let image: KeyImage = decode(key, content)?;
                let placed = ObjectKey::key(&image.key);
                self.keys.push(image);
                placed
            }
            Kind::Sources => self.add_sources(key, content)?,
            Kind::Rule => {
                let rule: Arc<Rule> = decode(key, content)?;
                let placed = ObjectKey::rule(&rule);
                self.rules.push(rule);
                placed
            }
            Kind::Webhook => {
                let image: WebhookImage = decode(key, content)?;
                let placed = ObjectKey::webhook(&image.webhook);
                self.webhooks.push(image);
                placed
            }
            Kind::DeliveryBody | Kind::SharedDelivery => {
                let image: DeliveryBodyImage = decode(key, content)?;
                let owner = image.receiver.owner();
                let placed = match kind {
                    Kind::SharedDelivery => ObjectKey::shared_delivery(owner, image.id),
                    _ => ObjectKey::delivery_body(owner, image.id),
                };
                self.bodies.insert((owner, image.id), image);
                placed
            }
            Kind::Event => {
                let event: Arc<EventBody> = decode(key, content)?;
                let placed = ObjectKey::event(&event);
                self.events.insert(event.id, event);
                placed
            }
            Kind::DeliveryState => {
                let image: DeliveryStateImage = decode(key, content)?;
                let placed = ObjectKey::delivery_state(key.owner, image.id);
                self.states.push((key.owner, image));
                placed
            }
        })
    }

    fn add_sources(&mut self, key: &ObjectKey, content: &[u8]) -> Result<ObjectKey, SnapshotError> {
        let image: SourcesImage = decode(key, content)?;
        let schemas = self.catalog.shared_schemas(image.schemas);
        for source in image.sources {
            let source = self.catalog.source_of(source, &schemas)?;
            if sources_key(&source) != *key {
                return Err(SnapshotError::Misplaced { key: *key });
            }
            self.sources.push(source);
        }
        Ok(*key)
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
        self.catalog.last_key_ordinal = root.last_key_ordinal;
        self.catalog.rules.last_ordinal = root.last_rule_ordinal;
        self.catalog.outbox.last_webhook_ordinal = root.last_webhook_ordinal;
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
            self.catalog
                .insert_organization(Arc::unwrap_or_clone(image.organization));
        }
        for CallsImage {
            organization_id: id,
            months,
        } in self.calls.drain(..)
        {
            self.catalog.needs_organization(id, ObjectKey::calls(id))?;
            let totals: Vec<_> = months.iter().map(|(month, calls)| (id, *month, *calls)).collect();
            self.catalog.restore_calls(&totals);
        }
        for user in self.users.drain(..) {
            self.catalog
                .needs_organization(user.organization_id, ObjectKey::user(&user))?;
            self.catalog.insert_user(user);
        }
        Ok(())
    }

    fn finish_buckets(&mut self) -> Result<(), SnapshotError> {
        for image in self.buckets.drain(..) {
            let key = ObjectKey::bucket(image.bucket.id);
            self.catalog
                .needs_organization(image.bucket.organization_id, key)?;
            given(image.bucket.ordinal, self.catalog.last_bucket_ordinal, key)?;
            self.catalog
                .insert_bucket(Arc::unwrap_or_clone(image.bucket), image.next_source_ordinal);
        }
        Ok(())
    }

    fn finish_keys(&mut self) -> Result<(), SnapshotError> {
        self.keys.sort_unstable_by_key(|image| image.ordinal);
        for KeyImage { ordinal, mut key } in self.keys.drain(..) {
            let needed_by = ObjectKey::key(&key);
            self.catalog.needs_organization(key.organization_id, needed_by)?;
            if let Some(bucket_id) = key.bucket_id {
                self.catalog.needs_bucket(bucket_id, needed_by)?;
            }
            given(ordinal, self.catalog.last_key_ordinal, needed_by)?;
            key.ordinal = ordinal;
            self.catalog.restore_key(Arc::new(key));
        }
        Ok(())
    }

    fn finish_sources(&mut self) -> Result<(), SnapshotError> {
        self.catalog.sources.reserve(self.sources.len());
        for source in self.sources.drain(..) {
            let bucket = self.catalog.buckets.get(&source.bucket_id);
            let next = bucket.map(|bucket| bucket.next_source_ordinal);
            let next = next.ok_or_else(|| missing("bucket", source.bucket_id, sources_key(&source)))?;
            if source.ordinal >= next {
                let key = sources_key(&source);
                return Err(SnapshotError::OrdinalNotGiven { key });
            }
            self.catalog.insert_source(source);
        }
        Ok(())
    }

    fn finish_rules(&mut self) -> Result<(), SnapshotError> {
        for rule in self.rules.drain(..) {
            let key = ObjectKey::rule(&rule);
            self.catalog.needs_bucket(rule.bucket_id, key)?;
            let source = self.catalog.source(rule.source_id);
            if source.is_none_or(|source| source.bucket_id != rule.bucket_id) {
                return Err(missing("data source", rule.source_id, key));
            }
            given(rule.ordinal, self.catalog.rules.last_ordinal, key)?;
            self.catalog.insert_rule(rule);
        }
        Ok(())
    }

    fn finish_webhooks(&mut self) -> Result<(), SnapshotError> {
        self.webhooks.sort_unstable_by_key(|image| image.ordinal);
        for WebhookImage { ordinal, webhook } in self.webhooks.drain(..) {
            let key = ObjectKey::webhook(&webhook);
            self.catalog.needs_organization(webhook.organization_id, key)?;
            given(ordinal, self.catalog.outbox.last_webhook_ordinal, key)?;
            self.catalog.restore_webhook(ordinal, webhook);
        }
        Ok(())
    }

    fn finish_deliveries(&mut self) -> Result<(), SnapshotError> {
        for (owner, state) in self.states.drain(..) {
            let key = ObjectKey::delivery_state(owner, state.id);
            let body = self.bodies.remove(&(owner, state.id));
            let mut body = body.ok_or_else(|| missing("the body of delivery", state.id, key))?;
            if let Body::Named(EventName { event_id, .. }) = body.body {
                let event = self.events.get(&event_id);
                let event = event.ok_or_else(|| missing("event", event_id, key))?;
                body.body = Body::Shared(Arc::clone(event));
            }
            self.catalog.restore_delivery(body.with(state));
        }
        match self.bodies.first_key_value() {
            None => Ok(()),
            Some(((owner, id), _)) => {
                let key = ObjectKey::delivery_body(*owner, *id);
                Err(missing("the state of delivery", *id, key))
            }
        }
    }
}

impl Catalog {
    fn needs_organization(&self, id: ObjectId, needed_by: ObjectKey) -> Result<(), SnapshotError> {
        let found = self.organization(id);
        found
            .map(drop)
            .ok_or_else(|| missing("organization", id, needed_by))
    }

    fn needs_bucket(&self, id: ObjectId, needed_by: ObjectKey) -> Result<(), SnapshotError> {
        let found = self.bucket(id);
        found.map(drop).ok_or_else(|| missing("bucket", id, needed_by))
    }
}

/// The version in the root, which is decoded before the rest of it.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

fn decode<T: DeserializeOwned>(key: &ObjectKey, content: &[u8]) -> Result<T, SnapshotError> {
    rmp_serde::from_slice(content).map_err(|cause| SnapshotError::MalformedObject { key: *key, cause })
}

/// The key of the page that holds a source.
fn sources_key(source: &Source) -> ObjectKey {
    ObjectKey::sources(source.bucket_id, Page::<Source>::number_of(source.ordinal))
}

fn missing(what: &'static str, id: ObjectId, needed_by: ObjectKey) -> SnapshotError {
    SnapshotError::Missing { what, id, needed_by }
}

/// Checks that an ordinal is at most the last one assigned.
fn given<T: PartialOrd>(ordinal: T, last: T, key: ObjectKey) -> Result<(), SnapshotError> {
    if ordinal <= last {
        Ok(())
    } else {
        Err(SnapshotError::OrdinalNotGiven { key })
    }
}
