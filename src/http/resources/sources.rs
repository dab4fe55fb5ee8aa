//! `/api/buckets/{bucketId}/sources`: data sources.

use actix_web::http::StatusCode;
use serde::Serializer;
use serde_json::Value;

use super::dimension_filters::{DimensionsBody, DimensionsView};
use super::views::{Many, NamedView, One, Resource, view};
use crate::catalog::{
    Duplicates, Field, FieldType, Freshness, Schema, SchemaMode, Source, SourceSettings, SourceStatus,
    json_number,
};
use crate::clock::SECOND_NS;
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reader, Reply, Writer, delete, get, patch, post};
use crate::http::shape::{Description, Fields, Given, Integer, OpenName, Patch, body};
use crate::ids::ObjectId;
use crate::limits::EXPECTED_INTERVAL_SECONDS;
use crate::service::page::PageRequest;
use crate::service::sources::{DeletedSource, SeriesStats, SourceStats, SourceWithStats};
use crate::timestamp::Timestamp;

type ExpectedInterval = Integer<{ EXPECTED_INTERVAL_SECONDS.0 }, { EXPECTED_INTERVAL_SECONDS.1 }>;

/// Default of `type`.
const DEFAULT_KIND: &str = "sensor";

view! {
    /// A data source.
    pub struct SourceView<'a> of(found: &'a SourceWithStats; source = &found.source) {
        /// ID of the data source.
        #[serde(rename = "_id")]
        id: ObjectId = source.id,
        /// ID of the bucket.
        bucket_id: ObjectId = source.bucket_id,
        /// Name, unique within the bucket.
        name: &'a str = &source.name,
        /// Type of the source; any text.
        #[serde(rename = "type")]
        kind: &'a str = &source.kind,
        /// Description; any text.
        description?: &'a str = source.description.as_deref(),
        /// Field definitions by field name.
        #[serde(serialize_with = "fields_by_name")]
        #[schema(value_type = Fields)]
        schema: &'a Schema = &source.schema,
        /// `strict` or `extend`.
        schema_mode: SchemaMode = source.schema_mode,
        /// Whether large raw queries are downsampled automatically.
        downsampling: bool = source.downsampling,
        /// `active` or `inactive`.
        status: SourceStatus = source.status,
        /// Which members of metadata are dimensions, by which points are split into series: `all`, or their names; null for
        /// none.
        #[schema(value_type = Option<DimensionsBody>)]
        dimensions: Option<DimensionsView<'a>> = source.dimensions.as_deref().map(DimensionsView),
        /// `keep` stores a point whose series has the same fields at the same time again, `skip` does not.
        duplicates: Duplicates = source.duplicates,
        /// Expected time between two points, in seconds; null when none are expected.
        expected_interval_seconds: Option<u32> = source.expected_interval_seconds,
        /// `stale` when the newest point is older than three expected intervals, else `fresh`; `unknown` without an expected
        /// interval, without points, and while the source is inactive.
        freshness: Freshness = found.freshness,
        /// Statistics of the source's points.
        stats: SourceStatsView = SourceStatsView::of(&found.stats, source.dimensions.is_some()),
        /// When the source was created.
        created_at: Timestamp = Timestamp(source.created_at_ns),
        /// When the settings or the schema last changed.
        updated_at: Timestamp = Timestamp(source.updated_at_ns),
    }
}

view! {
    /// Statistics of a data source's points, without expired ones.
    pub struct SourceStatsView of(found: &SourceStats, is_split: bool; stats = &found.points) {
        /// Number of points.
        total_data_points: u64 = stats.points,
        /// Timestamp of the earliest point.
        first_data_point: Option<Timestamp> = stats.bounds_ns.map(|(first_ns, _)| Timestamp(first_ns)),
        /// Timestamp of the latest point.
        last_data_point: Option<Timestamp> = stats.bounds_ns.map(|(_, last_ns)| Timestamp(last_ns)),
        /// Mean interval between points, in seconds; null with fewer than two points.
        #[schema(value_type = Option<f64>)]
        average_interval_seconds: Option<Value> = average_interval_seconds(stats).map(json_number),
        /// Number of series that have points; null for a source without dimensions.
        series_count: Option<u64> = is_split.then_some(found.series),
    }
}

view! {
    /// Number of objects deleted along with a data source.
    pub struct DeletedWithSourceView of(deleted: &DeletedSource) {
        /// Number of deleted points.
        data_points: u64 = deleted.points,
        /// Number of deleted alert rules.
        alert_rules: u64 = deleted.alert_rules,
    }
}

view! {
    /// The response to a deletion.
    pub struct DeletedSourceAnswer<'a> of(deleted: &'a DeletedSource) {
        /// Result in words.
        message: &'static str = "data source deleted",
        /// The deleted data source.
        deleted_data_source: NamedView<'a> = NamedView::of(deleted.source.id, &deleted.source.name),
        /// Objects deleted along with the source.
        deleted_resources: DeletedWithSourceView = DeletedWithSourceView::of(deleted),
    }
}

body! {
    /// Body of a request that creates a data source.
    pub struct SourceBody {
        /// Name, unique within the bucket.
        name: OpenName,
        /// Type of the source, any text; `sensor` when absent.
        r#type: Option<OpenName>,
        /// Description; any text.
        description: Option<Description>,
        /// Field definitions by field name: 1 to 256 fields.
        schema: Fields,
        /// `strict` (default) or `extend`.
        schema_mode: Option<SchemaMode>,
        /// Whether large raw queries are downsampled automatically; true when absent.
        downsampling: Option<bool>,
        /// `active` (default) or `inactive`.
        status: Option<SourceStatus>,
        /// Members of metadata that are dimensions, by which points are split into series: `all`, or 1 to 32 names. None when
        /// absent.
        dimensions: Option<DimensionsBody>,
        /// `keep` (default), or `skip`: a field that its series has at the same time already is not stored again.
        #[schema(value_type = Option<Duplicates>)]
        duplicates: Given<Duplicates>,
        /// Expected time between two points, in seconds. After three of them without a point the source is stale.
        expected_interval_seconds: Option<ExpectedInterval>,
    }
}

body! {
    /// Body of a request that changes a data source; absent members keep their values.
    pub struct SourcePatchBody {
        /// Name, unique within the bucket.
        name: Option<OpenName>,
        /// Type of the source; any text.
        r#type: Option<OpenName>,
        /// Description, any text; null removes it.
        #[schema(value_type = Option<Description>)]
        description: Patch<Description>,
        /// The whole schema. Fields can be added, units and descriptions can be changed.
        schema: Option<Fields>,
        /// `strict` or `extend`.
        schema_mode: Option<SchemaMode>,
        /// Whether large raw queries are downsampled automatically.
        downsampling: Option<bool>,
        /// `active` or `inactive`.
        status: Option<SourceStatus>,
        /// Members of metadata that are dimensions; null for none. They can be changed while the source has no points.
        #[schema(value_type = Option<DimensionsBody>)]
        dimensions: Patch<DimensionsBody>,
        /// `keep` or `skip`.
        #[schema(value_type = Option<Duplicates>)]
        duplicates: Given<Duplicates>,
        /// Expected time between two points, in seconds; null for none.
        #[schema(value_type = Option<ExpectedInterval>)]
        expected_interval_seconds: Patch<ExpectedInterval>,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    const ALL: &str = "/api/buckets/{bucketId}/sources";
    const ONE: &str = "/api/buckets/{bucketId}/sources/{sourceId}";
    vec![
        get(ALL, "listSources", list),
        post(ALL, "createSource", create).status(StatusCode::CREATED),
        get(ONE, "showSource", show),
        patch(ONE, "updateSource", update),
        delete(ONE, "deleteSource", remove),
    ]
}

async fn list(call: Call<Reader, (ObjectId, PageRequest)>) -> Reply<Many<SourceView<'static>>> {
    let (bucket_id, page_request) = call.params;
    let page = call
        .service
        .list_sources(&call.caller, bucket_id, page_request)
        .await?;
    Answer::page(page_request, &page, SourceView::of)
}

async fn create(call: Call<Writer, ObjectId, SourceBody>) -> Reply<One<SourceView<'static>>> {
    let body = call.body;
    let settings = SourceSettings {
        name: body.name.0.into(),
        kind: body
            .r#type
            .map_or_else(|| DEFAULT_KIND.into(), |kind| kind.0.into()),
        description: body.description.map(|text| text.0.into()),
        fields: body.schema.0,
        schema_mode: body.schema_mode.unwrap_or(SchemaMode::Strict),
        downsampling: body.downsampling.unwrap_or(true),
        status: body.status.unwrap_or(SourceStatus::Active),
        dimensions: body.dimensions.map(|dimensions| dimensions.0),
        duplicates: body.duplicates.0.unwrap_or_default(),
        expected_interval_seconds: body.expected_interval_seconds.map(seconds),
    };
    let created = call
        .service
        .create_source(&call.caller, call.params, settings)
        .await?;
    Answer::changed("data source created", SourceView::of(&created))
}

async fn show(call: Call<Reader, (ObjectId, ObjectId)>) -> Reply<One<SourceView<'static>>> {
    let (bucket_id, source_id) = call.params;
    let source = call.service.source(&call.caller, bucket_id, source_id).await?;
    Answer::one(SourceView::of(&source))
}

async fn update(
    call: Call<Writer, (ObjectId, ObjectId), SourcePatchBody>,
) -> Reply<One<SourceView<'static>>> {
    let ((bucket_id, source_id), body) = (call.params, call.body);
    let source = call
        .service
        .update_source(&call.caller, bucket_id, source_id, |known| body.applied_to(known))
        .await?;
    Answer::changed("data source updated", SourceView::of(&source))
}

async fn remove(call: Call<Admin, (ObjectId, ObjectId)>) -> Reply<DeletedSourceAnswer<'static>> {
    let (bucket_id, source_id) = call.params;
    let deleted = call
        .service
        .delete_source(&call.caller, bucket_id, source_id)
        .await?;
    Answer::of(&DeletedSourceAnswer::of(&deleted))
}

impl SourcePatchBody {
    fn applied_to(self, known: &Source) -> SourceSettings {
        let description = self.description.map(|text| text.0.into());
        SourceSettings {
            name: self.name.map_or_else(|| known.name.clone(), |name| name.0.into()),
            kind: self
                .r#type
                .map_or_else(|| known.kind.clone(), |kind| kind.0.into()),
            description: description.unwrap_or_else(|| known.description.clone()),
            // No fields in the request means no change of the schema: fields that ingestion adds concurrently are kept.
            fields: self.schema.map(|fields| fields.0).unwrap_or_default(),
            schema_mode: self.schema_mode.unwrap_or(known.schema_mode),
            downsampling: self.downsampling.unwrap_or(known.downsampling),
            status: self.status.unwrap_or(known.status),
            dimensions: self
                .dimensions
                .map(|dimensions| dimensions.0)
                .unwrap_or_else(|| known.dimensions.clone()),
            duplicates: self.duplicates.0.unwrap_or(known.duplicates),
            expected_interval_seconds: match self.expected_interval_seconds.0 {
                Some(given) => given.map(seconds),
                None => known.expected_interval_seconds,
            },
        }
    }
}

/// The bound of the interval is below that of the type.
fn seconds(interval: ExpectedInterval) -> u32 {
    u32::try_from(interval.0).unwrap_or(u32::MAX)
}

impl Resource for SourceView<'_> {
    const ONE: &'static str = "dataSource";
    const MANY: &'static str = "dataSources";
}

fn average_interval_seconds(stats: &SeriesStats) -> Option<f64> {
    let intervals = stats.points.checked_sub(1).filter(|intervals| *intervals > 0)?;
    let (first_ns, last_ns) = stats.bounds_ns?;
    let span_ns = last_ns.saturating_sub(first_ns);
    Some(span_ns as f64 / SECOND_NS as f64 / intervals as f64)
}

view! {
    /// A field of a schema.
    pub struct FieldView<'a> of(field: &'a Field) {
        #[serde(rename = "type")]
        kind: FieldType = field.kind,
        unit?: &'a str = field.unit.as_deref(),
        description?: &'a str = field.description.as_deref(),
    }
}

fn fields_by_name<S: Serializer>(schema: &&Schema, serializer: S) -> Result<S::Ok, S::Error> {
    let fields = schema.fields.iter();
    serializer.collect_map(fields.map(|field| (&*field.name, FieldView::of(field))))
}
