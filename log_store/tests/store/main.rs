//! The log store in a real PostgreSQL, and the one in memory where both must do the same. What a journal does with them is in
//! the server's `tests/log`.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test a panic is the report, its place is the message"
)]

mod directory;
mod durability;
mod growth;
mod hosts;
mod import;
mod init;
mod members;
#[path = "../../../tests/log/postgres.rs"]
mod postgres;
mod room;
#[path = "../../../tests/support/postgres.rs"]
mod server;
mod sides;
mod tls;
mod trimming;
