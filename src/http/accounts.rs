//! `/api/auth`: signing up, in and out, the bearer's account.

use std::net::IpAddr;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::faults::{Faults, Members};
use super::organization::OrganizationView;
use super::{auth, body, respond, session_cookie, values};
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

/// A log-out.
#[derive(Serialize, ToSchema)]
pub struct LogOutAnswer {
    /// What was done.
    pub message: &'static str,
}

/// Whether one can sign up.
#[derive(Serialize, ToSchema)]
pub struct SignUpStateAnswer {
    /// Whether sign-up is open.
    pub open: bool,
    /// Whether nobody has an account yet.
    pub first: bool,
}

/// Body of a sign-up.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct SignUpBody {
    /// Compared without case.
    #[schema(format = "email", max_length = 254)]
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

/// Tells whether one can sign up.
///
/// For pages that offer it: without credentials.
#[utoipa::path(get, path = "/api/auth/status", operation_id = "showSignUp", tag = "accounts", security(()),
    responses(
        (status = 200, body = SignUpStateAnswer, description = "Whether it is open, and whether the server is new.")))]
pub async fn sign_up_state(
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let answer = SignUpStateAnswer {
        open: service.check_signup_open().is_ok(),
        first: service.has_no_account(),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Creates an account and its organization.
///
/// The answer's `token` is signed in already: with it, make keys and buckets. The organization begins on the plan that
/// the server's operator has chosen (`Free` unless told otherwise).
#[utoipa::path(post, path = "/api/auth/signup", operation_id = "signUp", tag = "accounts",
    request_body = SignUpBody,
    responses(
        (status = 201, body = SignedInAnswer, description = "The account, its organization, and a token that is signed in."),
        (status = 403, description = "Sign-up is closed on this server."),
        (status = 409, description = "The email has an account already."),
        (status = 429, description = "Too many sign-ups from this address.")))]
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
    let organization_name = members.optional("organizationName", &mut faults, |v| {
        values::name(v, OPEN_NAME_CHARS_MAX)
    });
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
    answer(
        &request,
        &service,
        StatusCode::CREATED,
        "account created",
        &signed_in,
    )
    .await
}

/// Signs in.
///
/// Tokens are valid for 12 hours. Signing in again does not end the others; a change of password does.
#[utoipa::path(post, path = "/api/auth/login", operation_id = "logIn", tag = "accounts",
    request_body = LoginBody,
    responses(
        (status = 200, body = SignedInAnswer, description = "A new token."),
        (status = 401, description = "Wrong email or password: which of them is not said."),
        (status = 429, description = "10 failures in 15 minutes for the email, or 50 from the address; right passwords are refused too until `Retry-After`.")))]
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
    answer(&request, &service, StatusCode::OK, "signed in", &signed_in).await
}

/// Shows the account of the token.
///
/// The person, and the organization with its plan.
#[utoipa::path(get, path = "/api/auth/me", operation_id = "showAccount", tag = "accounts",
    security(("bearer" = [])),
    responses(
        (status = 200, body = AccountAnswer, description = "The account.")))]
pub async fn me(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::BEARER)?;
    let account = service.account(&caller)?;
    respond::json(&request, StatusCode::OK, &AccountAnswer::of(&account)).await
}

/// Changes the password and ends all older tokens.
///
/// API keys are not touched. The answer's `token` takes the place of the one that was sent.
#[utoipa::path(post, path = "/api/auth/password", operation_id = "changePassword", tag = "accounts",
    security(("bearer" = [])),
    request_body = PasswordBody,
    responses(
        (status = 200, body = SignedInAnswer, description = "Changed; the new token is the only one that works."),
        (status = 401, description = "Wrong current password, or no valid token."),
        (status = 429, description = "10 wrong passwords in 15 minutes for the account, or 50 from the address; right ones are refused too until `Retry-After`.")))]
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
    let signed_in = service
        .change_password(&caller, current, new, address_of(&request))
        .await?;
    answer(
        &request,
        &service,
        StatusCode::OK,
        "password changed; older tokens no longer work",
        &signed_in,
    )
    .await
}

/// Renews the token.
///
/// The answer's `token` is valid for another 12 hours; the one that was sent stays valid until it expires. A log-in can be
/// renewed for 30 days.
#[utoipa::path(post, path = "/api/auth/renew", operation_id = "renewToken", tag = "accounts",
    security(("bearer" = [])),
    responses(
        (status = 200, body = SignedInAnswer, description = "A new token."),
        (status = 401, description = "No valid token, or the log-in is too long ago.")))]
pub async fn renew(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::BEARER)?;
    let signed_in = service.renew(&caller)?;
    answer(&request, &service, StatusCode::OK, "renewed", &signed_in).await
}

/// Logs out.
///
/// The token stops working, with all that it was renewed from or to; those of other log-ins go on. A page's cookie is
/// cleared.
#[utoipa::path(post, path = "/api/auth/logout", operation_id = "logOut", tag = "accounts",
    security(("bearer" = [])),
    responses(
        (status = 200, body = LogOutAnswer, description = "Logged out.")))]
pub async fn log_out(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::BEARER)?;
    service.log_out(&caller).await?;
    let answer = LogOutAnswer {
        message: "logged out",
    };
    let mut response = respond::json(&request, StatusCode::OK, &answer).await?;
    let tls = service.config.server.tls().is_some();
    session_cookie::clear(&request, response.headers_mut(), tls);
    Ok(response)
}

/// Of the connection: what a header says of it anyone can write.
fn address_of(request: &HttpRequest) -> Option<IpAddr> {
    request.peer_addr().map(|peer| peer.ip())
}

async fn answer(
    request: &HttpRequest,
    service: &Service,
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
    let mut response = respond::json(request, status, &answer).await?;
    let tls = service.config.server.tls().is_some();
    session_cookie::set(
        request,
        response.headers_mut(),
        &signed_in.token,
        service.now_ns(),
        tls,
    );
    Ok(response)
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
