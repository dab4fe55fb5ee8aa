//! The logs of a node's shards in a log store.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use log_store::{AppendError, Claimed, LogStore, Outcome, Shard, StoreError};
use wal::Sequence;

use super::error::JournalError;
use super::log::{Group, LogSizes, NodeLog, Tail};
use super::record::RecordError;
use super::replay::{Each, ReplayError, Replayed, ShardLog};
use super::sweeper::Sweeper;

/// The log of a shard that this node has claimed, before it is written to.
pub struct StoredShard {
    store: Box<dyn LogStore>,
    shard: Shard,
    claimed: Claimed,
}

impl StoredShard {
    /// The shard's log in this store.
    pub fn new(store: Box<dyn LogStore>, shard: Shard, claimed: Claimed) -> Self {
        StoredShard {
            store,
            shard,
            claimed,
        }
    }
}

impl ShardLog for StoredShard {
    fn replay(&mut self, from: Sequence, each: &mut Each<'_>) -> Result<Replayed, ReplayError> {
        let mut pass_on = |sequence, record: &[u8]| each(sequence, record).map_err(Into::into);
        let epoch = self.claimed.epoch;
        let replayed = self.store.replay(self.shard, epoch, from, &mut pass_on);
        let replayed = replayed.map_err(|error| match error {
            log_store::ReplayError::Record { sequence, source } => match source.downcast::<RecordError>() {
                Ok(source) => ReplayError::Record(sequence, *source),
                Err(source) => ReplayError::Stored(log_store::ReplayError::Record { sequence, source }),
            },
            error => ReplayError::Stored(error),
        })?;
        Ok(Replayed {
            records: replayed.records,
            epoch: self.claimed.epoch,
            last: replayed.last,
            bytes: replayed.bytes,
            torn_tail: None,
        })
    }
}

/// The logs of this node's shards. Groups of all shards that are appended together share a commit.
pub struct StoredLog {
    store: Box<dyn LogStore>,
    shards: BTreeMap<Shard, Attached>,
    /// Deletes rows on a connection of its own; `None` until the first shard is attached.
    sweeper: Option<Sweeper>,
}

/// A shard that this node owns.
struct Attached {
    tail: Tail,
    sizes: LogSizes,
    /// Groups that are not trimmed: the sequence of the last record, and the size. The first stands for all that was there
    /// when the shard was attached.
    groups: VecDeque<(Sequence, u64)>,
    /// Why nothing more may be written: whether this node still owns the shard, or where its log ends, is not known.
    failure: Option<JournalError>,
}

impl StoredLog {
    /// No shards yet.
    pub fn new(store: Box<dyn LogStore>) -> Self {
        StoredLog {
            store,
            shards: BTreeMap::new(),
            sweeper: None,
        }
    }

    /// Has the shard's covered rows deleted. If that cannot be started, they stay until the next trim.
    fn sweep(&mut self, shard: Shard) {
        if self.sweeper.is_none() {
            match self.store.another().map(Sweeper::start) {
                Ok(Ok(sweeper)) => self.sweeper = Some(sweeper),
                Ok(Err(error)) => tracing::warn!(%error, "no thread to delete rows of the log store"),
                Err(error) => tracing::warn!(%error, "no connection to delete rows of the log store"),
            }
        }
        if let Some(sweeper) = &self.sweeper {
            sweeper.ask(shard);
        }
    }

    /// The shard, if this node may write to it.
    fn usable(&mut self, shard: Shard) -> Result<&mut Attached, JournalError> {
        let attached = self.shards.get_mut(&shard).ok_or(JournalError::Closed)?;
        match &attached.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(attached),
        }
    }
}

impl NodeLog for StoredLog {
    fn attach(&mut self, shard: Shard, tail: Tail) {
        let sizes = LogSizes {
            durable_sequence: tail.last,
            tail_bytes: tail.bytes,
            ..LogSizes::default()
        };
        let attached = Attached {
            tail,
            sizes,
            groups: VecDeque::from([(tail.last, tail.bytes)]),
            failure: None,
        };
        self.shards.insert(shard, attached);
        // What the last owner has left.
        self.sweep(shard);
    }

    fn append(&mut self, groups: &[Group<'_>]) -> Vec<Result<Sequence, JournalError>> {
        let tails: Vec<_> = groups
            .iter()
            .map(|group| self.usable(group.shard).map(|shard| shard.tail))
            .collect();
        let to_append: Vec<log_store::Group<'_>> = groups
            .iter()
            .zip(&tails)
            .filter_map(|(group, tail)| {
                let tail = tail.as_ref().ok()?;
                Some(log_store::Group {
                    shard: group.shard,
                    epoch: tail.epoch,
                    first: tail.last + 1,
                    records: group.records,
                })
            })
            .collect();
        let started = Instant::now();
        let appended = self.store.append(&to_append).map_err(JournalError::from);
        let took = started.elapsed();
        let mut outcomes = appended.as_ref().map(|outcomes| outcomes.iter());
        let mut settle = |group: &Group<'_>, tail: Result<Tail, JournalError>| {
            let first = tail?.last + 1;
            let outcome = match &mut outcomes {
                Ok(outcomes) => outcomes.next().copied().ok_or(JournalError::Closed),
                Err(failure) => Err((*failure).clone()),
            };
            let attached = self.usable(group.shard)?;
            attached.sizes.syncing += took;
            match outcome {
                Ok(Outcome::Durable) => {
                    let bytes = log_store::body::body_bytes(group.records);
                    attached.wrote(group.records.len() as u64, bytes);
                    Ok(first)
                }
                Ok(Outcome::Lost) => Err(attached.fail(JournalError::Lost)),
                Err(failure @ JournalError::Poisoned(_)) => Err(attached.fail(failure)),
                Err(failure) => Err(failure),
            }
        };
        let pairs = groups.iter().zip(tails);
        pairs.map(|(group, tail)| settle(group, tail)).collect()
    }

    /// What was appended is committed.
    fn flush(&mut self, shard: Shard) -> Result<(), JournalError> {
        self.usable(shard).map(drop)
    }

    /// Changes the shard's row. The rows of the log are deleted by another thread, so that no append waits for that.
    fn trim(&mut self, shard: Shard, covered: Sequence, root: Option<&str>) -> Result<(), JournalError> {
        let epoch = self.usable(shard)?.tail.epoch;
        let is_owned = self.store.trim(shard, epoch, covered, root)?;
        let attached = self.usable(shard)?;
        if !is_owned {
            return Err(attached.fail(JournalError::Lost));
        }
        attached.trimmed(covered);
        self.sweep(shard);
        Ok(())
    }

    /// A database that is full, or takes no writes, still answers reads; so this tries to write.
    fn has_room(&mut self, shard: Shard) -> bool {
        let Ok(epoch) = self.usable(shard).map(|attached| attached.tail.epoch) else {
            return false;
        };
        match self.store.probe(shard, epoch) {
            Ok(is_taken) => is_taken,
            Err(error) => {
                tracing::debug!(%shard, %error, "the log store takes no group yet");
                false
            }
        }
    }

    fn sizes(&self, shard: Shard) -> LogSizes {
        self.shards
            .get(&shard)
            .map_or_else(LogSizes::default, |attached| attached.sizes)
    }

    /// The shard stays this node's until it is released.
    fn close(&mut self, shard: Shard) -> Result<(), JournalError> {
        self.shards.remove(&shard);
        Ok(())
    }
}

impl Attached {
    fn wrote(&mut self, records: u64, bytes: u64) {
        self.tail.last += records;
        let sizes = &mut self.sizes;
        sizes.durable_sequence = self.tail.last;
        sizes.tail_bytes += bytes;
        self.groups.push_back((self.tail.last, bytes));
        sizes.frames += 1;
        sizes.records += records;
        sizes.bytes += bytes;
        sizes.syncs += 1;
    }

    /// Counted here, not by what the store has deleted: the answer to an earlier trim may have been lost.
    fn trimmed(&mut self, covered: Sequence) {
        while let Some((_, bytes)) = self.groups.pop_front_if(|(last, _)| *last <= covered) {
            self.sizes.tail_bytes -= bytes;
        }
    }

    fn fail(&mut self, failure: JournalError) -> JournalError {
        self.failure.get_or_insert(failure).clone()
    }
}

impl From<AppendError> for JournalError {
    fn from(error: AppendError) -> Self {
        let cause = Arc::new(error);
        match &*cause {
            AppendError::Unavailable(_) | AppendError::Failed(_) => JournalError::Unavailable(cause),
            AppendError::Full(_) => JournalError::Full(cause),
            AppendError::TooLarge { .. } => JournalError::TooLarge(cause),
            AppendError::Unknown(_) => JournalError::Poisoned(cause),
        }
    }
}

impl From<StoreError> for JournalError {
    fn from(error: StoreError) -> Self {
        JournalError::Unavailable(Arc::new(error))
    }
}
