//! Stores as the tests use them.

use std::time::Duration;

use log_store::sim::SimStore;
use log_store::{
    Directory, Epoch, Group, InitOptions, LogStore, Outcome, Postgres, Replication, Sequence, Shard, Timeouts,
};

use crate::postgres;

/// The servers of most tests have no standbys.
pub const OPTIONS: InitOptions = InitOptions {
    replication: Replication::Storage,
};

pub const LEASE: Duration = Duration::from_secs(3);

/// A store with the usual time-outs.
pub fn store(url: &str) -> Postgres {
    Postgres::new(url, Timeouts::default()).unwrap()
}

/// The address of a new database for a cluster of this many shards.
pub fn cluster(shards: u16) -> (String, String) {
    let postgres = postgres::shared();
    let database = postgres.database();
    let url = postgres.url(&database, postgres.port);
    store(&url).init(shards, OPTIONS).unwrap();
    (database, url)
}

/// Runs a test over two ways to one store with four shards, as two nodes have them.
pub fn on_both(test: impl Fn(&mut dyn LogStore, &mut dyn LogStore)) {
    let simulated = SimStore::new(4);
    test(&mut simulated.clone(), &mut simulated.clone());
    let (_, url) = cluster(4);
    test(&mut store(&url), &mut store(&url));
}

/// The same for directories.
pub fn on_both_directories(test: impl Fn(&mut dyn Directory, &mut dyn Directory)) {
    let simulated = SimStore::new(4);
    test(&mut simulated.clone(), &mut simulated.clone());
    let (_, url) = cluster(4);
    test(&mut store(&url), &mut store(&url));
}

/// Appends a record to a shard; returns the store's answer.
pub fn append(store: &mut dyn LogStore, shard: Shard, epoch: Epoch, first: Sequence) -> Vec<Outcome> {
    let records = [format!("record {first}").into_bytes()];
    let group = Group {
        shard,
        epoch,
        first,
        records: &records,
    };
    store.append(&[group]).unwrap()
}

/// A shard that a new node has claimed.
pub fn claimed(store: &mut dyn LogStore, shard: Shard) -> Epoch {
    let node = store.join("here", LEASE).unwrap();
    store.claim(shard, node).unwrap().unwrap().epoch
}
