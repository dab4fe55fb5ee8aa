//! `/api/auth`: signing up, signing in, the bearer's account.

use std::net::IpAddr;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::docs::ErrorDoc;
use super::faults::{Faults, Members};
use super::organization::OrganizationView;
use super::{auth, body, respond, values};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::OPEN_NAME_CHARS_MAX;
use crate::service::accounts::{Account, Login, SignUp, SignedIn};
use crate::service::{Access, Service};
use crate::timestamp::Timestamp;

/// A user.
#[derive(Serialize, ToSchema)]
pub struct UserView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// In lower case.
    pub email: &'a str,
    /// Of the person.
    pub name: &'a str,
}

/// A user and their organization.
#[derive(Serialize, ToSchema)]
pub struct AccountAnswer<'a> {
    /// The person.
    pub user: UserView<'a>,
    /// What they belong to.
    pub organization: OrganizationView<'a>,
}

/// A sign-in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedInAnswer<'a> {
    /// What was done.
    pub message: &'static str,
    /// To be sent as `Authorization: Bearer`.
    pub token: &'a str,
    /// When the token ends.
    pub expires_at: Timestamp,
    /// Who.
    #[serde(flatten)]
    pub account: AccountAnswer<'a>,
}

/// Body of a sign-up.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct SignUpBody {
    /// Compared without case.
    #[schema(max_length = 254)]
    pub email: String,
    /// Any characters.
    #[schema(min_length = 10, max_length = 128)]
    pub password: String,
    /// Of the person.
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
    /// Made from the name when absent.
    #[schema(min_length = 1, max_length = 200)]
    pub organization_name: Option<String>,
}

/// Body of a sign-in.
#[derive(ToSchema)]
pub struct LoginBody {
    /// As signed up.
    pub email: String,
    /// As signed up.
    pub password: String,
}

/// Body of a password change.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct PasswordBody {
    /// The one to replace.
    pub current_password: String,
    /// Any characters.
    #[schema(min_length = 10, max_length = 128)]
    pub new_password: String,
}

/// Creates an account and its organization.
#[utoipa::path(post, path = "/api/auth/signup", tag = "accounts", request_body = SignUpBody, responses(
    (status = 201, body = SignedInAnswer), (status = 403, body = ErrorDoc, description = "sign-up is closed"),
    (status = 409, body = ErrorDoc, description = "the email has an account"),
    (status = 429, body = ErrorDoc, description = "too many sign-ups from the address"), (status = "default", body = ErrorDoc)))]
pub async fn sign_up(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    service.check_signup_open()?;
    let body = body::read_json(&request, payload).await?;
    let mut faults = Faults::default();
    let members = Members::of_body(&body, &mut faults);
    let email = members.required("email", &mut faults, values::email);
    let password = members.required("password", &mut faults, values::new_password);
    let name = members.required("name", &mut faults, |v| values::name(v, OPEN_NAME_CHARS_MAX));
    let organization_name = members
        .nullable("organizationName", &mut faults, |v| {
            values::name(v, OPEN_NAME_CHARS_MAX)
        })
        .flatten();
    let (Some(email), Some(password), Some(name), true) = (email, password, name, faults.none()) else {
        return Err(faults.into_error());
    };
    let sign_up = SignUp {
        email,
        password,
        name,
        organization_name,
    };
    let signed_in = service.sign_up(sign_up, address_of(&request)).await?;
    answer(&request, StatusCode::CREATED, "account created", &signed_in).await
}

/// Signs in.
#[utoipa::path(post, path = "/api/auth/login", tag = "accounts", request_body = LoginBody, responses(
    (status = 200, body = SignedInAnswer), (status = 401, body = ErrorDoc, description = "wrong email or password"),
    (status = 429, body = ErrorDoc, description = "too many failures"), (status = "default", body = ErrorDoc)))]
pub async fn log_in(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let body = body::read_json(&request, payload).await?;
    let mut faults = Faults::default();
    let members = Members::of_body(&body, &mut faults);
    // Whatever was signed up with matched `email`; anything else is simply not the right one.
    let email = members.required("email", &mut faults, values::string);
    let password = members.required("password", &mut faults, values::string);
    let (Some(email), Some(password), true) = (email, password, faults.none()) else {
        return Err(faults.into_error());
    };
    let login = Login {
        email: email.trim().to_lowercase(),
        password: password.to_owned(),
    };
    let signed_in = service.log_in(login, address_of(&request)).await?;
    answer(&request, StatusCode::OK, "signed in", &signed_in).await
}

/// The bearer's account.
#[utoipa::path(get, path = "/api/auth/me", tag = "accounts", security(("bearer" = [])),
    responses((status = 200, body = AccountAnswer), (status = "default", body = ErrorDoc)))]
pub async fn me(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::BEARER)?;
    let account = service.account(&caller)?;
    respond::json(&request, StatusCode::OK, &AccountAnswer::of(&account)).await
}

/// Changes the bearer's password and ends older tokens.
#[utoipa::path(post, path = "/api/auth/password", tag = "accounts", security(("bearer" = [])),
    request_body = PasswordBody, responses((status = 200, body = SignedInAnswer),
    (status = 401, body = ErrorDoc, description = "wrong current password"), (status = "default", body = ErrorDoc)))]
pub async fn change_password(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::BEARER)?;
    let body = body::read_json(&request, payload).await?;
    let mut faults = Faults::default();
    let members = Members::of_body(&body, &mut faults);
    let current = members.required("currentPassword", &mut faults, values::password);
    let new = members.required("newPassword", &mut faults, values::new_password);
    let (Some(current), Some(new), true) = (current, new, faults.none()) else {
        return Err(faults.into_error());
    };
    let signed_in = service.change_password(&caller, current, new).await?;
    answer(
        &request,
        StatusCode::OK,
        "password changed; older tokens no longer work",
        &signed_in,
    )
    .await
}

/// Of the connection: what a header says of it anyone can write.
fn address_of(request: &HttpRequest) -> Option<IpAddr> {
    request.peer_addr().map(|peer| peer.ip())
}

async fn answer(
    request: &HttpRequest,
    status: StatusCode,
    message: &'static str,
    signed_in: &SignedIn,
) -> Result<HttpResponse, ServiceError> {
    let answer = SignedInAnswer {
        message,
        token: &signed_in.token.token,
        expires_at: Timestamp(signed_in.token.expires_at_ns),
        account: AccountAnswer::of(&signed_in.account),
    };
    respond::json(request, status, &answer).await
}

impl<'a> AccountAnswer<'a> {
    fn of(account: &'a Account) -> Self {
        let user = &account.user;
        Self {
            user: UserView {
                id: user.id,
                email: &user.email,
                name: &user.name,
            },
            organization: OrganizationView::of(&account.organization),
        }
    }
}
