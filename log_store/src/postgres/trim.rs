//! What is stored elsewhere: noting it, deleting its rows, and giving their space back.
//!
//! A trim changes one row, so it takes as long as an append. From then on nobody reads what is covered, and its rows are
//! deleted in batches, on whatever connection, as often as it takes.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::Postgres;
use super::connection::Connection;
use crate::{Epoch, Sequence, Shard, StoreError, TailSize};

/// What one batch deletes at most: rows, and bytes of bodies, up to the row that exceeds them. A batch of either size takes
/// the database some milliseconds.
const BATCH_ROWS_MAX: i64 = 1_000;
const BATCH_BYTES_MAX: i64 = 4 << 20;

/// After so many deleted rows, or bytes, their space is made available again. The database's own vacuum waits for up to a
/// minute between two looks (`autovacuum_naptime`), in which the table would grow with the load.
const VACUUM_ROWS: u64 = 20_000;
const VACUUM_BYTES: u64 = 128 << 20;

/// A vacuum reads the indexes, and the pages of the table that have changed. It delays nothing but the deletion of rows.
const VACUUM_TIME_MAX: Duration = Duration::from_secs(600);

/// The end of the table is not cut off, because that locks the table against appends. One vacuum at a time is enough.
const VACUUM: &str = "VACUUM (SKIP_LOCKED, TRUNCATE false) log";

/// The oldest covered rows. The bodies' lengths are known without reading them.
const SWEEP: &str = "
WITH gone AS (
    DELETE FROM log WHERE shard = $1 AND first = ANY (ARRAY(
        SELECT first FROM (
            SELECT first, bytes, sum(bytes) OVER (ORDER BY first) AS bytes_so_far FROM (
                SELECT first, octet_length(body) AS bytes FROM log
                 WHERE shard = $1 AND first <= $2 AND last <= $2 ORDER BY first LIMIT $3
            ) AS oldest
        ) AS counted WHERE bytes_so_far - bytes < $4
    )) RETURNING octet_length(body) AS bytes
)
SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM gone";

const TAILS: &str = "
SELECT shard.id, count(log.first), coalesce(sum(octet_length(log.body)), 0)::bigint,
       greatest(max(log.last), shard.covered)
  FROM shard LEFT JOIN log ON log.shard = shard.id AND log.last > shard.covered
 GROUP BY shard.id, shard.covered ORDER BY shard.id";

/// What a store has deleted since its last vacuum.
#[derive(Clone, Copy, Default)]
pub(super) struct Swept {
    rows: u64,
    bytes: u64,
}

/// An update that was given up may still arrive, after later ones. It counts on a number of trims which the later ones have
/// changed, so it changes nothing: an old root never replaces a newer one.
pub(super) async fn trim(
    connection: &mut Connection,
    (shard, epoch): (Shard, Epoch),
    covered: Sequence,
    root: Option<&str>,
) -> Result<bool, StoreError> {
    let (id, epoch, covered) = (i32::from(shard.0), epoch as i64, covered as i64);
    let read = "SELECT trims FROM shard WHERE id = $1 AND epoch = $2";
    let Some(row) = connection.client.query_opt(read, &[&id, &epoch]).await? else {
        return Ok(false);
    };
    let trims: i64 = row.get(0);
    let update = "UPDATE shard SET covered = greatest(covered, $3), trims = trims + 1,
                         root = CASE WHEN $3 >= covered THEN coalesce($4, root) ELSE root END
                   WHERE id = $1 AND epoch = $2 AND trims = $5";
    let parameters: [&(dyn ToSql + Sync); 5] = [&id, &epoch, &covered, &root, &trims];
    match connection.client.execute(update, &parameters).await? {
        1 => Ok(true),
        _ => Err(StoreError::Unavailable(
            format!("shard {shard} was claimed or trimmed at the same time").into(),
        )),
    }
}

pub(super) fn sweep(store: &mut Postgres, shard: Shard) -> Result<bool, StoreError> {
    let (rows, bytes) = store.ask(async |connection| delete(connection, shard).await)?;
    store.swept.rows += rows;
    store.swept.bytes += bytes;
    if store.swept.rows >= VACUUM_ROWS || store.swept.bytes >= VACUUM_BYTES {
        store.swept = Swept::default();
        store.ask_within(VACUUM_TIME_MAX, async |connection| vacuum(connection).await)?;
    }
    Ok(rows > 0)
}

async fn delete(connection: &mut Connection, shard: Shard) -> Result<(u64, u64), StoreError> {
    let id = i32::from(shard.0);
    let read = "SELECT covered FROM shard WHERE id = $1";
    let Some(row) = connection.client.query_opt(read, &[&id]).await? else {
        return Err(StoreError::Tables(format!("there is no shard {shard}")));
    };
    let covered: i64 = row.get(0);
    let parameters: [&(dyn ToSql + Sync); 4] = [&id, &covered, &BATCH_ROWS_MAX, &BATCH_BYTES_MAX];
    let row = connection.client.query_one(SWEEP, &parameters).await?;
    Ok((row.get::<_, i64>(0) as u64, row.get::<_, i64>(1) as u64))
}

/// A database that knows no such statement has a way of its own.
async fn vacuum(connection: &mut Connection) -> Result<(), StoreError> {
    match connection.client.batch_execute(VACUUM).await {
        Err(error) if error.as_db_error().is_none() => return Err(error.into()),
        Err(error) => tracing::warn!(%error, "the log store's table was not vacuumed"),
        Ok(()) => {}
    }
    // Such as "skipping vacuum": this is no commit that has to reach a second disk.
    if let Some(warning) = connection.take_warning() {
        tracing::debug!(warning, "vacuum of the log store's table");
    }
    Ok(())
}

pub(super) async fn tails(connection: &mut Connection) -> Result<Vec<TailSize>, StoreError> {
    let rows = connection.client.query(TAILS, &[]).await?;
    let tail = |row: &Row| TailSize {
        shard: Shard(row.get::<_, i32>(0) as u16),
        groups: row.get::<_, i64>(1) as u64,
        bytes: row.get::<_, i64>(2) as u64,
        last: row.get::<_, i64>(3) as Sequence,
    };
    Ok(rows.iter().map(tail).collect())
}
