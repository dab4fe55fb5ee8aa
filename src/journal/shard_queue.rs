//! The queue of one shard, bounded in bytes, and what is known of its log.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use log_store::Shard;

use super::completion::Completion;
use super::error::JournalError;
use super::log::{LogSizes, Tail};
use super::writer::{JournalOptions, JournalStats};

/// Records of a shard to commit together, with their completions.
pub(super) type Records = Vec<(Vec<u8>, Completion)>;

/// A shard as it was opened once. When it is opened again, what still refers to an earlier opening finds nothing: neither
/// its records nor its checkpoints may reach the log under the new epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) shard: Shard,
    pub(super) number: u64,
}

/// The queue of a shard, and what is known of its log.
pub(super) struct ShardQueue {
    pub(super) opening: Opening,
    options: JournalOptions,
    pub(super) records: VecDeque<(Vec<u8>, Completion)>,
    pub(super) bytes: usize,
    pub(super) closed: bool,
    pub(super) failure: Option<JournalError>,
    /// Whether the state in memory may be behind the log, so that no checkpoint may continue from it.
    pub(super) is_behind: bool,
    /// Why the last group was refused although the log stays usable; `None` after the next successful group.
    pub(super) refusal: Option<JournalError>,
    /// Whether a check for free space is in progress.
    pub(super) probing: bool,
    sizes: LogSizes,
    pub(super) tail: Arc<TailSize>,
    pub(super) progress: Progress,
}

/// The size of a shard's log, for those who admit records.
pub(super) struct TailSize {
    bytes: AtomicU64,
    bytes_max: u64,
}

/// Called with the size of a shard's log in bytes after each of its groups.
pub(super) type Progress = Arc<dyn Fn(u64) + Send + Sync>;

impl TailSize {
    fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the log is below its size limit.
    pub(super) fn admit(&self) -> Result<(), JournalError> {
        if self.bytes() > self.bytes_max {
            return Err(JournalError::TailTooLong);
        }
        Ok(())
    }
}

impl ShardQueue {
    /// The queue of a shard whose log has been replayed up to this tail.
    pub(super) fn new(opening: Opening, tail: Tail, options: JournalOptions, progress: Progress) -> Self {
        let sizes = LogSizes {
            durable_sequence: tail.last,
            tail_bytes: tail.bytes,
            ..LogSizes::default()
        };
        let tail = TailSize {
            bytes: AtomicU64::new(tail.bytes),
            bytes_max: options.tail_bytes_max,
        };
        ShardQueue {
            opening,
            options,
            records: VecDeque::new(),
            bytes: 0,
            closed: false,
            failure: None,
            is_behind: false,
            refusal: None,
            probing: false,
            sizes,
            tail: Arc::new(tail),
            progress,
        }
    }

    pub(super) fn push(&mut self, record: Vec<u8>, completion: Completion) {
        self.bytes += record.len();
        self.records.push_back((record, completion));
    }

    /// Takes all records out of the queue.
    pub(super) fn drain(&mut self) -> VecDeque<(Vec<u8>, Completion)> {
        self.bytes = 0;
        std::mem::take(&mut self.records)
    }

    pub(super) fn set_sizes(&mut self, sizes: LogSizes) {
        self.tail.set(sizes.tail_bytes);
        self.sizes = sizes;
    }

    pub(super) fn stats(&self) -> JournalStats {
        JournalStats {
            durable_sequence: self.sizes.durable_sequence,
            tail_bytes: self.tail.bytes(),
            frames: self.sizes.frames,
            records: self.sizes.records,
            bytes: self.sizes.bytes,
            syncs: self.sizes.syncs,
            sync_nanoseconds: u64::try_from(self.sizes.syncing.as_nanos()).unwrap_or(u64::MAX),
            waiting_records: self.records.len() as u64,
            waiting_bytes: self.bytes as u64,
            waiting_bytes_max: self.options.queue_bytes_max as u64,
        }
    }

    /// Why a record would be refused now, except for reasons that only a write reveals.
    pub(super) fn check(&self) -> Result<(), JournalError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.closed {
            return Err(JournalError::Closed);
        }
        self.tail.admit()?;
        if self.bytes > self.options.queue_bytes_max {
            return Err(JournalError::Saturated);
        }
        Ok(())
    }

    /// Moves records to a group until its bytes reach the maximum; takes at least one if the group is empty.
    pub(super) fn take(&mut self, group_bytes: &mut usize, group_bytes_max: usize) -> Records {
        let mut records = Vec::with_capacity(self.records.len());
        while let Some(next) = self
            .records
            .pop_front_if(|(record, _)| *group_bytes == 0 || *group_bytes + record.len() <= group_bytes_max)
        {
            // An empty record counts, too: a group with one is not empty.
            *group_bytes += next.0.len().max(1);
            self.bytes -= next.0.len();
            records.push(next);
        }
        records
    }
}
