//! The tables, and making them.

use tokio_postgres::GenericClient;

use super::connection::Connection;
use super::durability;
use crate::error::StoreError;
use crate::{Cluster, InitOptions, Replication, SHARDS_MAX, Shard, ordinals};

/// The schema that holds all tables.
pub(super) const SCHEMA: &str = "tidewatch";

/// Version of the tables' layout.
const FORMAT: i32 = 1;

const CREATE_CLUSTER: &str = "
CREATE TABLE IF NOT EXISTS cluster (
    id integer PRIMARY KEY CHECK (id = 1),
    identity text NOT NULL,
    format integer NOT NULL,
    shards integer NOT NULL,
    replication text NOT NULL
)";

/// Bodies are not compressed by the database, which would cost more than it saves for columns. The log's rows are deleted
/// soon after they are written, so they are vacuumed by number, not by share of the table. The end of the table is not cut
/// off then, because that locks it against appends.
const CREATE: &str = "
CREATE TABLE IF NOT EXISTS node (
    id bigint PRIMARY KEY,
    address text NOT NULL,
    beat bigint NOT NULL,
    leaving boolean NOT NULL,
    lease_ms bigint NOT NULL,
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS shard (
    id integer PRIMARY KEY,
    epoch bigint NOT NULL,
    node bigint,
    covered bigint NOT NULL,
    root text,
    trims bigint NOT NULL,
    settled bigint NOT NULL,
    ordinals_from bigint NOT NULL,
    ordinals_below bigint NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS log (
    shard integer NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    epoch bigint NOT NULL,
    crc bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (shard, first)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 20000,
    toast.autovacuum_vacuum_cost_delay = 0, toast.vacuum_truncate = false
);
ALTER TABLE log ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS directory (
    email text PRIMARY KEY,
    shard integer NOT NULL,
    organization text NOT NULL
);
CREATE TABLE IF NOT EXISTS credential (hash bytea PRIMARY KEY, shard integer NOT NULL);
";

const ADD_SHARDS: &str = "
INSERT INTO shard (id, epoch, covered, trims, settled, ordinals_from, ordinals_below)
SELECT id, 0, 0, 0, 0, ordinals_from, ordinals_below
  FROM unnest($1::integer[], $2::bigint[], $3::bigint[]) AS g (id, ordinals_from, ordinals_below)
ON CONFLICT DO NOTHING";

/// Makes the tables, completes them, or finds them made in the same way.
pub(super) async fn create(
    connection: &mut Connection,
    shards: u16,
    options: InitOptions,
) -> Result<(), StoreError> {
    if shards == 0 || shards > SHARDS_MAX {
        return Err(StoreError::Tables(format!(
            "a cluster has 1 to {SHARDS_MAX} shards, not {shards}"
        )));
    }
    let replication = name(options.replication);
    let transaction = connection.client.transaction().await?;
    transaction
        .batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        .await?;
    transaction.batch_execute(CREATE_CLUSTER).await?;
    let made = "INSERT INTO cluster (id, identity, format, shards, replication)
                VALUES (1, gen_random_uuid()::text, $1, $2, $3) ON CONFLICT DO NOTHING";
    transaction
        .execute(made, &[&FORMAT, &i32::from(shards), &replication])
        .await?;
    let (made, replicated) = read(&transaction).await?;
    if made.shards != shards {
        return Err(StoreError::Tables(format!(
            "the database has tables of a cluster with {} shards; their number cannot be changed",
            made.shards
        )));
    }
    if replicated != replication {
        return Err(StoreError::Tables(format!(
            "the database has tables of a cluster that relies on replication by its {replicated}, not by its {replication}"
        )));
    }
    if let Some(weakness) = durability::weakness(&transaction).await? {
        return Err(StoreError::Tables(format!(
            "{weakness}. If the database's storage keeps two copies without that, say so when the cluster is made"
        )));
    }
    transaction.batch_execute(CREATE).await?;
    let (mut ids, mut from, mut below) = (Vec::new(), Vec::new(), Vec::new());
    for id in 0..shards {
        let range = ordinals(Shard(id), shards);
        ids.push(i32::from(id));
        from.push(i64::from(range.start));
        below.push(i64::from(range.end));
    }
    transaction.execute(ADD_SHARDS, &[&ids, &from, &below]).await?;
    let others = "SELECT count(*) FROM shard WHERE id < 0 OR id >= $1";
    let others: i64 = transaction.query_one(others, &[&i32::from(shards)]).await?.get(0);
    if others > 0 {
        return Err(StoreError::Tables(format!(
            "the database has {others} shards that a cluster of {shards} does not have"
        )));
    }
    Ok(transaction.commit().await?)
}

/// What `cluster` says about a kind of replication.
fn name(replication: Replication) -> &'static str {
    match replication {
        Replication::Standbys => "standbys",
        Replication::Storage => "storage",
    }
}

/// The cluster that the tables were made for.
pub(super) async fn cluster(connection: &mut Connection) -> Result<Cluster, StoreError> {
    Ok(read(&connection.client).await?.0)
}

async fn read(client: &impl GenericClient) -> Result<(Cluster, String), StoreError> {
    let row = client
        .query_one("SELECT format, shards, replication, identity FROM cluster", &[])
        .await?;
    let (format, shards): (i32, i32) = (row.get(0), row.get(1));
    match u16::try_from(shards) {
        Ok(shards) if format == FORMAT => {
            let identity = row.get(3);
            Ok((Cluster { identity, shards }, row.get(2)))
        }
        _ => Err(StoreError::Tables(format!(
            "the database has tables of format {format}; this program reads format {FORMAT}"
        ))),
    }
}
