//! What a bucket's actor owns, without the actor: the store, the next sequence, the idempotency keys. `apply` is the
//! one way points get in, live and at replay.

use engine::{EngineError, Store};
use wal::Sequence;

use super::idempotency::IdempotencyIndex;
use crate::journal::IngestView;

/// The points of one bucket and what goes with them.
pub struct BucketState {
    /// The bucket's ordinal.
    pub ordinal: u32,
    /// Its points.
    pub store: Store,
    /// Its idempotency keys.
    pub idempotency: IdempotencyIndex,
    /// Sequence the next row gets.
    pub next_sequence: u64,
    /// Log sequence of the last record applied, or covered by the segments.
    pub applied: Sequence,
}

impl BucketState {
    /// An empty bucket.
    pub fn new(ordinal: u32) -> Self {
        BucketState {
            ordinal,
            store: Store::new(),
            idempotency: IdempotencyIndex::default(),
            next_sequence: 1,
            applied: 0,
        }
    }

    /// Applies the record at `sequence` of the log, unless a segment covers it already.
    ///
    /// # Errors
    /// Rows that do not read although the log's checksum held: a fault of this program. The state is unusable then.
    pub fn apply(&mut self, sequence: Sequence, record: &IngestView<'_>) -> Result<(), EngineError> {
        if sequence <= self.applied {
            return Ok(());
        }
        self.store.apply(record.encoded_rows, record.first_sequence)?;
        if let Some(entry) = &record.idempotency {
            self.idempotency.insert(entry, record.created_at_ns);
        }
        self.next_sequence = self
            .next_sequence
            .max(record.first_sequence + u64::from(record.rows));
        self.applied = sequence;
        Ok(())
    }
}
