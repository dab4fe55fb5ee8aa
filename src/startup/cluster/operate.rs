//! `tidewatch cluster init` and `tidewatch cluster status`.

use std::collections::BTreeMap;
use std::fmt::Write;

use log_store::{InitOptions, LogStore, Postgres, Replication, StoreError, Timeouts};

use crate::cluster::{NodeStatus, Status};

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
    let status = Status::of(&store.nodes()?, &store.shards()?, &store.tails()?);
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{:<18}{:<28}{:>8}{:>8}  state",
        "node", "address", "shards", "lease"
    );
    for NodeStatus { node, shards } in &status.nodes {
        let state = if node.leaving { "leaving" } else { "member" };
        let (id, lease) = (node.id.to_string(), format!("{} s", node.lease.as_secs()));
        let _ = writeln!(text, "{id:<18}{:<28}{shards:>8}{lease:>8}  {state}", node.address);
    }
    let addresses: BTreeMap<_, _> = status
        .nodes
        .iter()
        .map(|it| (it.node.id, it.node.address.as_str()))
        .collect();
    let _ = writeln!(
        text,
        "\n{:>5}{:>8}  {:<28}{:>14}{:>14}{:>14}  root",
        "shard", "epoch", "owner", "last", "covered", "tail bytes"
    );
    for shard in &status.shards {
        let owner = shard.owner.and_then(|node| addresses.get(&node).copied());
        let _ = writeln!(
            text,
            "{:>5}{:>8}  {:<28}{:>14}{:>14}{:>14}  {}",
            shard.shard,
            shard.epoch,
            owner.unwrap_or("-"),
            shard.last,
            shard.covered,
            shard.tail_bytes,
            shard.root.as_deref().unwrap_or("-")
        );
    }
    Ok(text)
}
