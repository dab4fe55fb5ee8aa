//! A snapshot of the catalog in memory, which shares its objects with the live catalog, and the changes between two
//! snapshots, which a checkpoint writes.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::objects::{
    AnnotationImage, BoardImage, BucketImage, CallsImage, DeliveryBody, DeliveryState, Identity, KeyImage,
    Object, OrganizationImage, Root, SilenceImage, WebhookImage,
};
use super::{Catalog, FrozenTail, ObjectKey, SeriesEntry, bucket_owner, series_owner};
use crate::ids::ObjectId;

/// A snapshot of the catalog. Taking it is cheap, because it shares pointers; encoding it is expensive and happens
/// while the catalog is in use.
///
/// Shared objects are immutable: as long as a snapshot holds one, the catalog changes a copy. Equal pointers in two
/// snapshots therefore mean equal objects. Data that changes behind a pointer, the last use of keys and the counts of
/// calls, is copied. The default is a catalog of which nothing was ever saved. It differs from an empty one, which has
/// a root.
#[derive(Default)]
pub struct Frozen {
    /// In no particular order.
    pub(super) objects: Vec<Object>,
    ledger_tail: FrozenTail,
}

impl Catalog {
    /// Takes a snapshot of the present state, without entries of the ledger that were added since its tail was frozen.
    /// Copies one pointer per resource, two per pending delivery and one per 1,024 sources; sorts no objects.
    pub fn freeze(&self) -> Frozen {
        let mut objects = Vec::with_capacity(2 * self.pending_deliveries().len());
        objects.push(Object::Root(Box::new(Root::of(self))));
        for (position, organization) in (0..).zip(self.organizations()) {
            let organization = Arc::clone(organization);
            objects.push(Object::Organization(OrganizationImage {
                position,
                organization,
            }));
        }
        for (organization_id, entry) in &self.organizations {
            let calls = CallsImage {
                organization_id: *organization_id,
                months: entry.calls.by_month(),
            };
            if !calls.months.is_empty() {
                objects.push(Object::Calls(Box::new(calls)));
            }
        }
        objects.extend(self.users.values().cloned().map(Object::User));
        for (id, entry) in &self.buckets {
            objects.push(Object::Bucket(BucketImage {
                bucket: Arc::clone(&entry.bucket),
                next_source_ordinal: entry.next_source_ordinal,
            }));
            let pages = entry.sources.members.pages();
            objects.extend(pages.map(|page| Object::Sources(*id, Arc::clone(page))));
        }
        objects.extend(self.keys.iter().map(|(ordinal, key)| {
            Object::Key(KeyImage {
                ordinal,
                key: Arc::clone(key),
                last_used_minute: key.last_used_minute.minute(),
                calls: key.calls.latest(),
            })
        }));
        objects.extend(self.rules().cloned().map(Object::Rule));
        objects.extend(self.webhooks.iter().map(|(ordinal, webhook)| {
            let webhook = Arc::clone(webhook);
            Object::Webhook(WebhookImage { ordinal, webhook })
        }));
        objects.extend(self.silences.registry.iter().map(|(ordinal, silence)| {
            let silence = Arc::clone(silence);
            Object::Silence(SilenceImage { ordinal, silence })
        }));
        objects.extend(self.annotations.iter().map(|(ordinal, annotation)| {
            let annotation = Arc::clone(annotation);
            Object::Annotation(AnnotationImage { ordinal, annotation })
        }));
        objects.extend(self.boards.iter().map(|(ordinal, board)| {
            let board = Arc::clone(board);
            Object::Board(BoardImage { ordinal, board })
        }));
        objects.extend(self.outbox.events().cloned().map(Object::Event));
        for delivery in self.pending_deliveries() {
            objects.push(Object::DeliveryBody(DeliveryBody(Arc::clone(delivery))));
            objects.push(Object::DeliveryState(DeliveryState(Arc::clone(delivery))));
        }
        Frozen {
            objects,
            ledger_tail: self.ledger.frozen(),
        }
    }
}

impl Frozen {
    /// Entries of the ledger that no run file holds yet. They are not objects; the runs that the manifest names must
    /// include them.
    pub fn ledger_tail(&self) -> &FrozenTail {
        &self.ledger_tail
    }

    /// The same snapshot without the frozen tail, which would otherwise stay in memory as long as the snapshot.
    #[must_use]
    pub fn without_tail(self) -> Self {
        Frozen {
            ledger_tail: FrozenTail::default(),
            ..self
        }
    }

    pub fn bucket_ordinals(&self) -> HashSet<u32> {
        let ordinals = self.objects.iter().filter_map(|object| match object {
            Object::Bucket(it) => Some(it.bucket.ordinal),
            _ => None,
        });
        ordinals.collect()
    }

    /// Owners whose ledger entries are kept: rules, webhooks, buckets, sources that are split by dimensions, and
    /// organizations.
    pub fn ledger_owners(&self) -> HashSet<ObjectId> {
        let owners = self.objects.iter().filter_map(|object| match object {
            Object::Rule(it) => Some(it.id),
            Object::Webhook(it) => Some(it.webhook.id),
            Object::Bucket(it) => Some(bucket_owner(it.bucket.ordinal)),
            Object::Organization(it) => Some(it.organization.id),
            _ => None,
        });
        owners.chain(self.series_owners()).collect()
    }

    /// For each source that is split by dimensions, the owner that stands for its series.
    fn series_owners(&self) -> impl Iterator<Item = ObjectId> {
        let buckets = self.objects.iter().filter_map(|object| match object {
            Object::Bucket(it) => Some((it.bucket.id, it.bucket.ordinal)),
            _ => None,
        });
        let buckets: HashMap<ObjectId, u32> = buckets.collect();
        let pages = self.objects.iter().filter_map(move |object| match object {
            Object::Sources(bucket_id, page) => Some((*buckets.get(bucket_id)?, page)),
            _ => None,
        });
        pages.flat_map(|(bucket, page)| {
            let split = page.iter().filter(|source| source.dimensions.is_some());
            split.map(move |source| series_owner(SeriesEntry::All, bucket, source.ordinal))
        })
    }

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
            let before: HashSet<Identity> = saved.objects.iter().filter_map(Object::identity).collect();
            let now = self.objects.iter().filter_map(Object::identity);
            now.filter(|it| before.contains(it)).collect::<HashSet<_>>()
        };
        let is_new = |object: &&Object| object.identity().is_none_or(|it| !unchanged.contains(&it));
        let before = saved.objects.iter().filter(is_new).map(|it| (it.key(), it));
        let mut before: HashMap<ObjectKey, &Object> = before.collect();
        let mut changed: Vec<(ObjectKey, Option<&'a Object>)> = Vec::new();
        for object in self.objects.iter().filter(is_new) {
            let key = object.key();
            if before.remove(&key) != Some(object) {
                changed.push((key, Some(object)));
            }
        }
        changed.extend(before.into_keys().map(|key| (key, None)));
        changed.sort_unstable_by_key(|(key, _)| *key);
        changed.into_iter().map(|(key, object)| {
            let content = object.map(Object::encode).transpose()?;
            Ok(Change { key, content })
        })
    }
}

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
