//! Annotations: notes at a time or for a while.

use std::sync::Arc;

use super::access::{annotation_for, lone_source_for};
use super::allowance::Countable;
use super::page::{Page, PageRequest};
use super::{Caller, Service, bucket_for, source_for};
use crate::catalog::{Annotation, AnnotationSettings, Catalog, Command, text_bytes};
use crate::error::{Detail, ServiceError};
use crate::ids::ObjectId;

/// Which annotations a list has.
#[derive(Clone, Copy, Debug)]
pub struct AnnotationFilter {
    /// Those of this bucket only.
    pub bucket_id: Option<ObjectId>,
    /// Those of this source only.
    pub source_id: Option<ObjectId>,
    /// Those that overlap this range, both ends inclusive, in UTC nanoseconds.
    pub range_ns: (i64, i64),
}

impl Service {
    /// Lists annotations of one or all buckets that the caller reaches, by creation.
    ///
    /// # Errors
    /// 404 or 403 for the bucket or the source of the filter.
    pub fn list_annotations(
        &self,
        caller: &Caller,
        filter: &AnnotationFilter,
        page: PageRequest,
    ) -> Result<Page<Arc<Annotation>>, ServiceError> {
        self.catalog.read(|catalog| {
            let buckets = buckets_of(catalog, caller, filter)?;
            let listed = buckets.iter().flat_map(|id| catalog.annotations_of(*id));
            let is_wanted = |annotation: &Annotation| {
                let of_source = |id: ObjectId| annotation.settings.source_id == Some(id);
                filter.source_id.is_none_or(of_source) && annotation.settings.overlaps(filter.range_ns)
            };
            let listed = listed.filter(|(_, annotation)| is_wanted(annotation));
            let mut listed: Vec<_> = listed.collect();
            // Those of several buckets are in order of the buckets until here.
            listed.sort_unstable_by_key(|(ordinal, _)| *ordinal);
            let annotations = listed.iter().map(|(_, annotation)| Arc::clone(annotation));
            Ok(page.cut(listed.len(), annotations))
        })
    }

    /// Returns one annotation.
    ///
    /// # Errors
    /// 404, 403.
    pub fn annotation(&self, caller: &Caller, id: ObjectId) -> Result<Arc<Annotation>, ServiceError> {
        self.catalog.read(|catalog| annotation_for(catalog, caller, id))
    }

    /// Creates an annotation of a bucket or one of its sources.
    ///
    /// # Errors
    /// 400 for an end before the beginning; 404, 403, also beyond a limit.
    pub async fn create_annotation(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        settings: AnnotationSettings,
    ) -> Result<Arc<Annotation>, ServiceError> {
        check_times(&settings)?;
        let decision = self.decisions.begin(caller.organization_id).await;
        self.catalog
            .read(|catalog| check_place(catalog, caller, bucket_id, settings.source_id))?;
        let text_bytes = text_bytes::of_annotation(&settings.text);
        self.admit_one_more(caller.organization_id, Countable::Annotation, text_bytes)?;
        let (id, now_ns) = (self.next_id(), self.now_ns());
        let annotation = Annotation {
            id,
            bucket_id,
            settings,
            created_at_ns: now_ns,
            created_by: caller.actor_id(),
            updated_at_ns: now_ns,
        };
        let command = self
            .auditor(caller)
            .audited(Command::AnnotationCreated { annotation });
        let _settled = decision.commit(command).await?;
        self.annotation(caller, id)
    }

    /// Changes an annotation. `change` makes its new settings from the present ones.
    ///
    /// # Errors
    /// As [`Service::create_annotation`]; 404.
    pub async fn update_annotation(
        &self,
        caller: &Caller,
        id: ObjectId,
        change: impl FnOnce(&AnnotationSettings) -> AnnotationSettings,
    ) -> Result<Arc<Annotation>, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let known = self.annotation(caller, id)?;
        let settings = change(&known.settings);
        check_times(&settings)?;
        self.catalog
            .read(|catalog| check_place(catalog, caller, known.bucket_id, settings.source_id))?;
        let before = text_bytes::of_annotation(&known.settings.text);
        let after = text_bytes::of_annotation(&settings.text);
        self.admit_text(caller.organization_id, before, after)?;
        let command = Command::AnnotationUpdated {
            annotation_id: id,
            settings,
            at_ns: self.now_ns(),
        };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        self.annotation(caller, id)
    }

    /// Deletes an annotation.
    ///
    /// # Errors
    /// 404, 403.
    pub async fn delete_annotation(
        &self,
        caller: &Caller,
        id: ObjectId,
    ) -> Result<Arc<Annotation>, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let annotation = self.annotation(caller, id)?;
        let command = Command::AnnotationDeleted { annotation_id: id };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        Ok(annotation)
    }
}

/// The buckets whose annotations a list is about: the one of the filter or of its source, that of the caller's key, or all
/// of the organization.
fn buckets_of(
    catalog: &Catalog,
    caller: &Caller,
    filter: &AnnotationFilter,
) -> Result<Vec<ObjectId>, ServiceError> {
    let one = match (filter.bucket_id, filter.source_id) {
        (Some(bucket_id), source_id) => {
            check_place(catalog, caller, bucket_id, source_id)?;
            Some(bucket_id)
        }
        (None, Some(source_id)) => {
            let (bucket, _) = lone_source_for(catalog, caller, source_id)?;
            Some(bucket.id)
        }
        (None, None) => caller.bucket_id(),
    };
    let all = || catalog.buckets_of(caller.organization_id).map(|bucket| bucket.id);
    Ok(one.map_or_else(|| all().collect(), |id| vec![id]))
}

/// Checks that the caller reaches the bucket, and that the source is one of it.
fn check_place(
    catalog: &Catalog,
    caller: &Caller,
    bucket_id: ObjectId,
    source_id: Option<ObjectId>,
) -> Result<(), ServiceError> {
    match source_id {
        None => bucket_for(catalog, caller, bucket_id).map(drop),
        Some(source_id) => source_for(catalog, caller, bucket_id, source_id).map(drop),
    }
}

fn check_times(settings: &AnnotationSettings) -> Result<(), ServiceError> {
    if settings
        .until_ns
        .is_none_or(|until_ns| settings.at_ns <= until_ns)
    {
        return Ok(());
    }
    let fault = Detail::at(&["until"], "must not be before at");
    Err(ServiceError::faults(vec![fault]))
}
