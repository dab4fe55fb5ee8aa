//! Users, who sign in. The service interprets password hashes; the catalog only stores them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Bytes, KeyHash, UserSession, names};
use crate::ids::ObjectId;
use crate::limits::USER_SESSIONS_MAX;

/// What a member of an organization may do; each role may do what those before it may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Changes everything but members, keys of the organization and its name.
    Editor,
    /// Everything. The role of users who were created before there were roles.
    #[default]
    Owner,
}

names!(Role: Viewer => "viewer", Editor => "editor", Owner => "owner");

/// A member of an organization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub id: ObjectId,
    pub organization_id: ObjectId,
    #[serde(default)]
    pub role: Role,
    /// Trimmed and in lower case; unique on the server.
    pub email: Box<str>,
    pub name: Box<str>,
    /// Hash of the current password.
    pub password: PasswordHash,
    /// Counts changes of the password. A token carries this number, so that all older tokens end at once, independently
    /// of the clock.
    #[serde(default)]
    pub password_version: u32,
    /// Oldest first. The member `ended_sessions` of users that were written before sessions had records are ignored: tokens
    /// of that time name no session of this list, and are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<UserSession>,
    /// The link with which the user may set a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<PasswordReset>,
    /// Who invited the user; `None` for who signed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<ObjectId>,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
}

/// A link with which a user may set a password once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordReset {
    /// SHA-256 of the token in the link.
    pub hash: KeyHash,
    /// When it ends, in UTC nanoseconds.
    pub expires_at_ns: i64,
}

impl User {
    /// Creates an owner with a first password and no session.
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
            role: Role::Owner,
            email: email.into(),
            name: name.into(),
            password,
            password_version: 0,
            sessions: Vec::new(),
            reset: None,
            created_by: None,
            created_at_ns,
        }
    }

    /// The session with this number, if it has not ended.
    pub fn session(&self, number: u64) -> Option<&UserSession> {
        self.sessions.iter().find(|session| session.number == number)
    }

    /// Begins a session. Those that are over are removed, and beyond the limit the oldest.
    pub(super) fn begin_session(&mut self, session: UserSession) {
        let at_ns = session.began_at_ns;
        self.sessions
            .retain(|it| it.number != session.number && !it.is_over(at_ns));
        let excess = (self.sessions.len() + 1).saturating_sub(USER_SESSIONS_MAX);
        self.sessions.drain(..excess);
        self.sessions.push(session);
    }

    /// Ends a session.
    pub(super) fn end_session(&mut self, number: u64) {
        self.sessions.retain(|session| session.number != number);
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
    use crate::clock::HOUR_NS;
    use crate::limits::TOKEN_HOURS;

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

    fn session(number: u64, began_at_ns: i64) -> UserSession {
        UserSession::new(ObjectId::from_bytes([3; 12]), number, began_at_ns, None, None)
    }

    fn numbers(user: &User) -> Vec<u64> {
        user.sessions.iter().map(|session| session.number).collect()
    }

    #[test]
    fn a_session_ends_by_itself_or_on_request() {
        let mut user = user();
        for number in 1..=3 {
            user.begin_session(session(number, 0));
        }
        user.end_session(2);
        assert!(user.session(1).is_some() && user.session(2).is_none());
        user.begin_session(session(4, (TOKEN_HOURS + 2) * HOUR_NS));
        assert_eq!(numbers(&user), [4], "the others are over");
    }

    #[test]
    fn beyond_the_limit_the_oldest_session_ends() {
        let mut user = user();
        (0..=USER_SESSIONS_MAX as u64).for_each(|number| user.begin_session(session(number, 0)));
        assert_eq!(user.sessions.len(), USER_SESSIONS_MAX);
        assert!(user.session(0).is_none() && user.session(1).is_some());
    }
}
