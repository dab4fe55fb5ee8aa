//! API keys, stored as the SHA-256 of the key that the client presents.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::calls::{packed, unpacked};
use super::{Bytes, MonthCalls, MonthDay, names};
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
    /// The type of a key, by its prefix.
    pub fn of_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| text.starts_with(kind.prefix()))
    }

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
    /// When the key stops working, in UTC nanoseconds; `None` for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ns: Option<i64>,
    /// The value before the last rotation, while it still works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<FormerValue>,
    #[serde(default)]
    pub last_used_minute: LastUse,
    #[serde(default)]
    pub calls: KeyCalls,
}

/// A value that a rotation has replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerValue {
    pub hash: KeyHash,
    /// When it stops working, in UTC nanoseconds.
    pub until_ns: i64,
}

/// The calls with a key in the latest month in which it was used. Ahead of the log by up to a second: requests update
/// it, and a command makes it durable.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(from = "(MonthDay, u64)", into = "(MonthDay, u64)")]
pub struct KeyCalls {
    packed: AtomicU64,
    is_unsaved: AtomicBool,
}

impl From<(MonthDay, u64)> for KeyCalls {
    fn from((month, calls): (MonthDay, u64)) -> Self {
        Self {
            packed: AtomicU64::new(packed(MonthCalls { month, calls })),
            is_unsaved: AtomicBool::new(false),
        }
    }
}

impl From<KeyCalls> for (MonthDay, u64) {
    fn from(calls: KeyCalls) -> Self {
        let MonthCalls { month, calls } = calls.latest();
        (month, calls)
    }
}

impl Clone for KeyCalls {
    fn clone(&self) -> Self {
        Self {
            packed: AtomicU64::new(self.packed.load(Ordering::SeqCst)),
            is_unsaved: AtomicBool::new(self.is_unsaved.load(Ordering::SeqCst)),
        }
    }
}

impl KeyCalls {
    /// Counts a call in this month. If the clock was set back, the call counts in the latest month. Returns whether it is
    /// the first one since [`KeyCalls::save`], so that the key must be queued for saving.
    pub fn count(&self, month: MonthDay) -> bool {
        let one_more = |found: u64| {
            let found = unpacked(found);
            let calls = if month > found.month { 0 } else { found.calls };
            Some(packed(MonthCalls {
                month: month.max(found.month),
                calls: calls + 1,
            }))
        };
        let _ = self
            .packed
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more);
        self.is_first_unsaved()
    }

    /// Marks the count as unsaved. Returns whether it was saved before, so that the key must be queued for saving.
    pub fn is_first_unsaved(&self) -> bool {
        // Load first, so that all but one request per second write nothing here.
        !self.is_unsaved.load(Ordering::SeqCst) && !self.is_unsaved.swap(true, Ordering::SeqCst)
    }

    /// The calls in this month.
    pub fn in_month(&self, month: MonthDay) -> u64 {
        let latest = self.latest();
        if latest.month >= month { latest.calls } else { 0 }
    }

    /// Returns the count to be made durable. Later calls count as unsaved.
    pub fn save(&self) -> MonthCalls {
        self.is_unsaved.swap(false, Ordering::SeqCst);
        self.latest()
    }

    /// Restores a durable count; never lowers one.
    pub(super) fn restore(&self, month: MonthDay, calls: u64) {
        self.packed
            .fetch_max(packed(MonthCalls { month, calls }), Ordering::SeqCst);
    }

    pub(super) fn latest(&self) -> MonthCalls {
        unpacked(self.packed.load(Ordering::SeqCst))
    }
}

/// The minute of the last use of a key or a session, since the epoch; 0 if never used. Ahead of the log by up to a minute: requests
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
    /// Records a use in this minute. Returns whether it is the first one known in it.
    pub(super) fn touch(&self, minute: u32) -> bool {
        // Load first, so that all but one request per minute do not write to the shared cache line.
        self.minute() < minute && self.0.fetch_max(minute, Ordering::Relaxed) < minute
    }

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

    /// A copy of the key with this last use, in minutes since the epoch, and these calls.
    pub(super) fn with_uses(&self, minute: u32, calls: MonthCalls) -> Self {
        Self {
            last_used_minute: LastUse(AtomicU32::new(minute)),
            calls: (calls.month, calls.calls).into(),
            ..self.clone()
        }
    }

    /// The hashes of its values.
    pub(super) fn hashes(&self) -> impl Iterator<Item = KeyHash> + use<> {
        let former = self.former.map(|former| former.hash);
        std::iter::once(self.hash).chain(former)
    }

    /// Whether this is a value of the key that works at a time.
    pub fn accepts(&self, hash: &KeyHash, now_ns: i64) -> bool {
        let is_value = match &self.former {
            Some(former) if former.hash == *hash => now_ns < former.until_ns,
            _ => self.hash == *hash,
        };
        is_value
            && self
                .expires_at_ns
                .is_none_or(|expires_at_ns| now_ns < expires_at_ns)
    }

    /// Records a use in this minute since the epoch. Returns whether it is the first one known in it.
    pub fn touch(&self, minute: u32) -> bool {
        self.last_used_minute.touch(minute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_those_of_the_latest_month() {
        let calls = KeyCalls::default();
        assert!(calls.count(20_000), "the first one is to be saved");
        assert!(!calls.count(20_000));
        assert_eq!((calls.in_month(20_000), calls.in_month(20_031)), (2, 0));
        assert_eq!(
            calls.save(),
            MonthCalls {
                month: 20_000,
                calls: 2
            }
        );
        assert!(calls.count(20_031), "saved before");
        assert_eq!((calls.in_month(20_031), calls.in_month(20_000)), (1, 1));
        // The clock was set back.
        calls.count(20_000);
        assert_eq!(calls.in_month(20_031), 2);
        calls.restore(20_031, 1);
        calls.restore(20_000, 900);
        assert_eq!(calls.in_month(20_031), 2, "a count is never lowered");
        calls.restore(20_062, 7);
        assert_eq!(calls.in_month(20_062), 7);
    }
}
