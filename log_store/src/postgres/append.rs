//! Appending, and finding out what became of an append whose answer was lost.
//!
//! One statement inserts the groups of all shards. It joins each with its shard's row under the epoch that the group
//! names, and locks that row against a claim until the commit. A shard that is not in the answer has another owner.
//!
//! When the answer is lost, the groups may be committed, may be under way, or may never arrive. Inserting the same rows
//! again settles it: a row of the same key that is under way makes the insert wait for its end, and one that exists makes
//! it do nothing. The transaction that settles also writes to the shard's row. So its commit reaches a second disk after
//! everything that it has seen, and it fails if the epoch has changed.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Row};

use super::connection::{Connection, Kind};
use super::durability::{self, is_durable};
use super::{Postgres, no_answer};
use crate::body::{BODY_BYTES_MAX, body_bytes, checksum, encode};
use crate::error::{AppendError, Source, StoreError, explained};
use crate::{Epoch, Group, Outcome, Shard};

/// Inserts the groups whose epoch is their shard's, unless a row of the same key exists, or commits reach one disk only.
pub(super) const INSERT: &str = concat!(
    "
INSERT INTO log (shard, first, last, epoch, crc, body)
SELECT g.shard, g.first, g.last, g.epoch, g.crc, g.body
  FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[])
       AS g (shard, first, last, epoch, crc, body)
  JOIN shard ON shard.id = g.shard AND shard.epoch = g.epoch
 WHERE ",
    is_durable!(),
    "
   FOR SHARE OF shard
ON CONFLICT DO NOTHING
RETURNING shard"
);

/// The shards that are still owned under these epochs. Writing to them makes the commit reach the second disk.
const OWNED: &str = "
UPDATE shard SET settled = settled + 1
  FROM unnest($1::integer[], $2::bigint[]) AS g (shard, epoch)
 WHERE shard.id = g.shard AND shard.epoch = g.epoch
RETURNING shard.id";

/// The groups whose rows are there, byte for byte.
const THERE: &str = "
SELECT g.shard
  FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[])
       AS g (shard, first, last, epoch, crc, body)
  JOIN log ON log.shard = g.shard AND log.first = g.first
 WHERE log.last = g.last AND log.epoch = g.epoch AND log.crc = g.crc AND log.body = g.body";

/// A row as a group's would be, at a place that no group has. It is not committed.
const PROBE: &str = "
INSERT INTO log (shard, first, last, epoch, crc, body)
SELECT id, 0, 0, epoch, 0, $3 FROM shard WHERE id = $1 AND epoch = $2";

/// Size of that row's body: more than what pages in use have left.
const PROBE_BYTES: usize = 64 << 10;

/// Pauses between attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];

/// The rows of an append, by column.
#[derive(Default)]
struct Columns {
    shards: Vec<i32>,
    firsts: Vec<i64>,
    lasts: Vec<i64>,
    epochs: Vec<i64>,
    crcs: Vec<i64>,
    bodies: Vec<Vec<u8>>,
}

impl Columns {
    fn of(groups: &[Group<'_>]) -> Result<Columns, AppendError> {
        let mut columns = Columns::default();
        for group in groups {
            let bytes = body_bytes(group.records);
            if bytes > BODY_BYTES_MAX {
                return Err(AppendError::TooLarge {
                    bytes,
                    bytes_max: BODY_BYTES_MAX,
                });
            }
            let body = encode(group.records);
            let crc = checksum(group.shard, group.epoch, group.first, &body);
            columns.shards.push(i32::from(group.shard.0));
            columns.firsts.push(group.first as i64);
            columns.lasts.push(group.last() as i64);
            columns.epochs.push(group.epoch as i64);
            columns.crcs.push(i64::from(crc));
            columns.bodies.push(body);
        }
        Ok(columns)
    }

    fn parameters(&self) -> [&(dyn ToSql + Sync); 6] {
        [
            &self.shards,
            &self.firsts,
            &self.lasts,
            &self.epochs,
            &self.crcs,
            &self.bodies,
        ]
    }

    fn outcomes(&self, durable: &HashSet<i32>) -> Vec<Outcome> {
        let outcome = |shard| match durable.contains(shard) {
            true => Outcome::Durable,
            false => Outcome::Lost,
        };
        self.shards.iter().map(outcome).collect()
    }
}

/// Why an attempt did not end with an answer.
struct Failure {
    kind: Kind,
    source: Source,
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Failure {
            kind: Kind::of(&error),
            source: explained(&error),
        }
    }
}

pub(super) fn append(store: &mut Postgres, groups: &[Group<'_>]) -> Result<Vec<Outcome>, AppendError> {
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let columns = Columns::of(groups)?;
    let give_up = Instant::now() + store.timeouts.append;
    let [mut pause, pause_max] = PAUSES;
    // Whether an earlier attempt may have committed, or may still do so.
    let mut in_doubt = false;
    loop {
        let failure = match store.attempt(&columns, &mut in_doubt) {
            Ok(outcomes) => return Ok(outcomes),
            Err(failure) => failure,
        };
        let Failure { kind, source } = failure;
        let may_pass = matches!(kind, Kind::Broken | Kind::Busy) || (kind == Kind::Weak && in_doubt);
        if may_pass && Instant::now() + pause < give_up {
            tracing::warn!(error = source, in_doubt, "an append to the log store is repeated");
            thread::sleep(pause);
            pause = (pause * 2).min(pause_max);
            continue;
        }
        return Err(match kind {
            _ if in_doubt => AppendError::Unknown(source),
            Kind::Broken | Kind::Busy | Kind::Weak => AppendError::Unavailable(source),
            Kind::Full => AppendError::Full(source),
            Kind::NoTables | Kind::Refused => AppendError::Failed(source),
        });
    }
}

/// Whether a group would be taken: it is inserted, and taken back.
pub(super) async fn probe(
    connection: &mut Connection,
    (shard, epoch): (Shard, Epoch),
) -> Result<bool, StoreError> {
    durability::check(connection).await?;
    let body = vec![0_u8; PROBE_BYTES];
    let transaction = connection.client.transaction().await?;
    let parameters: [&(dyn ToSql + Sync); 3] = [&i32::from(shard.0), &(epoch as i64), &body];
    let inserted = transaction.execute(PROBE, &parameters).await?;
    transaction.rollback().await?;
    Ok(inserted == 1)
}

impl Postgres {
    /// One attempt. Sets `in_doubt` before anything is sent that may commit, and resets it if the database says that it
    /// did not.
    fn attempt(&mut self, columns: &Columns, in_doubt: &mut bool) -> Result<Vec<Outcome>, Failure> {
        let (place, address) = (&mut self.connection, &mut self.address);
        let attempt = async {
            let connection = Connection::ready(place, address).await.map_err(unavailable)?;
            let was_in_doubt = *in_doubt;
            let done = match was_in_doubt {
                true => settle(connection, columns).await,
                false => {
                    let insert = connection.append().await?;
                    *in_doubt = true;
                    let inserted = connection.client.query(&insert, &columns.parameters()).await;
                    match inserted {
                        Ok(rows) => unless_weak(connection, shards(&rows)).await,
                        Err(error) => Err(error.into()),
                    }
                }
            };
            match done {
                Ok(durable) => match connection.take_warning() {
                    None => Ok(columns.outcomes(&durable)),
                    Some(warning) => Err(Failure {
                        kind: Kind::Broken,
                        source: warning.into(),
                    }),
                },
                Err(failure) => {
                    *in_doubt = was_in_doubt || failure.kind == Kind::Broken;
                    Err(failure)
                }
            }
        };
        let timed = self
            .runtime
            .block_on(async { tokio::time::timeout(self.timeouts.attempt, attempt).await });
        let done = timed.unwrap_or_else(|_| {
            Err(Failure {
                kind: Kind::Broken,
                source: no_answer(),
            })
        });
        if done.is_err() {
            self.disconnect();
        }
        done
    }
}

/// The failure of a connection that could not be opened.
fn unavailable(error: StoreError) -> Failure {
    let kind = match error {
        StoreError::Unavailable(_) => Kind::Busy,
        StoreError::Failed(_) | StoreError::Tables(_) => Kind::Refused,
    };
    Failure {
        kind,
        source: error.into(),
    }
}

/// Which groups are durable. If commits reach one disk only, the statement has inserted none.
async fn unless_weak(connection: &Connection, durable: HashSet<i32>) -> Result<HashSet<i32>, Failure> {
    if durable.is_empty() {
        check(&connection.client).await?;
    }
    Ok(durable)
}

async fn check(client: &impl GenericClient) -> Result<(), Failure> {
    match durability::weakness(client).await? {
        None => Ok(()),
        Some(weakness) => Err(Failure {
            kind: Kind::Weak,
            source: weakness.into(),
        }),
    }
}

/// Inserts the groups again where they are missing. Returns the shards whose groups are durable and still owned.
async fn settle(connection: &mut Connection, columns: &Columns) -> Result<HashSet<i32>, Failure> {
    let insert = connection.append().await?;
    let transaction = connection.client.transaction().await?;
    check(&transaction).await?;
    let owned = transaction
        .query(OWNED, &[&columns.shards, &columns.epochs])
        .await?;
    transaction.execute(&insert, &columns.parameters()).await?;
    let there = transaction.query(THERE, &columns.parameters()).await?;
    transaction.commit().await?;
    Ok(&shards(&owned) & &shards(&there))
}

fn shards(rows: &[Row]) -> HashSet<i32> {
    rows.iter().map(|row| row.get(0)).collect()
}
