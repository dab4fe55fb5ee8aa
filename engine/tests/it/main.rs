//! The engine from outside: random work against a naive twin, damage, and old formats.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod damage;
mod files;
mod fixtures;
mod model;
mod sums;
mod twin;
