//! `/api/organization/keys`: admin and integration keys.

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

/// The organization's own keys.
#[utoipa::path(get, path = "/api/organization/keys", tag = "keys", security(("apiKey" = []), ("bearer" = [])),
    params(("limit" = Option<u64>, Query), ("offset" = Option<u64>, Query)),
    responses((status = 200, body = KeysAnswer), (status = "default", body = ErrorDoc)))]
pub async fn list(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let mut faults = Faults::default();
    let Some(asked) = params::page(&request, &mut faults) else {
        return Err(faults.into_error());
    };
    let page = service.keys(&caller, KeyScope::Organization, asked)?;
    keys::list_answer(&request, asked, page).await
}

/// Makes an admin key (bearer only) or an integration key.
#[utoipa::path(post, path = "/api/organization/keys", tag = "keys", security(("apiKey" = []), ("bearer" = [])),
    request_body = NewKeyBody, responses((status = 201, body = CreatedKeyAnswer), (status = "default", body = ErrorDoc)))]
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

/// Deletes a key of the organization; it stops working at once.
#[utoipa::path(delete, path = "/api/organization/keys/{keyId}", tag = "keys",
    security(("apiKey" = []), ("bearer" = [])), params(("keyId" = String, Path)),
    responses((status = 200, body = DeletedKeyAnswer), (status = "default", body = ErrorDoc)))]
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
