//! Whether a commit still reaches a second disk.
//!
//! PostgreSQL waits for a standby only while `synchronous_standby_names` is set, and anybody who may reload its
//! configuration can empty it; commits then return from one disk. A cluster whose commits rely on the setting writes
//! nothing without it.

use tokio_postgres::GenericClient;

use super::connection::Connection;
use crate::error::StoreError;

/// True if commits reach a second disk, by the setting or, as `init` was told, by the storage. A part of other statements.
macro_rules! is_durable {
    () => {
        "(EXISTS (SELECT 1 FROM cluster WHERE replication = 'storage') OR \
          trim(coalesce(current_setting('synchronous_standby_names', true), '')) <> '' AND \
          current_setting('synchronous_commit', true) IN ('on', 'remote_apply'))"
    };
}
pub(super) use is_durable;

const READ: &str = concat!(
    "SELECT ",
    is_durable!(),
    ", coalesce(current_setting('synchronous_standby_names', true), ''), \
       coalesce(current_setting('synchronous_commit', true), '')"
);

/// Why commits do not reach a second disk, or `None` if they do.
pub(super) async fn weakness(client: &impl GenericClient) -> Result<Option<String>, tokio_postgres::Error> {
    let row = client.query_one(READ, &[]).await?;
    match row.get(0) {
        true => Ok(None),
        false => Ok(Some(describe(row.get(1), row.get(2)))),
    }
}

pub(super) fn describe(names: &str, commit: &str) -> String {
    format!(
        "nothing is written, because a commit would not reach a second disk: the database has \
         synchronous_standby_names = '{names}' and synchronous_commit = '{commit}'; name the standbys again, and leave \
         synchronous_commit on"
    )
}

/// Refuses if commits do not reach a second disk.
pub(super) async fn check(connection: &Connection) -> Result<(), StoreError> {
    match weakness(&connection.client).await? {
        None => Ok(()),
        Some(weakness) => Err(StoreError::Unavailable(weakness.into())),
    }
}
