//! `/api/auth/sessions`: the log-ins of the bearer.

use super::views::{Many, One, Resource, view};
use crate::catalog::{Role, UserSession};
use crate::http::endpoint::{Answer, Bearer, Call, Endpoint, Reply, delete, get};
use crate::http::server::request_context::set_renewal;
use crate::http::session_cookie;
use crate::ids::ObjectId;
use crate::service::page::PageRequest;
use crate::service::{Caller, Credential};
use crate::timestamp::Timestamp;

view! {
    /// A login of the user that has not ended.
    pub struct SessionView<'a> of(session: &'a UserSession, caller: &Caller) {
        /// ID of the session.
        #[serde(rename = "_id")]
        id: ObjectId = session.id,
        /// When the user logged in.
        created_at: Timestamp = Timestamp(session.began_at_ns),
        /// When the session was last used, to the minute.
        last_used_at: Timestamp = Timestamp(session.last_used_at_ns()),
        /// IP address from which the user logged in; null when unknown.
        address: Option<&'a str> = session.address.as_deref(),
        /// `User-Agent` of the login; null when there was none.
        user_agent: Option<&'a str> = session.user_agent.as_deref(),
        /// Whether the token of this request belongs to it.
        current: bool = is_current(session, caller),
    }
}

view! {
    /// A session that was ended.
    pub struct DeletedSessionView of(session: &UserSession) {
        /// ID of the session.
        #[serde(rename = "_id")]
        id: ObjectId = session.id,
    }
}

view! {
    /// The response to ending a session.
    pub struct DeletedSessionAnswer of(session: &UserSession) {
        /// Result in words.
        message: &'static str = "session ended",
        /// The session that was ended.
        deleted_session: DeletedSessionView = DeletedSessionView::of(session),
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/auth/sessions", "listSessions", list),
        get("/api/auth/sessions/{id}", "showSession", show),
        // One's own sessions are everybody's to end.
        delete("/api/auth/sessions/{id}", "endSession", end).least_role(Role::Viewer),
    ]
}

async fn list(call: Call<Bearer, PageRequest>) -> Reply<Many<SessionView<'static>>> {
    let page = call.service.list_sessions(&call.caller, call.params)?;
    Answer::page(call.params, &page, |session| {
        SessionView::of(session, &call.caller)
    })
}

async fn show(call: Call<Bearer, ObjectId>) -> Reply<One<SessionView<'static>>> {
    let session = call.service.session(&call.caller, call.params)?;
    Answer::one(SessionView::of(&session, &call.caller))
}

async fn end(call: Call<Bearer, ObjectId>) -> Reply<DeletedSessionAnswer> {
    let ended = call.service.end_session(&call.caller, call.params).await?;
    let mut answer = Answer::of(&DeletedSessionAnswer::of(&ended))?;
    if is_current(&ended, &call.caller) {
        set_renewal(&call.request, None);
        let tls = call.service.config.server.tls().is_some();
        session_cookie::clear(&call.request, answer.headers_mut(), tls);
    }
    Ok(answer)
}

fn is_current(session: &UserSession, caller: &Caller) -> bool {
    matches!(caller.credential, Credential::Bearer { session: own, .. } if own.id == session.number)
}

impl Resource for SessionView<'_> {
    const ONE: &'static str = "session";
    const MANY: &'static str = "sessions";
}
