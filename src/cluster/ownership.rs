//! What a node does next about the ownership of shards: a function of the tables as it has seen them, and of its own
//! monotonic time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use log_store::{Node, NodeId, Shard, ShardRow};

use super::rendezvous::{favourite, rank};

/// A shard is handed to the node that should have it only after it has been held this long, so that a node which cannot
/// open it does not get it again and again.
const HOLD: Duration = Duration::from_secs(60);

/// The tables as a node has read them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All shards.
    pub shards: Vec<ShardRow>,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Removes a node that has not renewed for a lease.
    Remove {
        /// The node.
        node: NodeId,
        /// The beat that it stopped at.
        beat: u64,
    },
    /// Claims a shard, and opens it.
    Claim(Shard),
    /// Closes a shard of its own, and releases it for the node that should have it.
    Release(Shard),
}

/// What a node has seen, and since when.
pub struct Ownership {
    me: NodeId,
    lease: Duration,
    /// The beat of each other node, with the time at which this node saw it first.
    beats: BTreeMap<NodeId, (u64, Duration)>,
    /// When each other node was first seen.
    known: BTreeMap<NodeId, Duration>,
    /// Shards without an owner, with the time at which this node first saw them so.
    unowned: BTreeMap<Shard, Duration>,
    /// Own shards, with the time at which this node first saw itself as their owner.
    held: BTreeMap<Shard, Duration>,
    /// Whether the node is about to stop.
    draining: bool,
}

impl Ownership {
    /// The view of a node that has just joined. All nodes of a cluster have leases of one length.
    pub fn new(me: NodeId, lease: Duration) -> Self {
        Ownership {
            me,
            lease,
            beats: BTreeMap::new(),
            known: BTreeMap::new(),
            unowned: BTreeMap::new(),
            held: BTreeMap::new(),
            draining: false,
        }
    }

    /// From now on, the node gives up what it has and claims nothing.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Notes what the node has read at this time, and returns what it does next: at most one release, because a shard
    /// pauses while it is handed over. Nothing if the node itself was removed: then it joins again.
    pub fn observe(&mut self, now: Duration, tables: &Tables) -> Vec<Step> {
        self.note(now, tables);
        if !tables.nodes.iter().any(|node| node.id == self.me) {
            return Vec::new();
        }
        let candidates = || {
            let takes = |node: &&Node| !node.leaving;
            tables.nodes.iter().filter(takes).map(|node| node.id)
        };
        let mut steps: Vec<Step> = self.silent(now, tables).collect();
        if !self.draining {
            let claims = self.unowned.iter().filter(|(shard, since)| {
                // Others follow, in case the node that should have it does not take it.
                let patience = self.lease * rank(u64::from(shard.0), self.me, candidates());
                now >= **since + patience
            });
            steps.extend(claims.map(|(shard, _)| Step::Claim(*shard)));
        }
        let has_stayed = |node: NodeId| {
            self.known
                .get(&node)
                .is_some_and(|since| now >= *since + self.lease)
        };
        let release = self.held.iter().find(|(shard, since)| {
            let should_have = || favourite(**shard, candidates()).filter(|node| *node != self.me);
            self.draining || now >= **since + HOLD && should_have().is_some_and(has_stayed)
        });
        steps.extend(release.map(|(shard, _)| Step::Release(*shard)));
        steps
    }

    /// Nodes that have not renewed for a whole lease. With many nodes not all of them try at once: each lets those pass
    /// that come before it, a tenth of a lease each, up to one lease.
    fn silent<'a>(&'a self, now: Duration, tables: &'a Tables) -> impl Iterator<Item = Step> + 'a {
        tables.nodes.iter().filter_map(move |node| {
            let (beat, since) = self.beats.get(&node.id)?;
            let others = tables
                .nodes
                .iter()
                .map(|other| other.id)
                .filter(|other| *other != node.id);
            if now < *since + self.lease {
                return None;
            }
            let place = rank(node.id.0 as u64, self.me, others).min(10);
            let is_due = now >= *since + self.lease + self.lease / 10 * place;
            is_due.then_some(Step::Remove {
                node: node.id,
                beat: *beat,
            })
        })
    }

    fn note(&mut self, now: Duration, tables: &Tables) {
        let others = tables.nodes.iter().filter(|node| node.id != self.me);
        let mut beats = BTreeMap::new();
        for node in others {
            let before = self.beats.get(&node.id).filter(|(beat, _)| *beat == node.beat);
            beats.insert(node.id, before.copied().unwrap_or((node.beat, now)));
            self.known.entry(node.id).or_insert(now);
        }
        self.beats = beats;
        let living: BTreeSet<NodeId> = tables.nodes.iter().map(|node| node.id).collect();
        self.known.retain(|node, _| living.contains(node));
        let since = |times: &BTreeMap<Shard, Duration>, shard| times.get(&shard).copied().unwrap_or(now);
        let is_unowned = |row: &&ShardRow| row.node.is_none_or(|node| !living.contains(&node));
        let is_held = |row: &&ShardRow| row.node == Some(self.me);
        let rows = || tables.shards.iter();
        let unowned = rows()
            .filter(is_unowned)
            .map(|row| (row.shard, since(&self.unowned, row.shard)));
        let held = rows()
            .filter(is_held)
            .map(|row| (row.shard, since(&self.held, row.shard)));
        (self.unowned, self.held) = (unowned.collect(), held.collect());
    }
}
