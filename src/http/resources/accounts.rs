//! `/api/auth`: sign-up, login, logout, and the account of the bearer token.

use actix_web::HttpRequest;
use actix_web::http::StatusCode;

use super::organization::OrganizationView;
use super::views::view;
use crate::catalog::{Role, User};
use crate::http::endpoint::{Answer, Anyone, Bearer, Call, Endpoint, NewUser, Reply, Visitor, get, post};
use crate::http::inside::client_of;
use crate::http::server::request_context::set_renewal;
use crate::http::session_cookie;
use crate::http::shape::{Email, NewPassword, OpenName, Text, body};
use crate::ids::ObjectId;
use crate::limits::PASSWORD_CHARS_MAX;
use crate::service::accounts::{Account, SignUp, SignedIn};
use crate::service::{Node, Service};
use crate::timestamp::Timestamp;

/// A password to verify. Its length is bounded: hashing a longer input than any valid password is wasted work.
type Password = Text<PASSWORD_CHARS_MAX>;

view! {
    /// A user account.
    pub struct UserView<'a> of(user: &'a User) {
        /// User ID.
        #[serde(rename = "_id")]
        id: ObjectId = user.id,
        /// Email address, in lower case.
        email: &'a str = &user.email,
        /// Name of the person.
        name: &'a str = &user.name,
        /// What the person may do in the organization.
        role: Role = user.role,
    }
}

view! {
    /// A user and the organization that the user belongs to.
    pub struct AccountAnswer<'a> of(account: &'a Account) {
        /// The user.
        user: UserView<'a> = UserView::of(&account.user),
        /// The user's organization.
        organization: OrganizationView<'a> = OrganizationView::of(&account.organization),
    }
}

view! {
    /// A login session.
    pub struct SignedInAnswer<'a> of(message: &'static str, signed_in: &'a SignedIn) {
        /// Result in words.
        message: &'static str = message,
        /// Bearer token; send it as `Authorization: Bearer`.
        token: &'a str = &signed_in.token.token,
        /// When the token expires.
        expires_at: Timestamp = Timestamp(signed_in.token.expires_at_ns),
        /// The account.
        #[serde(flatten)]
        account: AccountAnswer<'a> = AccountAnswer::of(&signed_in.account),
    }
}

view! {
    /// The response to a logout.
    pub struct LogOutAnswer of() {
        /// Result in words.
        message: &'static str = "logged out",
    }
}

view! {
    /// Whether sign-up is available.
    pub struct SignUpStateAnswer of(node: &Node) {
        /// Whether sign-up is open.
        open: bool = node.config.accounts.signup,
        /// Whether no account exists on this server yet.
        first: bool = node.has_no_account(),
    }
}

body! {
    /// Body of a sign-up request.
    pub struct SignUpBody {
        /// Email address; compared case-insensitively.
        email: Email,
        /// Password; any characters are allowed.
        password: NewPassword,
        /// Name of the person.
        name: OpenName,
        /// Name of the organization; derived from `name` when absent.
        organization_name: Option<OpenName>,
    }
}

body! {
    /// Body of a login request.
    pub struct LoginBody {
        /// Email address of the account.
        email: String,
        /// Password of the account.
        password: String,
    }
}

body! {
    /// Body of a password change.
    pub struct PasswordBody {
        /// The current password.
        current_password: Password,
        /// The new password; any characters are allowed.
        new_password: NewPassword,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/auth/status", "showSignUp", sign_up_state),
        post("/api/auth/signup", "signUp", sign_up).status(StatusCode::CREATED),
        post("/api/auth/login", "logIn", log_in),
        get("/api/auth/me", "showAccount", me),
        post("/api/auth/password", "changePassword", change_password).least_role(Role::Viewer),
        post("/api/auth/renew", "renewToken", renew).least_role(Role::Viewer),
        post("/api/auth/logout", "logOut", log_out).least_role(Role::Viewer),
    ]
}

async fn sign_up_state(call: Call<Anyone>) -> Reply<SignUpStateAnswer> {
    Answer::of(&SignUpStateAnswer::of(&call.service))
}

async fn sign_up(call: Call<NewUser, (), SignUpBody>) -> Reply<SignedInAnswer<'static>> {
    let body = call.body;
    let sign_up = SignUp {
        email: body.email.0,
        password: body.password.0,
        name: body.name.0,
        organization_name: body.organization_name.map(|name| name.0),
    };
    let client = client_of(&call.request);
    let signed_in = call.service.sign_up(sign_up, &client).await?;
    answer(&call.request, &call.service, "account created", &signed_in)
}

async fn log_in(call: Call<Visitor, (), LoginBody>) -> Reply<SignedInAnswer<'static>> {
    // Not validated as an email: no account has a malformed address, so the login fails like any other wrong one.
    let email = call.body.email.trim().to_lowercase();
    let client = client_of(&call.request);
    let signed_in = call.service.log_in(&email, call.body.password, &client).await?;
    answer(&call.request, &call.service, "signed in", &signed_in)
}

async fn me(call: Call<Bearer>) -> Reply<AccountAnswer<'static>> {
    let account = call.service.account(&call.caller)?;
    Answer::of(&AccountAnswer::of(&account))
}

async fn change_password(call: Call<Bearer, (), PasswordBody>) -> Reply<SignedInAnswer<'static>> {
    let (current, new) = (call.body.current_password.0, call.body.new_password.0);
    let client = client_of(&call.request);
    let signed_in = call
        .service
        .change_password(&call.caller, current, new, &client)
        .await?;
    set_renewal(&call.request, None);
    let message = "password changed; older tokens no longer work";
    answer(&call.request, &call.service, message, &signed_in)
}

async fn renew(call: Call<Bearer>) -> Reply<SignedInAnswer<'static>> {
    let signed_in = call.service.renew(&call.caller)?;
    set_renewal(&call.request, None);
    answer(&call.request, &call.service, "renewed", &signed_in)
}

async fn log_out(call: Call<Bearer>) -> Reply<LogOutAnswer> {
    call.service.log_out(&call.caller).await?;
    set_renewal(&call.request, None);
    let mut answer = Answer::of(&LogOutAnswer::of())?;
    let tls = call.service.config.server.tls().is_some();
    session_cookie::clear(&call.request, answer.headers_mut(), tls);
    Ok(answer)
}

/// The answer to whatever begins or renews a session. A page of this server gets the token as a cookie, too.
pub(super) fn answer(
    request: &HttpRequest,
    service: &Service,
    message: &'static str,
    signed_in: &SignedIn,
) -> Reply<SignedInAnswer<'static>> {
    let mut answer = Answer::of(&SignedInAnswer::of(message, signed_in))?;
    let (tls, now_ns) = (service.config.server.tls().is_some(), service.now_ns());
    session_cookie::set(request, answer.headers_mut(), &signed_in.token, now_ns, tls);
    Ok(answer)
}
