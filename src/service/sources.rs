//! Creates, lists, changes and deletes data sources.

use std::sync::Arc;

pub use engine::{SeriesStats, SourceStats};

use super::allowance::Countable;
use super::page::{Page, PageRequest};
use super::{Caller, Service, bucket_for, source_for};
use crate::bucket::PointsHold;
use crate::catalog::{
    Bucket, Catalog, Command, Field, FieldType, Freshness, NewSource, Schema, Source, SourceSettings,
    text_bytes,
};
use crate::error::{Detail, ServiceError};
use crate::ids::ObjectId;

/// A source with its statistics from the engine.
pub struct SourceWithStats {
    pub source: Arc<Source>,
    /// Whether it sends as often as expected.
    pub freshness: Freshness,
    /// Statistics of its points and series.
    pub stats: SourceStats,
}

/// The result of a deletion.
pub struct DeletedSource {
    /// The source before its deletion.
    pub source: Arc<Source>,
    pub points: u64,
    pub alert_rules: u64,
}

impl SourceWithStats {
    fn at(source: Arc<Source>, stats: SourceStats, now_ns: i64) -> Self {
        let newest_ns = stats.points.bounds_ns.map(|(_, newest_ns)| newest_ns);
        Self {
            freshness: source.freshness(newest_ns, now_ns),
            source,
            stats,
        }
    }
}

impl Service {
    /// Lists the sources of a bucket.
    pub async fn list_sources(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        page: PageRequest,
    ) -> Result<Page<SourceWithStats>, ServiceError> {
        let (bucket, page) = self.catalog.read(|catalog| {
            let bucket = bucket_for(catalog, caller, bucket_id)?;
            let page = page.cut(
                catalog.source_count(bucket_id),
                catalog.sources_of(bucket_id).cloned(),
            );
            Ok::<_, ServiceError>((bucket, page))
        })?;
        let ordinals: Vec<u32> = page.entries.iter().map(|source| source.ordinal).collect();
        let stats = self.buckets.stats(&bucket, &ordinals).await?;
        let (entries, now_ns) = (page.entries.into_iter().zip(stats), self.now_ns());
        Ok(Page {
            entries: entries
                .map(|(source, stats)| SourceWithStats::at(source, stats, now_ns))
                .collect(),
            total: page.total,
        })
    }

    /// Creates a source.
    ///
    /// # Errors
    /// 404, 403, also beyond a limit; 409 when the name is in use.
    pub async fn create_source(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        settings: SourceSettings,
    ) -> Result<SourceWithStats, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        self.bucket(caller, bucket_id)?;
        self.check_source_name(bucket_id, &settings.name)?;
        let text_bytes = self.text_bytes_of(caller.organization_id, &settings);
        self.admit_one_more(caller.organization_id, Countable::Source, text_bytes)?;
        let id = self.next_id();
        let source = NewSource {
            id,
            bucket_id,
            settings,
            metric_type: None,
            created_at_ns: self.now_ns(),
        };
        let _settled = decision
            .commit(self.auditor(caller).audited(Command::SourceCreated { source }))
            .await?;
        let (_, source) = self.find_source(caller, bucket_id, id)?;
        self.watch.look(id);
        Ok(SourceWithStats::at(source, SourceStats::default(), self.now_ns()))
    }

    /// Returns one source.
    pub async fn source(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        source_id: ObjectId,
    ) -> Result<SourceWithStats, ServiceError> {
        let (bucket, source) = self.find_source(caller, bucket_id, source_id)?;
        let stats = self
            .buckets
            .stats(&bucket, &[source.ordinal])
            .await?
            .pop()
            .unwrap_or_default();
        Ok(SourceWithStats::at(source, stats, self.now_ns()))
    }

    /// Changes a source. `change` makes its new settings from the present ones; without fields they keep the schema.
    /// Writes nothing if no value changes.
    ///
    /// # Errors
    /// 404, 403, also beyond a limit; 409 when the name is in use, a field is removed or a type changes.
    pub async fn update_source(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        source_id: ObjectId,
        change: impl FnOnce(&Source) -> SourceSettings,
    ) -> Result<SourceWithStats, ServiceError> {
        {
            let decision = self.decisions.begin(caller.organization_id).await;
            let (bucket, known) = self.find_source(caller, bucket_id, source_id)?;
            let settings = change(&known);
            if !settings.fields.is_empty() {
                check_fields(&known.schema, &settings.fields)?;
            }
            if settings.name != known.name {
                self.check_source_name(bucket_id, &settings.name)?;
            }
            let hold = match settings.dimensions == known.dimensions {
                true => None,
                false => Some(self.hold_without_points(&bucket, &known).await?),
            };
            if changes(&known, &settings) {
                let (before, after) = text_bytes_of_change(&known, &settings);
                self.admit_text(caller.organization_id, before, after)?;
                let at_ns = self.now_ns();
                let command = Command::SourceUpdated {
                    source_id,
                    settings,
                    at_ns,
                };
                let command = self.auditor(caller).audited(command);
                let _settled = decision.commit_then(command, || drop(hold)).await?;
                self.watch.look(source_id);
            }
        }
        self.source(caller, bucket_id, source_id).await
    }

    /// Deletes a source with its points.
    pub async fn delete_source(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        source_id: ObjectId,
    ) -> Result<DeletedSource, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let (bucket, source, alert_rules) = self.catalog.read(|catalog| {
            let (bucket, source) = source_for(catalog, caller, bucket_id, source_id)?;
            Ok::<_, ServiceError>((bucket, source, catalog.rule_count_of_source(bucket_id, source_id)))
        })?;
        let command = self.auditor(caller).audited(Command::SourceDeleted { source_id });
        let (buckets, ordinal) = (self.buckets.clone(), source.ordinal);
        let deletion = async move { buckets.delete(&bucket, Some(ordinal), &[ordinal], command).await };
        let (points, _) = decision.carry_out(deletion).await?;
        self.watch.stop_waiting(&source);
        Ok(DeletedSource {
            source,
            points,
            alert_rules,
        })
    }
}

impl Service {
    /// Points are split into series when they arrive, so dimensions can only change while there are none, and none arrive.
    async fn hold_without_points(
        &self,
        bucket: &Bucket,
        source: &Source,
    ) -> Result<PointsHold, ServiceError> {
        let hold = self.buckets.hold_source(bucket, source.ordinal).await?;
        match self.buckets.point_count(bucket, &[source.ordinal]).await? {
            0 => {
                let handle = self.buckets.handle(bucket)?;
                let forgotten = handle.series().forget_source(source.ordinal);
                forgotten.map_err(ServiceError::internal)?;
                Ok(hold)
            }
            points => Err(ServiceError::conflict(format!(
                "the dimensions of a data source can only be changed while it has no points; it has {points}: delete \
                 them first, or create another data source"
            ))),
        }
    }

    fn check_source_name(&self, bucket_id: ObjectId, name: &str) -> Result<(), ServiceError> {
        let is_free = |catalog: &Catalog| catalog.source_by_name(bucket_id, name).is_none();
        if self.catalog.read(is_free) {
            return Ok(());
        }
        Err(ServiceError::conflict(format!(
            "a data source named {name:?} exists in this bucket already; choose another name"
        )))
    }

    /// Memory of a new source's texts. A schema that the organization already has is shared and costs nothing.
    pub(super) fn text_bytes_of(&self, organization_id: ObjectId, settings: &SourceSettings) -> usize {
        let description = settings.description.as_deref();
        let own = text_bytes::of_source(&settings.name, &settings.kind, description);
        let schema = Schema::from(settings.fields.clone());
        match self.catalog.read(|it| it.has_schema(organization_id, &schema)) {
            true => own,
            false => own + text_bytes::of_schema(&schema.fields),
        }
    }
}

/// Memory of a source's texts before and after a change, as if its schema were not shared.
pub(in crate::service) fn text_bytes_of_change(known: &Source, settings: &SourceSettings) -> (usize, usize) {
    let before = text_bytes::of_source(&known.name, &known.kind, known.description.as_deref());
    let after = text_bytes::of_source(&settings.name, &settings.kind, settings.description.as_deref());
    match known.schema.merged(&settings.fields) {
        None => (before, after),
        Some(merged) => (
            before + text_bytes::of_schema(&known.schema.fields),
            after + text_bytes::of_schema(&merged.fields),
        ),
    }
}

/// Whether the settings of a source would change a value.
pub(in crate::service) fn changes(known: &Source, settings: &SourceSettings) -> bool {
    settings.name != known.name
        || settings.kind != known.kind
        || settings.description != known.description
        || known.schema.merged(&settings.fields).is_some()
        || settings.schema_mode != known.schema_mode
        || settings.downsampling != known.downsampling
        || settings.status != known.status
        || settings.dimensions != known.dimensions
        || settings.duplicates != known.duplicates
        || settings.expected_interval_seconds != known.expected_interval_seconds
}

/// A schema may only grow: existing fields and their types must stay.
fn check_fields(known: &Schema, wanted: &[Field]) -> Result<(), ServiceError> {
    let mut details = Vec::new();
    for field in &known.fields {
        match wanted.iter().find(|it| it.name == field.name) {
            None => details.push(Detail::at(
                &["schema", &field.name],
                format!("cannot be removed; it is declared as {}", field.kind.name()),
            )),
            Some(it) if it.kind != field.kind => details.push(Detail::at(
                &["schema", &field.name, "type"],
                format!(
                    "cannot change from {} to {}",
                    field.kind.name(),
                    FieldType::name(it.kind)
                ),
            )),
            Some(_) => {}
        }
    }
    if details.is_empty() {
        return Ok(());
    }
    let message = "a schema can gain fields, but not lose them or change their types; send all existing fields unchanged";
    Err(ServiceError::conflict(message).with_details(details))
}
