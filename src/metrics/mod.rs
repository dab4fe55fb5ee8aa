//! Counting without locks, and the text that Prometheus reads.
//!
//! Each room counts what it does, in atomics of its own; what every request counts stands in [`Sharded`], so that no two
//! threads write to one cache line. This room knows no other: `http` puts the figures of all rooms into one text when it
//! is asked for it.

mod histogram;
mod sharded;
mod text;

pub use histogram::{Distribution, Histogram};
pub use sharded::Sharded;
pub use text::{Exposition, Family};
