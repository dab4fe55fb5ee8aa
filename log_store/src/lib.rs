//! The log of a cluster: records of many shards, each written by one owner, in a database that speaks PostgreSQL's
//! protocol. The database replicates; this crate adds who may write.
//!
//! A *shard* is a log of its own: records numbered from 1 without gaps. A *node* is a process. It claims a shard, and
//! with each claim the shard's *epoch* grows. Every write names the epoch under which it is made; a write under an older
//! one changes nothing and says so. The crate handles bytes and sequence numbers. It does not know what the records
//! mean, and starts no thread.
//!
//! Reading order: [`LogStore`] (what a log store does), [`Group`] and [`body`] (the bytes of a row), [`Postgres`], and
//! `sim`, a store in memory that fails as a test tells it to. `FORMAT.md` describes the tables.

#![warn(missing_docs)]

pub mod body;
mod directory;
mod error;
mod postgres;
mod row;
#[cfg(feature = "sim")]
pub mod sim;

use std::fmt;
use std::ops::Range;
use std::time::Duration;

pub use directory::{CREDENTIALS_BATCH, CredentialHash, Directory, NAME_BYTES_MAX, Place};
pub use error::{AppendError, ReplayError, StoreError};
pub use postgres::{Import, Postgres, Timeouts};

/// Sequence number of a record in its shard's log. The first record is 1; 0 means "before the first".
pub type Sequence = u64;

/// Number of changes of a shard's owner. What is written under an epoch that is not the current one has no effect.
pub type Epoch = u64;

/// A shard: a log of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(pub u16);

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A running process. Each start of a program joins as a new node, so that a node which was removed never returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub i64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Records of one shard that become durable together, or not at all.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The shard.
    pub shard: Shard,
    /// The epoch under which the writer owns the shard.
    pub epoch: Epoch,
    /// Sequence of the first record: one more than the last of the shard.
    pub first: Sequence,
    /// At least one record.
    pub records: &'a [Vec<u8>],
}

/// What became of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its records are durable: the database has committed them.
    Durable,
    /// The shard has another owner. Nothing of the group was written, or the next owner reads it; whether it does is not
    /// known.
    Lost,
}

/// A shard as its new owner finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The new epoch.
    pub epoch: Epoch,
    /// The last record that the log need not have: it is stored elsewhere.
    pub covered: Sequence,
    /// Names what holds everything up to `covered`; `None` before the first.
    pub root: Option<String>,
    /// The ordinals of new buckets.
    pub ordinals: Range<u32>,
}

/// What a replay has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Sequence of the last record.
    pub last: Sequence,
    /// Records passed on.
    pub records: u64,
    /// Size of the log in bytes.
    pub bytes: u64,
}

/// A node, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// Where other nodes reach it.
    pub address: String,
    /// Grows with each renewal. A node whose beat has not changed for a lease, by the observer's own monotonic clock,
    /// may be removed.
    pub beat: u64,
    /// Whether it is about to stop: it should be given nothing more.
    pub leaving: bool,
    /// How long others wait for its next beat before they remove it.
    pub lease: Duration,
}

/// A shard's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRow {
    /// The shard.
    pub shard: Shard,
    /// Its epoch.
    pub epoch: Epoch,
    /// The node that claimed it last; it need not exist any more.
    pub node: Option<NodeId>,
    /// The last record stored elsewhere.
    pub covered: Sequence,
    /// Names what holds everything up to `covered`; `None` before the first.
    pub root: Option<String>,
}

/// What a node sees in a round of membership, all at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Whether the beat was set; as the answer of [`renew`](LogStore::renew).
    pub renewed: bool,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All shards, in order.
    pub shards: Vec<ShardRow>,
    /// Why appends and claims are refused although the store answers: a commit would reach one disk only.
    pub weakness: Option<String>,
}

/// How a commit reaches a second disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// By standbys that `synchronous_standby_names` names. The store writes nothing while it names none.
    Standbys,
    /// By the storage below the database, as in managed and distributed ones. The store relies on it without looking.
    Storage,
}

/// How a cluster is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitOptions {
    /// How a commit reaches a second disk.
    pub replication: Replication,
}

/// A cluster, as it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Random: no other cluster has it.
    pub identity: String,
    /// Number of shards.
    pub shards: u16,
}

/// Maximum number of shards.
pub const SHARDS_MAX: u16 = 4_096;

/// The first ordinal of a bucket that a shard of a cluster makes. Those before it are of buckets that were imported with the
/// directory of a single server, which counts from 0.
const ORDINALS_FROM: u32 = 1 << 31;

/// The ordinals of the buckets that a shard makes: the upper half, divided evenly.
pub fn ordinals(shard: Shard, shards: u16) -> Range<u32> {
    let each = (u32::MAX - ORDINALS_FROM) / u32::from(shards.max(1));
    let from = ORDINALS_FROM + u32::from(shard.0) * each;
    from..from + each
}

/// What a shard's next owner has to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailSize {
    /// The shard.
    pub shard: Shard,
    /// Groups that hold a record after `covered`.
    pub groups: u64,
    /// Size of their bodies in bytes.
    pub bytes: u64,
    /// Sequence of the last record.
    pub last: Sequence,
}

/// Maximum length of a root's name in bytes: as long as names in an object store may be.
pub const ROOT_BYTES_MAX: usize = 1_024;

/// Receives a record during a replay.
pub type Each<'a> =
    dyn FnMut(Sequence, &[u8]) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + Send + 'a;

/// A log store. Every call blocks its thread, at most as long as the store's time-outs say.
pub trait LogStore: Send {
    /// Makes groups durable by one commit, at most one group for each shard, and says for each what became of it.
    ///
    /// # Errors
    /// [`AppendError::Unknown`] if the connection broke and the groups' fate could not be found out in time: they may or
    /// may not be in the log, so their shards must be claimed and read again. With the other errors, nothing is written.
    fn append(&mut self, groups: &[Group<'_>]) -> Result<Vec<Outcome>, AppendError>;

    /// Passes the records after `from` to `each`, in order, to the node that has claimed the shard under this epoch.
    ///
    /// # Errors
    /// The store fails, the shard has another owner, the log begins after `from + 1`, has a gap or a row whose checksum does not match, or `each` fails.
    fn replay(
        &mut self,
        shard: Shard,
        epoch: Epoch,
        from: Sequence,
        each: &mut Each<'_>,
    ) -> Result<Replayed, ReplayError>;

    /// Notes that the records up to `covered` are stored elsewhere, and where: `root` names what holds them. Without one,
    /// the root stays. A `covered` before the shard's changes nothing. `false` if the shard has another owner; then nothing
    /// is changed. The rows stay until [`sweep`](LogStore::sweep) deletes them.
    ///
    /// # Errors
    /// The store fails, or the root's name is longer than [`ROOT_BYTES_MAX`]. Repeating the call is harmless.
    fn trim(
        &mut self,
        shard: Shard,
        epoch: Epoch,
        covered: Sequence,
        root: Option<&str>,
    ) -> Result<bool, StoreError>;

    /// Whether an append to the shard would be taken: tries to write a row, and takes it back. `false` if the shard has
    /// another owner.
    ///
    /// # Errors
    /// The store fails, is full, takes no writes, or its commits would reach one disk only.
    fn probe(&mut self, shard: Shard, epoch: Epoch) -> Result<bool, StoreError>;

    /// Deletes some of the shard's groups whose records are all at or before its `covered`; `false` if there was none.
    /// Anybody may call this: what is covered is never read again.
    ///
    /// # Errors
    /// The store fails. Repeating the call is harmless.
    fn sweep(&mut self, shard: Shard) -> Result<bool, StoreError>;

    /// Another way to the same store: a call on one does not wait for a call on the other.
    ///
    /// # Errors
    /// The operating system has no resources.
    fn another(&self) -> Result<Box<dyn LogStore>, StoreError>;

    /// Adds this process to the nodes, with its first beat, 0.
    ///
    /// # Errors
    /// The store fails.
    fn join(&mut self, address: &str, lease: Duration) -> Result<NodeId, StoreError>;

    /// Sets the node's beat, and whether it is about to stop. Each call, also one after an error, has a greater beat than
    /// the one before: a beat that others have seen must not be renewed again. `false` if the beat has not grown, or if the
    /// node was removed; then whatever it owned may have another owner.
    ///
    /// # Errors
    /// The store fails; whether the beat was set is not known.
    fn renew(&mut self, node: NodeId, beat: u64, leaving: bool) -> Result<bool, StoreError>;

    /// Renews as [`renew`](LogStore::renew) does, and reads all nodes and shards, by one statement. Its cost for the database
    /// hardly grows with the number of nodes, and shards are read when they have changed. Meant for a store of its own, so
    /// that no append delays it.
    ///
    /// # Errors
    /// The store fails; whether the beat was set is not known.
    fn round(&mut self, node: NodeId, beat: u64, leaving: bool) -> Result<Round, StoreError>;

    /// Removes a node whose beat is still this one. `false` if it has renewed, or is not there.
    ///
    /// # Errors
    /// The store fails. Repeating the call is harmless.
    fn remove(&mut self, node: NodeId, beat: u64) -> Result<bool, StoreError>;

    /// All nodes.
    ///
    /// # Errors
    /// The store fails.
    fn nodes(&mut self) -> Result<Vec<Node>, StoreError>;

    /// Makes the node the owner of a shard that has none, or whose owner is this node or was removed. `None` if the shard
    /// has another owner, somebody writes to it or claims it at this moment, or the node itself was removed. Once this returns, no write under an older epoch succeeds.
    ///
    /// # Errors
    /// The store fails; the epoch may have grown.
    fn claim(&mut self, shard: Shard, node: NodeId) -> Result<Option<Claimed>, StoreError>;

    /// Gives a shard up. `false` if it has another owner already. From the call on, nothing may be answered under this
    /// epoch, whatever the call returns: a release whose answer was lost may still happen. To go on, claim again.
    ///
    /// # Errors
    /// The store fails. Repeating the call is harmless.
    fn release(&mut self, shard: Shard, epoch: Epoch) -> Result<bool, StoreError>;

    /// All shards, in order.
    ///
    /// # Errors
    /// The store fails.
    fn shards(&mut self) -> Result<Vec<ShardRow>, StoreError>;

    /// The sizes of all tails, in order of the shards. Reads every row of a tail, but not the bodies.
    ///
    /// # Errors
    /// The store fails.
    fn tails(&mut self) -> Result<Vec<TailSize>, StoreError>;
}
