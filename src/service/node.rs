//! A node: the shards that it serves, and whatever does not belong to one shard.

use std::ops::Deref;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{Figures, Resources, Service};
use crate::clock::Clock;
use crate::config::Config;
use crate::error::ServiceError;

/// The process, as endpoints see it.
pub struct Node {
    /// The validated configuration.
    pub config: Arc<Config>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// What shards share.
    pub resources: Arc<Resources>,
    /// The one shard of a server on one machine.
    shard: ShardService,
}

/// The service of a shard, while a request uses it.
#[derive(Clone)]
pub struct ShardService(Arc<Service>);

impl Deref for ShardService {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.0
    }
}

impl Node {
    /// A server on one machine: a node with one shard.
    pub fn of_one(shard: Service) -> Self {
        Node {
            config: Arc::clone(&shard.config),
            clock: Arc::clone(&shard.clock),
            resources: Arc::clone(&shard.resources),
            shard: ShardService(Arc::new(shard)),
        }
    }

    /// The service of the only shard.
    pub fn shard(&self) -> ShardService {
        self.shard.clone()
    }

    /// The services of the shards that are served here.
    pub fn shards(&self) -> Vec<ShardService> {
        vec![self.shard()]
    }

    /// Whether this node accepts writes.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn readiness(&self) -> Result<(), String> {
        self.shards().iter().try_for_each(|shard| shard.readiness())
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
        sum.ready = self.readiness().is_ok();
        sum
    }

    /// Whether there is no account yet.
    pub fn has_no_account(&self) -> bool {
        self.shards().iter().all(|shard| shard.has_no_account())
    }
}
