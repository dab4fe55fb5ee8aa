//! The simulated nodes. Each operation of a node on the log store is sent, takes effect and is answered at times of its own,
//! and anything may happen in between.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use fastrand::Rng;
use log_store::sim::SimStore;
use log_store::{Epoch, LogStore, NodeId, Shard};

use crate::cluster::rendezvous::favourite;
use crate::cluster::{Lease, Ownership, ROUND_PAUSE, Step, Tables};

pub const LEASE: Duration = Duration::from_secs(3);
/// Steps of a node between two renewals.
const STEPS_MAX: usize = 32;

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

/// What a node does next.
enum Phase {
    Begin,
    /// The renewal takes effect; it was sent at this time of the node's clock.
    Renew(Duration),
    /// The answer to the renewal arrives.
    Renewed {
        sent_at: Duration,
        is_member: bool,
    },
    Read,
    /// The tables have arrived.
    Observe(Tables),
    Step(VecDeque<Step>),
    /// A claimed shard is open.
    Open(Shard, Epoch, VecDeque<Step>),
}

pub struct SimNode {
    store: SimStore,
    address: String,
    pub id: NodeId,
    ownership: Ownership,
    lease: Lease,
    beat: u64,
    leaving: bool,
    pub owned: BTreeMap<Shard, Epoch>,
    fault: Option<Fault>,
    phase: Phase,
    /// The pause after this round.
    pause: Duration,
    /// Its clock at the beginning, and its rate.
    clock: (Duration, f64),
}

impl SimNode {
    fn new(mut store: SimStore, address: String, rng: &mut Rng) -> Self {
        let id = store.join(&address, LEASE).unwrap();
        SimNode {
            store,
            address,
            id,
            ownership: Ownership::new(id),
            lease: Lease::new(LEASE),
            beat: 0,
            leaving: false,
            owned: BTreeMap::new(),
            fault: None,
            phase: Phase::Begin,
            pause: Duration::ZERO,
            // Rates that differ by up to a tenth.
            clock: (
                Duration::from_secs(rng.u64(0..1_000_000)),
                rng.choice([0.955, 1.0, 1.045]).unwrap(),
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

    /// The node was removed: whatever it owned may have another owner.
    fn join_again(&mut self) {
        self.owned.clear();
        if self.leaving {
            self.fault = Some(Fault::Dead);
            return;
        }
        self.id = self.store.join(&self.address, LEASE).unwrap();
        (self.ownership, self.lease, self.beat) = (Ownership::new(self.id), Lease::new(LEASE), 0);
    }

    /// Does one thing. `is_lost` says that an operation has no effect, or that its answer does not arrive.
    fn act(&mut self, now: Duration, lost: Option<Lost>) {
        let at = self.local(now);
        self.phase = match std::mem::replace(&mut self.phase, Phase::Begin) {
            Phase::Begin => {
                self.pause = self.lease.period();
                self.beat += 1;
                Phase::Renew(at)
            }
            Phase::Renew(_) if lost == Some(Lost::Request) => Phase::Begin,
            Phase::Renew(sent_at) => {
                let is_member = self.store.renew(self.id, self.beat, self.leaving).unwrap();
                match lost {
                    Some(_) => Phase::Begin,
                    None => Phase::Renewed { sent_at, is_member },
                }
            }
            Phase::Renewed { is_member: false, .. } => {
                self.lease.lost();
                self.join_again();
                Phase::Begin
            }
            Phase::Renewed { sent_at, .. } => {
                self.lease.renewed(sent_at);
                Phase::Read
            }
            Phase::Read if lost.is_some() => Phase::Begin,
            Phase::Read => Phase::Observe(Tables {
                nodes: self.store.nodes().unwrap(),
                shards: self.store.shards().unwrap(),
                read_at: Duration::ZERO,
            }),
            Phase::Observe(tables) => {
                let tables = Tables {
                    read_at: at,
                    ..tables
                };
                let steps = self.ownership.observe(&tables, &self.owned);
                let next_removal = self.ownership.next_removal(&tables, self.pause);
                self.pause = next_removal.map_or(self.pause, |wait| wait.max(ROUND_PAUSE));
                Phase::Step(steps.into_iter().take(STEPS_MAX).collect())
            }
            Phase::Step(mut steps) => match steps.pop_front() {
                None => Phase::Begin,
                Some(step) => self.take(step, steps, lost),
            },
            Phase::Open(shard, epoch, steps) => {
                self.owned.insert(shard, epoch);
                Phase::Step(steps)
            }
        };
    }

    fn take(&mut self, step: Step, steps: VecDeque<Step>, lost: Option<Lost>) -> Phase {
        if let Step::Release { shard, .. } = step {
            // Nothing is answered from here on, whatever becomes of the release.
            self.owned.remove(&shard);
        }
        if lost == Some(Lost::Request) {
            return Phase::Step(steps);
        }
        match step {
            Step::Remove { node, beat } => {
                if self.store.remove(node, beat).unwrap() && lost.is_none() {
                    self.pause = ROUND_PAUSE;
                }
            }
            Step::Release { shard, epoch } => drop(self.store.release(shard, epoch).unwrap()),
            Step::Claim(shard) => {
                self.owned.remove(&shard);
                let claimed = self.store.claim(shard, self.id).unwrap();
                if let Some(claimed) = claimed.filter(|_| lost.is_none()) {
                    return Phase::Open(shard, claimed.epoch, steps);
                }
            }
        }
        Phase::Step(steps)
    }
}

/// What is lost of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    Request,
    Answer,
}

pub struct World {
    pub rng: Rng,
    store: SimStore,
    pub nodes: Vec<SimNode>,
    pub now: Duration,
    /// When each node acts next.
    agenda: BinaryHeap<Reverse<(Duration, usize)>>,
    /// Whether operations are sometimes lost, or take longer than a lease.
    pub is_troubled: bool,
}

impl World {
    pub fn new(seed: u64, nodes: usize, shards: u16) -> Self {
        let mut world = World {
            rng: Rng::with_seed(seed),
            store: SimStore::new(shards),
            nodes: Vec::new(),
            now: Duration::ZERO,
            agenda: BinaryHeap::new(),
            is_troubled: false,
        };
        (0..nodes).for_each(|_| world.start_node());
        world
    }

    pub fn start_node(&mut self) {
        let address = format!("node {}", self.nodes.len());
        let node = SimNode::new(self.store.clone(), address, &mut self.rng);
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

    /// No node reaches the log store for a while.
    pub fn outage(&mut self, span: Duration) {
        for node in self.living() {
            self.cut_off(node, span);
        }
    }

    pub fn drain(&mut self, node: usize) {
        self.nodes[node].leaving = true;
    }

    /// From now on, nodes trust their leases for longer than others wait.
    pub fn lengthen_leases(&mut self, factor: f64) {
        for node in &mut self.nodes {
            node.lease = Lease::new(LEASE.mul_f64(factor));
        }
    }

    /// Nodes that act, or will again.
    pub fn living(&self) -> Vec<usize> {
        let lives = |node: &usize| self.nodes[*node].fault != Some(Fault::Dead);
        (0..self.nodes.len()).filter(lives).collect()
    }

    /// Changes of owners so far.
    pub fn epochs(&mut self) -> u64 {
        let rows = self.store.shards().unwrap();
        rows.iter().map(|row| row.epoch).sum()
    }

    /// Members that the nodes know.
    pub fn members(&mut self) -> Vec<NodeId> {
        let nodes = self.store.nodes().unwrap();
        nodes.into_iter().map(|node| node.id).collect()
    }

    /// Lets time pass; after everything that a node does, no other one may answer for its shards.
    pub fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(Reverse((at, index))) = self.agenda.peek().copied().filter(|next| next.0.0 <= until) {
            self.agenda.pop();
            self.now = at;
            let lost = self.lost();
            let pause = self.pause();
            let node = &mut self.nodes[index];
            node.fault = node.fault.filter(|fault| match fault {
                Fault::Dead => true,
                Fault::Frozen(end) | Fault::CutOff(end) => at < *end,
            });
            match node.fault {
                Some(Fault::Dead) => continue,
                Some(Fault::Frozen(end)) => {
                    self.agenda.push(Reverse((end, index)));
                    continue;
                }
                Some(Fault::CutOff(_)) => node.act(at, Some(Lost::Request)),
                None => node.act(at, lost),
            }
            let pause = match node.phase {
                Phase::Begin => node.pause,
                _ => pause,
            };
            self.agenda.push(Reverse((at + pause, index)));
            self.check(index);
        }
        self.now = until;
    }

    fn lost(&mut self) -> Option<Lost> {
        match self.rng.u8(0..100) {
            0 if self.is_troubled => Some(Lost::Request),
            1 if self.is_troubled => Some(Lost::Answer),
            _ => None,
        }
    }

    fn pause(&mut self) -> Duration {
        match self.rng.u8(0..100) {
            0..3 if self.is_troubled => LEASE.mul_f64(self.rng.f64() * 1.5),
            _ => Duration::from_micros(self.rng.u64(0..5_000)),
        }
    }

    fn check(&self, index: usize) {
        let node = &self.nodes[index];
        for shard in node.owned.keys().filter(|shard| node.answers(**shard, self.now)) {
            let mut others = self.nodes.iter().filter(|other| other.id != node.id);
            if let Some(other) = others.find(|other| other.answers(*shard, self.now)) {
                panic!(
                    "{:?}: {} and {} answer for shard {shard}",
                    self.now, node.id, other.id
                );
            }
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
        let takes = || nodes.iter().filter(|node| !node.leaving);
        let rows = self.store.shards().unwrap();
        rows.iter()
            .all(|row| row.node == favourite(row.shard, takes()).map(|node| node.id))
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
