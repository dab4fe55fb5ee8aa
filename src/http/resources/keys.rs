//! API keys: of the organization (admin, integration) and of a bucket (write, read).

use actix_web::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::views::{Many, Resource};
use crate::catalog::{Key, KeyType};
use crate::error::ServiceError;
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reply, delete, get, post};
use crate::http::shape::{BucketKeyType, Name, OrganizationKeyType, Rule, Trimmed, body};
use crate::ids::ObjectId;
use crate::service::keys::{CreatedKey, KeyScope, NewKey};
use crate::service::page::PageRequest;
use crate::service::{Caller, Service};
use crate::timestamp::Timestamp;

const WARNING: &str = "store this key now: it is shown this once and cannot be retrieved later";
/// Number of last characters in the preview of a new key.
const PREVIEW_CHARS: usize = 4;

/// A key in a list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyView<'a> {
    /// ID of the key.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Name of the key.
    pub name: &'a str,
    /// Type of the key, which decides what it allows.
    #[serde(rename = "type")]
    #[schema(value_type = KeyType)]
    pub kind: &'static str,
    /// ID of the bucket, for keys of a bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bucket_id: Option<ObjectId>,
    /// First twelve characters of the key and an ellipsis.
    pub key_prefix: String,
    /// When the key was created.
    pub created_at: Timestamp,
    /// When the key was last used, to the minute; null when never.
    pub last_used_at: Option<Timestamp>,
}

/// A new key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatedKeyView<'a> {
    /// ID of the key.
    #[serde(rename = "_id")]
    pub object_id: ObjectId,
    /// The same ID.
    pub id: ObjectId,
    /// Name of the key.
    pub name: &'a str,
    /// Type of the key, which decides what it allows.
    #[serde(rename = "type")]
    #[schema(value_type = KeyType)]
    pub kind: &'static str,
    /// ID of the bucket, for keys of a bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bucket_id: Option<ObjectId>,
    /// Name of the bucket, for keys of a bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bucket_name: Option<&'a str>,
    /// The whole key, which is returned only once.
    pub key: &'a str,
    /// An ellipsis and the last four characters of the key.
    pub key_preview: String,
    /// What the key allows.
    pub permissions: &'static [&'static str],
    /// When the key was created.
    pub created_at: Timestamp,
}

/// The response to a creation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatedKeyAnswer<'a> {
    /// Result in words.
    pub message: &'static str,
    /// The new key.
    pub api_key: CreatedKeyView<'a>,
    /// Reminder that the key is returned only once.
    pub warning: &'static str,
}

/// A deleted key.
#[derive(Serialize, ToSchema)]
pub struct DeletedKeyView<'a> {
    /// ID of the key.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Name of the key.
    pub name: &'a str,
    /// Type of the key.
    #[serde(rename = "type")]
    #[schema(value_type = KeyType)]
    pub kind: &'static str,
}

/// The response to a deletion.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedKeyAnswer<'a> {
    /// Result in words.
    pub message: &'static str,
    /// The deleted key.
    pub deleted_key: DeletedKeyView<'a>,
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
    let new = new_key(name.or(label), r#type.0)?;
    created(
        &call
            .service
            .create_key(&call.caller, KeyScope::Organization, new)
            .await?,
    )
}

async fn create_of_bucket(call: Call<Admin, ObjectId, NewBucketKeyBody>) -> Created {
    let NewBucketKeyBody { name, label, r#type } = call.body;
    let new = new_key(name.or(label), r#type.0)?;
    let scope = KeyScope::Bucket(call.params);
    created(&call.service.create_key(&call.caller, scope, new).await?)
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

fn new_key(name: Option<Name>, kind: KeyType) -> Result<NewKey, ServiceError> {
    let Some(Trimmed(name)) = name else {
        return Err(ServiceError::internal(
            "BUG: a body without name and label was read",
        ));
    };
    Ok(NewKey { name, kind })
}

fn created(CreatedKey { key, text, bucket }: &CreatedKey) -> Created {
    let preview = &text[text.len().saturating_sub(PREVIEW_CHARS)..];
    Answer::of(&CreatedKeyAnswer {
        message: "API key created",
        api_key: CreatedKeyView {
            object_id: key.id,
            id: key.id,
            name: &key.name,
            kind: key.kind.name(),
            bucket_id: key.bucket_id,
            bucket_name: bucket.as_ref().map(|bucket| &*bucket.name),
            key: text,
            key_preview: format!("…{preview}"),
            permissions: key.kind.permissions(),
            created_at: Timestamp(key.created_at_ns),
        },
        warning: WARNING,
    })
}

async fn remove_in(service: &Service, caller: &Caller, scope: KeyScope, key_id: ObjectId) -> Deleted {
    let key = service.delete_key(caller, scope, key_id).await?;
    Answer::of(&DeletedKeyAnswer {
        message: "API key deleted",
        deleted_key: DeletedKeyView {
            id: key.id,
            name: &key.name,
            kind: key.kind.name(),
        },
    })
}

impl Resource for KeyView<'_> {
    const ONE: &'static str = "apiKey";
    const MANY: &'static str = "apiKeys";
}

impl<'a> KeyView<'a> {
    fn of(key: &'a Key) -> Self {
        Self {
            id: key.id,
            name: &key.name,
            kind: key.kind.name(),
            bucket_id: key.bucket_id,
            key_prefix: format!("{}…", key.shown_prefix),
            created_at: Timestamp(key.created_at_ns),
            last_used_at: key.last_used_at_ns().map(Timestamp),
        }
    }
}
