//! `/api/buckets`.

use actix_web::http::StatusCode;

use super::views::{Many, NamedView, One, Resource, view};
use crate::catalog::Bucket;
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reply, delete, get, patch, post};
use crate::http::shape::{BucketStatusDoc, Description, Integer, Name, Patch, body};
use crate::ids::ObjectId;
use crate::limits::RETENTION_DAYS_MAX;
use crate::service::buckets::{BucketInput, BucketPatch, BucketWithStats};
use crate::service::page::PageRequest;
use crate::timestamp::Timestamp;

type RetentionDays = Integer<1, { RETENTION_DAYS_MAX as u64 }>;

view! {
    /// A bucket.
    pub struct BucketView<'a> of(bucket: &'a Bucket) {
        /// ID of the bucket.
        #[serde(rename = "_id")]
        id: ObjectId = bucket.id,
        /// Name, unique within the organization.
        name: &'a str = &bucket.name,
        /// Description; any text.
        description?: &'a str = bucket.description.as_deref(),
        /// ID of the organization that owns the bucket.
        organization_id: ObjectId = bucket.organization_id,
        /// Days for which points are kept.
        retention_days: u32 = bucket.retention_days,
        /// Always `active`.
        #[schema(value_type = BucketStatusDoc)]
        status: &'static str = "active",
        /// Number of objects in the bucket; only in the response about one bucket.
        stats?: BucketStatsView = None,
        /// When the bucket was created.
        created_at: Timestamp = Timestamp(bucket.created_at_ns),
        /// When the settings last changed.
        updated_at: Timestamp = Timestamp(bucket.updated_at_ns),
    }
}

view! {
    /// Number of objects in a bucket.
    pub struct BucketStatsView of(found: &BucketWithStats) {
        /// Number of data sources.
        data_source_count: u64 = found.contents.sources,
        /// Number of points, without expired ones.
        data_point_count: u64 = found.points,
        /// Number of keys of this bucket.
        api_key_count: u64 = found.contents.keys,
    }
}

view! {
    /// Number of objects deleted along with a bucket.
    pub struct DeletedWithBucketView of(deleted: &BucketWithStats) {
        /// Number of deleted data sources.
        data_sources: u64 = deleted.contents.sources,
        /// Number of deleted points.
        data_points: u64 = deleted.points,
        /// Number of deleted keys.
        api_keys: u64 = deleted.contents.keys,
        /// Number of deleted alert rules.
        alert_rules: u64 = deleted.contents.alert_rules,
    }
}

view! {
    /// The response to a deletion.
    pub struct DeletedBucketAnswer<'a> of(deleted: &'a BucketWithStats) {
        /// Result in words.
        message: &'static str = "bucket deleted",
        /// The deleted bucket.
        deleted_bucket: NamedView<'a> = NamedView::of(deleted.bucket.id, &deleted.bucket.name),
        /// Objects deleted along with the bucket.
        deleted_resources: DeletedWithBucketView = DeletedWithBucketView::of(deleted),
    }
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
    Answer::one(BucketView {
        stats: Some(BucketStatsView::of(&found)),
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
    let deleted = call.service.delete_bucket(&call.caller, call.params).await?;
    Answer::of(&DeletedBucketAnswer::of(&deleted))
}

impl Resource for BucketView<'_> {
    const ONE: &'static str = "bucket";
    const MANY: &'static str = "buckets";
}
