//! Rate limit for sign-ups per address and hour, because each creates a permanent organization with its own quota.

use std::net::IpAddr;

use parking_lot::Mutex;

use super::sliding_window::{SlidingWindow, network_of, too_many};
use crate::clock::HOUR_NS;
use crate::error::ServiceError;

/// Counts sign-ups per address; `None` disables the limit.
pub struct SignUpLimiter(Option<Mutex<SlidingWindow<IpAddr>>>);

impl SignUpLimiter {
    /// Allows `per_hour_max` sign-ups from one address; 0 means no limit.
    pub fn new(per_hour_max: usize) -> Self {
        Self((per_hour_max > 0).then(|| Mutex::new(SlidingWindow::new(per_hour_max, HOUR_NS))))
    }

    /// Counts a sign-up, successful or not.
    ///
    /// # Errors
    /// 429 with the seconds until the next sign-up is allowed. A refused sign-up is not counted.
    pub fn admit(&self, address: Option<IpAddr>, now_ns: i64) -> Result<(), ServiceError> {
        let (Some(window), Some(address)) = (&self.0, address) else {
            return Ok(());
        };
        let (mut window, network) = (window.lock(), network_of(address));
        if let Some(free_at_ns) = window.free_at_ns(&network, now_ns) {
            return Err(too_many("sign-ups from this address", free_at_ns, now_ns));
        }
        window.note(network, now_ns);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND_NS;

    const START_NS: i64 = 1_700_000_000 * SECOND_NS;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn each_address_has_its_own_hour() {
        let limiter = SignUpLimiter::new(2);
        limiter.admit(address(1), START_NS).unwrap();
        limiter.admit(address(1), START_NS + SECOND_NS).unwrap();
        let refused = limiter.admit(address(1), START_NS + 2 * SECOND_NS).unwrap_err();
        assert_eq!(refused.retry_after_seconds, Some(3_598));
        limiter.admit(address(2), START_NS + 2 * SECOND_NS).unwrap();
        limiter.admit(address(1), START_NS + HOUR_NS).unwrap();
        assert!(
            limiter.admit(address(1), START_NS + HOUR_NS).is_err(),
            "refusals are not counted, sign-ups are"
        );
    }

    #[test]
    fn no_sign_up_is_refused_without_a_limit() {
        let limiter = SignUpLimiter::new(0);
        (0..1_000).for_each(|_| limiter.admit(address(1), START_NS).unwrap());
    }
}
