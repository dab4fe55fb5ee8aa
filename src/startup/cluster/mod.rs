//! Starts a node of a cluster: its connections, its membership, and what keeps its shards.

mod directory;
mod export;
mod import;
mod keeper;
mod membership;
mod operate;
mod tails;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix_web::rt;
use disk::StdDisk;
use futures_util::stream::{self, StreamExt};
use log_store::{Cluster as Made, Postgres, StoreError, Timeouts};
use parking_lot::Mutex;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::{Semaphore, oneshot};

use super::StartupError;
use super::opener::Opener;
use crate::config::ClusterConfig;
use crate::error::ServiceError;
use crate::extents::{CacheOptions, ExtentCache};
use crate::http::{NodeAccess, NodeClient};
use crate::journal::{Journal, StoredLog};
use crate::service::{Cluster, ClusterTag, Node, ShardTable, StatusReader};
use directory::StoredDirectory;
use keeper::{FETCHES_MAX, Keeper};
use membership::{Membership, Report, Reports};
use tails::StoredTails;

pub use export::{Exported, export};
pub use import::{Imported, import};
pub use operate::{init, status};

/// The file of the block cache in the data directory.
const EXTENTS: &str = "extents";

/// Why an operation failed, for the operator.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Pause before a log store that does not answer is tried again.
const CONNECT_PAUSE: Duration = Duration::from_secs(1);

/// How long a stop waits for the other nodes to have what this one hands over.
const LEAVE_WITHIN: Duration = Duration::from_secs(60);

/// How long a stop waits for the node to be removed from the log store.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Nodes that a node which stops tells so at the same time.
const TELLS_MAX: usize = 64;

/// How long a stop waits for the other nodes to know that this one owns nothing.
const TELL_WITHIN: Duration = Duration::from_secs(3);

/// How long a stop waits for requests that other nodes have sent before they knew.
const LAST_REQUESTS_WITHIN: Duration = Duration::from_millis(100);

/// A node's place in its cluster.
pub(super) struct Member {
    reports: Reports,
    table: Arc<ShardTable>,
    access: NodeAccess,
}

/// Joins the cluster. `address` is where other nodes reach this one. Returns before any shard is open.
///
/// # Errors
/// The configuration is wrong, the log store has no tables, or the operating system has no resources.
pub(super) async fn join(
    opener: &Arc<Opener>,
    address: String,
    access: NodeAccess,
) -> Result<(Node, Member), StartupError> {
    let config = &opener.config.cluster;
    let url = config.log.clone().unwrap_or_default();
    let connect = |timeouts| Postgres::new(&url, timeouts).map_err(of_store);
    let made = find_made(connect(Timeouts::default())?).await?;
    let tag = ClusterTag::of(&made.identity);
    let table = Arc::new(ShardTable::new(
        made.shards,
        config.lease,
        Arc::clone(&opener.clock),
    ));
    let ways = [connect(Timeouts::default())?, connect(Timeouts::default())?];
    let directory = StoredDirectory::start(ways.map(|way| Box::new(way) as _));
    let directory = Arc::new(directory.map_err(ServiceError::internal)?);
    let (orders, ordered) = unbounded_channel();
    let rounds = connect(Timeouts::of_membership(config.lease))?;
    let (membership, reports) = Membership::new(
        Box::new(rounds),
        address,
        config.lease,
        Arc::clone(&table),
        orders,
    );
    let log = StoredLog::new(Box::new(connect(Timeouts::default())?));
    let objects = open_objects(config, &made)?;
    let data_dir = &opener.config.storage.data_dir;
    keeper::remove_copies(data_dir).map_err(ServiceError::internal)?;
    let cached = CacheOptions {
        store: Arc::clone(&objects),
        disk: Arc::new(StdDisk),
        clock: Arc::clone(&opener.clock),
        bytes_max: config.disk_cache_bytes_max,
    };
    let extents = ExtentCache::create(&data_dir.join(EXTENTS), cached).map_err(ServiceError::internal)?;
    let figures = extents.figures();
    let keeper = Keeper {
        opener: Arc::clone(opener),
        journal: Journal::start(log).map_err(ServiceError::internal)?,
        store: Mutex::new(Box::new(connect(Timeouts::default())?)),
        objects,
        extents,
        table: Arc::clone(&table),
        tag,
        directory: Arc::clone(&directory) as _,
        reports: reports.clone(),
        others: NodeClient::new(access.clone()),
        fetches: Semaphore::new(FETCHES_MAX),
        shards: RefCell::new(BTreeMap::new()),
    };
    keeper.start(ordered);
    membership.start().map_err(ServiceError::internal)?;
    pass_on_news(Arc::clone(&table), reports.clone());
    let tails = StoredTails::start(Box::new(connect(Timeouts::default())?));
    let member = Member {
        reports,
        table: Arc::clone(&table),
        access,
    };
    let cluster = Cluster {
        table,
        tag,
        directory,
        secret: config.secret.as_deref().unwrap_or_default().into(),
        extents: figures,
        status: StatusReader::new(tails.map_err(ServiceError::internal)?),
    };
    Ok((opener.node_of(cluster), member))
}

impl Member {
    /// Hands all shards over, and tells the other nodes. Requests are passed on as before.
    pub(super) async fn leave(&self) {
        let (done, left) = oneshot::channel();
        self.reports.send(Report::Leave(done));
        if tokio::time::timeout(LEAVE_WITHIN, left).await.is_err() {
            tracing::warn!("not all shards are handed over; other nodes take them after this node's lease");
        }
        self.tell_all().await;
    }

    /// Waits until no other node sends requests here: the fate of one that meets the end of its connection is not known.
    async fn tell_all(&self) {
        let Some(seen) = self.table.seen() else { return };
        let client = NodeClient::new(self.access.clone());
        let others = seen.tables.nodes.iter().filter(|node| node.id != seen.me);
        let told = stream::iter(others).for_each_concurrent(TELLS_MAX, async |node| {
            if let Err(error) = client.tell_news(&node.address).await {
                tracing::debug!(address = node.address, %error, "another node was not told that this one stops");
            }
        });
        if rt::time::timeout(TELL_WITHIN, told).await.is_err() {
            tracing::debug!("not all nodes were told that this one stops");
        }
        rt::time::sleep(LAST_REQUESTS_WITHIN).await;
    }

    /// Ends the membership of a node that has left.
    pub(super) async fn end(self) {
        let (done, ended) = oneshot::channel();
        self.reports.send(Report::End(done));
        // Otherwise others remove the node after its lease.
        let _ = tokio::time::timeout(END_WITHIN, ended).await;
    }
}

/// Asks the log store for what was made, until it answers.
async fn find_made(store: Postgres) -> Result<Made, StartupError> {
    let mut store = store;
    loop {
        let asked = rt::task::spawn_blocking(move || {
            let made = store.cluster();
            (store, made)
        });
        let (back, made) = asked.await.map_err(ServiceError::internal)?;
        store = back;
        match made {
            Err(StoreError::Unavailable(error)) => {
                tracing::warn!(%error, "the log store does not answer; trying again");
                rt::time::sleep(CONNECT_PAUSE).await;
            }
            made => return made.map_err(of_store),
        }
    }
}

/// Opens the object store. Below the configured prefix the cluster has one of its own, which no server on one machine and no
/// cluster that was made before uses.
fn open_objects(config: &ClusterConfig, made: &Made) -> Result<Arc<dyn objects::ObjectStore>, StartupError> {
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let url = config.objects.as_deref().unwrap_or_default();
    let opened = objects::open_within(url, &made.identity, environment);
    opened.map_err(|error| StartupError::Objects(error.into()))
}

/// Whoever finds the table old has it read again soon.
fn pass_on_news(table: Arc<ShardTable>, reports: Reports) {
    rt::spawn(async move {
        loop {
            table.asked_for_news().await;
            reports.send(Report::News);
        }
    });
}

fn of_store(error: StoreError) -> StartupError {
    StartupError::LogStore(error)
}
