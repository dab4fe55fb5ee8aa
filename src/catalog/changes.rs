//! The changes of the catalog since the last checkpoint, which the next one writes.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::vec;

use super::body::Body;
use super::frozen::Frozen;
use super::object_key::ObjectKey;
use super::objects::{Identity, Object};

/// An object that changed.
#[derive(Clone, PartialEq, Eq)]
pub struct Change {
    /// The key of the object.
    pub key: ObjectKey,
    /// Its new content, or `None` if it was deleted.
    pub content: Option<Vec<u8>>,
}

/// Hides the content, which may hold secrets.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.content.as_ref().map(Vec::len);
        write!(f, "{}: {bytes:?} bytes", self.key)
    }
}

/// Changes in ascending order of their keys, each key once. Contents are encoded lazily.
pub struct Changes<'a> {
    changed: vec::IntoIter<(ObjectKey, Option<Object<'a>>)>,
}

impl Iterator for Changes<'_> {
    /// Encoding never fails for the objects of a catalog; the error type is that of the encoder.
    type Item = Result<Change, rmp_serde::encode::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let (key, object) = self.changed.next()?;
        let content = object.map(|object| object.encode()).transpose();
        Some(content.map(|content| Change { key, content }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.changed.size_hint()
    }
}

impl ExactSizeIterator for Changes<'_> {}

impl Frozen {
    /// The changes since `saved`, an earlier state of the same catalog; since [`Frozen::default`], all objects.
    ///
    /// Compares pointers first, and contents only if the pointers differ. Needs about 50 bytes of memory per object
    /// during the comparison, where 1,024 sources are one object, and then 60 bytes per changed object.
    pub fn changes_since(&self, saved: &Frozen) -> Changes<'_> {
        let unchanged = {
            let before: HashSet<Identity> = saved.objects().filter_map(|it| it.identity()).collect();
            let now = self.objects().filter_map(|it| it.identity());
            now.filter(|it| before.contains(it)).collect::<HashSet<_>>()
        };
        let is_new = |object: &Object<'_>| object.identity().is_none_or(|it| !unchanged.contains(&it));
        let before = saved.objects().filter(is_new).map(|it| (it.key(), it));
        let mut before: HashMap<ObjectKey, Object<'_>> = before.collect();
        let mut changed = Vec::new();
        for object in self.objects().filter(is_new) {
            let key = object.key();
            let same = before.remove(&key).is_some_and(|it| object.equals(&it));
            if !same {
                changed.push((key, Some(object)));
            }
        }
        changed.extend(before.into_keys().map(|key| (key, None)));
        changed.sort_unstable_by_key(|(key, _)| *key);
        Changes {
            changed: changed.into_iter(),
        }
    }

    /// All objects, in no particular order.
    fn objects(&self) -> impl Iterator<Item = Object<'_>> {
        let organizations = (0..).zip(&self.organizations);
        let calls = self.organizations.iter().filter(|it| !it.calls.is_empty());
        let pages = self.buckets.iter().flat_map(|it| {
            let id = it.bucket.id;
            it.sources.iter().map(move |page| Object::Sources(id, page))
        });
        let of_organizations = organizations
            .map(|(position, it)| Object::Organization(position, &it.organization))
            .chain(calls.map(|it| Object::Calls(it.organization.id, &it.calls)))
            .chain(self.users.iter().map(Object::User))
            .chain(self.webhooks.iter().map(Object::Webhook));
        let of_buckets = self
            .buckets
            .iter()
            .map(Object::Bucket)
            .chain(pages)
            .chain(self.rules.iter().map(Object::Rule));
        let bodies = self.deliveries.iter().map(|delivery| match &delivery.body {
            Body::Whole(_) | Body::Named(_) => Object::DeliveryBody(delivery),
            Body::Shared(_) => Object::SharedDelivery(delivery),
        });
        let events = self.events.iter().map(Object::Event);
        let states = self.deliveries.iter().map(Object::DeliveryState);
        let root = self.root.iter().map(Object::Root);
        root.chain(of_organizations)
            .chain(of_buckets)
            .chain(self.keys.iter().map(Object::Key))
            .chain(events)
            .chain(bodies)
            .chain(states)
    }
}
