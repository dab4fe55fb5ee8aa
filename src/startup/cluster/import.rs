//! `tidewatch cluster import`: the data directory of a server on one machine becomes a shard of a cluster.

use std::path::Path;
use std::sync::Arc;

use disk::{Disk, StdDisk};
use log_store::{Import, Postgres, Shard, StoreError, Timeouts};

use super::Failure;
use crate::catalog::Catalog;
use crate::checkpoint::{self, Layout, Manifest};
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::remote::{Epochs, Publisher, PublisherOptions};
use crate::service::keys::hash_of;
use crate::startup::DirectoryLock;

/// What was imported.
pub struct Imported {
    /// The shard that it is now.
    pub shard: Shard,
    /// Accounts that sign in as before.
    pub accounts: usize,
    /// Keys that go on working.
    pub keys: usize,
    /// Files in the object store.
    pub files: u64,
    /// The last record.
    pub covered: u64,
}

/// Accounts of a catalog: addresses with their organizations, and hashes of what signs requests.
struct Accounts {
    addresses: Vec<(String, String)>,
    credentials: Vec<[u8; 32]>,
    keys: usize,
}

/// Uploads the data directory and makes it a shard of the configured cluster: one without an account. Without a shard named,
/// the first such one is taken. The directory stays as it is, but no server starts on it any more. Must be called within an
/// actix system.
///
/// # Errors
/// The directory is in use or damaged, the cluster is not reachable, the shard has accounts, or an address of the directory
/// has an account in the cluster. Then the directory and the cluster are as they were.
pub async fn import(config: Arc<Config>, shard: Option<u16>) -> Result<Imported, Failure> {
    let data_dir = config.storage.data_dir.clone();
    let layout = Layout::of(&data_dir);
    if !StdDisk.exists(&data_dir)? {
        return Err(format!("there is no data directory at {}", data_dir.display()).into());
    }
    let _lock = DirectoryLock::take(&data_dir)?;
    let accounts = close(&config).await?;
    let manifest = complete(&data_dir)?;
    let work = move || upload(&config, layout, shard, &accounts, &manifest);
    actix_web::rt::task::spawn_blocking(work).await?
}

/// Recovers the directory and takes a checkpoint, so that its files hold everything.
async fn close(config: &Config) -> Result<Accounts, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let pools = checkpoint::start_pools(config, 1)?;
    let rooms = checkpoint::start(config, pools, clock, None).await?;
    let accounts = rooms.catalog.read(accounts_of);
    rooms.checkpointer.close().await?;
    Ok(accounts)
}

fn accounts_of(catalog: &Catalog) -> Accounts {
    let users: Vec<_> = catalog.users().collect();
    let addresses = users
        .iter()
        .map(|user| (user.email.to_string(), user.organization_id.to_string()))
        .collect();
    let keys: Vec<[u8; 32]> = catalog.keys().map(|key| key.hash.0).collect();
    // Links that were made before do not name their shard.
    let resets = users.iter().filter_map(|user| Some(user.reset?.hash.0));
    let invitations = catalog.organizations().flat_map(|it| &it.invitations);
    let links = resets.chain(invitations.map(|invitation| invitation.hash.0));
    // Tokens that were issued before name only their user.
    let users = users.iter().map(|user| hash_of(user.id.to_string().as_bytes()).0);
    Accounts {
        addresses,
        keys: keys.len(),
        credentials: keys.into_iter().chain(links).chain(users).collect(),
    }
}

/// The manifest of a directory whose files hold everything.
fn complete(data_dir: &Path) -> Result<Manifest, Failure> {
    let manifest = Manifest::read(&StdDisk, data_dir)?.ok_or("the data directory has no checkpoint")?;
    if !manifest.unconverted.is_empty() || !manifest.carried.is_empty() {
        let message = "the data directory has damaged buckets; have `tidewatch check --repair` keep what is whole before";
        return Err(message.into());
    }
    let covered = manifest.newest_covered();
    Ok(Manifest {
        covered,
        catalog_covered: covered,
        ..manifest
    })
}

fn upload(
    config: &Config,
    layout: Layout,
    shard: Option<u16>,
    accounts: &Accounts,
    manifest: &Manifest,
) -> Result<Imported, Failure> {
    let url = config.cluster.log.as_deref().unwrap_or_default();
    let mut store = Postgres::new(url, Timeouts::default())?;
    let shard = match shard {
        Some(number) => Shard(number),
        None => {
            let empty = store.empty_shard()?;
            empty.ok_or("every shard of the cluster has accounts; there is none to import into")?
        }
    };
    let epoch = store.reserve_epoch(shard)?;
    let objects = super::open_objects(&config.cluster, &store.cluster()?)?;
    let mut publisher = Publisher::new(PublisherOptions {
        store: objects,
        disk: Arc::new(StdDisk),
        layout: layout.clone(),
        clock: Arc::new(SystemClock),
        shard: shard.0,
        epochs: Epochs::Given(epoch),
        taken_over: None,
    });
    let offer = publisher.offer(manifest)?;
    let published = publisher.publish(&offer, &|| true)?;
    let root = published.root.to_string();
    let import = Import {
        shard,
        root: &root,
        covered: manifest.covered,
        addresses: &accounts.addresses,
        credentials: &accounts.credentials,
    };
    // Before the commit: from then on there must be no second owner, whatever happens here.
    layout.mark_moved(&StdDisk)?;
    let outcome = match store.import(&import) {
        // The answer to the commit may have been lost.
        Err(StoreError::Unavailable(error)) => match store.root_of(shard) {
            Ok(now) if now.as_deref() == Some(&root) => Ok(()),
            Ok(_) => Err(StoreError::Unavailable(error)),
            Err(_) => {
                return Err(format!(
                    "whether {} is shard {shard} now is not known ({error}). If `tidewatch cluster status` shows the root \
                     {root} for that shard, it is; otherwise remove the file MOVED in the directory, and try again",
                    layout.data_dir.display()
                )
                .into());
            }
        },
        outcome => outcome,
    };
    if let Err(refused) = outcome {
        layout.unmark_moved(&StdDisk)?;
        return Err(refused.into());
    }
    Ok(Imported {
        shard,
        accounts: accounts.addresses.len(),
        keys: accounts.keys,
        files: published.uploads,
        covered: manifest.covered,
    })
}
