//! Sessions of users: each log-in begins one, to which all tokens issued for it belong.

use serde::{Deserialize, Serialize};

use super::LastUse;
use crate::clock::{HOUR_NS, MINUTE_NS};
use crate::ids::ObjectId;
use crate::limits::{SESSION_HOURS_MAX, TOKEN_HOURS};

/// How long a session is kept after its last use: longer than its tokens live, because the last minutes of use may be
/// lost in a crash.
const KEPT_NS: i64 = (TOKEN_HOURS + 1) * HOUR_NS;

/// A session of a user. Without its record, its tokens are refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UserSession {
    pub id: ObjectId,
    /// A random number, which its tokens carry.
    pub number: u64,
    /// The time of the log-in, in UTC nanoseconds.
    pub began_at_ns: i64,
    /// Address from which the user logged in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Box<str>>,
    /// The program with which the user logged in, as it named itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<Box<str>>,
    /// The minute of the last use that is in the log, since the epoch.
    used_minute: u32,
    /// The same, ahead of the log by up to a minute: requests update it.
    #[serde(skip)]
    recent_use: LastUse,
}

/// A use that is not in the log yet is no difference.
impl PartialEq for UserSession {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            id,
            number,
            began_at_ns,
            address,
            user_agent,
            used_minute,
            recent_use: _,
        } = self;
        (id, number, began_at_ns) == (&other.id, &other.number, &other.began_at_ns)
            && (address, user_agent, used_minute) == (&other.address, &other.user_agent, &other.used_minute)
    }
}

impl Eq for UserSession {}

impl UserSession {
    /// A session that begins with a log-in.
    pub fn new(
        id: ObjectId,
        number: u64,
        began_at_ns: i64,
        address: Option<Box<str>>,
        user_agent: Option<Box<str>>,
    ) -> Self {
        Self {
            id,
            number,
            began_at_ns,
            address,
            user_agent,
            used_minute: u32::try_from(began_at_ns / MINUTE_NS).unwrap_or(0),
            recent_use: LastUse::default(),
        }
    }

    /// Start of the minute of the last use, in UTC nanoseconds.
    pub fn last_used_at_ns(&self) -> i64 {
        let minute = self.used_minute.max(self.recent_use.minute());
        i64::from(minute) * MINUTE_NS
    }

    /// Records a use in this minute since the epoch. Returns whether it is the first one known in it.
    pub fn touch(&self, minute: u32) -> bool {
        self.used_minute < minute && self.recent_use.touch(minute)
    }

    /// Whether a token of the session may be valid at a time: it ends twelve hours after its last use, and thirty days
    /// after the log-in at most.
    pub fn lasts_at(&self, now_ns: i64) -> bool {
        // The last use is known to the minute.
        now_ns < self.last_used_at_ns() + TOKEN_HOURS * HOUR_NS + MINUTE_NS
            && now_ns < self.began_at_ns + SESSION_HOURS_MAX * HOUR_NS
    }

    /// Records a use that is in the log.
    pub(super) fn save_use(&mut self, minute: u32) {
        self.used_minute = self.used_minute.max(minute);
    }

    /// Whether the record is no longer needed. Depends on the log alone, so that each replay forgets the same ones.
    pub(super) fn is_over(&self, at_ns: i64) -> bool {
        at_ns > i64::from(self.used_minute) * MINUTE_NS + KEPT_NS
            || at_ns >= self.began_at_ns + SESSION_HOURS_MAX * HOUR_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(began_at_ns: i64) -> UserSession {
        UserSession::new(ObjectId::from_bytes([1; 12]), 7, began_at_ns, None, None)
    }

    #[test]
    fn a_session_lasts_while_it_is_used_and_thirty_days_at_most() {
        let (token_ns, most_ns) = (TOKEN_HOURS * HOUR_NS, SESSION_HOURS_MAX * HOUR_NS);
        let unused = session(MINUTE_NS);
        assert!(unused.lasts_at(MINUTE_NS + token_ns) && !unused.lasts_at(2 * MINUTE_NS + token_ns));
        let used = session(MINUTE_NS);
        let minute = (6 * HOUR_NS / MINUTE_NS) as u32;
        assert!(used.touch(minute) && !used.touch(minute) && !used.touch(minute - 1));
        assert_eq!(used.last_used_at_ns(), 6 * HOUR_NS);
        assert!(used.lasts_at(6 * HOUR_NS + token_ns));
        assert!(used.touch(((most_ns - HOUR_NS) / MINUTE_NS) as u32));
        assert!(used.lasts_at(most_ns) && !used.lasts_at(most_ns + MINUTE_NS));
    }

    #[test]
    fn a_record_outlives_its_last_token_and_is_forgotten_by_what_is_in_the_log() {
        let mut session = session(0);
        assert!(!session.is_over(TOKEN_HOURS * HOUR_NS) && session.is_over(KEPT_NS + 1));
        session.touch(600);
        assert!(session.is_over(KEPT_NS + 1), "this use is not in the log");
        session.save_use(600);
        assert!(!session.is_over(KEPT_NS + 1));
        assert!(session.is_over(SESSION_HOURS_MAX * HOUR_NS));
        assert_eq!(session.last_used_at_ns(), 600 * MINUTE_NS);
    }
}
