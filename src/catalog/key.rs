//! API keys, stored as the SHA-256 of the key that the client presents.

use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::{Bytes, names};
use crate::clock::MINUTE_NS;
use crate::ids::ObjectId;

/// SHA-256 of a whole key.
pub type KeyHash = Bytes<32>;

/// The permissions of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyType {
    /// Everything within its organization.
    Admin,
    /// Ingest into and read one bucket.
    Write,
    /// Read one bucket.
    Read,
    /// Evaluators: due rules, their queries, verdicts.
    Integration,
}

names!(KeyType: Admin => "admin", Write => "write", Read => "read", Integration => "integration");

impl KeyType {
    /// The prefix of keys of this type.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Admin => "svc_a_",
            Self::Write => "svc_w_",
            Self::Read => "svc_r_",
            Self::Integration => "svc_i_",
        }
    }

    /// The permissions listed in the response to a creation.
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

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Key {
    pub id: ObjectId,
    pub organization_id: ObjectId,
    /// The one bucket that the key gives access to; `None` for keys of the organization.
    pub bucket_id: Option<ObjectId>,
    pub kind: KeyType,
    pub name: Box<str>,
    pub hash: KeyHash,
    /// The key's first twelve characters, for lists.
    pub shown_prefix: Box<str>,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    #[serde(default)]
    pub last_used_minute: LastUse,
}

/// The minute of the last use of a key, since the epoch; 0 if never used. Ahead of the log by up to a minute: requests
/// update it, and one command a minute makes it durable.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LastUse(AtomicU32);

impl Clone for LastUse {
    fn clone(&self) -> Self {
        Self(AtomicU32::new(self.minute()))
    }
}

impl LastUse {
    pub(super) fn minute(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Key {
    /// Start of the minute of the last use, in UTC nanoseconds; `None` if never used.
    pub fn last_used_at_ns(&self) -> Option<i64> {
        match self.last_used_minute.minute() {
            0 => None,
            minute => Some(i64::from(minute) * MINUTE_NS),
        }
    }

    /// A copy of the key with this last use, in minutes since the epoch.
    pub(super) fn with_last_used_minute(&self, minute: u32) -> Self {
        Self {
            last_used_minute: LastUse(AtomicU32::new(minute)),
            ..self.clone()
        }
    }

    /// Records a use in this minute since the epoch. Returns whether it is the first one known in it.
    pub fn touch(&self, minute: u32) -> bool {
        // Load first, so that all but one request per minute do not write to the shared cache line.
        let last = &self.last_used_minute;
        last.minute() < minute && last.0.fetch_max(minute, Ordering::Relaxed) < minute
    }
}
