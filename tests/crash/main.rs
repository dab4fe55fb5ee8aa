//! Killing the server: acknowledged data is present exactly once after every kind of end, and nothing is partial.
//!
//! `CRASH_ROUNDS` sets how many times the main test kills (12), `CRASH_SEED` repeats a run; the seed is printed.
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
