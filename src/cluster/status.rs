//! The status of a cluster, for people: what the tables of the log store say, and how long the logs are.

use std::collections::HashMap;

use log_store::{Epoch, Node, NodeId, Sequence, Shard, ShardRow, TailSize};

/// Nodes and shards at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// All nodes, by address.
    pub nodes: Vec<NodeStatus>,
    /// All shards, in order.
    pub shards: Vec<ShardStatus>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// The node.
    pub node: Node,
    /// Number of shards that it owns.
    pub shards: u64,
}

/// A shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardStatus {
    /// The shard.
    pub shard: Shard,
    /// Its epoch.
    pub epoch: Epoch,
    /// The node that owns it; `None` if it was released, or if its owner was removed.
    pub owner: Option<NodeId>,
    /// Sequence of the last record.
    pub last: Sequence,
    /// Sequence of the last record that the last checkpoint covers.
    pub covered: Sequence,
    /// Bytes that the next owner has to replay.
    pub tail_bytes: u64,
    /// Names the last checkpoint; `None` before the first.
    pub root: Option<String>,
}

impl Status {
    /// The status by the tables and by the sizes of all tails, both in the order of the shards.
    pub fn of(nodes: &[Node], shards: &[ShardRow], tails: &[TailSize]) -> Self {
        let mut owned: HashMap<NodeId, u64> = nodes.iter().map(|node| (node.id, 0)).collect();
        let shards = shards.iter().zip(tails).map(|(row, tail)| {
            // A row names its owner also when that node was removed.
            let owner = row.node.filter(|node| owned.contains_key(node));
            if let Some(count) = owner.and_then(|node| owned.get_mut(&node)) {
                *count += 1;
            }
            ShardStatus {
                shard: row.shard,
                epoch: row.epoch,
                owner,
                // Rows and tails are read one after the other, and a checkpoint may be taken in between.
                last: tail.last.max(row.covered),
                covered: row.covered,
                tail_bytes: tail.bytes,
                root: row.root.clone(),
            }
        });
        let shards = shards.collect();
        let node = |node: &Node| NodeStatus {
            node: node.clone(),
            shards: owned.get(&node.id).copied().unwrap_or(0),
        };
        let mut nodes: Vec<NodeStatus> = nodes.iter().map(node).collect();
        nodes.sort_by(|a, b| (&a.node.address, a.node.id).cmp(&(&b.node.address, b.node.id)));
        Status { nodes, shards }
    }

    /// Number of shards that no node owns.
    pub fn unowned(&self) -> u64 {
        self.shards.iter().filter(|shard| shard.owner.is_none()).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn node(id: i64, address: &str) -> Node {
        Node {
            id: NodeId(id),
            address: address.to_owned(),
            beat: 1,
            leaving: false,
            lease: Duration::from_secs(5),
        }
    }

    fn shard(number: u16, node: Option<i64>, covered: Sequence) -> ShardRow {
        ShardRow {
            shard: Shard(number),
            epoch: 3,
            node: node.map(NodeId),
            covered,
            root: None,
        }
    }

    fn tail(number: u16, last: Sequence) -> TailSize {
        TailSize {
            shard: Shard(number),
            groups: 1,
            bytes: 100,
            last,
        }
    }

    #[test]
    fn a_shard_of_a_removed_node_has_no_owner() {
        let nodes = [node(1, "b:1"), node(2, "a:1")];
        let shards = [
            shard(0, Some(1), 0),
            shard(1, Some(9), 0),
            shard(2, None, 0),
            shard(3, Some(1), 0),
        ];
        let tails: Vec<_> = (0..4).map(|number| tail(number, 7)).collect();
        let status = Status::of(&nodes, &shards, &tails);
        let owners: Vec<_> = status
            .shards
            .iter()
            .map(|it| it.owner.map(|node| node.0))
            .collect();
        assert_eq!(owners, [Some(1), None, None, Some(1)]);
        assert_eq!(status.unowned(), 2);
        let nodes: Vec<_> = status
            .nodes
            .iter()
            .map(|it| (it.node.address.as_str(), it.shards))
            .collect();
        assert_eq!(nodes, [("a:1", 0), ("b:1", 2)]);
    }

    #[test]
    fn the_last_record_is_never_before_what_a_checkpoint_covers() {
        let status = Status::of(
            &[],
            &[shard(0, None, 9), shard(1, None, 4)],
            &[tail(0, 7), tail(1, 7)],
        );
        let last: Vec<_> = status.shards.iter().map(|it| it.last).collect();
        assert_eq!(last, [9, 7]);
    }
}
