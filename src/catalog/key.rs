//! API keys, kept as the SHA-256 of what the client presents.

use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::Bytes;
use crate::clock::MINUTE_NS;
use crate::ids::ObjectId;

/// SHA-256 of a whole key.
pub type KeyHash = Bytes<32>;

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyType {
    /// Everything within its organization.
    Admin,
    /// Ingest and read one bucket.
    Write,
    /// Read one bucket.
    Read,
    /// Evaluators: due rules, their queries, verdicts.
    Integration,
}

impl KeyType {
    /// The type's name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Write => "write",
            Self::Read => "read",
            Self::Integration => "integration",
        }
    }

    /// What the keys of this type start with.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Admin => "svc_a_",
            Self::Write => "svc_w_",
            Self::Read => "svc_r_",
            Self::Integration => "svc_i_",
        }
    }

    /// What an answer to a creation lists.
    pub const fn permissions(self) -> &'static [&'static str] {
        match self {
            Self::Admin => &[
                "organization:admin",
                "data:read",
                "data:write",
                "notifications:read",
                "notifications:write",
            ],
            Self::Write => &[
                "data:read",
                "data:write",
                "notifications:read",
                "notifications:write",
            ],
            Self::Read => &["data:read", "notifications:read"],
            Self::Integration => &["data:read", "evaluations:read", "evaluations:write"],
        }
    }
}

/// An API key.
#[derive(Debug, Serialize, Deserialize)]
pub struct Key {
    /// Identifies it.
    pub id: ObjectId,
    /// The organization it belongs to.
    pub organization_id: ObjectId,
    /// The one bucket it opens; `None` for keys of the organization.
    pub bucket_id: Option<ObjectId>,
    /// What it may do.
    pub kind: KeyType,
    /// Shown name.
    pub name: Box<str>,
    /// Of the whole key.
    pub hash: KeyHash,
    /// The key's first twelve characters, for lists.
    pub shown_prefix: Box<str>,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// Minutes since the epoch, 0 when never used. Moves ahead of the log by up to a minute: the
    /// requests write it, one command a minute makes it durable.
    #[serde(default)]
    last_used_minute: AtomicU32,
    /// Its place in the order of creation, among all keys; 0 before the catalog gave it one.
    #[serde(skip)]
    pub(super) ordinal: u64,
}

impl Key {
    /// A key never used.
    #[expect(
        clippy::too_many_arguments,
        reason = "the members of the record, each of its own meaning"
    )]
    pub fn new(
        id: ObjectId,
        organization_id: ObjectId,
        bucket_id: Option<ObjectId>,
        kind: KeyType,
        name: Box<str>,
        hash: KeyHash,
        shown_prefix: Box<str>,
        created_at_ns: i64,
    ) -> Self {
        let last_used_minute = AtomicU32::new(0);
        Self {
            id,
            organization_id,
            bucket_id,
            kind,
            name,
            hash,
            shown_prefix,
            created_at_ns,
            last_used_minute,
            ordinal: 0,
        }
    }

    /// The minute's start in UTC nanoseconds; `None` when never used.
    pub fn last_used_at_ns(&self) -> Option<i64> {
        match self.last_used_minute() {
            0 => None,
            minute => Some(i64::from(minute) * MINUTE_NS),
        }
    }

    /// Minutes since the epoch, 0 when never used.
    pub(super) fn last_used_minute(&self) -> u32 {
        self.last_used_minute.load(Ordering::Relaxed)
    }

    /// The same key, last used in this minute since the epoch.
    pub(super) fn with_last_used_minute(&self, minute: u32) -> Self {
        Self {
            last_used_minute: AtomicU32::new(minute),
            ..self.clone()
        }
    }

    /// Notes a use in this minute since the epoch; true when it is the first known in it.
    pub fn touch(&self, minute: u32) -> bool {
        // The plain load first: all but one request a minute write nothing to the shared line.
        self.last_used_minute.load(Ordering::Relaxed) < minute
            && self.last_used_minute.fetch_max(minute, Ordering::Relaxed) < minute
    }
}

impl Clone for Key {
    fn clone(&self) -> Self {
        let minute = self.last_used_minute();
        Self {
            name: self.name.clone(),
            shown_prefix: self.shown_prefix.clone(),
            last_used_minute: AtomicU32::new(minute),
            ..*self
        }
    }
}
