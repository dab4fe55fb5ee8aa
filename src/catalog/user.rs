//! Users: who signs in. What a password hash means is the service's matter; here it is kept.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Bytes;
use crate::ids::ObjectId;

/// A person of an organization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Identifies it.
    pub id: ObjectId,
    /// The organization it belongs to.
    pub organization_id: ObjectId,
    /// Trimmed and in lower case; unique on the server.
    pub email: Box<str>,
    /// Shown name.
    pub name: Box<str>,
    /// Of the current password.
    pub password: PasswordHash,
    /// Counts password changes. A token carries it, so that a change ends every older token at once,
    /// whatever the clock shows.
    #[serde(default)]
    pub password_version: u32,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
}

/// An argon2id hash with its parameters, so that these can be raised later.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordHash {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
    /// Random, one per hash.
    pub salt: Bytes<16>,
    /// The hash.
    pub hash: Bytes<32>,
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<password hash>")
    }
}
