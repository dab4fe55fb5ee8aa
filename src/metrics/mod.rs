//! Lock-free counters, and the Prometheus text format.
//!
//! Each room has atomic counters of its own. Counters that every request updates are [`Sharded`], so that threads do
//! not write to the same cache line. This room depends on no other: `http` renders the statistics of all rooms when
//! they are requested.

mod histogram;
mod sharded;
mod text;

pub use histogram::{Distribution, Histogram};
pub use sharded::Sharded;
pub use text::{Exposition, Family};
