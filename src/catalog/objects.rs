//! The catalog as objects, each of which is written when it has changed: how two versions are compared, and how they
//! are encoded. Layout in FORMAT.md, "Objects".

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::body::{Body, EventBody};
use super::bucket::Bucket;
use super::calls::MonthDay;
use super::delivery::{Attempt, Delivery, DeliveryStatus, Receiver};
use super::key::Key;
use super::object_key::{Kind, ObjectKey};
use super::organization::Organization;
use super::pages::Page;
use super::rule::Rule;
use super::source::Source;
use super::source_image::SourcesImage;
use super::state::Catalog;
use super::user::User;
use super::webhook::{Event, Webhook};
use super::{Bytes, SnapshotError};
use crate::ids::ObjectId;

/// Raised when an older program could misread the objects as a whole. A new layout of one kind is a new kind.
pub(super) const OBJECTS_VERSION: u32 = 2;

/// An object of a catalog snapshot.
pub(super) enum Object<'a> {
    Root(&'a Root),
    Organization(&'a OrganizationImage),
    Calls(&'a CallsImage),
    User(&'a Arc<User>),
    Bucket(&'a BucketImage),
    Key(&'a FrozenKey),
    Sources(ObjectId, &'a Arc<Page<Source>>),
    Rule(&'a Arc<Rule>),
    Webhook(&'a WebhookImage),
    DeliveryBody(&'a Arc<Delivery>),
    DeliveryState(&'a Arc<Delivery>),
    /// A body that deliveries share.
    Event(&'a Arc<EventBody>),
}

/// Identifies a version of an object without reading it: its address, and a number that distinguishes what is at the
/// same address.
pub(super) type Identity = (usize, u32);

fn address<T>(pointer: &Arc<T>) -> usize {
    Arc::as_ptr(pointer).addr()
}

impl Object<'_> {
    pub fn key(&self) -> ObjectKey {
        match *self {
            Self::Root(_) => ObjectKey::root(),
            Self::Organization(it) => ObjectKey::organization(it.organization.id),
            Self::Calls(it) => ObjectKey::calls(it.organization_id),
            Self::User(user) => ObjectKey::user(user),
            Self::Bucket(it) => ObjectKey::bucket(it.bucket.id),
            Self::Key(it) => ObjectKey::key(&it.key),
            Self::Sources(bucket_id, page) => ObjectKey::sources(bucket_id, page.number()),
            Self::Rule(rule) => ObjectKey::rule(rule),
            Self::Webhook(it) => ObjectKey::webhook(&it.webhook),
            Self::DeliveryBody(it) => Kind::of_body(&it.body).key(it.receiver.owner(), it.id),
            Self::DeliveryState(it) => Kind::DeliveryState.key(it.receiver.owner(), it.id),
            Self::Event(event) => ObjectKey::event(event),
        }
    }

    /// Equal identities mean equal objects. `None` for objects that are compared by content.
    pub fn identity(&self) -> Option<Identity> {
        Some(match *self {
            Self::Root(_) | Self::Calls(_) => return None,
            Self::Organization(it) => (address(&it.organization), 0),
            Self::User(user) => (address(user), 0),
            Self::Bucket(it) => (address(&it.bucket), it.next_source_ordinal),
            Self::Key(it) => (address(&it.key), it.last_used_minute),
            Self::Sources(_, page) => (address(page), 0),
            Self::Rule(rule) => (address(rule), 0),
            Self::Webhook(it) => (address(&it.webhook), 0),
            Self::DeliveryBody(delivery) => (address(delivery), 0),
            Self::DeliveryState(delivery) => (address(delivery), 1),
            Self::Event(event) => (address(event), 0),
        })
    }

    /// Whether an object with the same key has the same content.
    pub fn equals(&self, other: &Object<'_>) -> bool {
        match (self, other) {
            (Self::Root(a), Object::Root(b)) => a == b,
            (Self::Organization(a), Object::Organization(b)) => a == b,
            (Self::Calls(a), Object::Calls(b)) => a == b,
            (Self::User(a), Object::User(b)) => a == b,
            (Self::Bucket(a), Object::Bucket(b)) => a == b,
            // The other members of a key never change, and no other key has its ordinal.
            (Self::Key(a), Object::Key(b)) => {
                a.ordinal == b.ordinal && a.last_used_minute == b.last_used_minute
            }
            (Self::Sources(_, a), Object::Sources(_, b)) => a.equals(b),
            (Self::Rule(a), Object::Rule(b)) => a == b,
            (Self::Webhook(a), Object::Webhook(b)) => a == b,
            (Self::DeliveryBody(a), Object::DeliveryBody(b)) => {
                DeliveryBodyImage::of(a) == DeliveryBodyImage::of(b)
            }
            (Self::DeliveryState(a), Object::DeliveryState(b)) => {
                DeliveryStateImage::of(a) == DeliveryStateImage::of(b)
            }
            (Self::Event(a), Object::Event(b)) => a == b,
            _ => false,
        }
    }

    /// Encodes the content.
    ///
    /// # Errors
    /// Never fails for the objects of a catalog; the error type is that of the encoder.
    pub fn encode(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        match *self {
            Self::Root(root) => rmp_serde::to_vec_named(root),
            Self::Organization(image) => rmp_serde::to_vec_named(image),
            Self::Calls(image) => rmp_serde::to_vec_named(image),
            Self::User(user) => rmp_serde::to_vec_named(user),
            Self::Bucket(image) => rmp_serde::to_vec_named(image),
            Self::Key(it) => rmp_serde::to_vec_named(&KeyImage {
                ordinal: it.ordinal,
                key: it.key.with_last_used_minute(it.last_used_minute),
            }),
            Self::Sources(_, page) => rmp_serde::to_vec_named(&SourcesImage::of(page.iter())),
            Self::Rule(rule) => rmp_serde::to_vec_named(rule),
            Self::Webhook(image) => rmp_serde::to_vec_named(image),
            Self::DeliveryBody(delivery) => rmp_serde::to_vec_named(&DeliveryBodyImage::of(delivery)),
            // Encoded without the members' names, which would be half of the bytes that an attempt writes to disk.
            Self::DeliveryState(delivery) => rmp_serde::to_vec(&DeliveryStateImage::of(delivery)),
            Self::Event(event) => rmp_serde::to_vec_named(event),
        }
    }
}

/// Properties of the catalog as a whole. Changes whenever a bucket, key, rule or webhook is created.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Root {
    pub version: u32,
    pub server_secret: Option<Bytes<32>>,
    pub last_bucket_ordinal: u32,
    pub last_key_ordinal: u64,
    pub last_rule_ordinal: u64,
    pub last_webhook_ordinal: u64,
}

/// The version of the root or of a snapshot, which must be present. It is decoded before the rest, whose members may
/// mean something else in a newer version.
#[derive(Deserialize)]
pub(super) struct Version {
    pub version: u32,
}

impl Version {
    pub const fn check(&self, known: u32) -> Result<(), SnapshotError> {
        let found = self.version;
        if found > known {
            return Err(SnapshotError::UnknownVersion { found, known });
        }
        Ok(())
    }
}

impl Root {
    pub fn of(catalog: &Catalog) -> Self {
        Self {
            version: OBJECTS_VERSION,
            server_secret: catalog.server_secret,
            last_bucket_ordinal: catalog.last_bucket_ordinal,
            last_key_ordinal: catalog.keys.last_ordinal,
            last_rule_ordinal: catalog.rules.last_ordinal,
            last_webhook_ordinal: catalog.webhooks.last_ordinal,
        }
    }
}

#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct OrganizationImage {
    /// Position in the order of creation.
    pub position: u32,
    pub organization: Arc<Organization>,
}

/// The calls of an organization that has any.
#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct CallsImage {
    pub organization_id: ObjectId,
    /// In order of the months.
    pub months: Vec<(MonthDay, u64)>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BucketImage {
    pub bucket: Arc<Bucket>,
    pub next_source_ordinal: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct KeyImage {
    pub ordinal: u64,
    pub key: Key,
}

/// A key and its last use, which changes behind the pointer.
pub(super) struct FrozenKey {
    pub ordinal: u64,
    pub key: Arc<Key>,
    pub last_used_minute: u32,
}

#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct WebhookImage {
    pub ordinal: u64,
    pub webhook: Arc<Webhook>,
}

/// The members of a delivery that an attempt does not change. A shared body is encoded as a reference to its event.
#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct DeliveryBodyImage<'a> {
    pub id: ObjectId,
    pub webhook_id: ObjectId,
    pub receiver: Cow<'a, Receiver>,
    pub event: Event,
    pub body: Cow<'a, Body>,
    pub created_at_ns: i64,
    #[serde(default)]
    pub organization_id: Option<ObjectId>,
}

/// The members of a delivery that an attempt changes. Encoded in this order, without names: new members go to the end,
/// with a default.
#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct DeliveryStateImage<'a> {
    pub id: ObjectId,
    pub status: DeliveryStatus,
    pub attempts: Cow<'a, [Attempt]>,
    pub tries: u8,
    pub next_attempt_at_ns: Option<i64>,
    #[serde(default)]
    pub again: bool,
}

impl<'a> DeliveryBodyImage<'a> {
    fn of(delivery: &'a Delivery) -> Self {
        Self {
            id: delivery.id,
            webhook_id: delivery.webhook_id,
            receiver: Cow::Borrowed(&delivery.receiver),
            event: delivery.event,
            body: Cow::Borrowed(&delivery.body),
            created_at_ns: delivery.created_at_ns,
            organization_id: delivery.organization_id,
        }
    }

    pub fn with(self, state: DeliveryStateImage<'_>) -> Delivery {
        Delivery {
            id: self.id,
            webhook_id: self.webhook_id,
            receiver: self.receiver.into_owned(),
            event: self.event,
            body: self.body.into_owned(),
            created_at_ns: self.created_at_ns,
            status: state.status,
            attempts: state.attempts.into_owned(),
            tries: state.tries,
            next_attempt_at_ns: state.next_attempt_at_ns,
            again: state.again,
            organization_id: self.organization_id,
        }
    }
}

impl<'a> DeliveryStateImage<'a> {
    fn of(delivery: &'a Delivery) -> Self {
        Self {
            id: delivery.id,
            status: delivery.status,
            attempts: Cow::Borrowed(&delivery.attempts),
            tries: delivery.tries,
            next_attempt_at_ns: delivery.next_attempt_at_ns,
            again: delivery.again,
        }
    }
}
