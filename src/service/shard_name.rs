//! How keys and tokens that are made in a cluster say which shard knows them. They also name the cluster: those of a shard
//! that was exported and imported into another cluster name a shard of the first one.

use log_store::Shard;
use sha2::{Digest, Sha256};

/// The first bytes of the digest of a cluster's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterTag(pub [u8; 4]);

impl ClusterTag {
    /// The tag of the cluster with this identity.
    pub fn of(identity: &str) -> Self {
        let [a, b, c, d, ..]: [u8; 32] = Sha256::digest(identity).into();
        ClusterTag([a, b, c, d])
    }
}

/// A shard of a cluster, as keys and tokens name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardName {
    pub cluster: ClusterTag,
    pub shard: Shard,
}

/// Bytes of a written name.
pub const NAME_BYTES: usize = 6;

impl ShardName {
    /// The name as bytes.
    pub fn to_bytes(self) -> [u8; NAME_BYTES] {
        let ([a, b], [c, d, e, f]) = (self.shard.0.to_be_bytes(), self.cluster.0);
        [a, b, c, d, e, f]
    }

    /// The name that these bytes are.
    pub fn of_bytes([a, b, c, d, e, f]: [u8; NAME_BYTES]) -> Self {
        ShardName {
            cluster: ClusterTag([c, d, e, f]),
            shard: Shard(u16::from_be_bytes([a, b])),
        }
    }

    /// The shard, if it is one of this cluster.
    pub fn within(self, cluster: ClusterTag) -> Option<Shard> {
        (self.cluster == cluster).then_some(self.shard)
    }
}
