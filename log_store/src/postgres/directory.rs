//! The directory's tables.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::Postgres;
use super::connection::Connection;
use crate::directory::{CREDENTIALS_BATCH, CredentialHash, Directory, Place, check_names};
use crate::{Shard, StoreError};

/// An address that others take and give up all the time is left to them.
const ATTEMPTS: usize = 3;

impl Directory for Postgres {
    fn take(&mut self, email: &str, shard: Shard, organization: &str) -> Result<Place, StoreError> {
        check_names([email, organization])?;
        self.change(async |connection| take(connection, email, shard, organization).await)
    }

    fn find(&mut self, email: &str) -> Result<Option<Place>, StoreError> {
        self.ask(async |connection| find(connection, email).await)
    }

    fn give_up(&mut self, email: &str, shard: Shard) -> Result<bool, StoreError> {
        self.change(async |connection| {
            let delete = "DELETE FROM directory WHERE email = $1 AND shard = $2";
            let parameters: [&(dyn ToSql + Sync); 2] = [&email, &i32::from(shard.0)];
            Ok(connection.client.execute(delete, &parameters).await? == 1)
        })
    }

    fn add_credentials(
        &mut self,
        credentials: &[(CredentialHash, Shard)],
    ) -> Result<Vec<CredentialHash>, StoreError> {
        let mut taken = Vec::new();
        for batch in credentials.chunks(CREDENTIALS_BATCH) {
            taken.extend(self.change(async |connection| add(connection, batch).await)?);
        }
        Ok(taken)
    }

    fn find_credential(&mut self, hash: &CredentialHash) -> Result<Option<Shard>, StoreError> {
        self.ask(async |connection| {
            let select = "SELECT shard FROM credential WHERE hash = $1";
            let row = connection.client.query_opt(select, &[&hash.as_slice()]).await?;
            Ok(row.map(|row| Shard(row.get::<_, i32>(0) as u16)))
        })
    }
}

async fn take(
    connection: &mut Connection,
    email: &str,
    shard: Shard,
    organization: &str,
) -> Result<Place, StoreError> {
    for _ in 0..ATTEMPTS {
        let insert =
            "INSERT INTO directory (email, shard, organization) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
        let parameters: [&(dyn ToSql + Sync); 3] = [&email, &i32::from(shard.0), &organization];
        connection.client.execute(insert, &parameters).await?;
        if let Some(place) = find(connection, email).await? {
            return Ok(place);
        }
    }
    Err(StoreError::Unavailable("the address is being given up".into()))
}

async fn find(connection: &mut Connection, email: &str) -> Result<Option<Place>, StoreError> {
    let select = "SELECT shard, organization FROM directory WHERE email = $1";
    let place = |row: Row| Place {
        shard: Shard(row.get::<_, i32>(0) as u16),
        organization: row.get(1),
    };
    Ok(connection.client.query_opt(select, &[&email]).await?.map(place))
}

async fn add(
    connection: &mut Connection,
    batch: &[(CredentialHash, Shard)],
) -> Result<Vec<CredentialHash>, StoreError> {
    let hashes: Vec<&[u8]> = batch.iter().map(|(hash, _)| hash.as_slice()).collect();
    let shards: Vec<i32> = batch.iter().map(|(_, shard)| i32::from(shard.0)).collect();
    let parameters: [&(dyn ToSql + Sync); 2] = [&hashes, &shards];
    let insert = "INSERT INTO credential (hash, shard)
                  SELECT hash, shard FROM unnest($1::bytea[], $2::integer[]) AS g (hash, shard)
                  ON CONFLICT DO NOTHING";
    connection.client.execute(insert, &parameters).await?;
    let select = "SELECT credential.hash FROM credential
                    JOIN unnest($1::bytea[], $2::integer[]) AS g (hash, shard) ON credential.hash = g.hash
                   WHERE credential.shard <> g.shard";
    let rows = connection.client.query(select, &parameters).await?;
    let hash = |row: &Row| CredentialHash::try_from(row.get::<_, &[u8]>(0));
    let hashes: Result<Vec<_>, _> = rows.iter().map(hash).collect();
    hashes.map_err(|error| StoreError::Failed(error.into()))
}
