//! The log store in a database that speaks PostgreSQL's protocol.
//!
//! Requires nothing but transactions at the level READ COMMITTED, row locks, and a commit that is on two disks when it
//! returns. `FORMAT.md` describes the tables.

mod append;
mod connection;
mod owners;
mod replay;
mod tables;
mod trim;

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Config;
use tokio_postgres::config::TargetSessionAttrs;

use crate::row::check_root;
use crate::{
    AppendError, Claimed, Each, Epoch, Group, LogStore, Node, NodeId, Outcome, ReplayError, Replayed,
    Sequence, Shard, ShardRow, StoreError, TailSize,
};
use connection::Connection;
use trim::Swept;

/// How long a call may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// One attempt: connecting, and one statement or transaction.
    pub attempt: Duration,
    /// All attempts of an append together.
    pub append: Duration,
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
    runtime: Runtime,
    config: Config,
    timeouts: Timeouts,
    connection: Option<Connection>,
    /// What this store has deleted since its last vacuum.
    swept: Swept,
}

impl Postgres {
    /// A store at an address such as `postgres://user:password@host1,host2/database`. With several hosts, the one that
    /// takes writes is used. Does not connect yet.
    ///
    /// # Errors
    /// The address does not parse, or the operating system has no resources.
    pub fn new(url: &str, timeouts: Timeouts) -> Result<Self, StoreError> {
        let config = url.parse::<Config>();
        let mut config = config.map_err(|error| StoreError::Failed(error.into()))?;
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.application_name("tidewatch");
        // Each host gets a part of an attempt, so that one which does not answer does not hide the next.
        let hosts = config.get_hosts().len().max(1) as u32;
        config.connect_timeout(timeouts.attempt / (hosts + 1));
        Self::with(config, timeouts)
    }

    fn with(config: Config, timeouts: Timeouts) -> Result<Self, StoreError> {
        let mut runtime = Builder::new_current_thread();
        // The end of a connection is seen before anything is sent on it: the connection's task runs only during calls.
        let runtime = runtime.enable_all().event_interval(1).build();
        Ok(Postgres {
            runtime: runtime.map_err(|error| StoreError::Failed(error.into()))?,
            config,
            timeouts,
            connection: None,
            swept: Swept::default(),
        })
    }

    /// Makes the tables for a cluster of this many shards, or finds them made.
    ///
    /// # Errors
    /// The store fails, or has tables for another number of shards or of another format.
    pub fn init(&mut self, shards: u16) -> Result<(), StoreError> {
        self.ask(async |connection| tables::create(connection, shards).await)
    }

    /// The number of shards.
    ///
    /// # Errors
    /// The store fails, or has no tables of this program's format.
    pub fn shard_count(&mut self) -> Result<u16, StoreError> {
        self.ask(async |connection| tables::shard_count(connection).await)
    }

    /// Runs one statement or transaction. A connection on which anything failed is not used again: what it still carries
    /// could no longer be told from the answers to later calls.
    fn ask<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.ask_within(self.timeouts.attempt, work)
    }

    fn ask_within<T>(
        &mut self,
        limit: Duration,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let done = self.runtime.block_on(async {
            let attempt = async {
                let connection = Connection::ready(&mut self.connection, &self.config).await?;
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
        self.ask(async |connection| trim::trim(connection, (shard, epoch), covered, root).await)
    }

    fn sweep(&mut self, shard: Shard) -> Result<bool, StoreError> {
        trim::sweep(self, shard)
    }

    fn another(&self) -> Result<Box<dyn LogStore>, StoreError> {
        Ok(Box::new(Self::with(self.config.clone(), self.timeouts)?))
    }

    fn join(&mut self, address: &str, lease: Duration) -> Result<NodeId, StoreError> {
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(|error| StoreError::Failed(error.into()))?;
        let node = NodeId(i64::from_le_bytes(id));
        self.ask(async |connection| owners::join(connection, node, address, lease).await)?;
        Ok(node)
    }

    fn renew(&mut self, node: NodeId, beat: u64, leaving: bool) -> Result<bool, StoreError> {
        self.ask(async |connection| owners::renew(connection, node, beat, leaving).await)
    }

    fn remove(&mut self, node: NodeId, beat: u64) -> Result<bool, StoreError> {
        self.ask(async |connection| owners::remove(connection, node, beat).await)
    }

    fn nodes(&mut self) -> Result<Vec<Node>, StoreError> {
        self.ask(async |connection| owners::nodes(connection).await)
    }

    fn claim(&mut self, shard: Shard, node: NodeId) -> Result<Option<Claimed>, StoreError> {
        self.ask(async |connection| owners::claim(connection, shard, node).await)
    }

    fn release(&mut self, shard: Shard, epoch: Epoch) -> Result<bool, StoreError> {
        self.ask(async |connection| owners::release(connection, shard, epoch).await)
    }

    fn shards(&mut self) -> Result<Vec<ShardRow>, StoreError> {
        self.ask(async |connection| owners::shards(connection).await)
    }

    fn tails(&mut self) -> Result<Vec<TailSize>, StoreError> {
        self.ask(async |connection| trim::tails(connection).await)
    }
}
