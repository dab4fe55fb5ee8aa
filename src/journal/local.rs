//! The log in the data directory, for the one shard of a server on one machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use disk::Disk;
use log_store::Shard;
use wal::{Log, LogOptions, Sequence};

use super::error::JournalError;
use super::log::{Group, LogSizes, NodeLog, Tail};
use super::replay::{Each, ReplayError, Replayed, ShardLog};

/// The log in a directory, before it is written to.
pub struct LocalShard {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: LogOptions,
    opened: Option<Log>,
}

impl LocalShard {
    /// The log in this directory, which is created if missing.
    pub fn new(disk: Arc<dyn Disk>, dir: PathBuf, options: LogOptions) -> Self {
        LocalShard {
            disk,
            dir,
            options,
            opened: None,
        }
    }

    /// The log, ready to append; `None` if it has not been replayed.
    pub fn into_log(self) -> Option<LocalLog> {
        self.opened.map(LocalLog::new)
    }
}

impl ShardLog for LocalShard {
    /// Cuts off a torn tail.
    fn replay(&mut self, from: Sequence, each: &mut Each<'_>) -> Result<Replayed, ReplayError> {
        let opened = Log::open(Arc::clone(&self.disk), &self.dir, self.options, from, each);
        let (log, recovery) = opened.map_err(|error| match error {
            wal::OpenError::Log(error) => ReplayError::Local(error),
            wal::OpenError::Replay { sequence, source } => ReplayError::Record(sequence, source),
        })?;
        let replayed = Replayed {
            records: recovery.records,
            epoch: 0,
            last: log.last_sequence(),
            bytes: log.tail_bytes(),
            torn_tail: recovery.torn_tail,
        };
        self.opened = Some(log);
        Ok(replayed)
    }
}

/// The log in a directory.
pub struct LocalLog {
    /// `None` once it is closed.
    log: Option<Log>,
    syncing: Duration,
}

impl LocalLog {
    fn new(log: Log) -> Self {
        LocalLog {
            log: Some(log),
            syncing: Duration::ZERO,
        }
    }

    fn open(&mut self) -> Result<&mut Log, JournalError> {
        self.log.as_mut().ok_or(JournalError::Closed)
    }

    fn append_group(&mut self, records: &[Vec<u8>]) -> Result<Sequence, JournalError> {
        let log = self.open()?;
        let first = log.append(records)?;
        let started = Instant::now();
        log.sync_if_due(started)?;
        self.syncing += started.elapsed();
        Ok(first)
    }
}

impl NodeLog for LocalLog {
    fn attach(&mut self, _: Shard, _: Tail) {}

    fn append(&mut self, groups: &[Group<'_>]) -> Vec<Result<Sequence, JournalError>> {
        groups
            .iter()
            .map(|group| self.append_group(group.records))
            .collect()
    }

    fn flush(&mut self, _: Shard) -> Result<(), JournalError> {
        Ok(self.open()?.sync()?)
    }

    /// Files that can be deleted without free space go first: on a full disk that may be what frees space. A root is not kept:
    /// the data directory names its own files.
    fn trim(&mut self, _: Shard, covered: Sequence, _: Option<&str>) -> Result<(), JournalError> {
        let log = self.open()?;
        log.trim(covered)?;
        if log.last_sequence() == covered {
            // A new active file is created, so that the content of the current one can be deleted too.
            match log.rotate() {
                Err(error) if error.is_passing() => {}
                rotated => {
                    rotated?;
                    log.trim(covered)?;
                }
            }
        }
        Ok(())
    }

    fn has_room(&mut self, _: Shard) -> bool {
        self.log.as_mut().is_some_and(|log| log.rotate().is_ok())
    }

    fn sizes(&self, _: Shard) -> LogSizes {
        let Some(log) = &self.log else {
            return LogSizes::default();
        };
        let counters = log.counters();
        LogSizes {
            durable_sequence: log.durable_sequence(),
            tail_bytes: log.tail_bytes(),
            frames: counters.frames,
            records: counters.records,
            bytes: counters.bytes,
            syncs: counters.syncs,
            syncing: self.syncing,
        }
    }

    /// A poisoned log is left as it is: an end marker would say that everything before it is complete.
    fn close(&mut self, _: Shard) -> Result<(), JournalError> {
        match self.log.take() {
            Some(log) if log.poisoned().is_none() => Ok(log.close()?),
            _ => Ok(()),
        }
    }
}
