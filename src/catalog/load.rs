//! Loads the catalog from its objects at a restart, and the errors of reading a catalog from disk.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::object_key::Kind;
use super::objects::{DeliveryBodyImage, DeliveryStateImage, OBJECTS_VERSION, Object, SourcesImage, Version};
use super::pages::Page;
use super::registry::{Owned, Registry};
use super::{Body, Catalog, EventName, ObjectKey, Source};
use crate::ids::ObjectId;

/// Builds a catalog from its objects: the newest version of each, without deleted ones, in ascending order of their
/// keys. The root comes first, so that an older program stops at its version before it misreads anything.
///
/// The loaded catalog equals the saved one, including the order of lists. All objects that a checkpoint writes become
/// valid at once, so every object that another one needs exists. If one does not, data was lost, and loading fails.
/// Needed are: organizations of users, webhooks, silences, boards and calls; organizations and buckets of keys; organizations of buckets;
/// buckets of sources and annotations; sources of rules and annotations; body and state of each delivery, and the event whose body it shares. A
/// delivery does not need its receiver.
#[derive(Default)]
pub struct CatalogLoader {
    last: Option<ObjectKey>,
    /// Holds the values that many sources share. The sources and all other objects are added at the end.
    catalog: Catalog,
    objects: Vec<(ObjectKey, Object)>,
    /// Number of sources in these objects.
    sources: usize,
    /// By owner and id.
    bodies: BTreeMap<(ObjectId, ObjectId), DeliveryBodyImage<'static>>,
    states: Vec<(ObjectKey, DeliveryStateImage<'static>)>,
}

impl CatalogLoader {
    /// Adds an object.
    ///
    /// # Errors
    /// Names the object: its content is damaged or belongs to another object, its kind or version is from a newer
    /// program, or its key is not greater than the previous one.
    pub fn push(&mut self, key: &ObjectKey, content: &[u8]) -> Result<(), SnapshotError> {
        let is_next = self.last.is_none_or(|last| last < *key);
        ensure(is_next, || SnapshotError::OutOfOrder { key: *key })?;
        self.last = Some(*key);
        let object = match Kind::of(key).ok_or(SnapshotError::UnknownKind { key: *key })? {
            Kind::Root => {
                decode::<Version>(key, content)?.check(OBJECTS_VERSION)?;
                Object::Root(decode(key, content)?)
            }
            Kind::Organization => Object::Organization(decode(key, content)?),
            Kind::Calls => Object::Calls(decode(key, content)?),
            Kind::User | Kind::LimitedUser => Object::User(decode(key, content)?),
            Kind::Bucket => Object::Bucket(decode(key, content)?),
            Kind::Key => Object::Key(decode(key, content)?),
            Kind::Sources => self.decode_page(key, content)?,
            Kind::Rule => Object::Rule(decode(key, content)?),
            Kind::Webhook => Object::Webhook(decode(key, content)?),
            Kind::Silence => Object::Silence(decode(key, content)?),
            Kind::Annotation => Object::Annotation(decode(key, content)?),
            Kind::Board => Object::Board(decode(key, content)?),
            Kind::Event => Object::Event(decode(key, content)?),
            kind @ (Kind::DeliveryBody | Kind::SharedDelivery) => {
                let body: DeliveryBodyImage<'_> = decode(key, content)?;
                check_key(key, kind.key(body.receiver.owner(), body.id))?;
                self.bodies.insert((key.owner, key.id), body);
                return Ok(());
            }
            kind @ Kind::DeliveryState => {
                let state: DeliveryStateImage<'_> = decode(key, content)?;
                // A state does not name its owner.
                check_key(key, kind.key(key.owner, state.id))?;
                self.states.push((*key, state));
                return Ok(());
            }
        };
        check_key(key, object.key())?;
        self.objects.push((*key, object));
        Ok(())
    }

    fn decode_page(&mut self, key: &ObjectKey, content: &[u8]) -> Result<Object, SnapshotError> {
        let image: SourcesImage = decode(key, content)?;
        let sources = image.into_sources(&mut self.catalog)?;
        for source in &sources {
            check_key(
                key,
                ObjectKey::page(source.bucket_id, Page::<Source>::number_of(source.ordinal)),
            )?;
        }
        self.sources += sources.len();
        // The number of the page is in the lower bits.
        let page = Page::new(key.place as u32, sources.into_iter().map(|it| (it.ordinal, it)));
        Ok(Object::Sources(key.owner, Arc::new(page)))
    }

    /// Returns the catalog, after all objects were pushed.
    ///
    /// # Errors
    /// Names the missing object and the one that needs it. The root is always needed: a catalog that was never saved
    /// has no objects and needs no loader. Also fails for an object whose ordinal is greater than the last one
    /// assigned.
    pub fn finish(mut self) -> Result<Catalog, SnapshotError> {
        // An object needs only those of kinds before its own. Organizations are in order of their creation.
        self.objects.sort_by_key(|(key, object)| match object {
            Object::Organization(image) => (key.kind_number(), image.position),
            _ => (key.kind_number(), 0),
        });
        let has_root = matches!(self.objects.first(), Some((_, Object::Root(_))));
        ensure(has_root, || SnapshotError::NoRoot)?;
        let catalog = &mut self.catalog;
        catalog.sources.reserve(self.sources);
        let mut events = HashMap::new();
        for (key, object) in self.objects {
            match object {
                Object::Root(root) => {
                    catalog.server_secret = root.server_secret;
                    catalog.last_bucket_ordinal = root.last_bucket_ordinal;
                    catalog.keys.last_ordinal = root.last_key_ordinal;
                    catalog.rules.last_ordinal = root.last_rule_ordinal;
                    catalog.webhooks.last_ordinal = root.last_webhook_ordinal;
                    catalog.silences.registry.last_ordinal = root.last_silence_ordinal;
                    catalog.annotations.last_ordinal = root.last_annotation_ordinal;
                    catalog.boards.last_ordinal = root.last_board_ordinal;
                }
                Object::Organization(image) => catalog.insert_organization(image.organization),
                Object::Calls(image) => {
                    catalog.needs_organization(image.organization_id, key)?;
                    for (month, calls) in image.months {
                        catalog.restore_calls(image.organization_id, month, calls);
                    }
                }
                Object::User(user) => {
                    catalog.needs_organization(user.organization_id, key)?;
                    catalog.insert_user(user);
                }
                Object::Bucket(image) => {
                    catalog.needs_organization(image.bucket.organization_id, key)?;
                    check_ordinal(image.bucket.ordinal <= catalog.last_bucket_ordinal, key)?;
                    catalog.insert_bucket(image.bucket, image.next_source_ordinal);
                }
                Object::Key(image) => {
                    catalog.needs_organization(image.key.organization_id, key)?;
                    if let Some(bucket_id) = image.key.bucket_id {
                        catalog.needs_bucket(bucket_id, key)?;
                    }
                    check_object(&catalog.keys, &*image.key, image.ordinal, key)?;
                    catalog.insert_key(image.ordinal, image.key);
                }
                Object::Sources(bucket_id, page) => {
                    let bucket = catalog.buckets.get(&bucket_id);
                    let next_ordinal = bucket.map(|bucket| bucket.next_source_ordinal);
                    for source in page.iter() {
                        let next_ordinal = next_ordinal.ok_or_else(|| missing("bucket", bucket_id, key))?;
                        check_ordinal(source.ordinal < next_ordinal, key)?;
                        catalog.insert_source(Arc::clone(source));
                    }
                }
                Object::Rule(rule) => {
                    catalog.needs_bucket(rule.bucket_id, key)?;
                    catalog.needs_source(rule.bucket_id, rule.source_id, key)?;
                    check_object(&catalog.rules, &*rule, rule.ordinal, key)?;
                    catalog.insert_rule(rule);
                }
                Object::Webhook(image) => {
                    catalog.needs_organization(image.webhook.organization_id, key)?;
                    check_object(&catalog.webhooks, &*image.webhook, image.ordinal, key)?;
                    catalog.insert_webhook(image.ordinal, image.webhook);
                }
                Object::Silence(image) => {
                    catalog.needs_organization(image.silence.organization_id, key)?;
                    check_object(&catalog.silences.registry, &*image.silence, image.ordinal, key)?;
                    catalog.insert_silence(image.ordinal, image.silence);
                }
                Object::Annotation(image) => {
                    let bucket_id = image.annotation.bucket_id;
                    catalog.needs_bucket(bucket_id, key)?;
                    if let Some(source_id) = image.annotation.settings.source_id {
                        catalog.needs_source(bucket_id, source_id, key)?;
                    }
                    check_object(&catalog.annotations, &*image.annotation, image.ordinal, key)?;
                    catalog.insert_annotation(image.ordinal, image.annotation);
                }
                Object::Board(image) => {
                    catalog.needs_organization(image.board.organization_id, key)?;
                    check_object(&catalog.boards, &*image.board, image.ordinal, key)?;
                    catalog.insert_board(image.ordinal, image.board);
                }
                Object::Event(event) => {
                    events.insert(event.id, event);
                }
                // Deliveries are kept apart until body and state are joined.
                Object::DeliveryBody(_) | Object::DeliveryState(_) => {}
            }
        }
        for (key, state) in self.states {
            let body = self.bodies.remove(&(key.owner, key.id));
            let body = body.ok_or_else(|| missing(Kind::DeliveryBody.name(), key.id, key))?;
            let mut delivery = body.with(state);
            if let Body::Named(EventName { event_id, .. }) = delivery.body {
                let event = events.get(&event_id);
                let event = event.ok_or_else(|| missing("event", event_id, key))?;
                delivery.body = Body::Shared(Arc::clone(event));
            }
            catalog.restore_delivery(delivery);
        }
        if let Some((owner, id)) = self.bodies.keys().next() {
            let key = Kind::DeliveryBody.key(*owner, *id);
            return Err(missing(Kind::DeliveryState.name(), *id, key));
        }
        Ok(self.catalog)
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

    fn needs_source(
        &self,
        bucket_id: ObjectId,
        id: ObjectId,
        needed_by: ObjectKey,
    ) -> Result<(), SnapshotError> {
        let source = self.source(id);
        let is_in_bucket = source.is_some_and(|source| source.bucket_id == bucket_id);
        ensure(is_in_bucket, || missing("data source", id, needed_by))
    }
}

fn ensure(holds: bool, error: impl FnOnce() -> SnapshotError) -> Result<(), SnapshotError> {
    if holds { Ok(()) } else { Err(error()) }
}

fn decode<T: DeserializeOwned>(key: &ObjectKey, content: &[u8]) -> Result<T, SnapshotError> {
    rmp_serde::from_slice(content).map_err(|cause| SnapshotError::MalformedObject { key: *key, cause })
}

fn check_key(key: &ObjectKey, of_content: ObjectKey) -> Result<(), SnapshotError> {
    ensure(of_content == *key, || SnapshotError::Misplaced { key: *key })
}

fn missing(what: &'static str, id: ObjectId, needed_by: ObjectKey) -> SnapshotError {
    SnapshotError::Missing { what, id, needed_by }
}

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

/// A catalog that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are not a snapshot, or it is damaged.
    #[error("catalog snapshot is malformed: {0}")]
    Malformed(rmp_serde::decode::Error),
    /// Written by a newer program.
    #[error(
        "catalog snapshot has version {found}, this program reads up to {known}: start the newer program"
    )]
    UnknownVersion {
        /// The version that was found.
        found: u32,
        /// The greatest version that this program reads.
        known: u32,
    },
    /// A source refers to a schema that was not written with it.
    #[error("catalog snapshot lacks the schema of data source {source_id}")]
    MissingSchema { source_id: ObjectId },
    /// The content of an object is damaged.
    #[error("catalog: {key} is malformed: {cause}")]
    MalformedObject {
        key: ObjectKey,
        /// What is wrong with its content.
        cause: rmp_serde::decode::Error,
    },
    /// An object of a kind that only a newer program knows.
    #[error("catalog: this program does not know {key}: start the newer program")]
    UnknownKind { key: ObjectKey },
    /// The content of an object belongs to another object.
    #[error("catalog: another object stands in the place of {key}")]
    Misplaced { key: ObjectKey },
    /// An object does not follow the previous one in order of the keys.
    #[error("catalog: {key} comes out of order, or twice")]
    OutOfOrder { key: ObjectKey },
    /// There is no root.
    #[error("catalog: the root is missing")]
    NoRoot,
    /// An object that another one needs is missing.
    #[error("catalog: {what} {id} is missing, which {needed_by} needs")]
    Missing {
        /// The kind of object.
        what: &'static str,
        id: ObjectId,
        /// The object that needs it.
        needed_by: ObjectKey,
    },
    /// The ordinal of an object is greater than the last one assigned.
    #[error("catalog: {key} has an ordinal that was not given yet")]
    OrdinalNotGiven { key: ObjectKey },
    /// Another object of the same owner has this ordinal.
    #[error("catalog: {key} has the ordinal of another object")]
    OrdinalTaken { key: ObjectKey },
}
