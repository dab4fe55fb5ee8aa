//! A node: the shards that it serves, and whatever does not belong to one shard.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use log_store::{Epoch, Shard};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::OwnedSemaphorePermit;

use super::access::unknown_key;
use super::directory::Directory;
use super::keys::{hash_of, shard_of_key};
use super::resets::shard_of_link;
use super::secret_text::shard_named_in;
use super::shard_name::{ClusterTag, ShardName};
use super::shard_table::ShardTable;
use super::shares::unknown_link;
use super::tokens::{invalid_token, named_in};
use super::{Figures, Resources, ServerStatus, Service, StatusReader};
use crate::catalog::KeyHash;
use crate::clock::Clock;
use crate::config::Config;
use crate::error::ServiceError;
use crate::extents::ExtentFigures;
use crate::journal::THE_SHARD;

/// The process, as endpoints see it.
pub struct Node {
    /// The validated configuration.
    pub config: Arc<Config>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// What shards share.
    pub resources: Arc<Resources>,
    shards: Shards,
}

enum Shards {
    /// A server on one machine has one shard.
    One(ShardService),
    Cluster(Cluster),
}

/// A node's view of its cluster.
pub struct Cluster {
    /// Where each shard is.
    pub table: Arc<ShardTable>,
    /// Its name in keys and tokens.
    pub tag: ClusterTag,
    /// Where accounts are.
    pub directory: Arc<dyn Directory>,
    /// What nodes send each other to be known as such.
    pub secret: Arc<str>,
    /// What the cache of blocks from the object store does.
    pub extents: Arc<ExtentFigures>,
    /// Reads the status of nodes and shards.
    pub status: StatusReader,
}

/// The service of a shard, while a request uses it.
pub struct ShardService {
    service: Arc<Service>,
    /// A place among the requests that use it, in a cluster.
    _user: Option<OwnedSemaphorePermit>,
}

/// Where a request is served.
pub enum Location<S> {
    /// On this node, by this.
    Here(S),
    /// On another node.
    At(Owner),
}

/// A node that owns a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The shard.
    pub shard: Shard,
    /// Where other nodes reach the owner.
    pub address: Arc<str>,
    /// The epoch under which it owns the shard: a node that restarts has the same address.
    pub epoch: Epoch,
}

impl ShardService {
    pub(super) fn used_by(service: Arc<Service>, user: OwnedSemaphorePermit) -> Self {
        ShardService {
            service,
            _user: Some(user),
        }
    }

    fn without_place(service: Arc<Service>) -> Self {
        ShardService { service, _user: None }
    }
}

impl Deref for ShardService {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

/// The shard in which a new account with this email address is made: the same on every node.
fn shard_for(email: &str, shards: u16) -> Shard {
    let digest = Sha256::digest(email.as_bytes());
    let number = u16::from_be_bytes([digest[0], digest[1]]);
    Shard(number % shards.max(1))
}

impl Node {
    /// A server on one machine: a node with one shard.
    pub fn of_one(shard: Service) -> Self {
        Node {
            config: Arc::clone(&shard.config),
            clock: Arc::clone(&shard.clock),
            resources: Arc::clone(&shard.resources),
            shards: Shards::One(ShardService::without_place(Arc::new(shard))),
        }
    }

    /// A node of a cluster.
    pub fn of_cluster(
        config: Arc<Config>,
        clock: Arc<dyn Clock>,
        resources: Arc<Resources>,
        cluster: Cluster,
    ) -> Self {
        Node {
            config,
            clock,
            resources,
            shards: Shards::Cluster(cluster),
        }
    }

    /// The cluster that the node belongs to; `None` for a server on one machine.
    pub fn cluster(&self) -> Option<&Cluster> {
        match &self.shards {
            Shards::One(_) => None,
            Shards::Cluster(cluster) => Some(cluster),
        }
    }

    /// The services of the shards that are served here.
    pub fn shards(&self) -> Vec<ShardService> {
        match &self.shards {
            Shards::One(shard) => vec![ShardService::without_place(Arc::clone(&shard.service))],
            Shards::Cluster(cluster) => {
                let served = cluster.table.served().into_iter();
                served.map(ShardService::without_place).collect()
            }
        }
    }

    /// The shard of a server on one machine; `None` in a cluster.
    pub fn only_shard(&self) -> Option<ShardService> {
        match &self.shards {
            Shards::One(shard) => Some(ShardService::without_place(Arc::clone(&shard.service))),
            Shards::Cluster(_) => None,
        }
    }

    /// All shards, wherever they are served.
    pub fn all_shards(&self) -> impl Iterator<Item = Shard> + use<> {
        let shards = self.cluster().map_or(1, |cluster| cluster.table.len());
        (0..shards).map(Shard)
    }

    /// Where an API key is known.
    ///
    /// # Errors
    /// 401 if no shard has issued it; 503 if its shard is not served by then.
    pub async fn locate_key(
        &self,
        key: &[u8],
        until: Instant,
    ) -> Result<Location<ShardService>, ServiceError> {
        let shard = self.shard_of(shard_of_key(key), || hash_of(key)).await?;
        self.locate(shard.ok_or_else(unknown_key)?, until).await
    }

    /// Where the token of a link to a board is known.
    ///
    /// # Errors
    /// 404 if no shard has made it; 503 if its shard is not served by then.
    pub async fn locate_share(
        &self,
        token: &str,
        until: Instant,
    ) -> Result<Location<ShardService>, ServiceError> {
        let name = shard_named_in(token.as_bytes(), [""]);
        let shard = self.shard_of(name, || hash_of(token.as_bytes())).await?;
        self.locate(shard.ok_or_else(unknown_link)?, until).await
    }

    /// Where a bearer token is known.
    ///
    /// # Errors
    /// 401 if it names no shard; 503 if its shard is not served by then.
    pub async fn locate_token(
        &self,
        token: &str,
        until: Instant,
    ) -> Result<Location<ShardService>, ServiceError> {
        let (name, user_id) = named_in(token).ok_or_else(invalid_token)?;
        let hash = || hash_of(user_id.to_string().as_bytes());
        let shard = self.shard_of(name, hash).await?;
        self.locate(shard.ok_or_else(invalid_token)?, until).await
    }

    /// Where the link of an invitation or a password reset was made; for a token that no shard has issued, a shard that can
    /// tell so.
    ///
    /// # Errors
    /// 503 if the directory does not answer, or the shard is not served by then.
    pub async fn locate_link(
        &self,
        token: Option<&str>,
        until: Instant,
    ) -> Result<Location<ShardService>, ServiceError> {
        let token = token.unwrap_or_default().as_bytes();
        let shard = self.shard_of(shard_of_link(token), || hash_of(token)).await?;
        self.locate(shard.unwrap_or(THE_SHARD), until).await
    }

    /// Where the account of an email address is, or would be; without an address, a shard that can tell so.
    ///
    /// # Errors
    /// 503 if the directory does not answer, or the shard is not served by then.
    pub async fn locate_email(
        &self,
        email: Option<&str>,
        until: Instant,
    ) -> Result<Location<ShardService>, ServiceError> {
        let (Some(cluster), Some(email)) = (self.cluster(), email) else {
            return self.locate(THE_SHARD, until).await;
        };
        let taken = cluster.directory.shard_of_email(email).await?;
        let shard = taken.unwrap_or_else(|| shard_for(email, cluster.table.len()));
        self.locate(shard, until).await
    }

    /// The shard of a credential: the one that it names, if it was made in this cluster, and otherwise the one that has
    /// imported it.
    async fn shard_of(
        &self,
        name: Option<ShardName>,
        hash: impl FnOnce() -> KeyHash,
    ) -> Result<Option<Shard>, ServiceError> {
        let Some(cluster) = self.cluster() else {
            return Ok(Some(THE_SHARD));
        };
        let shard = match name.and_then(|name| name.within(cluster.tag)) {
            Some(shard) => Some(shard),
            None => cluster.directory.shard_of_key(hash()).await?,
        };
        Ok(shard.filter(|shard| shard.0 < cluster.table.len()))
    }

    /// Where a shard is served.
    ///
    /// # Errors
    /// 503 if it is not served by then, or there is no such shard.
    pub async fn locate(&self, shard: Shard, until: Instant) -> Result<Location<ShardService>, ServiceError> {
        match &self.shards {
            Shards::One(shard) => Ok(Location::Here(ShardService::without_place(Arc::clone(
                &shard.service,
            )))),
            Shards::Cluster(cluster) => cluster.table.locate(shard, None, until).await,
        }
    }

    /// Whether this node accepts writes. In a cluster it also passes on those of other shards, so that it is ready while one
    /// of its own shards accepts writes, or it has none.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn readiness(&self) -> Result<(), String> {
        let shards = self.shards();
        match &self.shards {
            Shards::One(_) => shards.iter().try_for_each(|shard| shard.readiness()),
            Shards::Cluster(cluster) => {
                cluster.table.readiness()?;
                let mut refusal = Ok(());
                for shard in shards {
                    match shard.readiness() {
                        Ok(()) => return Ok(()),
                        why => refusal = why,
                    }
                }
                refusal
            }
        }
    }

    /// Whether the operator routes exist.
    pub fn has_operator(&self) -> bool {
        self.config.operator.token.is_some()
    }

    /// Compares the operator's token in constant time.
    ///
    /// # Errors
    /// 401.
    pub fn check_operator(&self, presented: Option<&str>) -> Result<(), ServiceError> {
        let expected = self.config.operator.token.as_deref().unwrap_or_default();
        let presented = presented.unwrap_or_default();
        // Digests have the same length, so that timing does not reveal even the token's length.
        let [of_expected, of_presented] = [expected, presented].map(Sha256::digest);
        if !expected.is_empty() && bool::from(of_expected.as_slice().ct_eq(of_presented.as_slice())) {
            return Ok(());
        }
        Err(ServiceError::unauthorized(
            "send the operator token as authorization: bearer",
        ))
    }

    /// The ids of the buckets that are set apart because they failed to open or panicked.
    pub fn buckets_set_apart(&self) -> Vec<String> {
        let shards = self.shards();
        shards
            .iter()
            .flat_map(|shard| shard.buckets_set_apart())
            .collect()
    }

    /// The number of damaged blocks that were found.
    pub fn damaged_blocks(&self) -> u64 {
        self.shards()
            .iter()
            .map(|shard| shard.buckets.damaged().count())
            .sum()
    }

    /// Collects the statistics of all shards.
    pub async fn figures(&self) -> Figures {
        let mut sum = Figures {
            queries: self.resources.queries.stats(),
            rules_due: Some(0),
            ..Figures::default()
        };
        for shard in self.shards() {
            sum.add(&shard.figures().await);
        }
        if let Shards::Cluster(cluster) = &self.shards {
            sum.extents = Some(cluster.extents.read());
        }
        sum.ready = self.readiness().is_ok();
        sum
    }

    /// What is known of the server's nodes and shards.
    ///
    /// # Errors
    /// 503 in a cluster whose log store does not answer, or which the node has not joined yet.
    pub async fn status(&self) -> Result<ServerStatus, ServiceError> {
        Ok(match &self.shards {
            Shards::One(shard) => ServerStatus::Machine(shard.machine_status()),
            Shards::Cluster(cluster) => {
                let status = cluster.status.read(&cluster.table, &*self.clock).await?;
                ServerStatus::Cluster(status)
            }
        })
    }

    /// Whether there is no account yet. A cluster is made by an operator, who needs no telling, and would have to ask all
    /// nodes.
    pub fn has_no_account(&self) -> bool {
        self.only_shard().is_some_and(|shard| shard.has_no_account())
    }
}
