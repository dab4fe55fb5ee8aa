//! `/api/buckets`.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::docs::BucketStatusDoc;
use super::faults::{Faults, Members};
use super::params::{self, PageParams, Pagination};
use super::{auth, body, respond, values};
use crate::catalog::Bucket;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::{DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, RETENTION_DAYS_MAX};
use crate::service::buckets::{BucketInput, BucketPatch, BucketWithStats};
use crate::service::{Access, Caller, Service};
use crate::timestamp::Timestamp;

/// The only status a bucket has.
const ACTIVE: &str = "active";

/// A bucket.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Unique within the organization.
    pub name: &'a str,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub description: Option<&'a str>,
    /// Its owner.
    pub organization_id: ObjectId,
    /// How long its points are kept.
    pub retention_days: u32,
    /// Always `active`.
    #[schema(value_type = BucketStatusDoc)]
    pub status: &'static str,
    /// What it holds, on get-one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub stats: Option<BucketStatsView>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its settings last changed.
    pub updated_at: Timestamp,
}

/// What a bucket holds.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketStatsView {
    /// Data sources.
    pub data_source_count: u64,
    /// Points, expired ones not counted.
    pub data_point_count: u64,
    /// Keys of this bucket.
    pub api_key_count: u64,
}

/// A page of buckets.
#[derive(Serialize, ToSchema)]
pub struct BucketsAnswer<'a> {
    /// Oldest first.
    pub buckets: Vec<BucketView<'a>>,
    /// Which part.
    pub pagination: Pagination,
}

/// An answer about one bucket.
#[derive(Serialize, ToSchema)]
pub struct BucketAnswer<'a> {
    /// What was done, for changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub message: Option<&'static str>,
    /// As it is now.
    pub bucket: BucketView<'a>,
}

/// A deleted bucket.
#[derive(Serialize, ToSchema)]
pub struct DeletedBucketView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Its name.
    pub name: &'a str,
}

/// What went with it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedWithBucketView {
    /// Data sources.
    pub data_sources: u64,
    /// Points.
    pub data_points: u64,
    /// Keys.
    pub api_keys: u64,
    /// Alert rules.
    pub alert_rules: u64,
}

/// An answer to a deletion.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedBucketAnswer<'a> {
    /// What was done.
    pub message: &'static str,
    /// What it was.
    pub deleted_bucket: DeletedBucketView<'a>,
    /// What went with it.
    pub deleted_resources: DeletedWithBucketView,
}

/// Body of a creation.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct BucketBody {
    /// Unique within the organization.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
    /// Free text.
    #[schema(max_length = 4096)]
    pub description: Option<String>,
    /// Within the plan; its maximum when absent.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub retention_days: Option<u32>,
}

/// Body of a change; what is left out stays.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct BucketPatchBody {
    /// Unique within the organization.
    #[schema(min_length = 1, max_length = 100)]
    pub name: Option<String>,
    /// Free text; null removes it.
    #[schema(max_length = 4096)]
    pub description: Option<String>,
    /// Within the plan. Shortened, older points are gone at once and for good.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub retention_days: Option<u32>,
}

/// Lists the organization's buckets.
///
/// Oldest first.
#[utoipa::path(get, path = "/api/buckets", operation_id = "listBuckets", tag = "buckets",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(PageParams),
    responses(
        (status = 200, body = BucketsAnswer, description = "A page of buckets.")))]
pub async fn list(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let mut faults = Faults::default();
    let Some(asked) = params::page(&request, &mut faults) else {
        return Err(faults.into_error());
    };
    let page = service.list_buckets(&caller, asked);
    let answer = BucketsAnswer {
        buckets: page.entries.iter().map(|bucket| BucketView::of(bucket)).collect(),
        pagination: Pagination::of(asked, &page),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Makes a bucket.
///
/// A bucket holds data sources with their points, its own keys, and alert rules. How many an organization may have, and
/// how long points are kept at most, is the plan's to say.
#[utoipa::path(post, path = "/api/buckets", operation_id = "createBucket", tag = "buckets",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    request_body = BucketBody,
    responses(
        (status = 201, body = BucketAnswer, description = "The new bucket."),
        (status = 403, description = "The plan's buckets are in use, or the credential is of a kind that the route does not take."),
        (status = 409, description = "A bucket of the organization has this name.")))]
pub async fn create(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let body = body::read_json(&request, payload).await?;
    let mut faults = Faults::default();
    let members = Members::of_body(&body, &mut faults);
    let name = members.required("name", &mut faults, |v| values::name(v, NAME_CHARS_MAX));
    let description = members.optional("description", &mut faults, |v| {
        values::text(v, DESCRIPTION_CHARS_MAX)
    });
    let retention_days = members.optional("retentionDays", &mut faults, |v| {
        retention_days(v, &service, &caller, None)
    });
    let (Some(name), true) = (name, faults.none()) else {
        return Err(faults.into_error());
    };
    let bucket = service
        .create_bucket(
            &caller,
            BucketInput {
                name,
                description,
                retention_days,
            },
        )
        .await?;
    let answer = BucketAnswer {
        message: Some("bucket created"),
        bucket: BucketView::of(&bucket),
    };
    respond::json(&request, StatusCode::CREATED, &answer).await
}

/// Shows a bucket with what it holds.
///
/// `stats` counts its data sources, points and keys as they are now.
#[utoipa::path(get, path = "/api/buckets/{id}", operation_id = "showBucket", tag = "buckets",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(("id" = ObjectId, Path, description = "The bucket.")),
    responses(
        (status = 200, body = BucketAnswer, description = "The bucket.")))]
pub async fn show(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let mut faults = Faults::default();
    let Some(id) = params::id(&request, "id", &mut faults) else {
        return Err(faults.into_error());
    };
    let BucketWithStats {
        bucket,
        contents,
        points,
    } = service.bucket_with_stats(&caller, id).await?;
    let stats = BucketStatsView {
        data_source_count: contents.sources,
        data_point_count: points,
        api_key_count: contents.keys,
    };
    let bucket = BucketView {
        stats: Some(stats),
        ..BucketView::of(&bucket)
    };
    respond::json(
        &request,
        StatusCode::OK,
        &BucketAnswer {
            message: None,
            bucket,
        },
    )
    .await
}

/// Changes a bucket's name, description or retention.
///
/// What is left out stays. What really changed is told to webhooks that hear `bucket.updated`. A shorter `retentionDays`
/// takes older points away at once and for good.
#[utoipa::path(patch, path = "/api/buckets/{id}", operation_id = "updateBucket", tag = "buckets",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(("id" = ObjectId, Path, description = "The bucket.")),
    request_body = BucketPatchBody,
    responses(
        (status = 200, body = BucketAnswer, description = "As it is now."),
        (status = 409, description = "A bucket of the organization has this name.")))]
pub async fn update(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let body = body::read_json(&request, payload).await?;
    let mut faults = Faults::default();
    let id = params::id(&request, "id", &mut faults);
    let members = Members::of_body(&body, &mut faults);
    let patch = BucketPatch {
        name: members.optional("name", &mut faults, |v| values::name(v, NAME_CHARS_MAX)),
        description: members.nullable("description", &mut faults, |v| {
            values::text(v, DESCRIPTION_CHARS_MAX)
        }),
        retention_days: members.optional("retentionDays", &mut faults, |v| {
            retention_days(v, &service, &caller, id)
        }),
    };
    let (Some(id), true) = (id, faults.none()) else {
        return Err(faults.into_error());
    };
    let bucket = service.update_bucket(&caller, id, patch).await?;
    let answer = BucketAnswer {
        message: Some("bucket updated"),
        bucket: BucketView::of(&bucket),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Deletes a bucket with all that is in it.
///
/// Its data sources, points, keys and alert rules are gone with the next request. There is no way back but a backup of
/// the server.
#[utoipa::path(delete, path = "/api/buckets/{id}", operation_id = "deleteBucket", tag = "buckets",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(("id" = ObjectId, Path, description = "The bucket.")),
    responses(
        (status = 200, body = DeletedBucketAnswer, description = "Deleted, and what went with it.")))]
pub async fn remove(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let mut faults = Faults::default();
    let Some(id) = params::id(&request, "id", &mut faults) else {
        return Err(faults.into_error());
    };
    let BucketWithStats {
        bucket,
        contents,
        points,
    } = service.delete_bucket(&caller, id).await?;
    let answer = DeletedBucketAnswer {
        message: "bucket deleted",
        deleted_bucket: DeletedBucketView {
            id,
            name: &bucket.name,
        },
        deleted_resources: DeletedWithBucketView {
            data_sources: contents.sources,
            data_points: points,
            api_keys: contents.keys,
            alert_rules: contents.alert_rules,
        },
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// An integer from 1 within the plan, or what the bucket has already.
fn retention_days(
    value: &Value,
    service: &Service,
    caller: &Caller,
    bucket_id: Option<ObjectId>,
) -> Result<u32, String> {
    let days = values::integer(value, 1, u64::from(RETENTION_DAYS_MAX))? as u32;
    match service.retention_limits(caller, bucket_id) {
        (Some(max), current) if days > max && current != Some(days) => {
            Err(format!("must be at most {max} on this plan, not {days}"))
        }
        _ => Ok(days),
    }
}

impl<'a> BucketView<'a> {
    fn of(bucket: &'a Bucket) -> Self {
        Self {
            id: bucket.id,
            name: &bucket.name,
            description: bucket.description.as_deref(),
            organization_id: bucket.organization_id,
            retention_days: bucket.retention_days,
            status: ACTIVE,
            stats: None,
            created_at: Timestamp(bucket.created_at_ns),
            updated_at: Timestamp(bucket.updated_at_ns),
        }
    }
}
