//! Counts open connections and connections that were cut, over all workers.

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

/// Counts one open connection until dropped.
pub(super) struct Open(Counts);

impl Counts {
    /// Counts a connection. Also returns the number of connections before it.
    pub(super) fn open(&self) -> (Open, usize) {
        let before = self.0.open.fetch_add(1, Ordering::Relaxed);
        (Open(self.clone()), before)
    }

    /// Counts a connection that was cut because it kept the server waiting.
    pub(super) fn cut(&self) {
        self.0.cut.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes the metrics.
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
