//! `/api/operator/cluster`: the nodes and shards of the server.

use log_store::NodeId;

use super::views::{One, Resource, view};
use crate::http::endpoint::{Answer, Call, Endpoint, OperatorToken, Reply, get};
use crate::http::shape::NodeStateDoc;
use crate::service::{ClusterStatus, MachineStatus, NodeStatus, ServerStatus, ShardStatus};
use crate::timestamp::Timestamp;

view! {
    /// The nodes and shards of the server.
    pub struct ClusterView<'a> of(cluster: &'a ClusterStatus) {
        /// Whether there may be several nodes; false for a server on one machine.
        clustered: bool = true,
        /// When this was read.
        read_at: Timestamp = Timestamp(cluster.read_at_ns),
        /// Whether each commit reaches two disks; null on one machine, whose log is on its own disk.
        commits_replicated: Option<bool> = Some(cluster.weakness.is_none()),
        /// Why commits would reach one disk only, so that nothing is written until that is mended; null when they reach two.
        weakness: Option<&'a str> = cluster.weakness.as_deref(),
        /// Number of shards that no node owns. Requests for their organizations wait until one does.
        unowned_shards: u64 = cluster.status.unowned(),
        /// All nodes, by address.
        nodes: Vec<NodeView<'a>> =
            cluster.status.nodes.iter().map(|node| NodeView::of(node, cluster.me)).collect(),
        /// All shards, in order of their numbers.
        shards: Vec<ShardView<'a>> = cluster.status.shards.iter().map(ShardView::of).collect(),
    }
}

view! {
    /// A node: a running process of the server.
    pub struct NodeView<'a> of(status: &'a NodeStatus, me: NodeId; node = &status.node) {
        /// ID of the node, a new one with each start; null on one machine.
        id: Option<String> = Some(node.id.to_string()),
        /// Where other nodes reach it; null on one machine.
        address: Option<&'a str> = Some(&node.address),
        /// Number of shards that it owns.
        shards: u64 = status.shards,
        /// How long others wait for a sign of life before they take over its shards; null on one machine.
        lease_seconds: Option<u64> = Some(node.lease.as_secs()),
        /// Whether it is about to stop.
        #[schema(value_type = NodeStateDoc)]
        state: &'static str = if node.leaving { "leaving" } else { "member" },
        /// Whether it is the node that has answered.
        is_this: bool = node.id == me,
    }
}

view! {
    /// A shard: a part of the organizations, with a log of its own.
    pub struct ShardView<'a> of(shard: &'a ShardStatus) {
        /// Number of the shard, from 0.
        number: u16 = shard.shard.0,
        /// Number of changes of its owner; null on one machine.
        epoch: Option<u64> = Some(shard.epoch),
        /// ID of the node that owns it; null if none does, and on one machine.
        owner: Option<String> = shard.owner.map(|owner| owner.to_string()),
        /// Number of the last record in its log.
        last_sequence: u64 = shard.last,
        /// Number of the last record that its last checkpoint covers.
        covered_sequence: u64 = shard.covered,
        /// Bytes of the log that the next owner, or the next start, has to replay.
        tail_bytes: u64 = shard.tail_bytes,
        /// Name of its last checkpoint in the object store; null before the first, and on one machine.
        root: Option<&'a str> = shard.root.as_deref(),
    }
}

impl ClusterView<'_> {
    /// A server on one machine: a node with one shard.
    fn of_machine(machine: &MachineStatus) -> Self {
        ClusterView {
            clustered: false,
            read_at: Timestamp(machine.read_at_ns),
            commits_replicated: None,
            weakness: None,
            unowned_shards: 0,
            nodes: vec![NodeView {
                id: None,
                address: None,
                shards: 1,
                lease_seconds: None,
                state: "member",
                is_this: true,
            }],
            shards: vec![ShardView {
                number: 0,
                epoch: None,
                owner: None,
                last_sequence: machine.last,
                covered_sequence: machine.covered,
                tail_bytes: machine.tail_bytes,
                root: None,
            }],
        }
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![get("/api/operator/cluster", "showCluster", show)]
}

async fn show(call: Call<OperatorToken>) -> Reply<One<ClusterView<'static>>> {
    match call.service.node.status().await? {
        ServerStatus::Machine(machine) => Answer::one(ClusterView::of_machine(&machine)),
        ServerStatus::Cluster(cluster) => Answer::one(ClusterView::of(&cluster)),
    }
}

impl Resource for ClusterView<'_> {
    const ONE: &'static str = "cluster";
    const MANY: &'static str = "clusters";
}
