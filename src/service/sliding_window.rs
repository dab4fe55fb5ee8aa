//! Counts events per subject (an email, an address) in a sliding time window. In memory and bounded.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

use crate::clock::SECOND_NS;
use crate::error::ServiceError;

/// Maximum subjects remembered; a few megabytes at most. Above it, the subjects whose last event is oldest are dropped.
/// At one password hash every 30 ms there are at most 30,000 in a quarter of an hour, so only an attacker's own
/// subjects displace each other.
const SUBJECTS_MAX: usize = 32_768;

/// Times of events per subject, oldest first, at most `max` each.
pub(super) struct SlidingWindow<K> {
    max: usize,
    window_ns: i64,
    times: HashMap<K, VecDeque<i64>>,
}

impl<K: Hash + Eq + Clone> SlidingWindow<K> {
    /// A window of `window_ns` with a limit of `max` events.
    pub fn new(max: usize, window_ns: i64) -> Self {
        Self {
            max,
            window_ns,
            times: HashMap::new(),
        }
    }

    /// When the subject is below the limit again, because its oldest event leaves the window; `None` if it is below it
    /// now.
    pub fn free_at_ns<Q: Hash + Eq + ?Sized>(&mut self, subject: &Q, now_ns: i64) -> Option<i64>
    where
        K: std::borrow::Borrow<Q>,
    {
        let times = self.times.get_mut(subject)?;
        forget_old(times, self.window_ns, now_ns);
        let oldest = times.front().filter(|_| times.len() >= self.max)?;
        Some(oldest + self.window_ns)
    }

    /// Records an event.
    pub fn note(&mut self, subject: K, now_ns: i64) {
        if self.times.len() >= SUBJECTS_MAX && !self.times.contains_key(&subject) {
            self.make_room(now_ns);
        }
        let times = self.times.entry(subject).or_default();
        forget_old(times, self.window_ns, now_ns);
        if times.len() == self.max {
            times.pop_front();
        }
        times.push_back(now_ns);
    }

    /// Clears the subject's events.
    pub fn forget<Q: Hash + Eq + ?Sized>(&mut self, subject: &Q)
    where
        K: std::borrow::Borrow<Q>,
    {
        self.times.remove(subject);
    }

    /// Drops subjects without events in the window. If there are none, drops the half whose last event is oldest, so
    /// that the scan of a full table is amortized over many insertions.
    fn make_room(&mut self, now_ns: i64) {
        let window_ns = self.window_ns;
        self.times
            .retain(|_, times| times.back().is_some_and(|last| now_ns - last < window_ns));
        if self.times.len() >= SUBJECTS_MAX {
            let mut last: Vec<i64> = self
                .times
                .values()
                .filter_map(|times| times.back().copied())
                .collect();
            let middle = last.len() / 2;
            let (_, median, _) = last.select_nth_unstable(middle);
            let median = *median;
            let mut surplus = SUBJECTS_MAX / 2;
            self.times.retain(|_, times| {
                let stale = surplus > 0 && times.back().is_none_or(|last| *last <= median);
                surplus -= usize::from(stale);
                !stale
            });
        }
    }
}

/// Drops times outside the window, including times too far in the future: if the clock is set back, nobody is locked
/// out for longer than the window.
fn forget_old(times: &mut VecDeque<i64>, window_ns: i64, now_ns: i64) {
    times.retain(|time| (now_ns - window_ns + 1..=now_ns + window_ns).contains(time));
}

/// An IPv6 address counts as its /64 network, because its owner usually has the whole network.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// The 429 for too many events, until the subject is below the limit again.
pub(super) fn too_many(events: &str, free_at_ns: i64, now_ns: i64) -> ServiceError {
    let seconds = seconds_until(free_at_ns, now_ns);
    let minutes = seconds.div_ceil(60);
    ServiceError::too_many_requests(
        format!("too many {events}; try again in {minutes} minutes"),
        seconds,
    )
}

/// Seconds to wait, at least one.
pub(super) fn seconds_until(free_at_ns: i64, now_ns: i64) -> u32 {
    let wait_ns = free_at_ns.saturating_sub(now_ns).max(1);
    u32::try_from((wait_ns - 1) / SECOND_NS + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_NS: i64 = 60 * SECOND_NS;
    const START_NS: i64 = 1_700_000_000 * SECOND_NS;

    #[test]
    fn a_subject_is_admitted_again_when_its_oldest_time_expires() {
        let mut window = SlidingWindow::new(2, WINDOW_NS);
        window.note("a", START_NS);
        assert_eq!(window.free_at_ns("a", START_NS), None);
        window.note("a", START_NS + 1);
        assert_eq!(window.free_at_ns("a", START_NS + 2), Some(START_NS + WINDOW_NS));
        assert_eq!(window.free_at_ns("b", START_NS + 2), None);
        assert!(window.free_at_ns("a", START_NS + WINDOW_NS - 1).is_some());
        assert_eq!(window.free_at_ns("a", START_NS + WINDOW_NS), None);
    }

    #[test]
    fn a_clock_set_far_back_blocks_no_subject() {
        let mut window = SlidingWindow::new(1, WINDOW_NS);
        window.note("a", START_NS);
        assert!(window.free_at_ns("a", START_NS - SECOND_NS).is_some());
        assert_eq!(window.free_at_ns("a", START_NS - WINDOW_NS - 1), None);
    }

    #[test]
    fn waits_are_whole_seconds_and_at_least_one() {
        for (wait_ns, seconds) in [(-5, 1), (0, 1), (1, 1), (SECOND_NS, 1), (SECOND_NS + 1, 2)] {
            assert_eq!(seconds_until(START_NS + wait_ns, START_NS), seconds, "{wait_ns}");
        }
    }

    #[test]
    fn memory_is_bounded_and_the_latest_subjects_are_kept() {
        let mut window = SlidingWindow::new(2, WINDOW_NS);
        let subjects = SUBJECTS_MAX as i64 + 10;
        for subject in 0..subjects {
            window.note(subject, START_NS + subject);
        }
        assert!(window.times.len() <= SUBJECTS_MAX);
        assert!(window.times.contains_key(&(subjects - 1)));
        assert!(!window.times.contains_key(&0));
    }
}
