//! The port to the log: where the records of a node's shards become durable. A shard is a log of its own; a server on one
//! machine has one, [`THE_SHARD`], in its data directory.

use std::time::Duration;

use log_store::{Epoch, Shard};
use wal::Sequence;

use super::error::JournalError;

/// The shard of a server on one machine.
pub const THE_SHARD: Shard = Shard(0);

/// Records of a shard that become durable together, or not at all.
pub struct Group<'a> {
    /// The shard.
    pub shard: Shard,
    /// At least one record.
    pub records: &'a [Vec<u8>],
}

/// Where a shard's log continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The epoch under which the shard is owned.
    pub epoch: Epoch,
    /// Sequence of the last record.
    pub last: Sequence,
    /// Size of the log in bytes.
    pub bytes: u64,
}

/// Sizes of a shard's log, and counters since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSizes {
    /// Sequence of the last record that may be acknowledged.
    pub durable_sequence: Sequence,
    /// Size in bytes: what a restart has to read.
    pub tail_bytes: u64,
    /// Groups written.
    pub frames: u64,
    /// Records written.
    pub records: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Syncs of groups; in a log store, commits.
    pub syncs: u64,
    /// Total duration of the syncs.
    pub syncing: Duration,
}

/// The log of a node's shards. One thread writes it.
pub trait NodeLog: Send {
    /// Takes over a shard, whose groups are appended after this tail. A log with a fixed shard has it from the start.
    fn attach(&mut self, shard: Shard, tail: Tail);

    /// Appends groups, at most one for each shard, and makes them durable as the sync policy says. Returns the sequence of
    /// each group's first record, in the order of the groups.
    ///
    /// After [`JournalError::Poisoned`] and [`JournalError::Lost`] the shard's log takes no more records: what became of
    /// the group is known when the shard is opened again. After any other error nothing of the group was written.
    fn append(&mut self, groups: &[Group<'_>]) -> Vec<Result<Sequence, JournalError>>;

    /// Makes all records of the shard durable, under any sync policy.
    ///
    /// # Errors
    /// As for `append`.
    fn flush(&mut self, shard: Shard) -> Result<(), JournalError>;

    /// Drops what is needed no more: whole files or rows whose records are all at or before `covered`. A log store notes
    /// `root`, the name of what holds them, together with `covered`; without one, the last root stays.
    ///
    /// # Errors
    /// The shard's log is poisoned or lost, or the removal failed and can be repeated.
    fn trim(&mut self, shard: Shard, covered: Sequence, root: Option<&str>) -> Result<(), JournalError>;

    /// Whether a group would be taken now, after one was refused.
    fn has_room(&mut self, shard: Shard) -> bool;

    /// The shard's sizes; zero if it is not attached.
    fn sizes(&self, shard: Shard) -> LogSizes;

    /// Ends writing to the shard.
    ///
    /// # Errors
    /// An end marker could not be written; nothing acknowledged is lost.
    fn close(&mut self, shard: Shard) -> Result<(), JournalError>;
}
