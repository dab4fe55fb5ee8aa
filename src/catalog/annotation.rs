//! Annotations: what people or programs note at a time or for a while, shown on charts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::registry::Owned;
use super::text_bytes::of_annotation;
use super::{Catalog, Source};
use crate::ids::ObjectId;

/// A note about a bucket or one of its sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    pub id: ObjectId,
    pub bucket_id: ObjectId,
    pub settings: AnnotationSettings,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// The key or the user that created it.
    pub created_by: ObjectId,
    /// UTC nanoseconds.
    pub updated_at_ns: i64,
}

/// What a change of an annotation replaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnotationSettings {
    /// The source of the bucket that it is about; `None` for the whole bucket.
    pub source_id: Option<ObjectId>,
    /// UTC nanoseconds.
    pub at_ns: i64,
    /// The end of a time that begins at `at_ns`, not before it; `None` for a moment. UTC nanoseconds.
    pub until_ns: Option<i64>,
    pub text: Box<str>,
}

impl AnnotationSettings {
    /// Whether it overlaps the range, both ends of which belong to it, and both ends of the annotation as well.
    pub fn overlaps(&self, (from_ns, to_ns): (i64, i64)) -> bool {
        self.at_ns <= to_ns && from_ns <= self.until_ns.unwrap_or(self.at_ns)
    }
}

impl Owned for Annotation {
    fn id(&self) -> ObjectId {
        self.id
    }

    fn owner(&self) -> ObjectId {
        self.bucket_id
    }
}

impl Catalog {
    pub fn annotation(&self, id: ObjectId) -> Option<&Arc<Annotation>> {
        self.annotations.get(id)
    }

    /// The annotations of a bucket with their ordinals, oldest first. The ordinals say the order among all buckets.
    pub fn annotations_of(&self, bucket_id: ObjectId) -> impl Iterator<Item = (u64, &Arc<Annotation>)> {
        self.annotations.numbered_of(bucket_id)
    }

    /// Adds an annotation as the newest one. Has no effect if it exists.
    pub(super) fn create_annotation(&mut self, annotation: &Annotation) {
        if !self.annotations.contains(annotation.id) {
            let ordinal = self.annotations.next_ordinal();
            self.insert_annotation(ordinal, Arc::new(annotation.clone()));
        }
    }

    /// Adds an annotation that has an ordinal already. Has no effect if its bucket or its source does not exist.
    pub(super) fn insert_annotation(&mut self, ordinal: u64, annotation: Arc<Annotation>) {
        if !self.has_place_for(annotation.bucket_id, &annotation.settings) {
            return;
        }
        let organization_id = self.organization_of_bucket(annotation.bucket_id);
        self.update_holdings(organization_id, |it| it.count_annotation(1, &annotation.settings));
        self.annotations.insert(ordinal, annotation);
    }

    /// Whether the bucket exists, and the source is one of it.
    fn has_place_for(&self, bucket_id: ObjectId, settings: &AnnotationSettings) -> bool {
        let is_in_bucket = |id: ObjectId| self.source(id).is_some_and(|it| it.bucket_id == bucket_id);
        self.bucket(bucket_id).is_some() && settings.source_id.is_none_or(is_in_bucket)
    }

    pub(super) fn update_annotation(&mut self, id: ObjectId, settings: &AnnotationSettings, at_ns: i64) {
        let Some(known) = self.annotation(id).cloned() else {
            return;
        };
        if !self.has_place_for(known.bucket_id, settings) {
            return;
        }
        let (before, after) = (of_annotation(&known.settings.text), of_annotation(&settings.text));
        let organization_id = self.organization_of_bucket(known.bucket_id);
        self.update_holdings(organization_id, |it| it.replace_text(before, after));
        self.annotations.change(id, |annotation| {
            annotation.settings.clone_from(settings);
            annotation.updated_at_ns = at_ns;
        });
    }

    pub(super) fn delete_annotation(&mut self, id: ObjectId) {
        if let Some(annotation) = self.annotations.remove(id) {
            let organization_id = self.organization_of_bucket(annotation.bucket_id);
            self.update_holdings(organization_id, |it| {
                it.count_annotation(-1, &annotation.settings);
            });
        }
    }

    /// Removes the annotations about a source of this bucket.
    pub(super) fn delete_annotations_of_source(&mut self, source: &Source) {
        let of_bucket = self.annotations_of(source.bucket_id);
        let of_source = of_bucket.filter(|(_, it)| it.settings.source_id == Some(source.id));
        let ids: Vec<_> = of_source.map(|(_, annotation)| annotation.id).collect();
        ids.into_iter().for_each(|id| self.delete_annotation(id));
    }
}
