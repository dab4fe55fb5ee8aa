//! Ingests that wait for others with rows of the same series. Each series has a queue. When no ingest of the series is in
//! progress any more, those in its queue are decided again until one has to wait for the series once more: what each
//! costs does not grow with the number that wait.
//!
//! While a queue has entries, an ingest of the series is in progress.

use std::collections::{HashMap, VecDeque};

/// Those that wait, by the ordinal of the series.
pub(super) struct Waiting<T>(HashMap<u32, VecDeque<T>>);

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Waiting(HashMap::new())
    }
}

impl<T> Waiting<T> {
    /// Whether anybody waits for the series. Those that come later wait, too, so that nobody is overtaken for ever.
    pub(super) fn has(&self, series: u32) -> bool {
        self.0.contains_key(&series)
    }

    /// Adds one as the last.
    pub(super) fn add(&mut self, series: u32, one: T) {
        self.0.entry(series).or_default().push_back(one);
    }

    /// Adds one that was taken out as the first again.
    pub(super) fn put_back(&mut self, series: u32, one: T) {
        self.0.entry(series).or_default().push_front(one);
    }

    /// Takes out the first.
    pub(super) fn take(&mut self, series: u32) -> Option<T> {
        let queue = self.0.get_mut(&series)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.0.remove(&series);
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_has_a_queue_in_the_order_of_arrival() {
        let mut waiting = Waiting::default();
        waiting.add(1, "a");
        waiting.add(2, "b");
        waiting.add(1, "c");
        assert_eq!(waiting.take(1), Some("a"));
        assert!(waiting.has(1));
        waiting.put_back(1, "a");
        assert_eq!(
            [1, 1, 1].map(|series| waiting.take(series)),
            [Some("a"), Some("c"), None]
        );
        assert!(!waiting.has(1), "an empty queue is none");
        assert!(waiting.has(2));
    }
}
