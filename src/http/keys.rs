//! What the key routes of buckets and of the organization share: bodies and answers.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::docs::{BucketKeyTypeDoc, OrganizationKeyTypeDoc};
use super::faults::{Faults, Members};
use super::params::Pagination;
use super::{respond, values};
use crate::catalog::{Key, KeyType};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::NAME_CHARS_MAX;
use crate::service::keys::{CreatedKey, NewKey};
use crate::service::page::{Page, PageRequest};
use crate::timestamp::Timestamp;

const WARNING: &str = "store this key now: it is shown this once and cannot be retrieved later";
/// The last characters that a creation's answer previews.
const PREVIEW_CHARS: usize = 4;

/// A key in a list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Shown name.
    pub name: &'a str,
    /// What it may do.
    #[serde(rename = "type")]
    #[schema(value_type = KeyType)]
    pub kind: &'static str,
    /// Its bucket, for bucket keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bucket_id: Option<ObjectId>,
    /// The first twelve characters and an ellipsis.
    pub key_prefix: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Exact to the minute; null when never.
    pub last_used_at: Option<Timestamp>,
}

/// A page of keys.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeysAnswer<'a> {
    /// Oldest first.
    pub api_keys: Vec<KeyView<'a>>,
    /// Which part.
    pub pagination: Pagination,
}

/// A key as its maker sees it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatedKeyView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub object_id: ObjectId,
    /// The same.
    pub id: ObjectId,
    /// Shown name.
    pub name: &'a str,
    /// What it may do.
    #[serde(rename = "type")]
    #[schema(value_type = KeyType)]
    pub kind: &'static str,
    /// Its bucket, for bucket keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bucket_id: Option<ObjectId>,
    /// The bucket's name, for bucket keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bucket_name: Option<&'a str>,
    /// The whole key, this once.
    pub key: &'a str,
    /// An ellipsis and the last four characters.
    pub key_preview: String,
    /// What it may do, in detail.
    pub permissions: &'static [&'static str],
    /// When it was made.
    pub created_at: Timestamp,
}

/// An answer to a creation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatedKeyAnswer<'a> {
    /// What was done.
    pub message: &'static str,
    /// The key.
    pub api_key: CreatedKeyView<'a>,
    /// That it is shown this once.
    pub warning: &'static str,
}

/// A deleted key.
#[derive(Serialize, ToSchema)]
pub struct DeletedKeyView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Its name.
    pub name: &'a str,
    /// Its type.
    #[serde(rename = "type")]
    #[schema(value_type = KeyType)]
    pub kind: &'static str,
}

/// An answer to a deletion.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedKeyAnswer<'a> {
    /// What was done.
    pub message: &'static str,
    /// What it was.
    pub deleted_key: DeletedKeyView<'a>,
}

/// Body of a creation; one of `name` and `label` is required.
#[derive(ToSchema)]
pub struct NewBucketKeyBody {
    /// Shown name.
    #[schema(min_length = 1, max_length = 100)]
    pub name: Option<String>,
    /// The same by another name; `name` counts when both are there.
    #[schema(min_length = 1, max_length = 100)]
    pub label: Option<String>,
    /// What it may do.
    #[schema(rename = "type")]
    pub kind: BucketKeyTypeDoc,
}

/// Body of a creation; one of `name` and `label` is required.
#[derive(ToSchema)]
pub struct NewOrganizationKeyBody {
    /// Shown name.
    #[schema(min_length = 1, max_length = 100)]
    pub name: Option<String>,
    /// The same by another name; `name` counts when both are there.
    #[schema(min_length = 1, max_length = 100)]
    pub label: Option<String>,
    /// What it may do.
    #[schema(rename = "type")]
    pub kind: OrganizationKeyTypeDoc,
}

/// Reads a creation whose route makes keys of these types.
pub(super) fn read_new_key(body: &Value, kinds: [KeyType; 2], faults: &mut Faults) -> Option<NewKey> {
    let members = Members::of_body(body, faults);
    let read = |value| values::name(value, NAME_CHARS_MAX);
    let label = members.optional("label", faults, read);
    let name = match members.given("name") {
        None if members.given("label").is_some() => label,
        _ => members.required("name", faults, read),
    };
    let kinds = kinds.map(|kind| (kind.name(), kind));
    let kind = members.required("type", faults, |value| values::one_of(value, &kinds));
    Some(NewKey {
        name: name?,
        kind: kind?,
    })
}

pub(super) async fn list_answer(
    request: &HttpRequest,
    asked: PageRequest,
    page: Page<Arc<Key>>,
) -> Result<HttpResponse, ServiceError> {
    let answer = KeysAnswer {
        api_keys: page.entries.iter().map(|key| KeyView::of(key)).collect(),
        pagination: Pagination::of(asked, &page),
    };
    respond::json(request, StatusCode::OK, &answer).await
}

pub(super) async fn created_answer(
    request: &HttpRequest,
    created: &CreatedKey,
) -> Result<HttpResponse, ServiceError> {
    let CreatedKey { key, text, bucket } = created;
    let preview = &text[text.len().saturating_sub(PREVIEW_CHARS)..];
    let answer = CreatedKeyAnswer {
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
    };
    respond::json(request, StatusCode::CREATED, &answer).await
}

pub(super) async fn deleted_answer(request: &HttpRequest, key: &Key) -> Result<HttpResponse, ServiceError> {
    let answer = DeletedKeyAnswer {
        message: "API key deleted",
        deleted_key: DeletedKeyView {
            id: key.id,
            name: &key.name,
            kind: key.kind.name(),
        },
    };
    respond::json(request, StatusCode::OK, &answer).await
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
