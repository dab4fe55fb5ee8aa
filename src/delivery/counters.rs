//! Counters of delivery attempts since the start.

use std::sync::atomic::{AtomicU64, Ordering};

use super::transport::Outcome;

/// Shared between the actor, which writes, and the statistics, which read.
#[derive(Debug, Default)]
pub(super) struct Counters {
    delivered: AtomicU64,
    refused: AtomicU64,
    unanswered: AtomicU64,
    dropped: AtomicU64,
    scheduled: AtomicU64,
    in_flight: AtomicU64,
}

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

impl Counters {
    pub fn attempted(&self, outcome: &Outcome) {
        let counter = match outcome.answer {
            Ok(_) if outcome.is_success() => &self.delivered,
            Ok(_) => &self.refused,
            Err(_) => &self.unanswered,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub fn dropped(&self, deliveries: usize) {
        self.dropped.fetch_add(deliveries as u64, Ordering::Relaxed);
    }

    pub fn set_gauges(&self, scheduled: usize, in_flight: usize) {
        self.scheduled.store(scheduled as u64, Ordering::Relaxed);
        self.in_flight.store(in_flight as u64, Ordering::Relaxed);
    }

    /// All fields except those that [`super::Deliveries`] fills in.
    pub fn stats(&self) -> DeliveryStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DeliveryStats {
            attempts_delivered: read(&self.delivered),
            attempts_refused: read(&self.refused),
            attempts_unanswered: read(&self.unanswered),
            dropped: read(&self.dropped),
            pending: read(&self.scheduled),
            in_flight: read(&self.in_flight),
            ..DeliveryStats::default()
        }
    }
}
