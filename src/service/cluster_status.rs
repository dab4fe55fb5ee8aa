//! What the operator sees of nodes and shards. Who owns what is known from the last round of membership; only the sizes of
//! the tails are read from the log store, and not more often than they change noticeably.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use log_store::{NodeId, Sequence, StoreError, TailSize};
use tokio::sync::Mutex;

use super::Service;
use super::shard_table::ShardTable;
use crate::clock::Clock;
use crate::cluster::{Status, Tables};
use crate::error::ServiceError;

/// How long a status is kept. However many ask for it, the log store is asked once in this time.
const KEPT_FOR: Duration = Duration::from_secs(2);

/// `Retry-After` while the status is not known.
const RETRY_AFTER_SECONDS: u32 = 2;

/// A pending answer about all tails.
pub type PendingTails = Pin<Box<dyn Future<Output = Result<Vec<TailSize>, StoreError>> + Send>>;

/// Reads the sizes of all tails from the log store.
pub trait Tails: Send + Sync {
    /// The sizes, in order of the shards.
    fn read(&self) -> PendingTails;
}

/// What a round of membership has shown to a node.
pub struct Seen {
    /// The node.
    pub me: NodeId,
    /// When the log store was asked, on the clock of the lease.
    pub asked_at: Duration,
    /// The tables.
    pub tables: Arc<Tables>,
}

/// What is known of the server's nodes and shards.
pub enum ServerStatus {
    /// Of a server on one machine.
    Machine(MachineStatus),
    /// Of a cluster.
    Cluster(Arc<ClusterStatus>),
}

/// The log of a server on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineStatus {
    /// Sequence of the last record.
    pub last: Sequence,
    /// Sequence of the last record that the last checkpoint covers.
    pub covered: Sequence,
    /// Bytes that the next start has to read.
    pub tail_bytes: u64,
    /// When it was read, in UTC nanoseconds.
    pub read_at_ns: i64,
}

/// The status of a cluster, as one of its nodes has read it.
#[derive(Debug)]
pub struct ClusterStatus {
    /// Nodes and shards.
    pub status: Status,
    /// The node that has read it.
    pub me: NodeId,
    /// Why nothing is written: a commit would reach one disk only.
    pub weakness: Option<String>,
    /// When it was read, in UTC nanoseconds.
    pub read_at_ns: i64,
}

/// Reads the status of a cluster, and keeps it for a moment.
pub struct StatusReader {
    tails: Box<dyn Tails>,
    kept: Mutex<Option<Kept>>,
}

/// What was read last, or why it could not be read.
struct Kept {
    since: Duration,
    outcome: Result<Arc<ClusterStatus>, Arc<StoreError>>,
}

impl StatusReader {
    /// A reader that has read nothing yet.
    pub fn new(tails: impl Tails + 'static) -> Self {
        StatusReader {
            tails: Box::new(tails),
            kept: Mutex::default(),
        }
    }

    /// The status, at most [`KEPT_FOR`] old.
    pub(super) async fn read(
        &self,
        table: &ShardTable,
        clock: &dyn Clock,
    ) -> Result<Arc<ClusterStatus>, ServiceError> {
        // Whoever asks while it is being read waits here, and finds it read.
        let mut kept = self.kept.lock().await;
        let is_fresh = |kept: &&Kept| table.now() < kept.since + KEPT_FOR;
        let outcome = match kept.as_ref().filter(is_fresh) {
            Some(kept) => kept.outcome.clone(),
            None => {
                let seen = table.seen().ok_or_else(not_joined)?;
                let tails = self.tails.read().await;
                let read = |tails: Vec<TailSize>| {
                    // As old as its oldest part.
                    let age = table.now().saturating_sub(seen.tables.read_at);
                    ClusterStatus {
                        status: Status::of(&seen.tables.nodes, &seen.tables.shards, &tails),
                        me: seen.me,
                        weakness: table.weakness(),
                        read_at_ns: clock.now_ns() - i64::try_from(age.as_nanos()).unwrap_or(i64::MAX),
                    }
                };
                let outcome = tails.map(|tails| Arc::new(read(tails))).map_err(Arc::new);
                let since = table.now();
                kept.insert(Kept { since, outcome }).outcome.clone()
            }
        };
        outcome.map_err(|error| ServiceError::unavailable(error.to_string(), RETRY_AFTER_SECONDS))
    }
}

fn not_joined() -> ServiceError {
    ServiceError::unavailable("this node has not joined the cluster yet", RETRY_AFTER_SECONDS)
}

impl Service {
    /// The status of a server whose only shard this is.
    pub(super) fn machine_status(&self) -> MachineStatus {
        let journal = self.decisions.journal_stats();
        MachineStatus {
            last: journal.durable_sequence,
            covered: self.checkpointer.stats().covered,
            tail_bytes: journal.tail_bytes,
            read_at_ns: self.now_ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use log_store::{Shard, ShardRow};
    use tokio::task::yield_now;

    use super::*;
    use crate::clock::{ManualClock, SECOND_NS};

    const ME: NodeId = NodeId(7);

    /// A log store that counts how often it is asked.
    #[derive(Clone, Default)]
    struct Asked {
        times: Arc<AtomicUsize>,
        fails: bool,
    }

    impl Tails for Asked {
        fn read(&self) -> PendingTails {
            let asked = self.clone();
            Box::pin(async move {
                let times = asked.times.fetch_add(1, Ordering::SeqCst) + 1;
                yield_now().await;
                if asked.fails {
                    return Err(StoreError::Unavailable("connection refused".into()));
                }
                Ok(vec![TailSize {
                    shard: Shard(0),
                    groups: 1,
                    bytes: times as u64,
                    last: 1,
                }])
            })
        }
    }

    struct World {
        asked: Asked,
        reader: StatusReader,
        table: ShardTable,
        clock: Arc<ManualClock>,
    }

    impl World {
        fn new(fails: bool) -> Self {
            let clock = Arc::new(ManualClock::new(1_000 * SECOND_NS));
            let asked = Asked {
                fails,
                ..Asked::default()
            };
            World {
                reader: StatusReader::new(asked.clone()),
                asked,
                table: ShardTable::new(1, Duration::from_secs(5), Arc::clone(&clock) as _),
                clock,
            }
        }

        /// A round of membership.
        fn round(&self) {
            let row = ShardRow {
                shard: Shard(0),
                epoch: 1,
                node: None,
                covered: 0,
                root: None,
            };
            self.table.set_seen(Seen {
                me: ME,
                asked_at: self.table.now(),
                tables: Arc::new(Tables {
                    nodes: Vec::new(),
                    shards: vec![row],
                    read_at: self.table.now(),
                }),
            });
        }

        async fn read(&self) -> Result<Arc<ClusterStatus>, ServiceError> {
            self.reader.read(&self.table, &*self.clock).await
        }

        fn times(&self) -> usize {
            self.asked.times.load(Ordering::SeqCst)
        }
    }

    #[actix::test]
    async fn the_log_store_is_asked_once_however_many_ask() {
        let world = World::new(false);
        world.round();
        let (one, two, three) = tokio::join!(world.read(), world.read(), world.read());
        for read in [one, two, three] {
            assert_eq!(read.unwrap().status.shards[0].tail_bytes, 1);
        }
        world.clock.advance(SECOND_NS);
        assert_eq!(world.read().await.unwrap().status.shards[0].tail_bytes, 1);
        assert_eq!(world.times(), 1);
        world.clock.advance(SECOND_NS);
        assert_eq!(world.read().await.unwrap().status.shards[0].tail_bytes, 2);
    }

    #[actix::test]
    async fn a_log_store_that_fails_is_not_asked_by_each_request() {
        let world = World::new(true);
        world.round();
        for _ in 0..3 {
            let refused = world.read().await.unwrap_err();
            assert_eq!(refused.retry_after_seconds, Some(RETRY_AFTER_SECONDS));
            assert!(refused.message.contains("connection refused"), "{refused}");
        }
        assert_eq!(world.times(), 1);
    }

    #[actix::test]
    async fn a_status_is_as_old_as_the_round_behind_it() {
        let world = World::new(false);
        assert!(world.read().await.is_err(), "the node has not joined");
        world.round();
        world.clock.advance(3 * SECOND_NS);
        world.table.set_weakness(Some("one disk only".to_owned()));
        let read = world.read().await.unwrap();
        assert_eq!(read.read_at_ns, 1_000 * SECOND_NS);
        assert_eq!((read.me, read.weakness.as_deref()), (ME, Some("one disk only")));
    }
}
