//! Polls a server until a condition holds, with a deadline.

use std::thread;
use std::time::{Duration, Instant};

/// Allows for two busy cores.
const WITHIN: Duration = Duration::from_secs(30);

/// Polls until there is a result; `what` describes it in the failure message.
#[track_caller]
pub fn until<T>(what: &str, poll: impl FnMut() -> Option<T>) -> T {
    until_within(WITHIN, what, poll)
}

/// The same with another deadline.
#[track_caller]
pub fn until_within<T>(within: Duration, what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(answer) = poll() {
            return answer;
        }
        assert!(
            Instant::now() < deadline,
            "within {within:?} it should have been so: {what}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}
