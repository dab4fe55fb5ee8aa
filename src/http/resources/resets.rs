//! Links with which a member sets a new password: made by owners, used at `/api/auth/reset`.

use actix_web::http::StatusCode;

use super::accounts::{self, SignedInAnswer};
use super::invitations::LinkToken;
use super::views::view;
use crate::catalog::Role;
use crate::http::endpoint::{Answer, Bearer, Call, Endpoint, LinkHolder, Reply, post};
use crate::http::inside::client_of;
use crate::http::page_url::page_url;
use crate::http::shape::{NewPassword, body};
use crate::ids::ObjectId;
use crate::service::resets::CreatedReset;
use crate::timestamp::Timestamp;

view! {
    /// A link with which a member sets a new password once.
    pub struct ResetView<'a> of(created: &'a CreatedReset, url: String) {
        /// Token of the link, which is returned only once.
        token: &'a str = &created.token,
        /// The link to send to the member, which is returned only once.
        url: String = url,
        /// When the link stops working.
        expires_at: Timestamp = Timestamp(created.expires_at_ns),
    }
}

view! {
    /// The response to the creation of a link.
    pub struct ResetAnswer<'a> of(created: &'a CreatedReset, url: String) {
        /// Result in words.
        message: &'static str = "link created",
        /// The link.
        reset: ResetView<'a> = ResetView::of(created, url),
    }
}

body! {
    /// Body of a request that sets a new password with a link.
    pub struct ResetBody {
        /// Token of the link.
        token: LinkToken,
        /// The new password; any characters are allowed.
        new_password: NewPassword,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    const MAKE: &str = "/api/organization/members/{userId}/reset";
    vec![
        post(MAKE, "createPasswordReset", create)
            .status(StatusCode::CREATED)
            .least_role(Role::Owner),
        post("/api/auth/reset", "resetPassword", reset),
    ]
}

async fn create(call: Call<Bearer, ObjectId>) -> Reply<ResetAnswer<'static>> {
    let created = call.service.create_reset(&call.caller, call.params).await?;
    let tls = call.service.config.server.tls().is_some();
    let url = page_url(&call.request, &format!("/#/reset/{}", created.token), tls);
    Answer::of(&ResetAnswer::of(&created, url))
}

async fn reset(call: Call<LinkHolder, (), ResetBody>) -> Reply<SignedInAnswer<'static>> {
    let ResetBody { token, new_password } = call.body;
    let client = client_of(&call.request);
    let signed_in = call
        .service
        .reset_password(&token.0, new_password.0, &client)
        .await?;
    let message = "password changed; older tokens no longer work";
    accounts::answer(&call.request, &call.service, message, &signed_in)
}
