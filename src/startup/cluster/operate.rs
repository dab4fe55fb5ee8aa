//! `tidewatch cluster init` and `tidewatch cluster status`.

use std::collections::BTreeMap;
use std::fmt::Write;

use log_store::{InitOptions, LogStore, Postgres, Replication, StoreError, Timeouts};

/// Makes the tables of a cluster with this many shards, or finds them made.
///
/// # Errors
/// The log store does not answer, or has the tables of another cluster.
pub fn init(url: &str, shards: u16, replication: Replication) -> Result<(), StoreError> {
    let mut store = Postgres::new(url, Timeouts::default())?;
    store.init(shards, InitOptions { replication })
}

/// What is known of the nodes and shards of a cluster, as text for people.
///
/// # Errors
/// The log store does not answer, or has no tables.
pub fn status(url: &str) -> Result<String, StoreError> {
    let mut store = Postgres::new(url, Timeouts::default())?;
    let (nodes, shards, tails) = (store.nodes()?, store.shards()?, store.tails()?);
    let mut owned: BTreeMap<_, u64> = BTreeMap::new();
    for node in shards.iter().filter_map(|row| row.node) {
        *owned.entry(node).or_default() += 1;
    }
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{:<18}{:<28}{:>8}{:>8}  state",
        "node", "address", "shards", "lease"
    );
    for node in &nodes {
        let state = if node.leaving { "leaving" } else { "member" };
        let (id, shards) = (node.id.to_string(), owned.get(&node.id).copied().unwrap_or(0));
        let lease = format!("{} s", node.lease.as_secs());
        let _ = writeln!(text, "{id:<18}{:<28}{shards:>8}{lease:>8}  {state}", node.address);
    }
    let addresses: BTreeMap<_, _> = nodes
        .iter()
        .map(|node| (node.id, node.address.as_str()))
        .collect();
    let _ = writeln!(
        text,
        "\n{:>5}{:>8}  {:<28}{:>14}{:>14}{:>14}  root",
        "shard", "epoch", "owner", "last", "covered", "tail bytes"
    );
    for (row, tail) in shards.iter().zip(&tails) {
        let owner = row.node.and_then(|node| addresses.get(&node).copied());
        let _ = writeln!(
            text,
            "{:>5}{:>8}  {:<28}{:>14}{:>14}{:>14}  {}",
            row.shard,
            row.epoch,
            owner.unwrap_or("-"),
            tail.last.max(row.covered),
            row.covered,
            tail.bytes,
            row.root.as_deref().unwrap_or("-")
        );
    }
    Ok(text)
}
