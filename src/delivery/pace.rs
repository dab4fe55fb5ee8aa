//! How many best-effort deliveries are made for a webhook that cannot take them all. What there is room for is made at
//! once. Beyond that each new delivery pushes out an older one, which is work that nobody hears of: it is done for as
//! many as keep the queue fresh, the rest is dropped before anything is made of it. So a flood costs the server little
//! more than the ingests that it consists of.
//!
//! Pure: `now` is time since the start, which never steps.

use std::collections::HashMap;
use std::time::Duration;

use super::recent::PER_WEBHOOK_MAX;
use crate::ids::ObjectId;

/// A full queue may be renewed once in this time.
const RENEWAL: Duration = Duration::from_secs(1);
/// Webhooks beyond which those are forgotten whose allowance is whole again.
const REMEMBERED_MAX: usize = 1_024;

/// The allowances of webhooks whose queues were full lately.
#[derive(Default)]
pub(super) struct Pace(HashMap<ObjectId, Allowance>);

struct Allowance {
    /// Deliveries that may be pushed out, at most [`PER_WEBHOOK_MAX`].
    renewals: usize,
    /// Until when it has been refilled.
    at: Duration,
}

impl Allowance {
    /// What has grown since, whole deliveries only: the time of a part stays for the next look.
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
    /// How many of `wanted` deliveries to make for a webhook with room for `room`.
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
