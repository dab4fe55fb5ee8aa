//! A shard that comes from elsewhere: a server on one machine joins a cluster.

use tokio_postgres::types::ToSql;

use super::Postgres;
use super::connection::Connection;
use crate::directory::{CREDENTIALS_BATCH, CredentialHash};
use crate::{Epoch, Sequence, Shard, StoreError};

/// Addresses that a refusal names.
const NAMED_MAX: i64 = 10;

/// What a shard is replaced with.
#[derive(Clone, Copy, Debug)]
pub struct Import<'a> {
    /// A shard without an account.
    pub shard: Shard,
    /// Names what holds everything.
    pub root: &'a str,
    /// The last record that it holds.
    pub covered: Sequence,
    /// The e-mail addresses of the accounts, each with its organization.
    pub addresses: &'a [(String, String)],
    /// The hashes of the credentials that do not say their shard.
    pub credentials: &'a [CredentialHash],
}

impl Postgres {
    /// An epoch of this shard that nobody else ever has, for the names of objects. Whoever owns the shard loses it, and it is
    /// claimed again.
    ///
    /// # Errors
    /// The store fails.
    pub fn reserve_epoch(&mut self, shard: Shard) -> Result<Epoch, StoreError> {
        self.change(async |connection| {
            let update = "UPDATE shard SET epoch = epoch + 2, node = NULL WHERE id = $1 RETURNING epoch - 1";
            let row = connection
                .client
                .query_one(update, &[&i32::from(shard.0)])
                .await?;
            Ok(row.get::<_, i64>(0) as Epoch)
        })
    }

    /// The first shard without an account.
    ///
    /// # Errors
    /// The store fails.
    pub fn empty_shard(&mut self) -> Result<Option<Shard>, StoreError> {
        self.ask(async |connection| {
            let select = "SELECT id FROM shard
                           WHERE NOT EXISTS (SELECT FROM directory WHERE directory.shard = shard.id)
                           ORDER BY id LIMIT 1";
            let row = connection.client.query_opt(select, &[]).await?;
            Ok(row.map(|row| Shard(row.get::<_, i32>(0) as u16)))
        })
    }

    /// Replaces a shard that has no account by another one, all at once: its root, its accounts and its credentials. Its
    /// owner loses it, and its next owner finds the new one.
    ///
    /// # Errors
    /// The store fails, the shard has accounts, or another shard has one of the addresses. Then nothing is changed, unless
    /// the store became unavailable during the commit: the shard's root tells.
    pub fn import(&mut self, import: &Import<'_>) -> Result<(), StoreError> {
        self.change(async |connection| replace(connection, import).await)
    }
}

async fn replace(connection: &mut Connection, import: &Import<'_>) -> Result<(), StoreError> {
    let shard = i32::from(import.shard.0);
    let transaction = connection.client.transaction().await?;
    // From here on nobody writes to the shard, so that no account is made in it.
    let lock = "SELECT id FROM shard WHERE id = $1 FOR UPDATE";
    if transaction.query_opt(lock, &[&shard]).await?.is_none() {
        return Err(StoreError::Tables(format!(
            "the cluster has no shard {}",
            import.shard
        )));
    }
    let count = "SELECT count(*) FROM directory WHERE shard = $1";
    let accounts: i64 = transaction.query_one(count, &[&shard]).await?.get(0);
    if accounts > 0 {
        return Err(StoreError::Tables(format!(
            "shard {} has {accounts} accounts; import into a shard without any",
            import.shard
        )));
    }
    for batch in import.addresses.chunks(CREDENTIALS_BATCH) {
        let emails: Vec<&str> = batch.iter().map(|(email, _)| email.as_str()).collect();
        let organizations: Vec<&str> = batch
            .iter()
            .map(|(_, organization)| organization.as_str())
            .collect();
        let insert = "INSERT INTO directory (email, shard, organization)
                      SELECT email, $2, organization FROM unnest($1::text[], $3::text[]) AS g (email, organization)
                      ON CONFLICT DO NOTHING";
        let parameters: [&(dyn ToSql + Sync); 3] = [&emails, &shard, &organizations];
        transaction.execute(insert, &parameters).await?;
        let taken = "SELECT email FROM directory WHERE email = ANY ($1) AND shard <> $2 LIMIT $3";
        let taken = transaction.query(taken, &[&emails, &shard, &NAMED_MAX]).await?;
        if !taken.is_empty() {
            let taken: Vec<&str> = taken.iter().map(|row| row.get(0)).collect();
            return Err(StoreError::Tables(format!(
                "these addresses have accounts in the cluster already: {}",
                taken.join(", ")
            )));
        }
    }
    for batch in import.credentials.chunks(CREDENTIALS_BATCH) {
        let hashes: Vec<&[u8]> = batch.iter().map(CredentialHash::as_slice).collect();
        let insert =
            "INSERT INTO credential (hash, shard) SELECT hash, $2 FROM unnest($1::bytea[]) AS g (hash)
                      ON CONFLICT (hash) DO UPDATE SET shard = excluded.shard";
        transaction.execute(insert, &[&hashes, &shard]).await?;
    }
    let delete = "DELETE FROM log WHERE shard = $1";
    transaction.execute(delete, &[&shard]).await?;
    let update = "UPDATE shard SET epoch = epoch + 1, node = NULL, root = $2, covered = $3, trims = trims + 1
                   WHERE id = $1";
    let parameters: [&(dyn ToSql + Sync); 3] = [&shard, &import.root, &(import.covered as i64)];
    transaction.execute(update, &parameters).await?;
    Ok(transaction.commit().await?)
}
