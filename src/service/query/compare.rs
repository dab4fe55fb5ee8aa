//! `compare`: what stood in the same steps before.

use engine::{Earlier, Zone};

/// By how much earlier the time is with which an answer is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compare {
    seconds: i64,
    /// Whether it was given in days or weeks, which are days of the calendar in a time zone.
    is_in_days: bool,
}

const DAY_SECONDS: i64 = 86_400;
/// The longest offset.
const SECONDS_MAX: u64 = 3_650 * DAY_SECONDS as u64;

impl Compare {
    /// Parses a length of one second to 3,650 days: a number without leading zeros and one of `s m h d w`.
    ///
    /// # Errors
    /// A description of what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let length = super::group_by::length_of(text).filter(|(seconds, _)| *seconds <= SECONDS_MAX);
        let (seconds, unit) = length.ok_or_else(|| {
            format!("must be a length such as 7d (units s, m, h, d, w; at most 3650d), not {text:?}")
        })?;
        Ok(Compare {
            seconds: seconds as i64,
            is_in_days: matches!(unit, 'd' | 'w'),
        })
    }

    /// A text that is parsed to the same.
    pub fn as_text(self) -> String {
        match self.is_in_days {
            true => format!("{}d", self.seconds / DAY_SECONDS),
            false => format!("{}s", self.seconds),
        }
    }

    /// By how much steps are earlier.
    pub(super) fn earlier(self, zone: Option<&Zone>) -> Earlier<'_> {
        match zone {
            Some(zone) if self.is_in_days => Earlier::Days(zone, self.seconds / DAY_SECONDS),
            _ => Earlier::By(self.seconds * 1_000_000_000),
        }
    }

    /// The offset in nanoseconds, when days have 24 hours.
    pub(super) fn ns(self) -> i64 {
        self.seconds * 1_000_000_000
    }
}
