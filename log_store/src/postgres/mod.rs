//! The log store in a database that speaks PostgreSQL's protocol.
//!
//! Requires nothing but transactions at the level READ COMMITTED, row locks, and a commit that is on two disks when it
//! returns. `FORMAT.md` describes the tables.

mod address;
mod append;
mod connection;
mod directory;
mod durability;
mod executor;
mod import;
mod members;
mod owners;
mod parameters;
mod replay;
mod tables;
mod tls;
mod trim;

use std::io;
use std::time::Duration;

use crate::row::check_root;
use crate::{
    AppendError, Claimed, Cluster, Each, Epoch, Group, InitOptions, LogStore, Node, NodeId, Outcome,
    ReplayError, Replayed, Round, Sequence, Shard, ShardRow, StoreError, TailSize,
};
use address::Address;
use connection::Connection;
use executor::Executor;
pub use import::Import;
use members::Known;
use trim::Swept;

/// How long a call may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// One attempt: connecting, and one statement or transaction.
    pub attempt: Duration,
    /// All attempts of an append together.
    pub append: Duration,
}

impl Timeouts {
    /// For rounds of membership, on a store of their own: a round that takes longer than a third of the lease is given up,
    /// so that another one fits into the lease.
    pub fn of_membership(lease: Duration) -> Self {
        Timeouts {
            attempt: lease / 3,
            append: lease / 3,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            attempt: Duration::from_secs(5),
            append: Duration::from_secs(20),
        }
    }
}

/// A log store in a PostgreSQL database, with one connection, which is opened when it is first needed and after each
/// failure.
pub struct Postgres {
    runtime: Executor,
    address: Address,
    timeouts: Timeouts,
    connection: Option<Connection>,
    /// What this store has deleted since its last vacuum.
    swept: Swept,
    /// What rounds of membership have read; empty after each failure.
    known: Known,
}

impl Postgres {
    /// A store at an address of libpq's form, such as
    /// `postgres://user:password@host1,host2/database?sslmode=verify-full&sslrootcert=FILE`. With several hosts, the one that
    /// takes writes is used. `sslmode` is disable, prefer (which is usual), require, verify-ca or verify-full; without
    /// `sslrootcert`, verify-full trusts the authorities of the web. A `connect_timeout` is not used: `timeouts` are. Does not
    /// connect yet.
    ///
    /// # Errors
    /// The address does not parse or asks for something that is not supported, the file of `sslrootcert` cannot be read, or
    /// the operating system has no resources.
    pub fn new(url: &str, timeouts: Timeouts) -> Result<Self, StoreError> {
        Self::with(Address::parse(url, timeouts.attempt)?, timeouts)
    }

    fn with(address: Address, timeouts: Timeouts) -> Result<Self, StoreError> {
        Ok(Postgres {
            runtime: Executor::new().map_err(|error| StoreError::Failed(error.into()))?,
            address,
            timeouts,
            connection: None,
            swept: Swept::default(),
            known: Known::default(),
        })
    }

    /// Makes the tables for a cluster of this many shards, completes them, or finds them made.
    ///
    /// # Errors
    /// The store fails, has tables for another number of shards, of another format or with other options, or its commits
    /// do not reach a second disk in the way that the options say. Then nothing is changed.
    pub fn init(&mut self, shards: u16, options: InitOptions) -> Result<(), StoreError> {
        self.ask(async |connection| tables::create(connection, shards, options).await)
    }

    /// What was made.
    ///
    /// # Errors
    /// The store fails, or has no tables of this program's format.
    pub fn cluster(&mut self) -> Result<Cluster, StoreError> {
        self.ask(async |connection| tables::cluster(connection).await)
    }

    /// Runs one statement or transaction. A connection on which anything failed is not used again: what it still carries
    /// could no longer be told from the answers to later calls.
    fn ask<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.ask_within(self.timeouts.attempt, work)
    }

    /// As `ask`, for what changes something that must not be lost: refused while a commit would reach one disk only.
    fn change<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.ask(async |connection| {
            durability::check(connection).await?;
            work(connection).await
        })
    }

    fn ask_within<T>(
        &mut self,
        limit: Duration,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let done = self.runtime.block_on(async {
            let attempt = async {
                let connection = Connection::ready(&mut self.connection, &mut self.address).await?;
                let answer = work(connection).await?;
                match connection.take_warning() {
                    // The commit may be on one disk only.
                    Some(warning) => Err(StoreError::Unavailable(warning.into())),
                    None => Ok(answer),
                }
            };
            let timed = tokio::time::timeout(limit, attempt).await;
            timed.unwrap_or_else(|_| Err(StoreError::Unavailable(no_answer())))
        });
        if done.is_err() {
            self.disconnect();
        }
        done
    }

    /// Closes the connection now: its task, which holds the socket, runs only during calls.
    fn disconnect(&mut self) {
        self.connection = None;
        self.runtime.block_on(async {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        });
    }
}

/// The error for an attempt that has taken too long.
fn no_answer() -> crate::error::Source {
    io::Error::new(io::ErrorKind::TimedOut, "the database does not answer").into()
}

impl LogStore for Postgres {
    fn append(&mut self, groups: &[Group<'_>]) -> Result<Vec<Outcome>, AppendError> {
        append::append(self, groups)
    }

    fn replay(
        &mut self,
        shard: Shard,
        epoch: Epoch,
        from: Sequence,
        each: &mut Each<'_>,
    ) -> Result<Replayed, ReplayError> {
        replay::replay(self, (shard, epoch), from, each)
    }

    fn trim(
        &mut self,
        shard: Shard,
        epoch: Epoch,
        covered: Sequence,
        root: Option<&str>,
    ) -> Result<bool, StoreError> {
        check_root(root)?;
        self.change(async |connection| trim::trim(connection, (shard, epoch), covered, root).await)
    }

    fn probe(&mut self, shard: Shard, epoch: Epoch) -> Result<bool, StoreError> {
        self.ask(async |connection| append::probe(connection, (shard, epoch)).await)
    }

    fn sweep(&mut self, shard: Shard) -> Result<bool, StoreError> {
        trim::sweep(self, shard)
    }

    fn another(&self) -> Result<Box<dyn LogStore>, StoreError> {
        Ok(Box::new(Self::with(self.address.clone(), self.timeouts)?))
    }

    fn join(&mut self, address: &str, lease: Duration) -> Result<NodeId, StoreError> {
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(|error| StoreError::Failed(error.into()))?;
        let node = NodeId(i64::from_le_bytes(id));
        self.change(async |connection| members::join(connection, node, address, lease).await)?;
        Ok(node)
    }

    fn renew(&mut self, node: NodeId, beat: u64, leaving: bool) -> Result<bool, StoreError> {
        self.ask(async |connection| members::renew(connection, node, beat, leaving).await)
    }

    fn round(&mut self, node: NodeId, beat: u64, leaving: bool) -> Result<Round, StoreError> {
        // Nothing that was read on a connection which has failed is relied on.
        let mut known = std::mem::take(&mut self.known);
        let round =
            self.ask(async |connection| members::round(connection, &mut known, node, beat, leaving).await)?;
        self.known = known;
        Ok(round)
    }

    fn remove(&mut self, node: NodeId, beat: u64) -> Result<bool, StoreError> {
        self.change(async |connection| members::remove(connection, node, beat).await)
    }

    fn nodes(&mut self) -> Result<Vec<Node>, StoreError> {
        self.ask(async |connection| members::nodes(connection).await)
    }

    fn claim(&mut self, shard: Shard, node: NodeId) -> Result<Option<Claimed>, StoreError> {
        self.change(async |connection| owners::claim(connection, shard, node).await)
    }

    fn release(&mut self, shard: Shard, epoch: Epoch) -> Result<bool, StoreError> {
        self.change(async |connection| owners::release(connection, shard, epoch).await)
    }

    fn shards(&mut self) -> Result<Vec<ShardRow>, StoreError> {
        self.ask(async |connection| owners::shards(connection).await)
    }

    fn tails(&mut self) -> Result<Vec<TailSize>, StoreError> {
        self.ask(async |connection| trim::tails(connection).await)
    }
}
