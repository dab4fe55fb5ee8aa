//! The changes of the catalog since the last checkpoint, which the next one writes.

use std::collections::{HashMap, HashSet};
use std::fmt;

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

impl Frozen {
    /// The changes since `saved`, an earlier state of the same catalog; since [`Frozen::default`], all objects. They are
    /// in ascending order of their keys, each key once, and are encoded lazily. Encoding never fails for the objects of a
    /// catalog; the error type is that of the encoder.
    ///
    /// Compares pointers first, and contents only if the pointers differ. Needs about 50 bytes of memory per object
    /// during the comparison, where 1,024 sources are one object, and then 60 bytes per changed object.
    pub fn changes_since<'a>(
        &'a self,
        saved: &Frozen,
    ) -> impl ExactSizeIterator<Item = Result<Change, rmp_serde::encode::Error>> + use<'a> {
        let unchanged = {
            let before: HashSet<Identity> = saved.objects().filter_map(|it| it.identity()).collect();
            let now = self.objects().filter_map(|it| it.identity());
            now.filter(|it| before.contains(it)).collect::<HashSet<_>>()
        };
        let is_new = |object: &Object<'_>| object.identity().is_none_or(|it| !unchanged.contains(&it));
        let before = saved.objects().filter(is_new).map(|it| (it.key(), it));
        let mut before: HashMap<ObjectKey, Object<'_>> = before.collect();
        let mut changed: Vec<(ObjectKey, Option<Object<'a>>)> = Vec::new();
        for object in self.objects().filter(is_new) {
            let key = object.key();
            let same = before.remove(&key).is_some_and(|it| object.equals(&it));
            if !same {
                changed.push((key, Some(object)));
            }
        }
        changed.extend(before.into_keys().map(|key| (key, None)));
        changed.sort_unstable_by_key(|(key, _)| *key);
        changed.into_iter().map(|(key, object)| {
            let content = object.map(|object| object.encode()).transpose()?;
            Ok(Change { key, content })
        })
    }

    /// All objects, in no particular order.
    fn objects(&self) -> impl Iterator<Item = Object<'_>> {
        let pages = self.pages.iter();
        let sources = pages.map(|(bucket_id, page)| Object::Sources(*bucket_id, page));
        let root = self.root.iter().map(Object::Root);
        root.chain(self.organizations.iter().map(Object::Organization))
            .chain(self.calls.iter().map(Object::Calls))
            .chain(self.users.iter().map(Object::User))
            .chain(self.buckets.iter().map(Object::Bucket))
            .chain(sources)
            .chain(self.keys.iter().map(Object::Key))
            .chain(self.rules.iter().map(Object::Rule))
            .chain(self.webhooks.iter().map(Object::Webhook))
            .chain(self.events.iter().map(Object::Event))
            .chain(self.deliveries.iter().map(Object::DeliveryBody))
            .chain(self.deliveries.iter().map(Object::DeliveryState))
    }
}
