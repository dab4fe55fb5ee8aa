//! Sessions of users: they begin with a log-in, are listed, renewed while they are used, and ended.

use std::mem::take;
use std::net::IpAddr;

use super::accounts::SignedIn;
use super::page::{Page, PageRequest};
use super::tokens::Session;
use super::{Caller, Credential, Service};
use crate::catalog::{Catalog, Command, User, UserSession};
use crate::clock::MINUTE_NS;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::USER_AGENT_CHARS_MAX;
use crate::random;

/// Who sends a request, as far as the connection tells.
#[derive(Clone, Debug, Default)]
pub struct Client {
    pub address: Option<IpAddr>,
    /// What the program calls itself.
    pub user_agent: Option<String>,
}

/// A use of a session that is not in the log yet: user, number of the session, minute since the epoch.
pub(super) type SessionUse = (ObjectId, u64, u32);

impl Service {
    /// Makes the record of a session that begins now.
    ///
    /// # Errors
    /// 500 when the operating system provides no random bytes.
    pub(super) fn new_session(&self, client: &Client) -> Result<UserSession, ServiceError> {
        let user_agent = client.user_agent.as_deref();
        let user_agent = user_agent.map(|text| text.chars().take(USER_AGENT_CHARS_MAX).collect::<String>());
        Ok(UserSession::new(
            self.next_id(),
            u64::from_le_bytes(random::bytes()?),
            self.now_ns(),
            client.address.map(|address| address.to_string().into()),
            user_agent.map(String::into_boxed_str),
        ))
    }

    /// Begins a session of a user whose password was verified.
    ///
    /// # Errors
    /// 401 when the password has changed meanwhile; 503 when the log does not accept writes.
    pub(super) async fn begin_session(
        &self,
        known: &User,
        client: &Client,
    ) -> Result<SignedIn, ServiceError> {
        let session = self.new_session(client)?;
        let decision = self.decisions.begin(known.id).await;
        let is_current = self.catalog.read(|catalog| {
            let user = catalog.user(known.id);
            user.is_some_and(|user| user.password_version == known.password_version)
        });
        if !is_current {
            return Err(ServiceError::unauthorized("wrong email or password"));
        }
        let begun = Command::SessionBegun {
            user_id: known.id,
            session: session.clone(),
        };
        let _settled = decision.commit(begun).await?;
        self.token_for(known.id, Session::of(&session))
    }

    /// The caller's sessions that have not ended, oldest first.
    ///
    /// # Errors
    /// 401 when the account no longer exists.
    pub fn list_sessions(
        &self,
        caller: &Caller,
        page: PageRequest,
    ) -> Result<Page<UserSession>, ServiceError> {
        let now_ns = self.now_ns();
        self.catalog.read(|catalog| {
            let sessions = sessions_of(catalog, caller, now_ns)?;
            Ok(page.cut(sessions.len(), sessions.into_iter().cloned()))
        })
    }

    /// One of the caller's sessions.
    ///
    /// # Errors
    /// 404, also for a session of somebody else.
    pub fn session(&self, caller: &Caller, id: ObjectId) -> Result<UserSession, ServiceError> {
        let now_ns = self.now_ns();
        self.catalog.read(|catalog| {
            let sessions = sessions_of(catalog, caller, now_ns)?;
            let found = sessions.into_iter().find(|session| session.id == id);
            found.cloned().ok_or_else(|| ServiceError::not_found("session"))
        })
    }

    /// Ends one of the caller's sessions: its tokens no longer work.
    ///
    /// # Errors
    /// 404; 503 when the log does not accept writes.
    pub async fn end_session(&self, caller: &Caller, id: ObjectId) -> Result<UserSession, ServiceError> {
        let (user_id, _) = bearer(caller)?;
        let decision = self.decisions.begin(user_id).await;
        let session = self.session(caller, id)?;
        let ended = Command::SessionEnded {
            user_id,
            session: session.number,
            at_ns: self.now_ns(),
        };
        let _settled = decision.commit(ended).await?;
        Ok(session)
    }

    /// Ends the session of the caller's token.
    ///
    /// # Errors
    /// 503 when the log does not accept writes.
    pub async fn log_out(&self, caller: &Caller) -> Result<(), ServiceError> {
        let (user_id, session) = bearer(caller)?;
        let decision = self.decisions.begin(user_id).await;
        let ended = Command::SessionEnded {
            user_id,
            session: session.id,
            at_ns: self.now_ns(),
        };
        let _settled = decision.commit(ended).await?;
        Ok(())
    }

    /// Issues a new token for the session of the token that was sent. No token outlives thirty days after the log-in.
    ///
    /// # Errors
    /// 401 when the account no longer exists.
    pub fn renew(&self, caller: &Caller) -> Result<SignedIn, ServiceError> {
        let (user_id, session) = bearer(caller)?;
        self.token_for(user_id, session)
    }

    /// Notes a use of a session, to be made durable with others once a minute.
    pub(super) fn note_session_use(&self, user_id: ObjectId, session: &UserSession, now_ns: i64) {
        let minute = u32::try_from(now_ns / MINUTE_NS).unwrap_or(0);
        if session.touch(minute) {
            self.unsaved_session_uses
                .lock()
                .push((user_id, session.number, minute));
        }
    }

    /// Makes the uses of sessions that were noted since the last call durable. Called once a minute.
    ///
    /// # Errors
    /// 503 when the log does not accept writes; these uses are then lost, not retried.
    pub async fn flush_session_uses(&self) -> Result<(), ServiceError> {
        let touches = take(&mut *self.unsaved_session_uses.lock());
        if touches.is_empty() {
            return Ok(());
        }
        self.decisions
            .commit_observed(Command::SessionsTouched { touches })
            .await
    }
}

/// The user and the session of a bearer.
///
/// # Errors
/// 403 for a key.
pub(super) fn bearer(caller: &Caller) -> Result<(ObjectId, Session), ServiceError> {
    match caller.credential {
        Credential::Bearer { user_id, session, .. } => Ok((user_id, session)),
        Credential::Key { .. } | Credential::Share { .. } => {
            Err(ServiceError::forbidden("sign in and send the bearer token"))
        }
    }
}

fn sessions_of<'a>(
    catalog: &'a Catalog,
    caller: &Caller,
    now_ns: i64,
) -> Result<Vec<&'a UserSession>, ServiceError> {
    let (user_id, _) = bearer(caller)?;
    let user = catalog
        .user(user_id)
        .ok_or_else(|| ServiceError::unauthorized("the account no longer exists"))?;
    let lasting = user.sessions.iter().filter(|session| session.lasts_at(now_ns));
    Ok(lasting.collect())
}
