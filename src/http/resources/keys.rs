//! API keys: of the organization (admin, integration) and of a bucket (write, read).

use actix_web::http::StatusCode;

use super::views::{Many, Resource, view};
use crate::catalog::{Key, KeyType};
use crate::error::ServiceError;
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reply, delete, get, post};
use crate::http::shape::{BucketKeyType, Name, OrganizationKeyType, Rule, Trimmed, body};
use crate::ids::ObjectId;
use crate::service::keys::{CreatedKey, KeyScope};
use crate::service::page::PageRequest;
use crate::service::{Caller, Service};
use crate::timestamp::Timestamp;

/// Number of last characters in the preview of a new key.
const PREVIEW_CHARS: usize = 4;

view! {
    /// A key in a list.
    pub struct KeyView<'a> of(key: &'a Key) {
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
        /// When the key was last used, to the minute; null when never.
        last_used_at: Option<Timestamp> = key.last_used_at_ns().map(Timestamp),
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
        warning: &'static str = "store this key now: it is shown this once and cannot be retrieved later",
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
    }
    rules [Rule::AnyOf("name", "label")]
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/organization/keys", "listOrganizationKeys", list),
        post("/api/organization/keys", "createOrganizationKey", create).status(StatusCode::CREATED),
        delete("/api/organization/keys/{keyId}", "deleteOrganizationKey", remove),
        get("/api/buckets/{bucketId}/keys", "listBucketKeys", list_of_bucket),
        post(
            "/api/buckets/{bucketId}/keys",
            "createBucketKey",
            create_of_bucket,
        )
        .status(StatusCode::CREATED),
        delete(
            "/api/buckets/{bucketId}/keys/{keyId}",
            "deleteBucketKey",
            remove_of_bucket,
        ),
    ]
}

type Listed = Reply<Many<KeyView<'static>>>;
type Created = Reply<CreatedKeyAnswer<'static>>;
type Deleted = Reply<DeletedKeyAnswer<'static>>;

async fn list(call: Call<Admin, PageRequest>) -> Listed {
    list_in(&call.service, &call.caller, KeyScope::Organization, call.params)
}

async fn list_of_bucket(call: Call<Admin, (ObjectId, PageRequest)>) -> Listed {
    let (bucket_id, asked) = call.params;
    list_in(&call.service, &call.caller, KeyScope::Bucket(bucket_id), asked)
}

async fn create(call: Call<Admin, (), NewOrganizationKeyBody>) -> Created {
    let NewOrganizationKeyBody { name, label, r#type } = call.body;
    let named = name.or(label);
    create_in(
        &call.service,
        &call.caller,
        KeyScope::Organization,
        named,
        r#type.0,
    )
    .await
}

async fn create_of_bucket(call: Call<Admin, ObjectId, NewBucketKeyBody>) -> Created {
    let NewBucketKeyBody { name, label, r#type } = call.body;
    let (scope, named) = (KeyScope::Bucket(call.params), name.or(label));
    create_in(&call.service, &call.caller, scope, named, r#type.0).await
}

async fn remove(call: Call<Admin, ObjectId>) -> Deleted {
    remove_in(&call.service, &call.caller, KeyScope::Organization, call.params).await
}

async fn remove_of_bucket(call: Call<Admin, (ObjectId, ObjectId)>) -> Deleted {
    let (bucket_id, key_id) = call.params;
    remove_in(&call.service, &call.caller, KeyScope::Bucket(bucket_id), key_id).await
}

fn list_in(service: &Service, caller: &Caller, scope: KeyScope, asked: PageRequest) -> Listed {
    let page = service.keys(caller, scope, asked)?;
    Answer::page(asked, &page, |key| KeyView::of(key))
}

async fn create_in(
    service: &Service,
    caller: &Caller,
    scope: KeyScope,
    name: Option<Name>,
    kind: KeyType,
) -> Created {
    let unread = || ServiceError::internal("BUG: a body without name and label was read");
    let Trimmed(name) = name.ok_or_else(unread)?;
    let created = service.create_key(caller, scope, name, kind).await?;
    Answer::of(&CreatedKeyAnswer::of(&created))
}

async fn remove_in(service: &Service, caller: &Caller, scope: KeyScope, key_id: ObjectId) -> Deleted {
    let key = service.delete_key(caller, scope, key_id).await?;
    Answer::of(&DeletedKeyAnswer::of(&key))
}

impl Resource for KeyView<'_> {
    const ONE: &'static str = "apiKey";
    const MANY: &'static str = "apiKeys";
}
