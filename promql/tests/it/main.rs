//! The crate from outside: answers compared with a real Prometheus, and the bounds of an evaluation.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test a panic is the report, its place is the message"
)]

mod bounds;
mod by_hand;
mod differential;
mod garbage;
mod loaded;
mod operators;
mod questions;
mod remote_write;
mod samples;
mod server;
mod versions;
