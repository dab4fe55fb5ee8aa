//! How long a node may answer reads without asking anybody.

use std::time::Duration;

/// The lease of a node, on its own monotonic clock.
///
/// A renewal sets the node's beat in the log store. Another node removes it when it has seen the same beat for a whole
/// lease, and it cannot have seen that beat before the renewal was sent. So the lease, counted from then and shortened by
/// what two clocks may differ, ends before anybody may remove the node. A node that was removed and joins again has a new
/// lease: what was opened under the old one stays closed to reads.
///
/// The clock must go on while the machine is suspended (CLOCK_BOOTTIME), or the lease would hold when it wakes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    length: Duration,
    /// When it ends; `None` before the first renewal.
    ends: Option<Duration>,
    is_lost: bool,
}

/// A lease is shortened by this fraction: clocks whose rates differ by up to a tenth are harmless.
const DRIFT_DIVISOR: u32 = 8;

/// Renewals in a lease. With more of them, others would see sooner that they have ended, by less than the lease itself takes.
const PERIODS: u32 = 6;

/// Shortest time between two rounds of a node, however often somebody asks for news.
pub const ROUND_PAUSE: Duration = Duration::from_millis(20);

impl Lease {
    /// A lease of this length, which has not begun.
    pub fn new(length: Duration) -> Self {
        Lease {
            length,
            ends: None,
            is_lost: false,
        }
    }

    /// How often a node renews, and looks at the others.
    pub fn period(&self) -> Duration {
        self.length / PERIODS
    }

    /// A renewal that was sent at this time has succeeded.
    pub fn renewed(&mut self, sent_at: Duration) {
        let ends = sent_at + self.length - self.length / DRIFT_DIVISOR;
        self.ends = self.ends.max(Some(ends));
    }

    /// The node was removed: this lease never holds again.
    pub fn lost(&mut self) {
        self.is_lost = true;
    }

    /// Whether reads may be answered. Asked after a request has arrived: whatever another owner acknowledges is acknowledged
    /// later, so the read need not show it.
    pub fn holds(&self, now: Duration) -> bool {
        !self.is_lost && self.ends.is_some_and(|ends| now < ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_counts_from_before_the_renewal_was_sent() {
        let second = Duration::from_secs;
        let mut lease = Lease::new(second(8));
        assert!(!lease.holds(second(0)));
        lease.renewed(second(10));
        assert!(lease.holds(second(16)));
        assert!(!lease.holds(second(17)));
        // An answer that arrives late does not shorten it.
        lease.renewed(second(9));
        assert!(lease.holds(second(16)));
        lease.lost();
        lease.renewed(second(10));
        assert!(!lease.holds(second(10)));
    }
}
