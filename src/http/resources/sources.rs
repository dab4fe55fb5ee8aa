//! `/api/buckets/{bucketId}/sources`: data sources.

use actix_web::http::StatusCode;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use utoipa::ToSchema;

use super::views::{Many, NamedView, One, Resource};
use crate::catalog::{Field, Schema, SchemaMode, SourceSettings, SourceStatus};
use crate::clock::SECOND_NS;
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reader, Reply, Writer, delete, get, patch, post};
use crate::http::shape::{Description, Fields, OpenName, Patch, body};
use crate::ids::ObjectId;
use crate::service::page::PageRequest;
use crate::service::sources::{SourcePatch, SourceWithStats};
use crate::timestamp::Timestamp;

/// Default of `type`.
const DEFAULT_KIND: &str = "sensor";

/// A data source.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceView<'a> {
    /// ID of the data source.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// ID of the bucket.
    pub bucket_id: ObjectId,
    /// Name, unique within the bucket.
    pub name: &'a str,
    /// Type of the source; any text.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// Description; any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub description: Option<&'a str>,
    /// Field definitions by field name.
    #[serde(serialize_with = "fields_by_name")]
    #[schema(value_type = Fields)]
    pub schema: &'a Schema,
    /// `strict` or `extend`.
    #[schema(value_type = SchemaMode)]
    pub schema_mode: &'static str,
    /// Whether large raw queries are downsampled automatically.
    pub downsampling: bool,
    /// `active` or `inactive`.
    #[schema(value_type = SourceStatus)]
    pub status: &'static str,
    /// Statistics of the source's points.
    pub stats: SourceStatsView,
    /// When the source was created.
    pub created_at: Timestamp,
    /// When the settings or the schema last changed.
    pub updated_at: Timestamp,
}

/// Statistics of a data source's points, without expired ones.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceStatsView {
    /// Number of points.
    pub total_data_points: u64,
    /// Timestamp of the earliest point.
    pub first_data_point: Option<Timestamp>,
    /// Timestamp of the latest point.
    pub last_data_point: Option<Timestamp>,
    /// Mean interval between points, in seconds; null with fewer than two points.
    pub average_interval_seconds: Option<f64>,
}

/// Number of objects deleted along with a data source.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedWithSourceView {
    /// Number of deleted points.
    pub data_points: u64,
    /// Number of deleted alert rules.
    pub alert_rules: u64,
}

/// The response to a deletion.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedSourceAnswer<'a> {
    /// Result in words.
    pub message: &'static str,
    /// The deleted data source.
    pub deleted_data_source: NamedView<'a>,
    /// Objects deleted along with the source.
    pub deleted_resources: DeletedWithSourceView,
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
    let patch = SourcePatch {
        name: body.name.map(|name| name.0),
        kind: body.r#type.map(|kind| kind.0),
        description: body.description.map(|text| text.0),
        fields: body.schema.map(|fields| fields.0),
        schema_mode: body.schema_mode,
        downsampling: body.downsampling,
        status: body.status,
    };
    let source = call
        .service
        .update_source(&call.caller, bucket_id, source_id, patch)
        .await?;
    Answer::changed("data source updated", SourceView::of(&source))
}

async fn remove(call: Call<Admin, (ObjectId, ObjectId)>) -> Reply<DeletedSourceAnswer<'static>> {
    let (bucket_id, source_id) = call.params;
    let deleted = call
        .service
        .delete_source(&call.caller, bucket_id, source_id)
        .await?;
    Answer::of(&DeletedSourceAnswer {
        message: "data source deleted",
        deleted_data_source: NamedView::new(source_id, &deleted.source.name),
        deleted_resources: DeletedWithSourceView {
            data_points: deleted.points,
            alert_rules: deleted.alert_rules,
        },
    })
}

impl Resource for SourceView<'_> {
    const ONE: &'static str = "dataSource";
    const MANY: &'static str = "dataSources";
}

impl<'a> SourceView<'a> {
    fn of(SourceWithStats { source, stats }: &'a SourceWithStats) -> Self {
        let (first_ns, last_ns) = stats.bounds_ns.unzip();
        let span_ns = stats.bounds_ns.map(|(first, last)| last.saturating_sub(first));
        let intervals = stats.points.saturating_sub(1);
        let average = span_ns
            .filter(|_| intervals > 0)
            .map(|span_ns| span_ns as f64 / SECOND_NS as f64 / intervals as f64);
        Self {
            id: source.id,
            bucket_id: source.bucket_id,
            name: &source.name,
            kind: &source.kind,
            description: source.description.as_deref(),
            schema: &source.schema,
            schema_mode: source.schema_mode.name(),
            downsampling: source.downsampling,
            status: source.status.name(),
            stats: SourceStatsView {
                total_data_points: stats.points,
                first_data_point: first_ns.map(Timestamp),
                last_data_point: last_ns.map(Timestamp),
                average_interval_seconds: average,
            },
            created_at: Timestamp(source.created_at_ns),
            updated_at: Timestamp(source.updated_at_ns),
        }
    }
}

fn fields_by_name<S: Serializer>(schema: &&Schema, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct FieldView<'a> {
        #[serde(rename = "type")]
        kind: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        unit: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
    }
    let mut map = serializer.serialize_map(Some(schema.fields.len()))?;
    for Field {
        name,
        kind,
        unit,
        description,
    } in &schema.fields
    {
        let view = FieldView {
            kind: kind.name(),
            unit: unit.as_deref(),
            description: description.as_deref(),
        };
        map.serialize_entry(&**name, &view)?;
    }
    map.end()
}
