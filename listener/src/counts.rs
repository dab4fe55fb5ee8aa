//! Counts open connections and connections that were cut, over all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counters of the listener, shared by its clones.
#[derive(Clone, Default)]
pub struct Counts {
    open: Arc<AtomicUsize>,
    cut: Arc<AtomicU64>,
}

/// One of the things that a number counts, until dropped.
pub(crate) struct Counted(Arc<AtomicUsize>);

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
    pub(crate) fn open(&self) -> (Counted, usize) {
        Counted::new(&self.open)
    }

    /// Counts a connection that was cut because it kept the server waiting.
    pub(crate) fn cut(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of open connections.
    pub fn open_connections(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// The number of connections that were cut because they kept the server waiting.
    pub fn cut_connections(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }
}
