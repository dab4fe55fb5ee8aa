//! The catalog as objects, each of which is written when it has changed: how two versions are compared, and how they
//! are encoded. Layout in FORMAT.md, "Objects".

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Bytes;
use super::body::{Body, EventBody};
use super::bucket::Bucket;
use super::calls::{CallTotals, MonthDay};
use super::delivery::{Attempt, Delivery, DeliveryStatus, Receiver};
use super::frozen::{FrozenBucket, FrozenKey, FrozenWebhook};
use super::key::Key;
use super::object_key::{Kind, ObjectKey};
use super::organization::Organization;
use super::pages::Page;
use super::rule::Rule;
use super::schema::Schema;
use super::source::Source;
use super::source_image::{self, SourceImage};
use super::state::Catalog;
use super::user::User;
use super::webhook::{Event, Webhook};
use crate::ids::ObjectId;

/// Raised when an older program could misread the objects as a whole. A new layout of one kind is a new kind.
pub(super) const OBJECTS_VERSION: u32 = 2;

/// An object of a catalog snapshot.
pub(super) enum Object<'a> {
    Root(&'a Root),
    /// With its position in the order of creation.
    Organization(u32, &'a Arc<Organization>),
    Calls(ObjectId, &'a CallTotals),
    User(&'a Arc<User>),
    Bucket(&'a FrozenBucket),
    Key(&'a FrozenKey),
    Sources(ObjectId, &'a Arc<Page<Source>>),
    Rule(&'a Arc<Rule>),
    Webhook(&'a FrozenWebhook),
    DeliveryBody(&'a Arc<Delivery>),
    DeliveryState(&'a Arc<Delivery>),
    /// A body that deliveries share.
    Event(&'a Arc<EventBody>),
    /// A delivery with a shared body, in place of a `DeliveryBody`.
    SharedDelivery(&'a Arc<Delivery>),
}

/// Identifies a version of an object without reading it: its address, and other values that may change.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Identity {
    kind: Kind,
    address: usize,
    also: u32,
}

impl Object<'_> {
    pub fn key(&self) -> ObjectKey {
        match *self {
            Self::Root(_) => ObjectKey::root(),
            Self::Organization(_, organization) => ObjectKey::organization(organization.id),
            Self::Calls(organization_id, _) => ObjectKey::calls(organization_id),
            Self::User(user) => ObjectKey::user(user),
            Self::Bucket(it) => ObjectKey::bucket(it.bucket.id),
            Self::Key(it) => ObjectKey::key(&it.key),
            Self::Sources(bucket_id, page) => ObjectKey::sources(bucket_id, page.number()),
            Self::Rule(rule) => ObjectKey::rule(rule),
            Self::Webhook(it) => ObjectKey::webhook(&it.webhook),
            Self::DeliveryBody(it) => ObjectKey::delivery_body(it.receiver.owner(), it.id),
            Self::DeliveryState(it) => ObjectKey::delivery_state(it.receiver.owner(), it.id),
            Self::Event(it) => ObjectKey::event(it),
            Self::SharedDelivery(it) => ObjectKey::shared_delivery(it.receiver.owner(), it.id),
        }
    }

    /// Equal identities mean equal objects. `None` for objects that are compared by content.
    pub fn identity(&self) -> Option<Identity> {
        fn identity<T>(kind: Kind, pointer: &Arc<T>, also: u32) -> Identity {
            let address = Arc::as_ptr(pointer).addr();
            Identity { kind, address, also }
        }
        Some(match *self {
            Self::Root(_) | Self::Calls(..) => return None,
            Self::Organization(_, organization) => identity(Kind::Organization, organization, 0),
            Self::User(user) => identity(Kind::User, user, 0),
            Self::Bucket(it) => identity(Kind::Bucket, &it.bucket, it.next_source_ordinal),
            Self::Key(it) => identity(Kind::Key, &it.key, it.last_used_minute),
            Self::Sources(_, page) => identity(Kind::Sources, page, 0),
            Self::Rule(rule) => identity(Kind::Rule, rule, 0),
            Self::Webhook(it) => identity(Kind::Webhook, &it.webhook, 0),
            Self::DeliveryBody(it) => identity(Kind::DeliveryBody, it, 0),
            Self::DeliveryState(it) => identity(Kind::DeliveryState, it, 0),
            Self::Event(it) => identity(Kind::Event, it, 0),
            Self::SharedDelivery(it) => identity(Kind::SharedDelivery, it, 0),
        })
    }

    /// Whether an object with the same key has the same content.
    pub fn equals(&self, other: &Object<'_>) -> bool {
        match (self, other) {
            (Self::Root(a), Object::Root(b)) => a == b,
            (Self::Organization(a_position, a), Object::Organization(b_position, b)) => {
                a_position == b_position && a == b
            }
            (Self::Calls(_, a), Object::Calls(_, b)) => a == b,
            (Self::User(a), Object::User(b)) => a == b,
            (Self::Bucket(a), Object::Bucket(b)) => {
                a.next_source_ordinal == b.next_source_ordinal && a.bucket == b.bucket
            }
            (Self::Sources(_, a), Object::Sources(_, b)) => a.equals(b),
            (Self::Rule(a), Object::Rule(b)) => a == b,
            (Self::Webhook(a), Object::Webhook(b)) => a.ordinal == b.ordinal && a.webhook == b.webhook,
            (Self::DeliveryBody(a), Object::DeliveryBody(b))
            | (Self::SharedDelivery(a), Object::SharedDelivery(b)) => {
                a.webhook_id == b.webhook_id
                    && a.receiver == b.receiver
                    && a.event == b.event
                    && a.created_at_ns == b.created_at_ns
                    && a.organization_id == b.organization_id
                    && a.body.is_same(&b.body)
            }
            (Self::Event(a), Object::Event(b)) => Arc::ptr_eq(a, b) || a == b,
            (Self::DeliveryState(a), Object::DeliveryState(b)) => {
                a.status == b.status
                    && a.attempts == b.attempts
                    && a.tries == b.tries
                    && a.next_attempt_at_ns == b.next_attempt_at_ns
                    && a.again == b.again
            }
            // A key's other members never change, and no other key has its ordinal.
            (Self::Key(a), Object::Key(b)) => {
                a.key.ordinal == b.key.ordinal && a.last_used_minute == b.last_used_minute
            }
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
            Self::Organization(position, organization) => rmp_serde::to_vec_named(&OrganizationImage {
                position,
                organization: Arc::clone(organization),
            }),
            Self::Calls(organization_id, calls) => rmp_serde::to_vec_named(&CallsImage {
                organization_id,
                months: calls.iter().map(|it| (it.month, it.calls)).collect(),
            }),
            Self::User(user) => rmp_serde::to_vec_named(user),
            Self::Bucket(it) => rmp_serde::to_vec_named(&BucketImage::of(it)),
            Self::Key(it) => rmp_serde::to_vec_named(&KeyImage {
                ordinal: it.key.ordinal,
                key: it.key.with_last_used_minute(it.last_used_minute),
            }),
            Self::Sources(_, page) => {
                let (schemas, sources) = source_image::images(page.iter());
                rmp_serde::to_vec_named(&SourcesImage { schemas, sources })
            }
            Self::Rule(rule) => rmp_serde::to_vec_named(rule),
            Self::Webhook(it) => rmp_serde::to_vec_named(&WebhookImage {
                ordinal: it.ordinal,
                webhook: Arc::clone(&it.webhook),
            }),
            Self::Event(event) => rmp_serde::to_vec_named(event),
            // A shared body is encoded as a reference to its event.
            Self::DeliveryBody(delivery) | Self::SharedDelivery(delivery) => {
                rmp_serde::to_vec_named(&DeliveryBodyImage {
                    id: delivery.id,
                    webhook_id: delivery.webhook_id,
                    receiver: delivery.receiver.clone(),
                    event: delivery.event,
                    body: delivery.body.clone(),
                    created_at_ns: delivery.created_at_ns,
                    organization_id: delivery.organization_id,
                })
            }
            // Encoded without the members' names, which would be half of the bytes that an attempt writes to disk.
            Self::DeliveryState(delivery) => rmp_serde::to_vec(&DeliveryStateImage {
                id: delivery.id,
                status: delivery.status,
                attempts: delivery.attempts.clone(),
                tries: delivery.tries,
                next_attempt_at_ns: delivery.next_attempt_at_ns,
                again: delivery.again,
            }),
        }
    }
}

/// Properties of the catalog as a whole. Changes whenever a bucket, key, rule or webhook is created.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Root {
    pub version: u32,
    #[serde(default)]
    pub server_secret: Option<Bytes<32>>,
    #[serde(default)]
    pub last_bucket_ordinal: u32,
    #[serde(default)]
    pub last_key_ordinal: u64,
    #[serde(default)]
    pub last_rule_ordinal: u64,
    #[serde(default)]
    pub last_webhook_ordinal: u64,
}

impl Root {
    pub fn of(catalog: &Catalog) -> Self {
        Self {
            version: OBJECTS_VERSION,
            server_secret: catalog.server_secret,
            last_bucket_ordinal: catalog.last_bucket_ordinal,
            last_key_ordinal: catalog.last_key_ordinal,
            last_rule_ordinal: catalog.rules.last_ordinal,
            last_webhook_ordinal: catalog.outbox.last_webhook_ordinal,
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct OrganizationImage {
    pub position: u32,
    pub organization: Arc<Organization>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct CallsImage {
    pub organization_id: ObjectId,
    pub months: Vec<(MonthDay, u64)>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct BucketImage {
    pub bucket: Arc<Bucket>,
    pub next_source_ordinal: u32,
}

impl BucketImage {
    pub fn of(frozen: &FrozenBucket) -> Self {
        Self {
            bucket: Arc::clone(&frozen.bucket),
            next_source_ordinal: frozen.next_source_ordinal,
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct KeyImage {
    pub ordinal: u64,
    pub key: Key,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SourcesImage {
    pub schemas: Vec<Arc<Schema>>,
    pub sources: Vec<SourceImage>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WebhookImage {
    pub ordinal: u64,
    pub webhook: Arc<Webhook>,
}

/// The members that an attempt does not change.
#[derive(Serialize, Deserialize)]
pub(super) struct DeliveryBodyImage {
    pub id: ObjectId,
    pub webhook_id: ObjectId,
    pub receiver: Receiver,
    pub event: Event,
    pub body: Body,
    pub created_at_ns: i64,
    #[serde(default)]
    pub organization_id: Option<ObjectId>,
}

/// The members that an attempt changes. Encoded in this order, without names: new members go to the end, with a
/// default.
#[derive(Serialize, Deserialize)]
pub(super) struct DeliveryStateImage {
    pub id: ObjectId,
    pub status: DeliveryStatus,
    pub attempts: Vec<Attempt>,
    pub tries: u8,
    pub next_attempt_at_ns: Option<i64>,
    #[serde(default)]
    pub again: bool,
}

impl DeliveryBodyImage {
    pub fn with(self, state: DeliveryStateImage) -> Delivery {
        Delivery {
            id: self.id,
            webhook_id: self.webhook_id,
            receiver: self.receiver,
            event: self.event,
            body: self.body,
            created_at_ns: self.created_at_ns,
            status: state.status,
            attempts: state.attempts,
            tries: state.tries,
            next_attempt_at_ns: state.next_attempt_at_ns,
            again: state.again,
            organization_id: self.organization_id,
        }
    }
}
