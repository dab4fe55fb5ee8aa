//! `/api/buckets/{bucketId}/keys`: write and read keys.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};

use super::docs::ErrorDoc;
use super::faults::Faults;
use super::keys::{self, CreatedKeyAnswer, DeletedKeyAnswer, KeysAnswer, NewKeyBody};
use super::{auth, body, params};
use crate::catalog::KeyType;
use crate::error::ServiceError;
use crate::service::keys::KeyScope;
use crate::service::{Access, Service};

/// The keys of a bucket.
#[utoipa::path(get, path = "/api/buckets/{bucketId}/keys", tag = "keys",
    security(("apiKey" = []), ("bearer" = [])),
    params(("bucketId" = String, Path), ("limit" = Option<u64>, Query), ("offset" = Option<u64>, Query)),
    responses((status = 200, body = KeysAnswer), (status = "default", body = ErrorDoc)))]
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
#[utoipa::path(post, path = "/api/buckets/{bucketId}/keys", tag = "keys",
    security(("apiKey" = []), ("bearer" = [])), params(("bucketId" = String, Path)), request_body = NewKeyBody,
    responses((status = 201, body = CreatedKeyAnswer), (status = "default", body = ErrorDoc)))]
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

/// Deletes a key of a bucket; it stops working at once.
#[utoipa::path(delete, path = "/api/buckets/{bucketId}/keys/{keyId}", tag = "keys",
    security(("apiKey" = []), ("bearer" = [])), params(("bucketId" = String, Path), ("keyId" = String, Path)),
    responses((status = 200, body = DeletedKeyAnswer), (status = "default", body = ErrorDoc)))]
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
