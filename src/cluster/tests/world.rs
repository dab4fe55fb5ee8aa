//! The simulated nodes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use fastrand::Rng;
use log_store::sim::SimStore;
use log_store::{Epoch, LogStore, NodeId, Shard};

use crate::cluster::rendezvous::favourite;
use crate::cluster::{Lease, Ownership, Step, Tables};

pub const LEASE: Duration = Duration::from_secs(3);

/// What keeps a node from acting.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// It will never act again.
    Dead,
    /// It acts again at this time, and knows nothing of what happened meanwhile.
    Frozen(Duration),
    /// It acts, but does not reach the log store until this time.
    CutOff(Duration),
}

pub struct SimNode {
    store: SimStore,
    pub id: NodeId,
    ownership: Ownership,
    lease: Lease,
    beat: u64,
    leaving: bool,
    pub owned: BTreeMap<Shard, Epoch>,
    fault: Option<Fault>,
    /// Its clock at the beginning, and its rate.
    clock: (Duration, f64),
}

impl SimNode {
    fn new(mut store: SimStore, rng: &mut Rng) -> Self {
        let id = store.join("here").unwrap();
        SimNode {
            store,
            id,
            ownership: Ownership::new(id, LEASE),
            lease: Lease::new(LEASE),
            beat: 0,
            leaving: false,
            owned: BTreeMap::new(),
            fault: None,
            clock: (
                Duration::from_secs(rng.u64(0..1_000_000)),
                0.97 + rng.f64() * 0.06,
            ),
        }
    }

    fn local(&self, now: Duration) -> Duration {
        self.clock.0 + now.mul_f64(self.clock.1)
    }

    /// Whether it would answer a read of the shard, if it woke up now.
    fn answers(&self, shard: Shard, now: Duration) -> bool {
        let is_dead = self.fault == Some(Fault::Dead);
        !is_dead && self.owned.contains_key(&shard) && self.lease.holds(self.local(now))
    }

    /// Renews, looks at the tables, and does what follows.
    fn act(&mut self, now: Duration) {
        let sent_at = self.local(now);
        self.beat += 1;
        if !self.store.renew(self.id, self.beat, self.leaving).unwrap() {
            // Removed while it was frozen or cut off: whatever it owned may have another owner.
            self.lease.lost();
            self.owned.clear();
            self.id = self.store.join("here again").unwrap();
            (self.ownership, self.beat) = (Ownership::new(self.id, LEASE), 0);
            return;
        }
        self.lease.renewed(sent_at);
        let tables = Tables {
            nodes: self.store.nodes().unwrap(),
            shards: self.store.shards().unwrap(),
        };
        for step in self.ownership.observe(sent_at, &tables) {
            match step {
                Step::Remove { node, beat } => drop(self.store.remove(node, beat).unwrap()),
                Step::Claim(shard) => {
                    if let Some(claimed) = self.store.claim(shard, self.id).unwrap() {
                        self.owned.insert(shard, claimed.epoch);
                    }
                }
                Step::Release(shard) => {
                    if let Some(epoch) = self.owned.remove(&shard) {
                        assert!(self.store.release(shard, epoch).unwrap());
                    }
                }
            }
        }
    }
}

pub struct World {
    pub rng: Rng,
    store: SimStore,
    shards: u16,
    pub nodes: Vec<SimNode>,
    pub now: Duration,
    /// When each node acts next.
    agenda: BinaryHeap<Reverse<(Duration, usize)>>,
    /// Hand-overs so far: changes of an owner that lived.
    pub claims: u64,
}

impl World {
    pub fn new(seed: u64, nodes: usize, shards: u16) -> Self {
        let mut world = World {
            rng: Rng::with_seed(seed),
            store: SimStore::new(shards),
            shards,
            nodes: Vec::new(),
            now: Duration::ZERO,
            agenda: BinaryHeap::new(),
            claims: 0,
        };
        (0..nodes).for_each(|_| world.start_node());
        world
    }

    pub fn start_node(&mut self) {
        let node = SimNode::new(self.store.clone(), &mut self.rng);
        let first = self.now + LEASE.mul_f64(self.rng.f64() / 6.0);
        self.agenda.push(Reverse((first, self.nodes.len())));
        self.nodes.push(node);
    }

    pub fn kill(&mut self, node: usize) {
        self.nodes[node].fault = Some(Fault::Dead);
    }

    pub fn freeze(&mut self, node: usize, span: Duration) {
        self.nodes[node].fault = Some(Fault::Frozen(self.now + span));
    }

    pub fn cut_off(&mut self, node: usize, span: Duration) {
        self.nodes[node].fault = Some(Fault::CutOff(self.now + span));
    }

    pub fn drain(&mut self, node: usize) {
        let node = &mut self.nodes[node];
        node.leaving = true;
        node.ownership.drain();
    }

    /// From now on, nodes trust their leases for twice as long as others wait.
    pub fn lengthen_leases(&mut self) {
        for node in &mut self.nodes {
            node.lease = Lease::new(2 * LEASE);
        }
    }

    /// Nodes that act, or will again.
    pub fn living(&self) -> Vec<usize> {
        let lives = |node: &usize| self.nodes[*node].fault != Some(Fault::Dead);
        (0..self.nodes.len()).filter(lives).collect()
    }

    /// Lets time pass; checks all the time that no two nodes answer for one shard.
    pub fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(Reverse((at, index))) = self.agenda.peek().copied().filter(|next| next.0.0 <= until) {
            self.agenda.pop();
            self.now = at;
            self.nodes[index].fault = self.nodes[index].fault.filter(|fault| match fault {
                Fault::Dead => true,
                Fault::Frozen(end) | Fault::CutOff(end) => at < *end,
            });
            match self.nodes[index].fault {
                Some(Fault::Dead) => continue,
                Some(Fault::Frozen(end)) => {
                    self.agenda.push(Reverse((end, index)));
                    continue;
                }
                Some(Fault::CutOff(_)) => {}
                None => {
                    let before = self.nodes[index].owned.len();
                    self.nodes[index].act(at);
                    if self.nodes[index].owned.len() > before {
                        self.claims += 1;
                        self.check();
                    }
                }
            }
            let period = self.nodes[index].lease.period();
            self.agenda.push(Reverse((at + period, index)));
        }
        self.now = until;
    }

    /// At most one node answers reads of a shard.
    fn check(&self) {
        for shard in (0..self.shards).map(Shard) {
            let answer = self.nodes.iter().filter(|node| node.answers(shard, self.now));
            let answer: Vec<NodeId> = answer.map(|node| node.id).collect();
            assert!(
                answer.len() <= 1,
                "{:?}: {answer:?} answer for shard {shard}",
                self.now
            );
        }
    }

    /// Whether each shard has an owner that lives and knows it.
    pub fn all_owned(&mut self) -> bool {
        let rows = self.store.shards().unwrap();
        rows.iter().all(|row| {
            let owner = self.nodes.iter().find(|node| Some(node.id) == row.node);
            owner.is_some_and(|owner| {
                owner.answers(row.shard, self.now) && owner.owned[&row.shard] == row.epoch
            })
        })
    }

    /// Whether each shard is where all nodes want it.
    pub fn all_where_they_should_be(&mut self) -> bool {
        let nodes = self.store.nodes().unwrap();
        let takes = || nodes.iter().filter(|node| !node.leaving).map(|node| node.id);
        let rows = self.store.shards().unwrap();
        rows.iter().all(|row| row.node == favourite(row.shard, takes()))
    }

    /// Lets time pass until this holds; returns how long it took.
    pub fn until(
        &mut self,
        what: &str,
        within: Duration,
        mut holds: impl FnMut(&mut World) -> bool,
    ) -> Duration {
        let began = self.now;
        while !holds(self) {
            assert!(
                self.now - began < within,
                "within {within:?} it should have been so: {what}"
            );
            self.pass(Duration::from_millis(50));
        }
        self.now - began
    }
}
