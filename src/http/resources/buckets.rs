//! `/api/buckets`.

use actix_web::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::views::{Many, NamedView, One, Resource};
use crate::catalog::Bucket;
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reply, delete, get, patch, post};
use crate::http::shape::{BucketStatusDoc, Description, Integer, Name, Patch, body};
use crate::ids::ObjectId;
use crate::limits::RETENTION_DAYS_MAX;
use crate::service::buckets::{BucketInput, BucketPatch, BucketWithStats};
use crate::service::page::PageRequest;
use crate::timestamp::Timestamp;

/// The only status a bucket has.
const ACTIVE: &str = "active";

type RetentionDays = Integer<1, { RETENTION_DAYS_MAX as u64 }>;

/// A bucket.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketView<'a> {
    /// ID of the bucket.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Name, unique within the organization.
    pub name: &'a str,
    /// Description; any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub description: Option<&'a str>,
    /// ID of the organization that owns the bucket.
    pub organization_id: ObjectId,
    /// Days for which points are kept.
    pub retention_days: u32,
    /// Always `active`.
    #[schema(value_type = BucketStatusDoc)]
    pub status: &'static str,
    /// Number of objects in the bucket; only in the response about one bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub stats: Option<BucketStatsView>,
    /// When the bucket was created.
    pub created_at: Timestamp,
    /// When the settings last changed.
    pub updated_at: Timestamp,
}

/// Number of objects in a bucket.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketStatsView {
    /// Number of data sources.
    pub data_source_count: u64,
    /// Number of points, without expired ones.
    pub data_point_count: u64,
    /// Number of keys of this bucket.
    pub api_key_count: u64,
}

/// Number of objects deleted along with a bucket.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedWithBucketView {
    /// Number of deleted data sources.
    pub data_sources: u64,
    /// Number of deleted points.
    pub data_points: u64,
    /// Number of deleted keys.
    pub api_keys: u64,
    /// Number of deleted alert rules.
    pub alert_rules: u64,
}

/// The response to a deletion.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedBucketAnswer<'a> {
    /// Result in words.
    pub message: &'static str,
    /// The deleted bucket.
    pub deleted_bucket: NamedView<'a>,
    /// Objects deleted along with the bucket.
    pub deleted_resources: DeletedWithBucketView,
}

body! {
    /// Body of a request that creates a bucket.
    pub struct BucketBody {
        /// Name, unique within the organization.
        name: Name,
        /// Description; any text.
        description: Option<Description>,
        /// Days for which points are kept, within the plan; the plan's maximum when absent.
        retention_days: Option<RetentionDays>,
    }
}

body! {
    /// Body of a request that changes a bucket; absent members keep their values.
    pub struct BucketPatchBody {
        /// Name, unique within the organization.
        name: Option<Name>,
        /// Description, any text; null removes it.
        #[schema(value_type = Option<Description>)]
        description: Patch<Description>,
        /// Days for which points are kept, within the plan. A smaller value removes older points at once and for good.
        retention_days: Option<RetentionDays>,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/buckets", "listBuckets", list),
        post("/api/buckets", "createBucket", create).status(StatusCode::CREATED),
        get("/api/buckets/{id}", "showBucket", show),
        patch("/api/buckets/{id}", "updateBucket", update),
        delete("/api/buckets/{id}", "deleteBucket", remove),
    ]
}

async fn list(call: Call<Admin, PageRequest>) -> Reply<Many<BucketView<'static>>> {
    let page = call.service.list_buckets(&call.caller, call.params);
    Answer::page(call.params, &page, |bucket| BucketView::of(bucket))
}

async fn create(call: Call<Admin, (), BucketBody>) -> Reply<One<BucketView<'static>>> {
    let input = BucketInput {
        name: call.body.name.0,
        description: call.body.description.map(|text| text.0),
        retention_days: call.body.retention_days.map(|days| days.0 as u32),
    };
    let bucket = call.service.create_bucket(&call.caller, input).await?;
    Answer::changed("bucket created", BucketView::of(&bucket))
}

async fn show(call: Call<Admin, ObjectId>) -> Reply<One<BucketView<'static>>> {
    let found = call.service.bucket_with_stats(&call.caller, call.params).await?;
    let stats = BucketStatsView {
        data_source_count: found.contents.sources,
        data_point_count: found.points,
        api_key_count: found.contents.keys,
    };
    Answer::one(BucketView {
        stats: Some(stats),
        ..BucketView::of(&found.bucket)
    })
}

async fn update(call: Call<Admin, ObjectId, BucketPatchBody>) -> Reply<One<BucketView<'static>>> {
    let patch = BucketPatch {
        name: call.body.name.map(|name| name.0),
        description: call.body.description.map(|text| text.0),
        retention_days: call.body.retention_days.map(|days| days.0 as u32),
    };
    let bucket = call
        .service
        .update_bucket(&call.caller, call.params, patch)
        .await?;
    Answer::changed("bucket updated", BucketView::of(&bucket))
}

async fn remove(call: Call<Admin, ObjectId>) -> Reply<DeletedBucketAnswer<'static>> {
    let BucketWithStats {
        bucket,
        contents,
        points,
    } = call.service.delete_bucket(&call.caller, call.params).await?;
    Answer::of(&DeletedBucketAnswer {
        message: "bucket deleted",
        deleted_bucket: NamedView::new(bucket.id, &bucket.name),
        deleted_resources: DeletedWithBucketView {
            data_sources: contents.sources,
            data_points: points,
            api_keys: contents.keys,
            alert_rules: contents.alert_rules,
        },
    })
}

impl Resource for BucketView<'_> {
    const ONE: &'static str = "bucket";
    const MANY: &'static str = "buckets";
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
