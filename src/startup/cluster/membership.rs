//! A node's membership: a thread that renews its lease, sees what the others do, and decides what to claim, open and hand
//! over. It has a connection of its own, so that no append delays a renewal.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use log_store::{Claimed, Epoch, LogStore, Node, NodeId, Round, Shard, StoreError};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::cluster::{Lease, Ownership, ROUND_PAUSE, Step, Tables, heir};
use crate::service::{Owner, Seen, ShardTable};

/// What the keeper of the shards is told to do.
pub(super) enum Order {
    /// Open a shard that was claimed in this life of the node.
    Open(Shard, Claimed, u64),
    /// Hand a shard over: end serving it, and say so.
    HandOver(Shard, Epoch),
    /// Drop a shard that has another owner, or whose log must be read again.
    Drop(Shard, Epoch),
    /// Tell the node at this address that shards are free for it.
    Tell(String),
}

/// What the membership is told.
pub(super) enum Report {
    /// A shard could not be opened.
    NotOpened(Shard, Epoch),
    /// The log of a shard takes no more records until the shard is opened again.
    Broken(Shard, Epoch),
    /// A shard is not served any more, and everything that was acknowledged is in its log.
    Closed(Shard, Epoch),
    /// Something has changed: look soon.
    News,
    /// Hand everything over, and say so when nothing is left. The node goes on seeing who owns what, because it still passes
    /// requests on.
    Leave(oneshot::Sender<()>),
    /// Leave the cluster, and say so.
    End(oneshot::Sender<()>),
}

/// Tells the thread something. Cheap to clone.
#[derive(Clone)]
pub(super) struct Reports(Sender<Report>);

impl Reports {
    pub(super) fn send(&self, report: Report) {
        // The thread ends only when it has left, or nobody can report any more.
        let _ = self.0.send(report);
    }
}

/// The membership before its thread runs.
pub(super) struct Membership {
    store: Box<dyn LogStore>,
    /// Where other nodes reach this one.
    address: String,
    lease: Duration,
    table: Arc<ShardTable>,
    orders: UnboundedSender<Order>,
    reports: Receiver<Report>,
    /// The present life of the node; `None` before it has joined, and after it was removed.
    joined: Option<Joined>,
    /// Own shards: open, being opened or being handed over.
    open: BTreeMap<Shard, Epoch>,
    /// All nodes, as the last round has shown them.
    nodes: Vec<Node>,
    /// Shards to release, whose release is not confirmed.
    closed: BTreeMap<Shard, Epoch>,
    /// The next round is due after this time, if not before.
    looks_in: Option<Duration>,
    is_leaving: bool,
    /// Told when nothing is left to be handed over.
    left: Option<oneshot::Sender<()>>,
    /// Told when this thread ends.
    ended: Option<oneshot::Sender<()>>,
    /// Whether the last round failed; for one message per outage.
    is_cut_off: bool,
}

struct Joined {
    id: NodeId,
    beat: u64,
    ownership: Ownership,
}

impl Membership {
    /// A node that has not joined yet.
    pub(super) fn new(
        store: Box<dyn LogStore>,
        address: String,
        lease: Duration,
        table: Arc<ShardTable>,
        orders: UnboundedSender<Order>,
    ) -> (Self, Reports) {
        let (sender, reports) = channel();
        let membership = Membership {
            store,
            address,
            lease,
            table,
            orders,
            reports,
            joined: None,
            open: BTreeMap::new(),
            nodes: Vec::new(),
            closed: BTreeMap::new(),
            looks_in: None,
            is_leaving: false,
            left: None,
            ended: None,
            is_cut_off: false,
        };
        (membership, Reports(sender))
    }

    /// Starts the thread, which ends when the node has left.
    ///
    /// # Errors
    /// The thread could not be started.
    pub(super) fn start(mut self) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("membership".to_owned());
        let run = move || {
            while self.ended.is_none() {
                let began = Instant::now();
                let outcome = self.round();
                self.note_outage(outcome);
                self.say_what_is_left();
                self.listen(Instant::now() + self.pause(began.elapsed()));
            }
            self.end();
        };
        thread.spawn(run).map(drop)
    }

    /// Logs the begin and the end of an outage.
    fn note_outage(&mut self, outcome: Result<(), StoreError>) {
        let was_cut_off = std::mem::replace(&mut self.is_cut_off, outcome.is_err());
        match outcome {
            Ok(()) if was_cut_off => tracing::info!("the log store answers again"),
            Ok(()) => {}
            Err(error) if was_cut_off => tracing::debug!(%error, "the log store does not answer"),
            Err(error) => {
                tracing::warn!(%error, "the log store does not answer; after its lease this node answers nothing until it does");
            }
        }
    }

    /// The pause after a round that took so long.
    fn pause(&self, took: Duration) -> Duration {
        let rest = Lease::new(self.lease).period().saturating_sub(took);
        self.looks_in
            .map_or(rest, |looks_in| rest.min(looks_in.max(ROUND_PAUSE)))
    }

    fn say_what_is_left(&mut self) {
        if self.open.is_empty()
            && self.closed.is_empty()
            && let Some(left) = self.left.take()
        {
            // The receiver may have lost patience.
            let _ = left.send(());
        }
    }

    fn end(mut self) {
        if let Some(joined) = &self.joined
            && let Err(error) = self.store.remove(joined.id, joined.beat)
        {
            tracing::debug!(%error, "this node could not remove itself; others do so after its lease");
        }
        if let Some(ended) = self.ended {
            // The receiver may have lost patience.
            let _ = ended.send(());
        }
    }

    /// Renews the lease, and does what follows from the tables.
    fn round(&mut self) -> Result<(), StoreError> {
        self.looks_in = None;
        let sent_at = self.table.now();
        let joined = match &mut self.joined {
            Some(joined) => joined,
            none => {
                let id = self.store.join(&self.address, self.lease)?;
                tracing::info!(node = %id, address = self.address, "joined the cluster");
                none.insert(Joined {
                    id,
                    beat: 0,
                    ownership: Ownership::new(id),
                })
            }
        };
        joined.beat += 1;
        let round = self.store.round(joined.id, joined.beat, self.is_leaving)?;
        if !round.renewed {
            self.was_removed();
            return Ok(());
        }
        self.table.renewed(sent_at);
        self.table.set_weakness(round.weakness.clone());
        self.note_owners(&round);
        self.drop_lost(&round);
        self.nodes.clone_from(&round.nodes);
        self.release_closed();
        let tables = Arc::new(Tables {
            nodes: round.nodes,
            shards: round.shards,
            read_at: self.table.now(),
        });
        let Some(joined) = &mut self.joined else {
            return Ok(());
        };
        self.table.set_seen(Seen {
            me: joined.id,
            asked_at: sent_at,
            tables: Arc::clone(&tables),
        });
        let period = Lease::new(self.lease).period();
        let steps = joined.ownership.observe(&tables, &self.open);
        self.looks_in = joined.ownership.next_removal(&tables, period);
        let mut removed = BTreeSet::new();
        let taken = self.take_all(steps, sent_at + period, &mut removed);
        if !removed.is_empty() {
            self.tell_heirs(&removed, &tables);
            self.looks_in = Some(ROUND_PAUSE);
        }
        taken
    }

    fn take_all(
        &mut self,
        steps: Vec<Step>,
        until: Duration,
        removed: &mut BTreeSet<NodeId>,
    ) -> Result<(), StoreError> {
        for step in steps {
            // The node must renew in between. What is left is found again in the next round.
            if self.table.now() > until {
                break;
            }
            self.take(step, removed)?;
        }
        Ok(())
    }

    /// Others have removed this node: whatever it owned may have another owner.
    fn was_removed(&mut self) {
        tracing::warn!(
            "this node was removed from the cluster, because it did not renew its lease; it joins again"
        );
        self.joined = None;
        self.table.lost(self.lease);
        self.closed.clear();
        for (shard, epoch) in std::mem::take(&mut self.open) {
            self.order(Order::Drop(shard, epoch));
        }
    }

    fn note_owners(&self, round: &Round) {
        let me = self.joined.as_ref().map(|joined| joined.id);
        let addresses: BTreeMap<NodeId, &str> = round
            .nodes
            .iter()
            .map(|node| (node.id, node.address.as_str()))
            .collect();
        for row in &round.shards {
            let owner = row.node.filter(|node| Some(*node) != me);
            let address = owner.and_then(|node| addresses.get(&node).copied());
            // One at this node's own address is what it was before it restarted.
            let address = address.filter(|address| *address != self.address);
            let owner = address.map(|address| Owner {
                shard: row.shard,
                address: address.into(),
                epoch: row.epoch,
            });
            self.table.owned_by(row.shard, owner);
        }
    }

    /// Drops shards that somebody else has claimed meanwhile.
    fn drop_lost(&mut self, round: &Round) {
        for row in &round.shards {
            let epoch = self.open.get(&row.shard).copied();
            if let Some(epoch) = epoch.filter(|epoch| *epoch < row.epoch) {
                self.open.remove(&row.shard);
                self.table.stop(row.shard);
                self.order(Order::Drop(row.shard, epoch));
            }
        }
    }

    /// Releases what is closed, and tells the node that should take it. A release whose answer is lost is repeated: it
    /// names its epoch.
    fn release_closed(&mut self) {
        for (shard, epoch) in std::mem::take(&mut self.closed) {
            match self.store.release(shard, epoch) {
                Ok(_) => {
                    let heir = heir(shard, self.nodes.iter()).map(|heir| heir.address.clone());
                    let heir = heir.filter(|address| *address != self.address);
                    heir.into_iter()
                        .for_each(|address| self.order(Order::Tell(address)));
                }
                Err(error) => {
                    tracing::debug!(%shard, %error, "a shard could not be released yet");
                    self.closed.insert(shard, epoch);
                }
            }
        }
    }

    fn take(&mut self, step: Step, removed: &mut BTreeSet<NodeId>) -> Result<(), StoreError> {
        let Some(joined) = &self.joined else { return Ok(()) };
        match step {
            Step::Remove { node, beat } => {
                if self.store.remove(node, beat)? {
                    tracing::warn!(%node, "removed a node that did not renew its lease");
                    removed.insert(node);
                }
            }
            Step::Claim(shard) => {
                // Waits for its release.
                if self.closed.contains_key(&shard) {
                    return Ok(());
                }
                if let Some(claimed) = self.store.claim(shard, joined.id)? {
                    if let Some(epoch) = self.open.insert(shard, claimed.epoch) {
                        self.order(Order::Drop(shard, epoch));
                    }
                    self.order(Order::Open(shard, claimed, self.table.life()));
                }
            }
            Step::Release { shard, epoch } => {
                if self.is_leaving {
                    // All at once: one that takes long must not keep the others.
                    for (shard, epoch) in &self.open {
                        self.order(Order::HandOver(*shard, *epoch));
                    }
                }
                if self.open.get(&shard) == Some(&epoch) {
                    self.order(Order::HandOver(shard, epoch));
                } else {
                    // It could not be opened.
                    self.store.release(shard, epoch)?;
                }
            }
        }
        Ok(())
    }

    /// Nodes were removed: those that should take what is free now look at once.
    fn tell_heirs(&self, removed: &BTreeSet<NodeId>, tables: &Tables) {
        let Some(joined) = &self.joined else { return };
        let members: BTreeSet<NodeId> = tables.nodes.iter().map(|node| node.id).collect();
        let is_free = |owner: NodeId| !members.contains(&owner) || removed.contains(&owner);
        let free = tables.shards.iter().filter(|row| row.node.is_none_or(is_free));
        let living: Vec<&Node> = joined.ownership.living(tables).collect();
        let heirs = free.filter_map(|row| heir(row.shard, living.iter().copied()));
        let addresses: BTreeSet<&str> = heirs.map(|heir| heir.address.as_str()).collect();
        for address in addresses {
            if address != self.address {
                self.order(Order::Tell(address.to_owned()));
            }
        }
    }

    fn order(&self, order: Order) {
        // The keeper ends only with the process.
        let _ = self.orders.send(order);
    }

    /// Takes reports until the next round is due.
    fn listen(&mut self, mut next: Instant) {
        loop {
            let wait = next.saturating_duration_since(Instant::now());
            match self.reports.recv_timeout(wait) {
                Ok(Report::NotOpened(shard, epoch)) => self.not_opened(shard, epoch),
                Ok(Report::Broken(shard, epoch)) => {
                    if self.forget(shard, epoch) {
                        self.order(Order::Drop(shard, epoch));
                        next = next.min(Instant::now() + ROUND_PAUSE);
                    }
                }
                Ok(Report::Closed(shard, epoch)) => {
                    if self.forget(shard, epoch) {
                        self.closed.insert(shard, epoch);
                        self.release_closed();
                    }
                    if self.is_leaving {
                        next = Instant::now();
                    }
                }
                Ok(Report::News) => next = next.min(Instant::now() + ROUND_PAUSE),
                Ok(Report::Leave(left)) => {
                    self.is_leaving = true;
                    self.left = Some(left);
                    next = Instant::now();
                }
                Ok(Report::End(ended)) => {
                    self.ended = Some(ended);
                    return;
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn not_opened(&mut self, shard: Shard, epoch: Epoch) {
        if self.forget(shard, epoch) {
            let now = self.table.now();
            if let Some(joined) = &mut self.joined {
                joined.ownership.could_not_open(shard, now);
            }
            self.closed.insert(shard, epoch);
        }
    }

    /// Whether the shard was open under this epoch.
    fn forget(&mut self, shard: Shard, epoch: Epoch) -> bool {
        let is_open = self.open.get(&shard) == Some(&epoch);
        if is_open {
            self.open.remove(&shard);
        }
        is_open
    }
}

#[cfg(test)]
mod tests;
