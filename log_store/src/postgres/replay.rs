//! Reading a shard's log.

use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;

use super::address::Address;
use super::connection::Connection;
use super::{Postgres, no_answer};
use crate::error::StoreError;
use crate::row::{Row, begins_early_enough};
use crate::{Each, Epoch, ReplayError, Replayed, Sequence, Shard};

/// Every row that holds a record after a sequence. The rows arrive as they are read: the answer is never whole in memory.
const SELECT: &str =
    "SELECT first, last, epoch, crc, body FROM log WHERE shard = $1 AND last > $2 ORDER BY first";

/// The claim that the reader relies on. A former primary, which a connection may have reached, does not know it.
const CLAIM: &str = "SELECT epoch, covered FROM shard WHERE id = $1";

pub(super) fn replay(
    store: &mut Postgres,
    claim: (Shard, Epoch),
    from: Sequence,
    each: &mut Each<'_>,
) -> Result<Replayed, ReplayError> {
    let (connection, address) = (&mut store.connection, &mut store.address);
    let replay = read(connection, address, store.timeouts.attempt, claim, from, each);
    let replayed = store.runtime.block_on(replay);
    if replayed.is_err() {
        store.disconnect();
    }
    replayed
}

async fn read(
    connection: &mut Option<Connection>,
    address: &mut Address,
    attempt: Duration,
    (shard, epoch): (Shard, Epoch),
    from: Sequence,
    each: &mut Each<'_>,
) -> Result<Replayed, ReplayError> {
    let waited = |_| ReplayError::Store(StoreError::Unavailable(no_answer()));
    let opened = timeout(attempt, Connection::ready(connection, address)).await;
    let client = &opened.map_err(waited)??.client;
    let (id, after) = (i32::from(shard.0), from as i64);
    let claim = timeout(attempt, client.query_opt(CLAIM, &[&id])).await;
    let claim = claim.map_err(waited)?.map_err(StoreError::from)?;
    let Some(claim) = claim.filter(|row| row.get::<_, i64>(0) as Epoch == epoch) else {
        return Err(ReplayError::Lost { shard });
    };
    begins_early_enough(shard, claim.get::<_, i64>(1) as Sequence, from)?;
    let parameters: [&(dyn ToSql + Sync); 2] = [&id, &after];
    let rows = client.query_raw(SELECT, parameters);
    let rows = timeout(attempt, rows)
        .await
        .map_err(waited)?
        .map_err(StoreError::from)?;
    let mut rows = pin!(rows);
    let mut replayed = Replayed {
        last: from,
        ..Replayed::default()
    };
    while let Some(row) = timeout(attempt, rows.try_next())
        .await
        .map_err(waited)?
        .map_err(StoreError::from)?
    {
        let row = Row {
            first: row.get::<_, i64>(0) as Sequence,
            last: row.get::<_, i64>(1) as Sequence,
            epoch: row.get::<_, i64>(2) as Epoch,
            crc: row.get::<_, i64>(3) as u32,
            body: row.get(4),
        };
        row.pass_on(shard, &mut replayed, each)?;
    }
    Ok(replayed)
}
