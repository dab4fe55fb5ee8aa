//! What a node does next about the ownership of shards: a function of the tables as it has seen them, of what it has open,
//! and of its own monotonic time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use log_store::{Epoch, Node, NodeId, Shard, ShardRow};

use super::rendezvous::{favourite, rank};

/// A shard is handed to the node that should have it only after it has been held this long, and that node has been there
/// this long. A node that could not open a shard does not claim it again within this time.
const HOLD: Duration = Duration::from_secs(60);

/// Removals in one observation: each is a transaction, and the node must renew in between.
const REMOVALS_MAX: usize = 10;

/// The tables as a node has read them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All shards.
    pub shards: Vec<ShardRow>,
    /// When the last of them had been read, on the node's own clock. A time before that would make beats look older than
    /// they are, and remove nodes that live.
    pub read_at: Duration,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Removes a node that has not renewed for its lease.
    Remove {
        /// The node.
        node: NodeId,
        /// The beat that it stopped at.
        beat: u64,
    },
    /// Claims a shard, and opens it.
    Claim(Shard),
    /// Closes a shard of its own, and releases it for the node that should have it.
    Release {
        /// The shard.
        shard: Shard,
        /// The epoch of its row.
        epoch: Epoch,
    },
}

/// What a node has seen, and since when.
pub struct Ownership {
    me: NodeId,
    /// The other nodes.
    seen: BTreeMap<NodeId, Seen>,
    /// Shards without an owner, with the time at which this node first saw them so.
    unowned: BTreeMap<Shard, Duration>,
    /// Own shards, with their epoch and the time at which this node first saw itself as their owner.
    held: BTreeMap<Shard, (Epoch, Duration)>,
    /// Shards that could not be opened, with the time from which they are claimed again.
    refused: BTreeMap<Shard, Duration>,
    observed_at: Option<Duration>,
}

/// Another node, as this one has seen it.
struct Seen {
    /// When it was seen first.
    since: Duration,
    beat: u64,
    /// When this beat was seen first.
    beat_since: Duration,
}

impl Ownership {
    /// The view of a node that has just joined.
    pub fn new(me: NodeId) -> Self {
        Ownership {
            me,
            seen: BTreeMap::new(),
            unowned: BTreeMap::new(),
            held: BTreeMap::new(),
            refused: BTreeMap::new(),
            observed_at: None,
        }
    }

    /// A shard could not be opened, and is released. Others get their turn.
    pub fn could_not_open(&mut self, shard: Shard, now: Duration) {
        self.refused.insert(shard, now + HOLD);
    }

    /// Notes what the node has read, and returns what it does next. `open` are the shards that it has open, or is opening,
    /// with their epochs. There is at most one release, because a shard pauses while it is handed over. Nothing if the node
    /// itself was removed: then it joins again, unless it is about to stop.
    pub fn observe(&mut self, tables: &Tables, open: &BTreeMap<Shard, Epoch>) -> Vec<Step> {
        let now = tables.read_at;
        self.note(now, tables);
        let Some(me) = tables.nodes.iter().find(|node| node.id == self.me) else {
            return Vec::new();
        };
        let mut steps: Vec<Step> = self.silent(now, me, tables).take(REMOVALS_MAX).collect();
        if !me.leaving {
            steps.extend(self.claims(now, me, tables, open).map(Step::Claim));
        }
        steps.extend(self.release(now, me, tables));
        steps
    }

    /// Shards to claim: those without an owner, and those of its own that it does not have open, because the answer to a
    /// claim was lost, or because what became of an append is not known.
    fn claims<'a>(
        &'a self,
        now: Duration,
        me: &'a Node,
        tables: &'a Tables,
        open: &'a BTreeMap<Shard, Epoch>,
    ) -> impl Iterator<Item = Shard> + 'a {
        let is_refused = move |shard: &Shard| self.refused.get(shard).is_some_and(|until| now < *until);
        // Others follow, in case the node that should have a shard does not take it.
        let is_mine = move |(shard, since): &(&Shard, &Duration)| {
            let patience = me.lease * rank(u64::from(shard.0), me, candidates(tables));
            now >= **since + patience
        };
        let unowned = self.unowned.iter().filter(is_mine).map(|(shard, _)| *shard);
        let is_closed =
            move |(shard, (epoch, _)): &(&Shard, &(Epoch, Duration))| open.get(shard) != Some(epoch);
        let closed = self.held.iter().filter(is_closed).map(|(shard, _)| *shard);
        unowned.chain(closed).filter(move |shard| !is_refused(shard))
    }

    /// The shard to hand over. Not before the last one for the same node was taken: a node that cannot open shards must not
    /// collect them.
    fn release(&self, now: Duration, me: &Node, tables: &Tables) -> Option<Step> {
        let waits = |node: &Node| {
            let mut unowned = self.unowned.keys();
            unowned.any(|shard| favourite(*shard, candidates(tables)).is_some_and(|it| it.id == node.id))
        };
        let has_stayed = |node: &Node| {
            self.seen
                .get(&node.id)
                .is_some_and(|seen| now >= seen.since + HOLD)
        };
        let is_due = |(shard, (_, since)): &(&Shard, &(Epoch, Duration))| {
            if me.leaving || self.refused.contains_key(shard) {
                return true;
            }
            let favourite = favourite(**shard, candidates(tables)).filter(|node| node.id != self.me);
            now >= *since + HOLD && favourite.is_some_and(|node| has_stayed(node) && !waits(node))
        };
        let (shard, (epoch, _)) = self.held.iter().find(is_due)?;
        Some(Step::Release {
            shard: *shard,
            epoch: *epoch,
        })
    }

    /// Time until this node removes another that does not renew meanwhile, if that is within this time. Removals that are due
    /// already do not count.
    pub fn next_removal(&self, tables: &Tables, within: Duration) -> Option<Duration> {
        let now = tables.read_at;
        let me = tables.nodes.iter().find(|node| node.id == self.me)?;
        // Whatever its place, no node waits longer than another lease.
        let may_be_ahead = |node: &&Node| self.ends(node).is_some_and(|ends| now < ends + node.lease);
        let nodes = tables.nodes.iter().filter(may_be_ahead);
        let due = nodes.filter_map(|node| self.removal(now + within, node, me, tables));
        due.filter_map(|due| due.checked_sub(now))
            .filter(|wait| !wait.is_zero() && *wait <= within)
            .min()
    }

    /// This node, and those whose lease has not ended.
    pub fn living<'a>(&'a self, tables: &'a Tables) -> impl Iterator<Item = &'a Node> {
        let lives =
            |node: &&Node| node.id == self.me || self.ends(node).is_some_and(|ends| tables.read_at < ends);
        tables.nodes.iter().filter(lives)
    }

    /// When the lease of another node ends if it does not renew.
    fn ends(&self, node: &Node) -> Option<Duration> {
        Some(self.seen.get(&node.id)?.beat_since + node.lease)
    }

    /// Nodes that have not renewed for a whole lease.
    fn silent<'a>(
        &'a self,
        now: Duration,
        me: &'a Node,
        tables: &'a Tables,
    ) -> impl Iterator<Item = Step> + 'a {
        tables.nodes.iter().filter_map(move |node| {
            let is_due = self.removal(now, node, me, tables).is_some_and(|due| now >= due);
            let beat = self.seen.get(&node.id).filter(|_| is_due)?.beat;
            Some(Step::Remove { node: node.id, beat })
        })
    }

    /// When this node removes another that does not renew; `None` if its lease does not end by `by`. With many nodes not all
    /// of them try at once: each lets those pass that come before it, a tenth of a lease each, up to one lease.
    fn removal(&self, by: Duration, node: &Node, me: &Node, tables: &Tables) -> Option<Duration> {
        let ends = self.ends(node).filter(|ends| *ends <= by)?;
        let others = tables.nodes.iter().filter(|other| other.id != node.id);
        let place = rank(node.id.0 as u64, me, others).min(10);
        Some(ends + node.lease / 10 * place)
    }

    fn note(&mut self, now: Duration, tables: &Tables) {
        // Time in which this node saw nothing counts for nobody: after an outage of the store, all beats stand still.
        let shortest = tables
            .nodes
            .iter()
            .map(|node| node.lease)
            .min()
            .unwrap_or_default();
        let was_blind = self.observed_at.is_none_or(|before| now > before + shortest / 2);
        self.observed_at = Some(now);
        let others = tables.nodes.iter().filter(|node| node.id != self.me);
        let seen = others.map(|node| {
            let before = self.seen.get(&node.id);
            let same_beat = before.filter(|seen| seen.beat == node.beat && !was_blind);
            let seen = Seen {
                since: before.map_or(now, |seen| seen.since),
                beat: node.beat,
                beat_since: same_beat.map_or(now, |seen| seen.beat_since),
            };
            (node.id, seen)
        });
        self.seen = seen.collect();
        let living: BTreeSet<NodeId> = tables.nodes.iter().map(|node| node.id).collect();
        let is_unowned = |row: &&ShardRow| row.node.is_none_or(|node| !living.contains(&node));
        let unowned = tables.shards.iter().filter(is_unowned).map(|row| {
            let since = self.unowned.get(&row.shard).copied().unwrap_or(now);
            (row.shard, since)
        });
        let unowned = unowned.collect();
        let is_held = |row: &&ShardRow| row.node == Some(self.me);
        let held = tables.shards.iter().filter(is_held).map(|row| {
            let since = self.held.get(&row.shard).map_or(now, |(_, since)| *since);
            (row.shard, (row.epoch, since))
        });
        let held: BTreeMap<_, _> = held.collect();
        (self.unowned, self.held) = (unowned, held);
        // A refused shard that is still held is yet to be released.
        let held = &self.held;
        self.refused
            .retain(|shard, until| now < *until || held.contains_key(shard));
    }
}

/// The node that should take a shard when it is free.
pub fn heir<'a>(shard: Shard, nodes: impl Iterator<Item = &'a Node>) -> Option<&'a Node> {
    favourite(shard, nodes.filter(|node| !node.leaving))
}

/// The nodes that take shards.
fn candidates(tables: &Tables) -> impl Iterator<Item = &Node> {
    tables.nodes.iter().filter(|node| !node.leaving)
}
