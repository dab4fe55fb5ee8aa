//! Rate limit for wrong passwords, at sign-in or when changing the password. After too many failures for one email or
//! from one address, further attempts are refused for a while, even with the right password. In memory and bounded.

use std::net::IpAddr;

use parking_lot::Mutex;

use super::sliding_window::{SlidingWindow, network_of, too_many};
use crate::clock::SECOND_NS;
use crate::error::ServiceError;
use crate::limits::{LOGIN_FAILURES_PER_ADDRESS_MAX, LOGIN_FAILURES_PER_EMAIL_MAX, LOGIN_WINDOW_SECONDS};

const WINDOW_NS: i64 = LOGIN_WINDOW_SECONDS * SECOND_NS;

/// Counts failures per email and per address over a sliding window.
pub struct LoginLimiter {
    /// What is counted, for messages.
    failures: &'static str,
    counts: Mutex<Counts>,
}

struct Counts {
    emails: SlidingWindow<Box<str>>,
    addresses: SlidingWindow<IpAddr>,
}

impl LoginLimiter {
    /// An empty limiter; `failures` names what it counts.
    pub fn new(failures: &'static str) -> Self {
        let emails = SlidingWindow::new(LOGIN_FAILURES_PER_EMAIL_MAX, WINDOW_NS);
        let addresses = SlidingWindow::new(LOGIN_FAILURES_PER_ADDRESS_MAX, WINDOW_NS);
        Self {
            failures,
            counts: Mutex::new(Counts { emails, addresses }),
        }
    }

    /// Checks whether a password attempt is allowed now.
    ///
    /// # Errors
    /// 429 with the seconds until the next attempt is allowed.
    pub fn check(&self, email: &str, address: Option<IpAddr>, now_ns: i64) -> Result<(), ServiceError> {
        let mut counts = self.counts.lock();
        let by_email = counts.emails.free_at_ns(email, now_ns);
        let by_address =
            address.and_then(|address| counts.addresses.free_at_ns(&network_of(address), now_ns));
        match by_email.max(by_address) {
            None => Ok(()),
            Some(free_at_ns) => Err(too_many(self.failures, free_at_ns, now_ns)),
        }
    }

    /// Records a failure.
    pub fn failed(&self, email: &str, address: Option<IpAddr>, now_ns: i64) {
        let mut counts = self.counts.lock();
        counts.emails.note(email.into(), now_ns);
        if let Some(address) = address {
            counts.addresses.note(network_of(address), now_ns);
        }
    }

    /// Clears the failures of the email; those of the address stay.
    pub fn succeeded(&self, email: &str) {
        self.counts.lock().emails.forget(email);
    }
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
    fn the_eleventh_attempt_waits_until_the_first_failure_expires() {
        let (limiter, clock) = (LoginLimiter::new("failed sign-ins"), ManualClock::new(START_NS));
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
        let limiter = LoginLimiter::new("failed sign-ins");
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
        let limiter = LoginLimiter::new("failed sign-ins");
        let of = |host: u16| Some(IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, host]));
        for host in 0..50 {
            limiter.failed(&format!("{host}@example.com"), of(host), START_NS);
        }
        assert!(limiter.check("x@example.com", of(999), START_NS).is_err());
    }
}
