//! The complete alerting loop over intervals: points, due rules, queries, verdicts, triggers, receivers. The server
//! runs within the test process, accessed over HTTP, with a simulated clock, so that days pass without waiting.
//!
//! `LOOP_SEED` repeats a random walk; the seed is printed.
#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report, its place is the message"
)]

mod analytics;
#[path = "../support/client.rs"]
mod client;
mod clock;
mod concurrent_verdicts;
mod due;
mod expired_series;
mod freshness;
#[path = "../support/given.rs"]
mod given;
mod moments;
mod patch;
mod quota;
#[path = "../support/receiver.rs"]
mod receiver;
mod replay;
mod retention;
mod series;
mod silences;
mod states;
#[path = "../support/time.rs"]
mod time;
#[path = "../support/waiting.rs"]
mod waiting;
mod walk;
#[path = "../support/watch.rs"]
mod watch;
mod world;
