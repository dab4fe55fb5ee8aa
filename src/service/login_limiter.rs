//! Failed sign-ins: after too many for one email or from one address, further ones are refused for
//! a while, right passwords included. In memory, and bounded: see `SUBJECTS_MAX`.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

use parking_lot::Mutex;

use crate::clock::SECOND_NS;
use crate::error::ServiceError;
use crate::limits::{LOGIN_FAILURES_PER_ADDRESS_MAX, LOGIN_FAILURES_PER_EMAIL_MAX, LOGIN_WINDOW_SECONDS};

/// Emails, and addresses, remembered at once: some megabytes at most. When there are more, the one
/// whose last failure is longest ago is forgotten; at one hash every 30 ms, a window sees 30,000
/// failures at most, so that only an attacker's own emails push each other out.
const SUBJECTS_MAX: usize = 32_768;
const WINDOW_NS: i64 = LOGIN_WINDOW_SECONDS * SECOND_NS;

/// Counts failures per email and per address over a sliding window.
pub struct LoginLimiter {
    counts: Mutex<Counts>,
}

struct Counts {
    emails: Failures<Box<str>>,
    addresses: Failures<IpAddr>,
}

impl Default for LoginLimiter {
    fn default() -> Self {
        let emails = Failures::new(LOGIN_FAILURES_PER_EMAIL_MAX);
        let addresses = Failures::new(LOGIN_FAILURES_PER_ADDRESS_MAX);
        Self {
            counts: Mutex::new(Counts { emails, addresses }),
        }
    }
}

impl LoginLimiter {
    /// Whether a sign-in may be tried now.
    ///
    /// # Errors
    /// 429 with the seconds until it may.
    pub fn check(&self, email: &str, address: Option<IpAddr>, now_ns: i64) -> Result<(), ServiceError> {
        let mut counts = self.counts.lock();
        let by_email = counts.emails.free_at_ns(email, now_ns);
        let by_address =
            address.and_then(|address| counts.addresses.free_at_ns(&network_of(address), now_ns));
        match by_email.max(by_address) {
            None => Ok(()),
            Some(free_at_ns) => {
                let wait_ns = free_at_ns.saturating_sub(now_ns);
                let seconds = (wait_ns + SECOND_NS - 1) / SECOND_NS;
                let minutes = (seconds + 59) / 60;
                Err(ServiceError::too_many_requests(
                    format!("too many failed sign-ins; try again in {minutes} minutes"),
                    u32::try_from(seconds).unwrap_or(u32::MAX).max(1),
                ))
            }
        }
    }

    /// Notes a failure.
    pub fn failed(&self, email: &str, address: Option<IpAddr>, now_ns: i64) {
        let mut counts = self.counts.lock();
        counts.emails.note(email.into(), now_ns);
        if let Some(address) = address {
            counts.addresses.note(network_of(address), now_ns);
        }
    }

    /// Forgets the email's failures; those of the address stay.
    pub fn succeeded(&self, email: &str) {
        self.counts.lock().emails.forget(email);
    }
}

/// Who holds an IPv6 address usually holds its whole /64.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// Times of failures per subject, oldest first, at most `max` of each.
struct Failures<K> {
    max: usize,
    times: HashMap<K, VecDeque<i64>>,
}

impl<K: Hash + Eq + Clone> Failures<K> {
    fn new(max: usize) -> Self {
        Self {
            max,
            times: HashMap::new(),
        }
    }

    /// When the subject's oldest counting failure leaves the window; `None` while it is below the limit.
    fn free_at_ns<Q: Hash + Eq + ?Sized>(&mut self, subject: &Q, now_ns: i64) -> Option<i64>
    where
        K: std::borrow::Borrow<Q>,
    {
        let times = self.times.get_mut(subject)?;
        forget_old(times, now_ns);
        (times.len() >= self.max)
            .then(|| times.front().map(|oldest| oldest + WINDOW_NS))
            .flatten()
    }

    fn note(&mut self, subject: K, now_ns: i64) {
        if self.times.len() >= SUBJECTS_MAX && !self.times.contains_key(&subject) {
            self.make_room(now_ns);
        }
        let times = self.times.entry(subject).or_default();
        forget_old(times, now_ns);
        if times.len() == self.max {
            times.pop_front();
        }
        times.push_back(now_ns);
    }

    fn forget<Q: Hash + Eq + ?Sized>(&mut self, subject: &Q)
    where
        K: std::borrow::Borrow<Q>,
    {
        self.times.remove(subject);
    }

    /// Drops what has left the window; if that is nothing, the half that failed longest ago, so that
    /// a full table is walked once in many insertions.
    fn make_room(&mut self, now_ns: i64) {
        self.times
            .retain(|_, times| times.back().is_some_and(|last| now_ns - last < WINDOW_NS));
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

/// A clock that was set back must not lock anyone out for longer than the window.
fn forget_old(times: &mut VecDeque<i64>, now_ns: i64) {
    times.retain(|time| {
        (now_ns - WINDOW_NS..=now_ns + WINDOW_NS).contains(time) && now_ns - *time < WINDOW_NS
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, MINUTE_NS, ManualClock};

    const START_NS: i64 = 1_700_000_000 * SECOND_NS;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn the_eleventh_attempt_waits_until_the_first_failure_is_old() {
        let (limiter, clock) = (LoginLimiter::default(), ManualClock::new(START_NS));
        for _ in 0..10 {
            limiter
                .check("a@example.com", address(1), clock.now_ns())
                .unwrap();
            limiter.failed("a@example.com", address(1), clock.now_ns());
            clock.advance(MINUTE_NS);
        }
        let refused = limiter
            .check("a@example.com", address(2), clock.now_ns())
            .unwrap_err();
        assert_eq!(refused.retry_after_seconds, Some(5 * 60));
        limiter
            .check("b@example.com", address(1), clock.now_ns())
            .unwrap();
        clock.advance(5 * MINUTE_NS - 1);
        let refused = limiter.check("a@example.com", None, clock.now_ns()).unwrap_err();
        assert_eq!(refused.retry_after_seconds, Some(1));
        clock.advance(1);
        limiter
            .check("a@example.com", address(1), clock.now_ns())
            .unwrap();
        limiter.failed("a@example.com", address(1), clock.now_ns());
        assert!(
            limiter
                .check("a@example.com", address(1), clock.now_ns())
                .is_err()
        );
    }

    #[test]
    fn success_clears_the_email_but_not_the_address() {
        let limiter = LoginLimiter::default();
        for round in 0..50 {
            let email = format!("{}@example.com", round / 9);
            limiter.check(&email, address(1), START_NS).unwrap();
            limiter.failed(&email, address(1), START_NS);
        }
        limiter.succeeded("0@example.com");
        assert!(limiter.check("0@example.com", address(1), START_NS).is_err());
        limiter.check("0@example.com", address(2), START_NS).unwrap();
        for _ in 0..9 {
            limiter.failed("0@example.com", address(2), START_NS);
        }
        limiter.check("0@example.com", address(2), START_NS).unwrap();
    }

    #[test]
    fn one_ipv6_network_counts_as_one_address() {
        let limiter = LoginLimiter::default();
        let of = |host: u16| Some(IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, host]));
        for host in 0..50 {
            limiter.failed(&format!("{host}@example.com"), of(host), START_NS);
        }
        assert!(limiter.check("x@example.com", of(999), START_NS).is_err());
    }

    #[test]
    fn memory_is_bounded_and_the_latest_failures_stay() {
        let limiter = LoginLimiter::default();
        let subjects = SUBJECTS_MAX as i64 + 10;
        for subject in 0..subjects {
            limiter.failed(&format!("{subject}@example.com"), None, START_NS + subject);
        }
        let counts = limiter.counts.lock();
        assert!(counts.emails.times.len() <= SUBJECTS_MAX);
        assert!(
            counts
                .emails
                .times
                .contains_key(format!("{}@example.com", subjects - 1).as_str())
        );
        assert!(!counts.emails.times.contains_key("0@example.com"));
    }
}
