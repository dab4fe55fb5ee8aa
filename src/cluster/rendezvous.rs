//! Rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998): each pair of a
//! shard and a node has a weight, and the node with the greatest one should own the shard. When a node comes or goes, only
//! its own shards move.

use log_store::{Node, Shard};

/// The weight of a pair. A node counts by its address, so that one which restarts gets the shards that it had. Part of the
/// agreement between nodes: it must not change between versions.
fn weight(key: u64, node: &Node) -> (u64, i64) {
    (mix(mix(key) ^ name(&node.address)), node.id.0)
}

/// FNV-1a, in 64 bits (draft-eastlake-fnv).
fn name(address: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    address.bytes().fold(0xCBF2_9CE4_8422_2325, step)
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// The node of these that should own the shard.
pub(super) fn favourite<'a>(shard: Shard, nodes: impl Iterator<Item = &'a Node>) -> Option<&'a Node> {
    nodes.max_by_key(|node| weight(u64::from(shard.0), node))
}

/// How many of these nodes come before this one for a key, such as a shard's number.
pub(super) fn rank<'a>(key: u64, node: &Node, nodes: impl Iterator<Item = &'a Node>) -> u32 {
    let own = weight(key, node);
    nodes.filter(|other| weight(key, other) > own).count() as u32
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use log_store::NodeId;

    use super::*;

    fn nodes(count: i64) -> Vec<Node> {
        let node = |id| Node {
            id: NodeId(id),
            address: format!("10.0.0.{id}:7946"),
            beat: 0,
            leaving: false,
            lease: Duration::from_secs(3),
        };
        (1..=count).map(node).collect()
    }

    #[test]
    fn weights_are_those_of_every_version() {
        let nodes = nodes(2);
        let weights = [weight(0, &nodes[0]), weight(63, &nodes[1])].map(|(weight, _)| weight);
        let expected = [2_693_567_537_292_246_122, 8_455_299_634_268_953_142];
        assert_eq!(weights, expected);
    }

    #[test]
    fn shards_are_spread_evenly() {
        let nodes = nodes(8);
        let mut owned = [0; 8];
        for shard in (0..4_000).map(Shard) {
            let owner = favourite(shard, nodes.iter()).unwrap();
            owned[(owner.id.0 - 1) as usize] += 1;
        }
        assert!(owned.iter().all(|count| (400..600).contains(count)), "{owned:?}");
    }

    #[test]
    fn only_the_shards_of_a_node_that_leaves_move_and_a_restart_moves_none() {
        let before = nodes(9);
        let after = &before[..8];
        let mut restarted = nodes(9);
        restarted[4].id = NodeId(77);
        for shard in (0..1_000).map(Shard) {
            let old = favourite(shard, before.iter()).unwrap();
            let new = favourite(shard, after.iter()).unwrap();
            assert!(old.id == new.id || old.id == before[8].id, "shard {shard} moved");
            assert_eq!(favourite(shard, restarted.iter()).unwrap().address, old.address);
        }
    }

    #[test]
    fn the_favourite_has_rank_0() {
        let nodes = nodes(20);
        for shard in (0..50).map(Shard) {
            let owner = favourite(shard, nodes.iter()).unwrap();
            assert_eq!(rank(u64::from(shard.0), owner, nodes.iter()), 0);
            let ranks = nodes
                .iter()
                .map(|node| rank(u64::from(shard.0), node, nodes.iter()));
            let mut ranks: Vec<u32> = ranks.collect();
            ranks.sort_unstable();
            assert!(ranks.into_iter().eq(0..20));
        }
    }
}
