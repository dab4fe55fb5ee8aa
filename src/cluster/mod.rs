//! Several nodes: who owns which shard, and the status that people see.
//!
//! Every node reads the same tables of the log store and decides by the same function what it does next. Nothing that two
//! nodes decide differently for a moment is unsafe: a claim is a transaction of the database, and a write names its epoch.

mod lease;
mod ownership;
mod rendezvous;
mod status;

pub use lease::{Lease, ROUND_PAUSE};
pub use ownership::{Ownership, Step, Tables, heir};
pub use status::{NodeStatus, ShardStatus, Status};

#[cfg(test)]
mod tests;
