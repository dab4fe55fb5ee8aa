//! The tables, and making them.

use tokio_postgres::GenericClient;

use super::connection::Connection;
use crate::error::StoreError;

/// The schema that holds all tables.
pub(super) const SCHEMA: &str = "tidewatch";

/// Version of the tables' layout.
const FORMAT: i32 = 1;

/// Bodies are not compressed by the database, which would cost more than it saves for columns. The log's rows are deleted
/// soon after they are written, so they are vacuumed by number, not by share of the table.
const CREATE: &str = "
CREATE TABLE cluster (format integer NOT NULL, shards integer NOT NULL);
CREATE TABLE node (
    id bigint PRIMARY KEY,
    address text NOT NULL,
    beat bigint NOT NULL,
    leaving boolean NOT NULL,
    lease_ms bigint NOT NULL,
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE shard (
    id integer PRIMARY KEY,
    epoch bigint NOT NULL,
    node bigint,
    covered bigint NOT NULL,
    root text,
    trims bigint NOT NULL DEFAULT 0,
    settled bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE TABLE log (
    shard integer NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    epoch bigint NOT NULL,
    crc bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (shard, first)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 20000,
    toast.autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE log ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE directory (email text PRIMARY KEY, shard integer NOT NULL, organization text NOT NULL);
";

/// Makes the tables, or finds them made for as many shards.
pub(super) async fn create(connection: &mut Connection, shards: u16) -> Result<(), StoreError> {
    let transaction = connection.client.transaction().await?;
    transaction
        .batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        .await?;
    let exists =
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = $1 AND table_name = 'cluster'";
    if transaction.query_one(exists, &[&SCHEMA]).await?.get::<_, i64>(0) > 0 {
        let made_for = read(&transaction).await?;
        return match made_for == shards {
            true => Ok(()),
            false => Err(StoreError::Tables(format!(
                "the database has tables of a cluster with {made_for} shards; their number cannot be changed"
            ))),
        };
    }
    transaction.batch_execute(CREATE).await?;
    transaction
        .execute(
            "INSERT INTO cluster VALUES ($1, $2)",
            &[&FORMAT, &i32::from(shards)],
        )
        .await?;
    transaction
        .execute(
            "INSERT INTO shard (id, epoch, covered) SELECT id, 0, 0 FROM generate_series(0, $1 - 1) AS id",
            &[&i32::from(shards)],
        )
        .await?;
    Ok(transaction.commit().await?)
}

/// The number of shards that the tables were made for.
pub(super) async fn shard_count(connection: &mut Connection) -> Result<u16, StoreError> {
    read(&connection.client).await
}

async fn read(client: &impl GenericClient) -> Result<u16, StoreError> {
    let row = client
        .query_one("SELECT format, shards FROM cluster", &[])
        .await?;
    let (format, shards): (i32, i32) = (row.get(0), row.get(1));
    match u16::try_from(shards) {
        Ok(shards) if format == FORMAT => Ok(shards),
        _ => Err(StoreError::Tables(format!(
            "the database has tables of format {format}; this program reads format {FORMAT}"
        ))),
    }
}
