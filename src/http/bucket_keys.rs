//! `/api/buckets/{bucketId}/keys`: write and read keys.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};

use super::faults::Faults;
use super::keys::{self, CreatedKeyAnswer, DeletedKeyAnswer, KeysAnswer, NewBucketKeyBody};
use super::params::PageParams;
use super::{auth, body, params};
use crate::catalog::KeyType;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::service::keys::KeyScope;
use crate::service::{Access, Service};

/// Lists a bucket's write and read keys.
///
/// A key is shown whole only when it is made.
#[utoipa::path(get, path = "/api/buckets/{bucketId}/keys", operation_id = "listBucketKeys", tag = "keys",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(
        ("bucketId" = ObjectId, Path, description = "The bucket."),
        PageParams),
    responses(
        (status = 200, body = KeysAnswer, description = "A page of keys.")))]
pub async fn list(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let mut faults = Faults::default();
    let bucket_id = params::id(&request, "bucketId", &mut faults);
    let asked = params::page(&request, &mut faults);
    let (Some(bucket_id), Some(asked)) = (bucket_id, asked) else {
        return Err(faults.into_error());
    };
    let page = service.keys(&caller, KeyScope::Bucket(bucket_id), asked)?;
    keys::list_answer(&request, asked, page).await
}

/// Makes a write or a read key of a bucket.
///
/// A *write* key sends and queries points and makes data sources and plain alert rules. A *read* key queries and lists.
/// Neither reaches another bucket. Give every device and every dashboard its own, so that each can be deleted alone.
#[utoipa::path(post, path = "/api/buckets/{bucketId}/keys", operation_id = "createBucketKey", tag = "keys",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(("bucketId" = ObjectId, Path, description = "The bucket.")),
    request_body = NewBucketKeyBody,
    responses(
        (status = 201, body = CreatedKeyAnswer, description = "The key, whole, this once.")))]
pub async fn create(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let body = body::read_json(&request, payload).await?;
    let mut faults = Faults::default();
    let bucket_id = params::id(&request, "bucketId", &mut faults);
    let new = keys::read_new_key(&body, [KeyType::Write, KeyType::Read], &mut faults);
    let (Some(bucket_id), Some(new), true) = (bucket_id, new, faults.none()) else {
        return Err(faults.into_error());
    };
    let created = service
        .create_key(&caller, KeyScope::Bucket(bucket_id), new)
        .await?;
    keys::created_answer(&request, &created).await
}

/// Deletes a key of a bucket.
///
/// It stops working with the next request.
#[utoipa::path(delete, path = "/api/buckets/{bucketId}/keys/{keyId}", operation_id = "deleteBucketKey", tag = "keys",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(
        ("bucketId" = ObjectId, Path, description = "The bucket."),
        ("keyId" = ObjectId, Path, description = "The key.")),
    responses(
        (status = 200, body = DeletedKeyAnswer, description = "Deleted.")))]
pub async fn remove(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let mut faults = Faults::default();
    let bucket_id = params::id(&request, "bucketId", &mut faults);
    let key_id = params::id(&request, "keyId", &mut faults);
    let (Some(bucket_id), Some(key_id)) = (bucket_id, key_id) else {
        return Err(faults.into_error());
    };
    let key = service
        .delete_key(&caller, KeyScope::Bucket(bucket_id), key_id)
        .await?;
    keys::deleted_answer(&request, &key).await
}
