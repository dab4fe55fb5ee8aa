//! Rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998): each pair of a
//! shard and a node has a weight, and the node with the greatest one should own the shard. When a node comes or goes, only
//! its own shards move.

use log_store::{NodeId, Shard};

/// The weight of a pair. Part of the agreement between nodes: it must not change between versions.
fn weight(key: u64, node: NodeId) -> (u64, NodeId) {
    (mix(mix(key) ^ node.0 as u64), node)
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// The node of these that should own the shard.
pub(super) fn favourite(shard: Shard, nodes: impl Iterator<Item = NodeId>) -> Option<NodeId> {
    nodes.max_by_key(|node| weight(u64::from(shard.0), *node))
}

/// How many of these nodes come before this one for a key, such as a shard's number.
pub(super) fn rank(key: u64, node: NodeId, nodes: impl Iterator<Item = NodeId>) -> u32 {
    let own = weight(key, node);
    nodes.filter(|other| weight(key, *other) > own).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(count: i64) -> Vec<NodeId> {
        (1..=count)
            .map(|id| NodeId(id.wrapping_mul(0x5851_F42D_4C95_7F2D)))
            .collect()
    }

    #[test]
    fn weights_are_those_of_every_version() {
        let weights = [(0, 0), (1, 1), (63, -1)].map(|(key, node)| weight(key, NodeId(node)).0);
        let expected = [
            12_035_550_249_420_947_055,
            16_860_738_450_190_168_606,
            4_306_592_831_113_893_324,
        ];
        assert_eq!(weights, expected);
    }

    #[test]
    fn shards_are_spread_evenly() {
        let nodes = nodes(8);
        let mut owned = [0; 8];
        for shard in (0..4_000).map(Shard) {
            let owner = favourite(shard, nodes.iter().copied()).unwrap();
            owned[nodes.iter().position(|node| *node == owner).unwrap()] += 1;
        }
        assert!(owned.iter().all(|count| (400..600).contains(count)), "{owned:?}");
    }

    #[test]
    fn only_the_shards_of_a_node_that_leaves_move() {
        let before = nodes(9);
        let after = &before[..8];
        for shard in (0..1_000).map(Shard) {
            let old = favourite(shard, before.iter().copied()).unwrap();
            let new = favourite(shard, after.iter().copied()).unwrap();
            assert!(
                old == new || old == before[8],
                "{shard} moved from {old} to {new}"
            );
        }
    }

    #[test]
    fn the_favourite_has_rank_0() {
        let nodes = nodes(20);
        for shard in (0..50).map(Shard) {
            let owner = favourite(shard, nodes.iter().copied()).unwrap();
            assert_eq!(rank(u64::from(shard.0), owner, nodes.iter().copied()), 0);
            let mut ranks: Vec<u32> = nodes
                .iter()
                .map(|node| rank(u64::from(shard.0), *node, nodes.iter().copied()))
                .collect();
            ranks.sort_unstable();
            assert!(ranks.into_iter().eq(0..20));
        }
    }
}
