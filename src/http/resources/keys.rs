//! API keys: of the organization (admin, integration) and of a bucket (write, read).

use actix_web::http::StatusCode;

use super::views::{Many, Resource, view};
use crate::catalog::{Key, KeyType, Role};
use crate::error::ServiceError;
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reply, delete, get, post};
use crate::http::shape::{BucketKeyType, Integer, Moment, Name, OrganizationKeyType, Rule, body};
use crate::ids::ObjectId;
use crate::limits::KEY_OVERLAP_SECONDS_MAX;
use crate::service::Service;
use crate::service::keys::{CreatedKey, NewKey};
use crate::service::page::PageRequest;
use crate::timestamp::Timestamp;

/// Number of last characters in the preview of a new key.
const PREVIEW_CHARS: usize = 4;

view! {
    /// A key in a list.
    pub struct KeyView<'a> of(key: &'a Key, calls: u64) {
        /// ID of the key.
        #[serde(rename = "_id")]
        id: ObjectId = key.id,
        /// Name of the key.
        name: &'a str = &key.name,
        /// Type of the key, which decides what it allows.
        #[serde(rename = "type")]
        kind: KeyType = key.kind,
        /// ID of the bucket, for keys of a bucket.
        bucket_id?: ObjectId = key.bucket_id,
        /// First twelve characters of the key and an ellipsis.
        key_prefix: String = format!("{}…", key.shown_prefix),
        /// When the key was created.
        created_at: Timestamp = Timestamp(key.created_at_ns),
        /// When the key stops working; null for never.
        expires_at: Option<Timestamp> = key.expires_at_ns.map(Timestamp),
        /// When the key was last used, to the minute; null when never.
        last_used_at: Option<Timestamp> = key.last_used_at_ns().map(Timestamp),
        /// Calls with the key in this calendar month, in UTC.
        calls_this_month: u64 = calls,
    }
}

view! {
    /// A new key.
    pub struct CreatedKeyView<'a> of(created: &'a CreatedKey; key = &created.key) {
        /// ID of the key.
        #[serde(rename = "_id")]
        object_id: ObjectId = key.id,
        /// The same ID.
        id: ObjectId = key.id,
        /// Name of the key.
        name: &'a str = &key.name,
        /// Type of the key, which decides what it allows.
        #[serde(rename = "type")]
        kind: KeyType = key.kind,
        /// ID of the bucket, for keys of a bucket.
        bucket_id?: ObjectId = key.bucket_id,
        /// Name of the bucket, for keys of a bucket.
        bucket_name?: &'a str = created.bucket.as_ref().map(|bucket| &*bucket.name),
        /// The whole key, which is returned only once.
        key: &'a str = &created.text,
        /// An ellipsis and the last four characters of the key.
        key_preview: String = format!("…{}", &created.text[created.text.len().saturating_sub(PREVIEW_CHARS)..]),
        /// What the key allows.
        permissions: &'static [&'static str] = key.kind.permissions(),
        /// When the key was created.
        created_at: Timestamp = Timestamp(key.created_at_ns),
        /// When the key stops working; null for never.
        expires_at: Option<Timestamp> = key.expires_at_ns.map(Timestamp),
    }
}

view! {
    /// The response to a rotation.
    pub struct RotatedKeyAnswer<'a> of(created: &'a CreatedKey) {
        /// Result in words.
        message: &'static str = "API key rotated",
        /// The key with its new value.
        api_key: CreatedKeyView<'a> = CreatedKeyView::of(created),
        /// Reminder that the key is returned only once.
        warning: &'static str = STORE_IT,
    }
}

view! {
    /// The response to a creation.
    pub struct CreatedKeyAnswer<'a> of(created: &'a CreatedKey) {
        /// Result in words.
        message: &'static str = "API key created",
        /// The new key.
        api_key: CreatedKeyView<'a> = CreatedKeyView::of(created),
        /// Reminder that the key is returned only once.
        warning: &'static str = STORE_IT,
    }
}

view! {
    /// A deleted key.
    pub struct DeletedKeyView<'a> of(key: &'a Key) {
        /// ID of the key.
        #[serde(rename = "_id")]
        id: ObjectId = key.id,
        /// Name of the key.
        name: &'a str = &key.name,
        /// Type of the key.
        #[serde(rename = "type")]
        kind: KeyType = key.kind,
    }
}

view! {
    /// The response to a deletion.
    pub struct DeletedKeyAnswer<'a> of(key: &'a Key) {
        /// Result in words.
        message: &'static str = "API key deleted",
        /// The deleted key.
        deleted_key: DeletedKeyView<'a> = DeletedKeyView::of(key),
    }
}

body! {
    /// Body of a request that creates a key of a bucket; `name` or `label` is required.
    pub struct NewBucketKeyBody {
        /// Name of the key.
        name: Option<Name>,
        /// Another name of the same member; ignored when `name` is present.
        label: Option<Name>,
        /// Type of the key, which decides what it allows.
        r#type: BucketKeyType,
        /// When the key stops working, ISO 8601, in the future; never when absent.
        expires_at: Option<Moment>,
    }
    rules [Rule::AnyOf("name", "label")]
}

body! {
    /// Body of a request that creates a key of the organization; `name` or `label` is required.
    pub struct NewOrganizationKeyBody {
        /// Name of the key.
        name: Option<Name>,
        /// Another name of the same member; ignored when `name` is present.
        label: Option<Name>,
        /// Type of the key, which decides what it allows.
        r#type: OrganizationKeyType,
        /// When the key stops working, ISO 8601, in the future; never when absent.
        expires_at: Option<Moment>,
    }
    rules [Rule::AnyOf("name", "label")]
}

body! {
    /// Body of a request that gives a key a new value.
    pub struct RotationBody {
        /// For how many seconds the former value works as well; 0 ends it at once.
        overlap_seconds: Overlap,
    }
}

type Overlap = Integer<0, KEY_OVERLAP_SECONDS_MAX>;

const STORE_IT: &str = "store this key now: it is shown this once and cannot be retrieved later";

pub fn endpoints() -> Vec<Endpoint> {
    const OF_BUCKET: &str = "/api/buckets/{bucketId}/keys";
    const ONE_OF_BUCKET: &str = "/api/buckets/{bucketId}/keys/{keyId}";
    const ROTATION: &str = "/api/organization/keys/{keyId}/rotate";
    const ROTATION_OF_BUCKET: &str = "/api/buckets/{bucketId}/keys/{keyId}/rotate";
    vec![
        get("/api/organization/keys", "listOrganizationKeys", list),
        post("/api/organization/keys", "createOrganizationKey", create)
            .status(StatusCode::CREATED)
            .least_role(Role::Owner),
        delete("/api/organization/keys/{keyId}", "deleteOrganizationKey", remove).least_role(Role::Owner),
        post(ROTATION, "rotateOrganizationKey", rotate).least_role(Role::Owner),
        get(OF_BUCKET, "listBucketKeys", list_of_bucket),
        post(OF_BUCKET, "createBucketKey", create_of_bucket).status(StatusCode::CREATED),
        delete(ONE_OF_BUCKET, "deleteBucketKey", remove_of_bucket),
        post(ROTATION_OF_BUCKET, "rotateBucketKey", rotate_of_bucket),
    ]
}

type Listed = Reply<Many<KeyView<'static>>>;
type Created = Reply<CreatedKeyAnswer<'static>>;
type Rotated = Reply<RotatedKeyAnswer<'static>>;
type Deleted = Reply<DeletedKeyAnswer<'static>>;

async fn list(call: Call<Admin, PageRequest>) -> Listed {
    let page = call.service.keys(&call.caller, None, call.params)?;
    Answer::page(call.params, &page, |key| with_calls(&call.service, key))
}

async fn list_of_bucket(call: Call<Admin, (ObjectId, PageRequest)>) -> Listed {
    let (bucket_id, asked) = call.params;
    let page = call.service.keys(&call.caller, Some(bucket_id), asked)?;
    Answer::page(asked, &page, |key| with_calls(&call.service, key))
}

fn with_calls<'a>(service: &Service, key: &'a Key) -> KeyView<'a> {
    KeyView::of(key, service.key_calls_this_month(key))
}

async fn create(call: Call<Admin, (), NewOrganizationKeyBody>) -> Created {
    let NewOrganizationKeyBody {
        name,
        label,
        r#type,
        expires_at,
    } = call.body;
    let new = new_key(name, label, r#type.0, expires_at)?;
    let created = call.service.create_key(&call.caller, None, new);
    Answer::of(&CreatedKeyAnswer::of(&created.await?))
}

async fn create_of_bucket(call: Call<Admin, ObjectId, NewBucketKeyBody>) -> Created {
    let NewBucketKeyBody {
        name,
        label,
        r#type,
        expires_at,
    } = call.body;
    let new = new_key(name, label, r#type.0, expires_at)?;
    let created = call.service.create_key(&call.caller, Some(call.params), new);
    Answer::of(&CreatedKeyAnswer::of(&created.await?))
}

async fn rotate(call: Call<Admin, ObjectId, RotationBody>) -> Rotated {
    let overlap = call.body.overlap_seconds.0;
    let rotated = call.service.rotate_key(&call.caller, None, call.params, overlap);
    Answer::of(&RotatedKeyAnswer::of(&rotated.await?))
}

async fn rotate_of_bucket(call: Call<Admin, (ObjectId, ObjectId), RotationBody>) -> Rotated {
    let ((bucket_id, key_id), overlap) = (call.params, call.body.overlap_seconds.0);
    let rotated = call
        .service
        .rotate_key(&call.caller, Some(bucket_id), key_id, overlap);
    Answer::of(&RotatedKeyAnswer::of(&rotated.await?))
}

async fn remove(call: Call<Admin, ObjectId>) -> Deleted {
    let key = call.service.delete_key(&call.caller, None, call.params).await?;
    Answer::of(&DeletedKeyAnswer::of(&key))
}

async fn remove_of_bucket(call: Call<Admin, (ObjectId, ObjectId)>) -> Deleted {
    let (bucket_id, key_id) = call.params;
    let deleted = call.service.delete_key(&call.caller, Some(bucket_id), key_id);
    let key = deleted.await?;
    Answer::of(&DeletedKeyAnswer::of(&key))
}

fn new_key(
    name: Option<Name>,
    label: Option<Name>,
    kind: KeyType,
    expires_at: Option<Moment>,
) -> Result<NewKey, ServiceError> {
    let unread = || ServiceError::internal("BUG: a body without name and label was read");
    Ok(NewKey {
        name: name.or(label).ok_or_else(unread)?.0,
        kind,
        expires_at_ns: expires_at.map(|Moment(at_ns)| at_ns),
    })
}

impl Resource for KeyView<'_> {
    const ONE: &'static str = "apiKey";
    const MANY: &'static str = "apiKeys";
}
