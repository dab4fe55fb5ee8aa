//! What has become of messages, counted for the log.

use std::cell::Cell;

/// Counters of one bridge.
#[derive(Debug, Default)]
pub struct Counts {
    received: Cell<u64>,
    stored: Cell<u64>,
    unreadable: Cell<u64>,
    retained: Cell<u64>,
    refused: Cell<u64>,
    connections: Cell<u64>,
}

/// The counters at one moment. A message that the broker has delivered again is counted again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Messages that arrived.
    pub received: u64,
    /// Points that the service has acknowledged.
    pub stored: u64,
    /// Messages that could not be read.
    pub unreadable: u64,
    /// Retained messages without a time.
    pub retained: u64,
    /// Points that the service has refused for good.
    pub refused: u64,
    /// Connections to the broker whose subscriptions it has confirmed.
    pub connections: u64,
}

impl Counts {
    pub fn received(&self) {
        self.received.update(|count| count + 1);
    }

    pub fn stored(&self, points: usize) {
        self.stored.update(|count| count + points as u64);
    }

    pub fn unreadable(&self) {
        self.unreadable.update(|count| count + 1);
    }

    pub fn retained(&self) {
        self.retained.update(|count| count + 1);
    }

    pub fn refused(&self, points: usize) {
        self.refused.update(|count| count + points as u64);
    }

    pub fn connected(&self) {
        self.connections.update(|count| count + 1);
    }

    /// The counters now.
    pub fn now(&self) -> Counted {
        let Self {
            received,
            stored,
            unreadable,
            retained,
            refused,
            connections,
        } = self;
        Counted {
            received: received.get(),
            stored: stored.get(),
            unreadable: unreadable.get(),
            retained: retained.get(),
            refused: refused.get(),
            connections: connections.get(),
        }
    }
}

impl Counted {
    /// Writes them to the log.
    pub fn log(self) {
        let Self {
            received,
            stored,
            unreadable,
            retained,
            refused,
            connections,
        } = self;
        tracing::info!(
            received,
            stored,
            unreadable,
            retained,
            refused,
            connections,
            "messages so far"
        );
    }
}
