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
/// Time that allows one eviction.
const EACH: Duration = Duration::from_nanos(RENEWAL.as_nanos() as u64 / PER_WEBHOOK_MAX as u64);
/// Above this number of webhooks, those with a full allowance are dropped from memory.
const REMEMBERED_MAX: usize = 1_024;

/// A token bucket for each webhook whose queue was full recently.
#[derive(Default)]
pub(super) struct Pace(HashMap<ObjectId, Allowance>);

struct Allowance {
    /// Time that evictions have not used yet, at most [`RENEWAL`].
    unused: Duration,
    /// Time of the last refill.
    at: Duration,
}

impl Allowance {
    fn refill(&mut self, now: Duration) {
        self.unused = RENEWAL.min(self.unused + now.saturating_sub(self.at));
        self.at = now;
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
                allowance.unused < RENEWAL
            });
        }
        let allowance = self.0.entry(webhook_id).or_insert(Allowance {
            unused: RENEWAL,
            at: now,
        });
        allowance.refill(now);
        let allowed = (allowance.unused.as_nanos() / EACH.as_nanos()) as usize;
        let renewed = allowed.min(wanted - room);
        allowance.unused -= EACH * renewed as u32;
        room + renewed
    }

    #[cfg(test)]
    pub fn remembered(&self) -> usize {
        self.0.len()
    }
}
