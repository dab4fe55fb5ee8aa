//! `/api/buckets/{bucketId}/sources`.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use utoipa::ToSchema;

use super::docs::SchemaDoc;
use super::faults::{Faults, Members};
use super::params::{self, PageParams, Pagination};
use super::{auth, body, respond, schema_input, values};
use crate::catalog::{Field, Schema, SchemaMode, SourceSettings, SourceStatus};
use crate::clock::SECOND_NS;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::{DESCRIPTION_CHARS_MAX, OPEN_NAME_CHARS_MAX};
use crate::service::sources::{SourcePatch, SourceWithStats};
use crate::service::{Access, Service};
use crate::timestamp::Timestamp;

/// `type` when absent.
const DEFAULT_KIND: &str = "sensor";

/// A data source.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Its bucket.
    pub bucket_id: ObjectId,
    /// Unique within the bucket.
    pub name: &'a str,
    /// An open set.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub description: Option<&'a str>,
    /// Field name to definition.
    #[serde(serialize_with = "fields_by_name")]
    #[schema(value_type = SchemaDoc)]
    pub schema: &'a Schema,
    /// `strict` or `extend`.
    #[schema(value_type = SchemaMode)]
    pub schema_mode: &'static str,
    /// Whether large raw queries are aggregated by themselves.
    pub downsampling: bool,
    /// `active` or `inactive`.
    #[schema(value_type = SourceStatus)]
    pub status: &'static str,
    /// Its points.
    pub stats: SourceStatsView,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its settings or schema last changed.
    pub updated_at: Timestamp,
}

/// What a source holds, expired points not counted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceStatsView {
    /// Points.
    pub total_data_points: u64,
    /// Timestamp of the earliest.
    pub first_data_point: Option<Timestamp>,
    /// Timestamp of the latest.
    pub last_data_point: Option<Timestamp>,
    /// Null below two points.
    pub average_interval_seconds: Option<f64>,
}

/// A page of sources.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourcesAnswer<'a> {
    /// Oldest first.
    pub data_sources: Vec<SourceView<'a>>,
    /// Which part.
    pub pagination: Pagination,
}

/// An answer about one source.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceAnswer<'a> {
    /// What was done, for changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub message: Option<&'static str>,
    /// As it is now.
    pub data_source: SourceView<'a>,
}

/// A deleted source.
#[derive(Serialize, ToSchema)]
pub struct DeletedSourceView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Its name.
    pub name: &'a str,
}

/// What went with it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedWithSourceView {
    /// Points.
    pub data_points: u64,
    /// Alert rules.
    pub alert_rules: u64,
}

/// An answer to a deletion.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedSourceAnswer<'a> {
    /// What was done.
    pub message: &'static str,
    /// What it was.
    pub deleted_data_source: DeletedSourceView<'a>,
    /// What went with it.
    pub deleted_resources: DeletedWithSourceView,
}

/// Body of a creation.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct SourceBody {
    /// Unique within the bucket.
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
    /// `sensor` when absent.
    #[schema(rename = "type", min_length = 1, max_length = 200)]
    pub kind: Option<String>,
    /// Free text.
    #[schema(max_length = 4096)]
    pub description: Option<String>,
    /// Field name to definition: 1 to 256 fields.
    pub schema: SchemaDoc,
    /// `strict` (when absent) or `extend`.
    pub schema_mode: Option<SchemaMode>,
    /// True when absent.
    pub downsampling: Option<bool>,
    /// `active` (when absent) or `inactive`.
    pub status: Option<SourceStatus>,
}

/// Body of a change; what is left out stays.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct SourcePatchBody {
    /// Unique within the bucket.
    #[schema(min_length = 1, max_length = 200)]
    pub name: Option<String>,
    /// An open set.
    #[schema(rename = "type", min_length = 1, max_length = 200)]
    pub kind: Option<String>,
    /// Free text; null removes it.
    #[schema(max_length = 4096)]
    pub description: Option<String>,
    /// The whole schema: it may gain fields and change units and descriptions.
    pub schema: Option<SchemaDoc>,
    /// `strict` or `extend`.
    pub schema_mode: Option<SchemaMode>,
    /// Whether large raw queries are aggregated by themselves.
    pub downsampling: Option<bool>,
    /// `active` or `inactive`.
    pub status: Option<SourceStatus>,
}

/// Lists a bucket's data sources.
///
/// Each with its schema and the counts of its points.
#[utoipa::path(get, path = "/api/buckets/{bucketId}/sources", operation_id = "listSources", tag = "data sources",
    security(("apiKey" = ["admin", "write", "read"]), ("bearer" = [])),
    params(
        ("bucketId" = ObjectId, Path, description = "The bucket."),
        PageParams),
    responses(
        (status = 200, body = SourcesAnswer, description = "A page of data sources.")))]
pub async fn list(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, READERS)?;
    let mut faults = Faults::default();
    let bucket_id = params::id(&request, "bucketId", &mut faults);
    let asked = params::page(&request, &mut faults);
    let (Some(bucket_id), Some(asked)) = (bucket_id, asked) else {
        return Err(faults.into_error());
    };
    let page = service.list_sources(&caller, bucket_id, asked).await?;
    let answer = SourcesAnswer {
        data_sources: page.entries.iter().map(SourceView::of).collect(),
        pagination: Pagination::of(asked, &page),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Makes a data source.
///
/// A data source is one sensor or application. Its schema names the fields of its points. With `schemaMode` `extend`,
/// fields that come up in points are added by themselves; with `strict` they are refused.
#[utoipa::path(post, path = "/api/buckets/{bucketId}/sources", operation_id = "createSource", tag = "data sources",
    security(("apiKey" = ["admin", "write"]), ("bearer" = [])),
    params(("bucketId" = ObjectId, Path, description = "The bucket.")),
    request_body = SourceBody,
    responses(
        (status = 201, body = SourceAnswer, description = "The new data source."),
        (status = 409, description = "A data source of the bucket has this name.")))]
pub async fn create(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, WRITERS)?;
    let body = body::read_json(&request, payload).await?;
    let mut faults = Faults::default();
    let bucket_id = params::id(&request, "bucketId", &mut faults);
    let members = Members::of_body(&body, &mut faults);
    let name = members.required("name", &mut faults, |v| values::name(v, OPEN_NAME_CHARS_MAX));
    let patch = read_patch(&members, &mut faults);
    let schema = members.required("schema", &mut faults, Ok);
    let fields = schema.map(|schema| schema_input::read(&members, schema, &mut faults));
    let (Some(bucket_id), Some(name), Some(fields), true) = (bucket_id, name, fields, faults.none()) else {
        return Err(faults.into_error());
    };
    let settings = SourceSettings {
        name: name.into(),
        kind: patch.kind.map_or_else(|| DEFAULT_KIND.into(), Into::into),
        description: patch.description.flatten().map(Into::into),
        fields,
        schema_mode: patch.schema_mode.unwrap_or(SchemaMode::Strict),
        downsampling: patch.downsampling.unwrap_or(true),
        status: patch.status.unwrap_or(SourceStatus::Active),
    };
    let created = service.create_source(&caller, bucket_id, settings).await?;
    let answer = SourceAnswer {
        message: Some("data source created"),
        data_source: SourceView::of(&created),
    };
    respond::json(&request, StatusCode::CREATED, &answer).await
}

/// Shows a data source.
///
/// With its schema and the counts of its points.
#[utoipa::path(get, path = "/api/buckets/{bucketId}/sources/{sourceId}", operation_id = "showSource", tag = "data sources",
    security(("apiKey" = ["admin", "write", "read"]), ("bearer" = [])),
    params(
        ("bucketId" = ObjectId, Path, description = "The bucket."),
        ("sourceId" = ObjectId, Path, description = "The data source.")),
    responses(
        (status = 200, body = SourceAnswer, description = "The data source.")))]
pub async fn show(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, READERS)?;
    let (bucket_id, source_id) = ids(&request)?;
    let source = service.source(&caller, bucket_id, source_id).await?;
    let answer = SourceAnswer {
        message: None,
        data_source: SourceView::of(&source),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Changes a data source.
///
/// What is left out stays. `schema` replaces the whole schema: it may gain fields and change units and descriptions.
/// An `inactive` source takes no points.
#[utoipa::path(patch, path = "/api/buckets/{bucketId}/sources/{sourceId}", operation_id = "updateSource", tag = "data sources",
    security(("apiKey" = ["admin", "write"]), ("bearer" = [])),
    params(
        ("bucketId" = ObjectId, Path, description = "The bucket."),
        ("sourceId" = ObjectId, Path, description = "The data source.")),
    request_body = SourcePatchBody,
    responses(
        (status = 200, body = SourceAnswer, description = "As it is now."),
        (status = 409, description = "A data source of the bucket has this name, or the schema would lose a field or change a field's type.")))]
pub async fn update(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, WRITERS)?;
    let body = body::read_json(&request, payload).await?;
    let mut faults = Faults::default();
    let bucket_id = params::id(&request, "bucketId", &mut faults);
    let source_id = params::id(&request, "sourceId", &mut faults);
    let members = Members::of_body(&body, &mut faults);
    let patch = SourcePatch {
        name: members.optional("name", &mut faults, |v| values::name(v, OPEN_NAME_CHARS_MAX)),
        fields: members
            .given("schema")
            .map(|schema| schema_input::read(&members, schema, &mut faults)),
        ..read_patch(&members, &mut faults)
    };
    let (Some(bucket_id), Some(source_id), true) = (bucket_id, source_id, faults.none()) else {
        return Err(faults.into_error());
    };
    let source = service
        .update_source(&caller, bucket_id, source_id, patch)
        .await?;
    let answer = SourceAnswer {
        message: Some("data source updated"),
        data_source: SourceView::of(&source),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Deletes a data source with its points and alert rules.
///
/// They are gone with the next request.
#[utoipa::path(delete, path = "/api/buckets/{bucketId}/sources/{sourceId}", operation_id = "deleteSource", tag = "data sources",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(
        ("bucketId" = ObjectId, Path, description = "The bucket."),
        ("sourceId" = ObjectId, Path, description = "The data source.")),
    responses(
        (status = 200, body = DeletedSourceAnswer, description = "Deleted, and what went with it.")))]
pub async fn remove(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let (bucket_id, source_id) = ids(&request)?;
    let deleted = service.delete_source(&caller, bucket_id, source_id).await?;
    let answer = DeletedSourceAnswer {
        message: "data source deleted",
        deleted_data_source: DeletedSourceView {
            id: source_id,
            name: &deleted.source.name,
        },
        deleted_resources: DeletedWithSourceView {
            data_points: deleted.points,
            alert_rules: deleted.alert_rules,
        },
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

const WRITERS: Access = Access::ADMIN.or(Access::WRITE);
const READERS: Access = WRITERS.or(Access::READ);

fn ids(request: &HttpRequest) -> Result<(ObjectId, ObjectId), ServiceError> {
    let mut faults = Faults::default();
    let bucket_id = params::id(request, "bucketId", &mut faults);
    let source_id = params::id(request, "sourceId", &mut faults);
    bucket_id.zip(source_id).ok_or_else(|| faults.into_error())
}

/// The members that creation and change read alike: all but name and schema.
fn read_patch(members: &Members<'_>, faults: &mut Faults) -> SourcePatch {
    let modes = SchemaMode::ALL.map(|mode| (mode.name(), mode));
    let statuses = SourceStatus::ALL.map(|status| (status.name(), status));
    SourcePatch {
        kind: members.optional("type", faults, |v| values::name(v, OPEN_NAME_CHARS_MAX)),
        description: members.nullable("description", faults, |v| values::text(v, DESCRIPTION_CHARS_MAX)),
        schema_mode: members.optional("schemaMode", faults, |v| values::one_of(v, &modes)),
        downsampling: members.optional("downsampling", faults, values::boolean),
        status: members.optional("status", faults, |v| values::one_of(v, &statuses)),
        ..SourcePatch::default()
    }
}

impl<'a> SourceView<'a> {
    fn of(SourceWithStats { source, stats }: &'a SourceWithStats) -> Self {
        let span_ns = stats
            .first_ns
            .zip(stats.last_ns)
            .map(|(first, last)| last.saturating_sub(first));
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
                first_data_point: stats.first_ns.map(Timestamp),
                last_data_point: stats.last_ns.map(Timestamp),
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
