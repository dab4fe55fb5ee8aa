//! The rooms that keep state, whole, over a disk that loses power, tears writes, fills up, fails to sync and rots.
//! A seeded trace of requests runs against a model that knows what was acknowledged; whatever the disk does, recovery
//! must give all of that once, and of the rest each request whole or not at all.
//!
//! `TIDEWATCH_SEED=…` repeats a run, `TIDEWATCH_EXHAUSTIVE=1` takes every operation, write and sync of the trace with
//! every kind of crash where a plain run takes a part of them.

mod backup;
mod beside;
mod convert;
mod cost;
mod crash;
mod entries;
mod expiry;
mod faults;
mod keys;
mod left_out;
pub(crate) mod live;
mod model;
mod order;
mod pace;
mod record;
mod rot;
mod set_apart;
mod storm;
pub(crate) mod tap;
mod travel;
mod world;

/// The seed of this run, printed so that a failure can be repeated.
fn seed() -> u64 {
    let seed = std::env::var("TIDEWATCH_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_261);
    println!("TIDEWATCH_SEED={seed}");
    seed
}

fn exhaustive() -> bool {
    std::env::var_os("TIDEWATCH_EXHAUSTIVE").is_some()
}
