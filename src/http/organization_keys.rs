//! `/api/organization/keys`: admin and integration keys.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};

use super::faults::Faults;
use super::keys::{self, CreatedKeyAnswer, DeletedKeyAnswer, KeysAnswer, NewOrganizationKeyBody};
use super::params::PageParams;
use super::{auth, body, params};
use crate::catalog::KeyType;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::service::keys::KeyScope;
use crate::service::{Access, Service};

/// Lists the organization's admin and integration keys.
///
/// A key is shown whole only when it is made; here are its first characters and when it was last used.
#[utoipa::path(get, path = "/api/organization/keys", operation_id = "listOrganizationKeys", tag = "keys",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(PageParams),
    responses(
        (status = 200, body = KeysAnswer, description = "A page of keys.")))]
pub async fn list(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let mut faults = Faults::default();
    let Some(asked) = params::page(&request, &mut faults) else {
        return Err(faults.into_error());
    };
    let page = service.keys(&caller, KeyScope::Organization, asked)?;
    keys::list_answer(&request, asked, page).await
}

/// Makes an admin or an integration key.
///
/// An *admin* key does everything in the organization. An *integration* key is for evaluators: it asks for due rules,
/// queries all buckets and posts verdicts, nothing else, and its calls are not counted. A new admin key needs the bearer
/// token of a sign-in; an admin key can make integration keys only.
#[utoipa::path(post, path = "/api/organization/keys", operation_id = "createOrganizationKey", tag = "keys",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    request_body = NewOrganizationKeyBody,
    responses(
        (status = 201, body = CreatedKeyAnswer, description = "The key, whole, this once."),
        (status = 403, description = "A new admin key was asked for with an admin key; it needs the bearer token.")))]
pub async fn create(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let body = body::read_json(&request, payload).await?;
    let mut faults = Faults::default();
    let new = keys::read_new_key(&body, [KeyType::Admin, KeyType::Integration], &mut faults);
    let (Some(new), true) = (new, faults.none()) else {
        return Err(faults.into_error());
    };
    let created = service.create_key(&caller, KeyScope::Organization, new).await?;
    keys::created_answer(&request, &created).await
}

/// Deletes an admin or an integration key.
///
/// It stops working with the next request.
#[utoipa::path(delete, path = "/api/organization/keys/{keyId}", operation_id = "deleteOrganizationKey", tag = "keys",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    params(("keyId" = ObjectId, Path, description = "The key.")),
    responses(
        (status = 200, body = DeletedKeyAnswer, description = "Deleted.")))]
pub async fn remove(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let mut faults = Faults::default();
    let Some(key_id) = params::id(&request, "keyId", &mut faults) else {
        return Err(faults.into_error());
    };
    let key = service
        .delete_key(&caller, KeyScope::Organization, key_id)
        .await?;
    keys::deleted_answer(&request, &key).await
}
