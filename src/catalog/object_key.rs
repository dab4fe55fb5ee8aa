//! Keys of the catalog's objects, which define their order in the runs. Layout in FORMAT.md, "Objects".

use std::fmt;

use super::names;
use crate::ids::ObjectId;

/// Owner and id of the root.
pub(super) const NOBODY: ObjectId = ObjectId::from_bytes([0; 12]);
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
    Silence = 14,
    Annotation = 15,
    Board = 16,
    /// A user who is not an owner: older programs know only owners.
    LimitedUser = 18,
}

// Followed by an id in messages, except for the root.
names!(
    Kind:
    Root => "the root",
    Organization => "organization",
    Calls => "the calls of organization",
    User => "user",
    Bucket => "bucket",
    Key => "key",
    Sources => "the data sources of bucket",
    Rule => "alert rule",
    Webhook => "webhook",
    DeliveryBody => "the body of delivery",
    DeliveryState => "the state of delivery",
    Event => "event",
    SharedDelivery => "delivery",
    Silence => "silence",
    Annotation => "annotation",
    Board => "board",
    LimitedUser => "user"
);

impl Kind {
    /// Returns `None` for a kind that this program does not know.
    pub fn of(key: &ObjectKey) -> Option<Self> {
        let number = key.kind_number();
        Self::ALL.into_iter().find(|kind| *kind as i64 == number)
    }

    pub const fn key(self, owner: ObjectId, id: ObjectId) -> ObjectKey {
        let place = (self as i64) << KIND_SHIFT;
        ObjectKey { owner, place, id }
    }
}

impl ObjectKey {
    pub(super) const fn kind_number(&self) -> i64 {
        self.place >> KIND_SHIFT
    }

    /// The key of a page of sources.
    pub(super) const fn page(bucket_id: ObjectId, number: u32) -> Self {
        let mut key = Kind::Sources.key(bucket_id, bucket_id);
        key.place |= number as i64;
        key
    }
}

/// A description for messages.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, place, id } = self;
        match Kind::of(self) {
            Some(kind @ Kind::Root) => f.write_str(kind.name()),
            Some(kind @ Kind::Sources) => write!(f, "page {} of {} {id}", *place as u32, kind.name()),
            Some(kind) => write!(f, "{} {id}", kind.name()),
            None => write!(
                f,
                "an object of kind {} (owner {owner}, id {id})",
                self.kind_number()
            ),
        }
    }
}
