//! Ingests that may repeat rows of others in progress. Each series has a queue, and its first is decided again when no
//! ingest with rows of the series is in progress any more: what each costs does not grow with the number that wait.
//!
//! While a queue has entries, an ingest of the series is in progress, or its first entry is about to be decided again.

use std::collections::{HashMap, VecDeque};

/// Those that wait, by the ordinal of the series.
pub(super) struct Waiting<T>(HashMap<u32, VecDeque<T>>);

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Waiting(HashMap::new())
    }
}

impl<T> Waiting<T> {
    /// Whether anybody waits for the series. Who comes later waits too, so that nobody is overtaken for ever.
    pub(super) fn has(&self, series: u32) -> bool {
        self.0.contains_key(&series)
    }

    /// Adds one. One that was taken out for this series is the first again.
    pub(super) fn add(&mut self, series: u32, taken_for: Option<u32>, one: T) {
        let queue = self.0.entry(series).or_default();
        match taken_for == Some(series) {
            true => queue.push_front(one),
            false => queue.push_back(one),
        }
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
        waiting.add(1, None, "a");
        waiting.add(2, None, "b");
        waiting.add(1, None, "c");
        assert_eq!(waiting.take(1), Some("a"));
        assert!(waiting.has(1));
        waiting.add(1, Some(1), "a");
        waiting.add(1, Some(2), "b");
        assert_eq!(
            [1, 1, 1, 1].map(|series| waiting.take(series)),
            [Some("a"), Some("c"), Some("b"), None]
        );
        assert!(!waiting.has(1), "an empty queue is none");
        assert!(waiting.has(2));
    }
}
