//! Who owns which shard.
//!
//! A node lives as long as its row does. Its row is removed by another node which has seen the same beat for a whole
//! lease by its own monotonic clock; no clock of another machine is read. A removed node never returns, since each start
//! has an id of its own, so "the owner's row does not exist" stays true once it is.

use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::connection::Connection;
use crate::{Claimed, Epoch, NodeId, Sequence, Shard, ShardRow, StoreError};

/// The row of the shard is locked before the nodes are read, so that of two claims at once one sees the owner that the other
/// has set. It does not wait for the lock: whoever waits does not renew.
pub(super) async fn claim(
    connection: &mut Connection,
    shard: Shard,
    node: NodeId,
) -> Result<Option<Claimed>, StoreError> {
    let transaction = connection.client.transaction().await?;
    let id = i32::from(shard.0);
    let lock = "SELECT node FROM shard WHERE id = $1 FOR UPDATE NOWAIT";
    let row = match transaction.query_opt(lock, &[&id]).await {
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => None,
        found => found?,
    };
    let Some(row) = row else {
        // Dropping the transaction would end it only with the next call.
        transaction.rollback().await?;
        return Ok(None);
    };
    let owner: Option<i64> = row.get(0);
    let living = "SELECT id FROM node WHERE id = $1 OR id = $2";
    let living = transaction.query(living, &[&node.0, &owner]).await?;
    let is_living = |id: i64| living.iter().any(|row| row.get::<_, i64>(0) == id);
    if !is_living(node.0) || owner.is_some_and(|owner| owner != node.0 && is_living(owner)) {
        transaction.rollback().await?;
        return Ok(None);
    }
    let update = "UPDATE shard SET epoch = epoch + 1, node = $2 WHERE id = $1 RETURNING epoch, covered, root, ordinals_from, ordinals_below";
    let row = transaction.query_one(update, &[&id, &node.0]).await?;
    transaction.commit().await?;
    Ok(Some(Claimed {
        epoch: row.get::<_, i64>(0) as Epoch,
        covered: row.get::<_, i64>(1) as Sequence,
        root: row.get(2),
        ordinals: row.get::<_, i64>(3) as u32..row.get::<_, i64>(4) as u32,
    }))
}

/// The epoch grows, so that nothing which is still under way can be written after the release.
pub(super) async fn release(
    connection: &mut Connection,
    shard: Shard,
    epoch: Epoch,
) -> Result<bool, StoreError> {
    let update = "UPDATE shard SET epoch = epoch + 1, node = NULL WHERE id = $1 AND epoch = $2";
    let updated = connection
        .client
        .execute(update, &[&i32::from(shard.0), &(epoch as i64)])
        .await?;
    Ok(updated == 1)
}

pub(super) async fn shards(connection: &mut Connection) -> Result<Vec<ShardRow>, StoreError> {
    let select = "SELECT id, epoch, node, covered, root FROM shard ORDER BY id";
    let rows = connection.client.query(select, &[]).await?;
    let shard = |row: &Row| ShardRow {
        shard: Shard(row.get::<_, i32>(0) as u16),
        epoch: row.get::<_, i64>(1) as Epoch,
        node: row.get::<_, Option<i64>>(2).map(NodeId),
        covered: row.get::<_, i64>(3) as Sequence,
        root: row.get(4),
    };
    Ok(rows.iter().map(shard).collect())
}
