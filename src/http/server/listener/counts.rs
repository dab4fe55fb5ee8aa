//! Open connections and those that were cut, counted over all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::metrics::Exposition;

/// Counters of the listener. Cheap to clone.
#[derive(Clone, Default)]
pub(in crate::http) struct Counts(Arc<Inner>);

#[derive(Default)]
struct Inner {
    open: AtomicUsize,
    cut: AtomicU64,
}

/// An open connection, until it is dropped.
pub(super) struct Open(Counts);

impl Counts {
    /// Counts a connection; answers also how many there were before it.
    pub(super) fn open(&self) -> (Open, usize) {
        let before = self.0.open.fetch_add(1, Ordering::Relaxed);
        (Open(self.clone()), before)
    }

    /// Counts one that kept the server waiting.
    pub(super) fn cut(&self) {
        self.0.cut.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes what was counted.
    pub fn write(&self, text: &mut Exposition) {
        text.gauge(
            "tidewatch_http_connections",
            "Open connections.",
            self.0.open.load(Ordering::Relaxed),
        );
        text.counter(
            "tidewatch_http_connections_cut_total",
            "Connections that were cut for keeping the server waiting.",
            self.0.cut.load(Ordering::Relaxed),
        );
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
