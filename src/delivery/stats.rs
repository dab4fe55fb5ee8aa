//! Statistics of deliveries since the start.

use super::transport::Outcome;

/// Statistics of deliveries: counts since the start, and current gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryStats {
    /// Attempts answered with a 2xx.
    pub attempts_delivered: u64,
    /// Attempts answered with anything else.
    pub attempts_refused: u64,
    /// Attempts without an answer.
    pub attempts_unanswered: u64,
    /// Best-effort deliveries and events that were dropped because a queue was full.
    pub dropped: u64,
    /// Deliveries that are waiting, ready or in flight.
    pub pending: u64,
    /// Attempts in flight.
    pub in_flight: u64,
    /// Bytes of events that are not deliveries yet.
    pub offered_bytes: u64,
    /// Limit of `offered_bytes`.
    pub offered_bytes_max: u64,
}

impl DeliveryStats {
    /// Counts an attempt.
    pub(super) fn count(&mut self, outcome: &Outcome) {
        *match outcome.answer {
            Ok(_) if outcome.is_success() => &mut self.attempts_delivered,
            Ok(_) => &mut self.attempts_refused,
            Err(_) => &mut self.attempts_unanswered,
        } += 1;
    }
}
