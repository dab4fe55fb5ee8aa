//! The nodes, and a round of membership: a renewal together with what has changed since the last one.
//!
//! A thousand nodes do this several times within a lease, so a round is one statement whose answer is one row. It has the
//! beats of all nodes, as two arrays. What never changes about a node is read when its id is first seen. Of the shards it
//! has those whose version is not the one that this store has read before: epochs and trims only grow, so their sum is
//! another one after each change.

use std::collections::HashMap;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::connection::Connection;
use super::durability::{describe, is_durable};
use crate::{Epoch, Node, NodeId, Round, Sequence, Shard, ShardRow, StoreError};

/// A node that leaves has its beat below zero, in its complement.
const ROUND: &str = concat!(
    "WITH renewed AS (
         UPDATE node SET beat = $2, leaving = $3, seen_at = now() WHERE id = $1 AND beat < $2 RETURNING id
     ), members AS (
         SELECT array_agg(id) AS ids, array_agg(CASE WHEN leaving THEN -beat - 1 ELSE beat END) AS beats FROM node
     ), changed AS (
         SELECT array_agg(id) AS ids, array_agg(epoch) AS epochs, array_agg(node) AS nodes,
                array_agg(covered) AS covered, array_agg(root) AS roots, array_agg(trims) AS trims
           FROM shard WHERE epoch + trims IS DISTINCT FROM ($4::bigint[])[id + 1]
     )
     SELECT EXISTS (SELECT 1 FROM renewed), members.ids, members.beats,
            changed.ids, changed.epochs, changed.nodes, changed.covered, changed.roots, changed.trims, ",
    is_durable!(),
    ", coalesce(current_setting('synchronous_standby_names', true), ''),
       coalesce(current_setting('synchronous_commit', true), '')
       FROM members, changed"
);

/// What a store has read in the rounds on its connection.
#[derive(Default)]
pub(super) struct Known {
    /// Address and lease of each node.
    nodes: HashMap<NodeId, (String, Duration)>,
    /// All shards, in order.
    shards: Vec<ShardRow>,
    /// The version of each.
    versions: Vec<i64>,
}

pub(super) async fn round(
    connection: &mut Connection,
    known: &mut Known,
    node: NodeId,
    beat: u64,
    leaving: bool,
) -> Result<Round, StoreError> {
    let statement = connection.round(ROUND).await?;
    let beat_set = beat as i64;
    let parameters: [&(dyn ToSql + Sync); 4] = [&node.0, &beat_set, &leaving, &known.versions];
    let row = connection.client.query_one(&statement, &parameters).await?;
    known.note_shards(&row)?;
    let ids: Vec<NodeId> = array(&row, 1).into_iter().map(NodeId).collect();
    let beats: Vec<i64> = array(&row, 2);
    known.learn(connection, &ids).await?;
    let renewed = row.get(0);
    let mut nodes: Vec<Node> = ids
        .iter()
        .zip(beats)
        .filter_map(|(id, beat)| known.node(*id, beat))
        .collect();
    // The statement has seen the table as it was before the renewal.
    if let Some(me) = nodes.iter_mut().find(|it| it.id == node && renewed) {
        (me.beat, me.leaving) = (beat, leaving);
    }
    let is_durable: bool = row.get(9);
    Ok(Round {
        renewed,
        nodes,
        shards: known.shards.clone(),
        weakness: (!is_durable).then(|| describe(row.get(10), row.get(11))),
    })
}

/// The elements of an array; an aggregate over no rows is NULL.
fn array<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, column: usize) -> Vec<T> {
    row.get::<_, Option<Vec<T>>>(column).unwrap_or_default()
}

impl Known {
    fn note_shards(&mut self, row: &Row) -> Result<(), StoreError> {
        let ids: Vec<i32> = array(row, 3);
        let (epochs, nodes, covered): (Vec<i64>, Vec<Option<i64>>, Vec<i64>) =
            (array(row, 4), array(row, 5), array(row, 6));
        let (roots, trims): (Vec<Option<String>>, Vec<i64>) = (array(row, 7), array(row, 8));
        let mut changed: Vec<(ShardRow, i64)> = Vec::with_capacity(ids.len());
        let counters = epochs.into_iter().zip(covered).zip(trims);
        for (((id, ((epoch, covered), trims)), node), root) in
            ids.into_iter().zip(counters).zip(nodes).zip(roots)
        {
            let row = ShardRow {
                shard: Shard(id as u16),
                epoch: epoch as Epoch,
                node: node.map(NodeId),
                covered: covered as Sequence,
                root,
            };
            changed.push((row, epoch + trims));
        }
        changed.sort_unstable_by_key(|(row, _)| row.shard);
        for (row, version) in changed {
            let index = usize::from(row.shard.0);
            if index == self.shards.len() {
                self.shards.push(row);
                self.versions.push(version);
            } else if let (Some(shard), Some(of)) = (self.shards.get_mut(index), self.versions.get_mut(index))
            {
                (*shard, *of) = (row, version);
            } else {
                let missing = self.shards.len();
                return Err(StoreError::Tables(format!(
                    "the database has no row of shard {missing}"
                )));
            }
        }
        Ok(())
    }

    /// Reads address and lease of the nodes that are new, and forgets those that are gone.
    async fn learn(&mut self, connection: &mut Connection, ids: &[NodeId]) -> Result<(), StoreError> {
        let new: Vec<i64> = ids
            .iter()
            .filter(|id| !self.nodes.contains_key(id))
            .map(|id| id.0)
            .collect();
        if !new.is_empty() {
            let select = "SELECT id, address, lease_ms FROM node WHERE id = ANY ($1)";
            for row in connection.client.query(select, &[&new]).await? {
                let lease = Duration::from_millis(row.get::<_, i64>(2) as u64);
                self.nodes.insert(NodeId(row.get(0)), (row.get(1), lease));
            }
        }
        if self.nodes.len() > ids.len() {
            let here: std::collections::HashSet<&NodeId> = ids.iter().collect();
            self.nodes.retain(|id, _| here.contains(id));
        }
        Ok(())
    }

    /// `None` if it was removed before its address was read.
    fn node(&self, id: NodeId, beat: i64) -> Option<Node> {
        let (address, lease) = self.nodes.get(&id)?;
        Some(Node {
            id,
            address: address.clone(),
            beat: if beat < 0 { !beat } else { beat } as u64,
            leaving: beat < 0,
            lease: *lease,
        })
    }
}

pub(super) async fn join(
    connection: &mut Connection,
    node: NodeId,
    address: &str,
    lease: Duration,
) -> Result<(), StoreError> {
    let insert = "INSERT INTO node (id, address, beat, leaving, lease_ms, seen_at) VALUES ($1, $2, 0, false, $3, now())";
    let lease_ms = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
    let parameters: [&(dyn ToSql + Sync); 3] = [&node.0, &address, &lease_ms];
    connection.client.execute(insert, &parameters).await?;
    Ok(())
}

pub(super) async fn renew(
    connection: &mut Connection,
    node: NodeId,
    beat: u64,
    leaving: bool,
) -> Result<bool, StoreError> {
    let update = "UPDATE node SET beat = $2, leaving = $3, seen_at = now() WHERE id = $1 AND beat < $2";
    let parameters: [&(dyn ToSql + Sync); 3] = [&node.0, &(beat as i64), &leaving];
    Ok(connection.client.execute(update, &parameters).await? == 1)
}

pub(super) async fn remove(connection: &mut Connection, node: NodeId, beat: u64) -> Result<bool, StoreError> {
    let delete = "DELETE FROM node WHERE id = $1 AND beat = $2";
    Ok(connection
        .client
        .execute(delete, &[&node.0, &(beat as i64)])
        .await?
        == 1)
}

pub(super) async fn nodes(connection: &mut Connection) -> Result<Vec<Node>, StoreError> {
    let select = "SELECT id, address, beat, leaving, lease_ms FROM node ORDER BY id";
    let rows = connection.client.query(select, &[]).await?;
    let node = |row: &Row| Node {
        id: NodeId(row.get(0)),
        address: row.get(1),
        beat: row.get::<_, i64>(2) as u64,
        leaving: row.get(3),
        lease: Duration::from_millis(row.get::<_, i64>(4) as u64),
    };
    Ok(rows.iter().map(node).collect())
}
