//! Keys of the catalog's objects, which define their order in the runs. Layout in FORMAT.md, "Objects".

use std::fmt;

use super::body::{Body, EventBody};
use super::key::Key;
use super::registry::Owned;
use super::rule::Rule;
use super::user::User;
use super::webhook::Webhook;
use crate::ids::ObjectId;

/// Owner and id of the root.
const NOBODY: ObjectId = ObjectId::from_bytes([0; 12]);
/// The kind is in the bits of the place from this one on.
const KIND_SHIFT: u32 = 56;

/// The key of an object, which defines its position in the runs: 32 bytes, the owner, time and id of a run's entry. The
/// kind of the object is the first byte of `place`, so a place is never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The organization or the bucket that the object belongs to; for a delivery the webhook or the rule; for the root
    /// zeros.
    pub owner: ObjectId,
    /// The kind in the upper 8 bits, and for pages their number in the lower 32.
    pub place: i64,
    /// The object's own id; for calls and pages of sources that of their owner.
    pub id: ObjectId,
}

/// The kinds of objects. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Root = 1,
    Organization = 2,
    Calls = 3,
    User = 4,
    Bucket = 5,
    Key = 6,
    Sources = 7,
    Rule = 8,
    Webhook = 9,
    DeliveryBody = 10,
    DeliveryState = 11,
    Event = 12,
    SharedDelivery = 13,
}

impl Kind {
    const ALL: [Self; 13] = [
        Self::Root,
        Self::Organization,
        Self::Calls,
        Self::User,
        Self::Bucket,
        Self::Key,
        Self::Sources,
        Self::Rule,
        Self::Webhook,
        Self::DeliveryBody,
        Self::DeliveryState,
        Self::Event,
        Self::SharedDelivery,
    ];

    /// Returns `None` for a kind that this program does not know.
    pub fn of(key: &ObjectKey) -> Option<Self> {
        let number = key.place >> KIND_SHIFT;
        Self::ALL.into_iter().find(|kind| *kind as i64 == number)
    }

    /// The kind of a delivery's body: one that refers to an event has a kind of its own.
    pub const fn of_body(body: &Body) -> Self {
        match body {
            Body::Whole(_) | Body::Named(_) => Self::DeliveryBody,
            Body::Shared(_) => Self::SharedDelivery,
        }
    }

    pub const fn key(self, owner: ObjectId, id: ObjectId) -> ObjectKey {
        let place = (self as i64) << KIND_SHIFT;
        ObjectKey { owner, place, id }
    }
}

impl ObjectKey {
    pub(super) const fn root() -> Self {
        Kind::Root.key(NOBODY, NOBODY)
    }

    pub(super) const fn organization(id: ObjectId) -> Self {
        Kind::Organization.key(id, id)
    }

    pub(super) const fn calls(organization_id: ObjectId) -> Self {
        Kind::Calls.key(organization_id, organization_id)
    }

    pub(super) const fn user(user: &User) -> Self {
        Kind::User.key(user.organization_id, user.id)
    }

    pub(super) const fn bucket(id: ObjectId) -> Self {
        Kind::Bucket.key(id, id)
    }

    pub(super) fn key(key: &Key) -> Self {
        Kind::Key.key(key.owner(), key.id)
    }

    pub(super) const fn sources(bucket_id: ObjectId, page: u32) -> Self {
        let mut key = Kind::Sources.key(bucket_id, bucket_id);
        key.place |= page as i64;
        key
    }

    pub(super) const fn rule(rule: &Rule) -> Self {
        Kind::Rule.key(rule.bucket_id, rule.id)
    }

    pub(super) const fn webhook(webhook: &Webhook) -> Self {
        Kind::Webhook.key(webhook.organization_id, webhook.id)
    }

    pub(super) const fn event(event: &EventBody) -> Self {
        Kind::Event.key(event.organization_id, event.id)
    }
}

/// A description for messages.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, place, id } = self;
        match Kind::of(self) {
            Some(Kind::Root) => f.write_str("the root"),
            Some(Kind::Organization) => write!(f, "organization {id}"),
            Some(Kind::Calls) => write!(f, "the calls of organization {id}"),
            Some(Kind::User) => write!(f, "user {id}"),
            Some(Kind::Bucket) => write!(f, "bucket {id}"),
            Some(Kind::Key) => write!(f, "key {id}"),
            Some(Kind::Sources) => write!(f, "page {} of the data sources of bucket {id}", *place as u32),
            Some(Kind::Rule) => write!(f, "alert rule {id}"),
            Some(Kind::Webhook) => write!(f, "webhook {id}"),
            Some(Kind::DeliveryBody) => write!(f, "the body of delivery {id}"),
            Some(Kind::DeliveryState) => write!(f, "the state of delivery {id}"),
            Some(Kind::Event) => write!(f, "event {id}"),
            Some(Kind::SharedDelivery) => write!(f, "delivery {id}"),
            None => write!(
                f,
                "an object of kind {} (owner {owner}, id {id})",
                place >> KIND_SHIFT
            ),
        }
    }
}
