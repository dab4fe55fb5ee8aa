//! The port to the log. One test of conformance runs over each of its sides: the log in a data directory, on a simulated
//! disk; the log store in memory; and the log store in a real PostgreSQL, behind a proxy that breaks connections.
//!
//! `LOG_SEED` repeats a random run, whose seed is printed; `LOG_ROUNDS` sets the number of seeds.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test a panic is the report, its place is the message"
)]

mod conformance;
mod failover;
mod owners;
mod postgres;
mod proxy;
mod random;
#[path = "../support/postgres.rs"]
mod server;
mod settling;
mod sides;
mod trimming;
