//! Limits the best-effort deliveries made for a webhook that cannot take them all. As many as fit into its queue are
//! made at once. Beyond that, each new delivery evicts an older one that was never sent, which is wasted work. So
//! evictions are limited to a rate that keeps the queue fresh, and the rest is dropped before a delivery is built.
//! Under overload the server spends little more than on the ingests themselves.
//!
//! Pure: `now` is monotonic time since the start.

use std::collections::HashMap;
use std::time::Duration;

use super::recent::PER_WEBHOOK_MAX;
use crate::ids::ObjectId;

/// Time in which a full queue may be replaced once.
const RENEWAL: Duration = Duration::from_secs(1);
/// Above this number of webhooks, those with a full allowance are dropped from memory.
const REMEMBERED_MAX: usize = 1_024;

/// A token bucket for each webhook whose queue was full recently.
#[derive(Default)]
pub(super) struct Pace(HashMap<ObjectId, Allowance>);

struct Allowance {
    /// Evictions allowed now, at most [`PER_WEBHOOK_MAX`].
    renewals: usize,
    /// Time of the last refill.
    at: Duration,
}

impl Allowance {
    /// Adds the allowance since the last refill in whole deliveries. A fraction's time counts at the next refill.
    fn refill(&mut self, now: Duration) {
        let each = RENEWAL / PER_WEBHOOK_MAX as u32;
        let grown = now.saturating_sub(self.at).as_nanos() / each.as_nanos();
        if grown >= (PER_WEBHOOK_MAX - self.renewals) as u128 {
            *self = Allowance {
                renewals: PER_WEBHOOK_MAX,
                at: now,
            };
        } else {
            self.renewals += grown as usize;
            self.at += each * grown as u32;
        }
    }
}

impl Pace {
    /// How many of `wanted` deliveries to make for a webhook whose queue has room for `room`.
    pub fn take(&mut self, webhook_id: ObjectId, wanted: usize, room: usize, now: Duration) -> usize {
        if wanted <= room {
            return wanted;
        }
        if self.0.len() >= REMEMBERED_MAX {
            self.0.retain(|_, allowance| {
                allowance.refill(now);
                allowance.renewals < PER_WEBHOOK_MAX
            });
        }
        let allowance = self.0.entry(webhook_id).or_insert(Allowance {
            renewals: PER_WEBHOOK_MAX,
            at: now,
        });
        allowance.refill(now);
        let renewed = allowance.renewals.min(wanted - room);
        allowance.renewals -= renewed;
        room + renewed
    }

    #[cfg(test)]
    pub fn remembered(&self) -> usize {
        self.0.len()
    }
}
