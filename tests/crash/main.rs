//! Kills of the server: after every kind of end, acknowledged data is present exactly once, and no request is partial.
//!
//! `CRASH_ROUNDS` sets the number of kills in the main test (12); `CRASH_SEED` repeats a run, whose seed is printed.
#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report, its place is the message"
)]

mod audit;
mod backup;
mod ledger;
mod load;
mod rounds;
#[path = "../support/mod.rs"]
mod support;
mod torn_log;
mod triggers;
