//! A log store in memory, shared by any number of nodes, that fails as a test tells it to.

mod directory;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;

use crate::body::{BODY_BYTES_MAX, body_bytes, checksum, encode};
use crate::row::{Row, begins_early_enough, check_root};
use crate::{
    AppendError, Claimed, Each, Epoch, Group, LogStore, Node, NodeId, Outcome, ReplayError, Replayed, Round,
    Sequence, Shard, ShardRow, StoreError, TailSize, ordinals,
};

use directory::Names;

/// What happens to an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing unusual.
    None,
    /// The database cannot be reached; nothing is written.
    Unavailable,
    /// The database has no space; nothing is written.
    Full,
    /// The answer is lost, and never found out.
    Unknown(Written),
    /// It is acknowledged and not written: a store that breaks its promise, for tests of what notices it.
    Forgotten,
}

/// Whether an append whose answer was lost was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It was.
    Now,
    /// It was under way, and is written just before the shard's next owner claims it.
    Late,
    /// It never arrived.
    Never,
}

/// Decides what happens to an append.
type Faults = Box<dyn FnMut() -> Fault + Send>;

/// A node's way to the store. Clones reach the same store.
#[derive(Clone)]
pub struct SimStore {
    state: Arc<Mutex<State>>,
}

struct State {
    shards: BTreeMap<Shard, ShardState>,
    nodes: BTreeMap<NodeId, Node>,
    next_node: i64,
    faults: Faults,
    appends: u64,
    names: Names,
}

#[derive(Default)]
struct ShardState {
    epoch: Epoch,
    node: Option<NodeId>,
    covered: Sequence,
    root: Option<String>,
    rows: BTreeMap<Sequence, Stored>,
    /// Rows that are under way.
    late: Vec<(Sequence, Stored)>,
}

struct Stored {
    last: Sequence,
    epoch: Epoch,
    crc: u32,
    body: Vec<u8>,
}

impl ShardState {
    /// Stores a row, unless the epoch is over or the key exists. Returns whether it did.
    fn insert(&mut self, first: Sequence, row: Stored) -> bool {
        let takes = row.epoch == self.epoch && !self.rows.contains_key(&first);
        if takes {
            self.rows.insert(first, row);
        }
        takes
    }

    /// The epoch ends: rows under way arrive before, or never.
    fn next_epoch(&mut self) {
        for (first, row) in std::mem::take(&mut self.late) {
            self.insert(first, row);
        }
        self.epoch += 1;
    }
}

impl SimStore {
    /// A store with this many shards and without faults.
    pub fn new(shards: u16) -> Self {
        let shards = (0..shards).map(|id| (Shard(id), ShardState::default()));
        let state = State {
            shards: shards.collect(),
            nodes: BTreeMap::new(),
            next_node: 1,
            faults: Box::new(|| Fault::None),
            appends: 0,
            names: Names::default(),
        };
        SimStore {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// From now on, `faults` says what happens to each append.
    pub fn set_faults(&self, faults: impl FnMut() -> Fault + Send + 'static) {
        self.state.lock().faults = Box::new(faults);
    }

    /// From now on, one append of `one_in` fails, in a way that the seed decides.
    pub fn fail_at_random(&self, seed: u64, one_in: u32) {
        let mut rng = Rng::with_seed(seed);
        self.set_faults(move || match rng.u32(..one_in) {
            0 => rng
                .choice([
                    Fault::Unavailable,
                    Fault::Full,
                    Fault::Unknown(Written::Now),
                    Fault::Unknown(Written::Late),
                    Fault::Unknown(Written::Never),
                ])
                .unwrap_or(Fault::None),
            _ => Fault::None,
        });
    }

    /// Commits so far: appends that were written, however many groups they had.
    pub fn commits(&self) -> u64 {
        self.state.lock().appends
    }
}

impl State {
    fn shard(&mut self, shard: Shard) -> Result<&mut ShardState, StoreError> {
        let found = self.shards.get_mut(&shard);
        found.ok_or_else(|| StoreError::Tables(format!("there is no shard {shard}")))
    }
}

fn too_large(groups: &[Group<'_>]) -> Option<AppendError> {
    let bytes = groups.iter().map(|group| body_bytes(group.records)).max()?;
    let bytes_max = BODY_BYTES_MAX;
    (bytes > bytes_max).then_some(AppendError::TooLarge { bytes, bytes_max })
}

impl LogStore for SimStore {
    fn append(&mut self, groups: &[Group<'_>]) -> Result<Vec<Outcome>, AppendError> {
        if let Some(refusal) = too_large(groups) {
            return Err(refusal);
        }
        let mut state = self.state.lock();
        let fault = (state.faults)();
        let written = match fault {
            Fault::None => Written::Now,
            Fault::Unavailable => return Err(AppendError::Unavailable("as the test wants it".into())),
            Fault::Full => return Err(AppendError::Full("as the test wants it".into())),
            Fault::Unknown(written) => written,
            Fault::Forgotten => return Ok(vec![Outcome::Durable; groups.len()]),
        };
        state.appends += 1;
        let mut outcomes = Vec::with_capacity(groups.len());
        for group in groups {
            let Some(shard) = state.shards.get_mut(&group.shard) else {
                outcomes.push(Outcome::Lost);
                continue;
            };
            let body = encode(group.records);
            let row = Stored {
                last: group.last(),
                epoch: group.epoch,
                crc: checksum(group.shard, group.epoch, group.first, &body),
                body,
            };
            let durable = match written {
                Written::Now => shard.insert(group.first, row),
                Written::Late => {
                    shard.late.push((group.first, row));
                    false
                }
                Written::Never => false,
            };
            outcomes.push(if durable { Outcome::Durable } else { Outcome::Lost });
        }
        match fault {
            Fault::None => Ok(outcomes),
            _ => Err(AppendError::Unknown("as the test wants it".into())),
        }
    }

    fn replay(
        &mut self,
        shard: Shard,
        epoch: Epoch,
        from: Sequence,
        each: &mut Each<'_>,
    ) -> Result<Replayed, ReplayError> {
        let mut state = self.state.lock();
        let found = state.shard(shard)?;
        if found.epoch != epoch {
            return Err(ReplayError::Lost { shard });
        }
        begins_early_enough(shard, found.covered, from)?;
        let mut replayed = Replayed {
            last: from,
            ..Replayed::default()
        };
        for (first, stored) in &state.shard(shard)?.rows {
            if stored.last > from {
                let row = Row {
                    first: *first,
                    last: stored.last,
                    epoch: stored.epoch,
                    crc: stored.crc,
                    body: &stored.body,
                };
                row.pass_on(shard, &mut replayed, each)?;
            }
        }
        Ok(replayed)
    }

    fn trim(
        &mut self,
        shard: Shard,
        epoch: Epoch,
        covered: Sequence,
        root: Option<&str>,
    ) -> Result<bool, StoreError> {
        check_root(root)?;
        let mut state = self.state.lock();
        let shard = state.shard(shard)?;
        if shard.epoch != epoch {
            return Ok(false);
        }
        if covered >= shard.covered {
            shard.covered = covered;
            shard.root = root.map(str::to_owned).or(shard.root.take());
        }
        Ok(true)
    }

    fn probe(&mut self, shard: Shard, epoch: Epoch) -> Result<bool, StoreError> {
        let mut state = self.state.lock();
        match (state.faults)() {
            Fault::Unavailable | Fault::Full => Err(StoreError::Unavailable("as the test wants it".into())),
            _ => Ok(state.shard(shard)?.epoch == epoch),
        }
    }

    /// One row at a time, so that tests see the log between two calls.
    fn sweep(&mut self, shard: Shard) -> Result<bool, StoreError> {
        let mut state = self.state.lock();
        let shard = state.shard(shard)?;
        let covered = shard.covered;
        Ok(shard
            .rows
            .extract_if(.., |_, row| row.last <= covered)
            .next()
            .is_some())
    }

    fn another(&self) -> Result<Box<dyn LogStore>, StoreError> {
        Ok(Box::new(self.clone()))
    }

    fn join(&mut self, address: &str, lease: Duration) -> Result<NodeId, StoreError> {
        let mut state = self.state.lock();
        let id = NodeId(state.next_node);
        state.next_node += 1;
        let node = Node {
            id,
            address: address.to_owned(),
            beat: 0,
            leaving: false,
            lease,
        };
        state.nodes.insert(id, node);
        Ok(id)
    }

    fn renew(&mut self, node: NodeId, beat: u64, leaving: bool) -> Result<bool, StoreError> {
        let mut state = self.state.lock();
        let Some(node) = state.nodes.get_mut(&node).filter(|node| node.beat < beat) else {
            return Ok(false);
        };
        (node.beat, node.leaving) = (beat, leaving);
        Ok(true)
    }

    fn round(&mut self, node: NodeId, beat: u64, leaving: bool) -> Result<Round, StoreError> {
        Ok(Round {
            renewed: self.renew(node, beat, leaving)?,
            nodes: self.nodes()?,
            shards: self.shards()?,
            weakness: None,
        })
    }

    fn remove(&mut self, node: NodeId, beat: u64) -> Result<bool, StoreError> {
        let mut state = self.state.lock();
        let is_same = state.nodes.get(&node).is_some_and(|node| node.beat == beat);
        Ok(is_same && state.nodes.remove(&node).is_some())
    }

    fn nodes(&mut self) -> Result<Vec<Node>, StoreError> {
        Ok(self.state.lock().nodes.values().cloned().collect())
    }

    fn claim(&mut self, shard: Shard, node: NodeId) -> Result<Option<Claimed>, StoreError> {
        let mut state = self.state.lock();
        let owner = state.shard(shard)?.node;
        let is_taken = owner.is_some_and(|owner| owner != node && state.nodes.contains_key(&owner));
        if is_taken || !state.nodes.contains_key(&node) {
            return Ok(None);
        }
        let ordinals = ordinals(shard, state.shards.len() as u16);
        let shard = state.shard(shard)?;
        shard.next_epoch();
        shard.node = Some(node);
        Ok(Some(Claimed {
            ordinals,
            epoch: shard.epoch,
            covered: shard.covered,
            root: shard.root.clone(),
        }))
    }

    fn release(&mut self, shard: Shard, epoch: Epoch) -> Result<bool, StoreError> {
        let mut state = self.state.lock();
        let shard = state.shard(shard)?;
        let is_owner = shard.epoch == epoch;
        if is_owner {
            shard.next_epoch();
            shard.node = None;
        }
        Ok(is_owner)
    }

    fn shards(&mut self) -> Result<Vec<ShardRow>, StoreError> {
        let state = self.state.lock();
        let rows = state.shards.iter().map(|(shard, state)| ShardRow {
            shard: *shard,
            epoch: state.epoch,
            node: state.node,
            covered: state.covered,
            root: state.root.clone(),
        });
        Ok(rows.collect())
    }

    fn tails(&mut self) -> Result<Vec<TailSize>, StoreError> {
        let state = self.state.lock();
        let tails = state.shards.iter().map(|(shard, state)| {
            let tail = || state.rows.values().filter(|row| row.last > state.covered);
            TailSize {
                shard: *shard,
                groups: tail().count() as u64,
                bytes: tail().map(|row| row.body.len() as u64).sum(),
                last: tail().map(|row| row.last).max().unwrap_or(state.covered),
            }
        });
        Ok(tails.collect())
    }
}
