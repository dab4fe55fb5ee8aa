//! Reading a shard's log when the shard is opened.

use log_store::Epoch;
use wal::{Sequence, TornTail};

use super::log::Tail;
use super::record::RecordError;

/// Receives a record.
pub type Each<'a> = dyn FnMut(Sequence, &[u8]) -> Result<(), RecordError> + Send + 'a;

/// A shard's log before it is written to.
pub trait ShardLog {
    /// Passes the records after `from` to `each`, in order. `from` is the last sequence that is stored elsewhere.
    ///
    /// # Errors
    /// The log cannot be read, does not reach back to `from`, or `each` fails; then nothing was changed, and the caller
    /// discards what `each` has received.
    fn replay(&mut self, from: Sequence, each: &mut Each<'_>) -> Result<Replayed, ReplayError>;
}

/// What a replay has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Records passed on.
    pub records: u64,
    /// The epoch under which the shard is owned.
    pub epoch: Epoch,
    /// Sequence of the last record; 0 if there is none.
    pub last: Sequence,
    /// Size of the log in bytes.
    pub bytes: u64,
    /// What a crash left of a frame behind the last complete one.
    pub torn_tail: Option<TornTail>,
}

impl Replayed {
    /// Where the log continues.
    pub fn tail(&self) -> Tail {
        Tail {
            epoch: self.epoch,
            last: self.last,
            bytes: self.bytes,
        }
    }
}

/// Why a log cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log in the data directory.
    #[error(transparent)]
    Local(wal::LogError),
    /// The log in the log store.
    #[error(transparent)]
    Stored(log_store::ReplayError),
    /// A record does not apply.
    #[error("record {0}: {1}")]
    Record(Sequence, RecordError),
}
