//! Users, who sign in. The service interprets password hashes; the catalog only stores them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Bytes;
use crate::clock::HOUR_NS;
use crate::ids::ObjectId;
use crate::limits::{ENDED_SESSIONS_MAX, TOKEN_HOURS};

/// A member of an organization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub id: ObjectId,
    pub organization_id: ObjectId,
    /// Trimmed and in lower case; unique on the server.
    pub email: Box<str>,
    pub name: Box<str>,
    /// Hash of the current password.
    pub password: PasswordHash,
    /// Counts events that end all sessions: password changes, and log-outs beyond those that are remembered
    /// individually. A token carries this number, so that all older tokens end at once, independently of the clock.
    #[serde(default)]
    pub password_version: u32,
    /// Sessions that were logged out, and of which an unexpired token may exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_sessions: Vec<EndedSession>,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
}

/// A session that was logged out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedSession {
    /// The session number, as in its tokens.
    pub session: u64,
    /// Time of the log-out, in UTC nanoseconds.
    pub at_ns: i64,
}

impl User {
    /// Creates a user with a first password and no ended sessions.
    pub fn new(
        id: ObjectId,
        organization_id: ObjectId,
        email: impl Into<Box<str>>,
        name: impl Into<Box<str>>,
        password: PasswordHash,
        created_at_ns: i64,
    ) -> Self {
        User {
            id,
            organization_id,
            email: email.into(),
            name: name.into(),
            password,
            password_version: 0,
            ended_sessions: Vec::new(),
            created_at_ns,
        }
    }

    /// Whether tokens of this session must be refused.
    pub fn has_ended(&self, session: u64) -> bool {
        self.ended_sessions.iter().any(|ended| ended.session == session)
    }

    /// Ends a session. Ended sessions whose tokens have expired are dropped; if too many are left, all sessions end.
    pub(super) fn end_session(&mut self, session: u64, at_ns: i64) {
        let expired_ns = at_ns - TOKEN_HOURS * HOUR_NS;
        self.ended_sessions.retain(|ended| ended.at_ns > expired_ns);
        if self.ended_sessions.len() >= ENDED_SESSIONS_MAX {
            self.password_version += 1;
            self.ended_sessions.clear();
        } else if !self.has_ended(session) {
            self.ended_sessions.push(EndedSession { session, at_ns });
        }
    }
}

/// An argon2id hash with its parameters, so that these can be raised later.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordHash {
    pub memory_kib: u32,
    pub passes: u32,
    pub lanes: u32,
    /// Random, one per hash.
    pub salt: Bytes<16>,
    pub hash: Bytes<32>,
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<password hash>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> User {
        User::new(
            ObjectId::from_bytes([1; 12]),
            ObjectId::from_bytes([2; 12]),
            "a@example.com",
            "a",
            PasswordHash {
                memory_kib: 8,
                passes: 1,
                lanes: 1,
                salt: Bytes([0; 16]),
                hash: Bytes([0; 32]),
            },
            0,
        )
    }

    #[test]
    fn an_ended_session_is_remembered_until_its_tokens_expire() {
        let mut user = user();
        user.end_session(1, 0);
        user.end_session(1, 5);
        user.end_session(2, HOUR_NS);
        assert_eq!(user.ended_sessions.len(), 2, "each once");
        assert!(user.has_ended(1) && user.has_ended(2) && !user.has_ended(3));
        user.end_session(3, TOKEN_HOURS * HOUR_NS);
        assert!(!user.has_ended(1), "its tokens have expired");
        assert!(user.has_ended(2) && user.has_ended(3));
    }

    #[test]
    fn exceeding_the_remembered_log_outs_ends_all_sessions() {
        let mut user = User {
            password_version: 3,
            ..user()
        };
        (0..ENDED_SESSIONS_MAX as u64).for_each(|session| user.end_session(session, 0));
        assert_eq!(
            (user.ended_sessions.len(), user.password_version),
            (ENDED_SESSIONS_MAX, 3)
        );
        user.end_session(u64::MAX, 0);
        assert_eq!((user.ended_sessions.len(), user.password_version), (0, 4));
    }
}
