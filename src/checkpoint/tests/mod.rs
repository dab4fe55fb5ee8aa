//! All rooms with state over a disk that loses power, tears writes, fills up, fails to sync and rots. A seeded trace of
//! requests runs against a model of the acknowledged data; after any fault, recovery must restore all of it exactly
//! once, and each other request completely or not at all.
//!
//! `TIDEWATCH_SEED=…` repeats a run; `TIDEWATCH_EXHAUSTIVE=1` tests every operation, write and sync of the trace with
//! every kind of crash instead of a sample.

mod advancing_disk;
mod backup;
mod beside;
mod convert;
mod cost;
mod crash;
mod deleting;
mod entries;
mod expiry;
mod faults;
mod given_up;
pub(crate) mod hooked_disk;
mod intake;
mod keys;
pub(crate) mod live;
mod model;
mod omitted_syncs;
mod order;
mod pace;
mod published;
mod record;
mod rot;
mod set_apart;
mod stored_log;
mod storm;
mod world;

use engine::query::{Page, ScanQuery, Selection, scan};
use engine::{EngineError, SeriesSnapshot};

/// The seed of this run, printed so that a failure can be repeated.
pub(crate) fn seed() -> u64 {
    let seed = std::env::var("TIDEWATCH_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_261);
    println!("TIDEWATCH_SEED={seed}");
    seed
}

/// All rows of a source in this range, both ends inclusive.
fn all_rows(series: &SeriesSnapshot, range_ns: (i64, i64)) -> Result<Page, EngineError> {
    let query = ScanQuery {
        range_ns,
        descending: false,
        after: None,
        skip: 0,
        limit: 1 << 24,
        metadata: None,
        stop: &|| false,
    };
    let selection = Selection::new(series, None);
    scan(&[selection], &query)
}

fn exhaustive() -> bool {
    std::env::var_os("TIDEWATCH_EXHAUSTIVE").is_some()
}
