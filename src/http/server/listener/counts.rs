//! Counts open connections and connections that were cut, over all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::metrics::Exposition;

/// Counters of the listener, shared by its clones.
#[derive(Clone, Default)]
pub(in crate::http) struct Counts {
    open: Arc<AtomicUsize>,
    cut: Arc<AtomicU64>,
}

/// One of the things that a number counts, until dropped.
pub(super) struct Counted(Arc<AtomicUsize>);

impl Counted {
    /// Counts one more. Also returns the number before it.
    pub fn new(number: &Arc<AtomicUsize>) -> (Self, usize) {
        let before = number.fetch_add(1, Ordering::Relaxed);
        (Self(Arc::clone(number)), before)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counts {
    /// Counts a connection. Also returns the number of connections before it.
    pub(super) fn open(&self) -> (Counted, usize) {
        Counted::new(&self.open)
    }

    /// Counts a connection that was cut because it kept the server waiting.
    pub(super) fn cut(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes the metrics.
    pub fn write(&self, text: &mut Exposition) {
        text.gauge(
            "tidewatch_http_connections",
            "Open connections.",
            self.open.load(Ordering::Relaxed),
        );
        text.counter(
            "tidewatch_http_connections_cut_total",
            "Connections that were cut for keeping the server waiting.",
            self.cut.load(Ordering::Relaxed),
        );
    }
}
