//! Buckets: one actor per bucket, which exclusively owns the bucket's engine store. Rows are numbered here, made
//! durable by the journal, and applied when they come back from it. A reader therefore sees only what a crash cannot
//! lose.
//!
//! [`Buckets`] is the interface for other modules. The queue of a [`BucketHandle`] is bounded in bytes; a full queue
//! refuses an ingest before taking it.

mod actor;
mod budget;
mod carried;
mod counts;
mod damaged;
mod figures;
mod handle;
mod idempotency;
mod load;
mod registry;
mod sealer;
mod state;

pub use carried::{CARRIED_AT_ONCE_MAX, CarriedDir, CarriedFile, CarriedWriter, flip_of_carried};
pub use counts::SourceStats;
pub use damaged::{DamagedBlocks, NamedDamage};
pub use figures::BucketFigures;
pub use handle::BucketHandle;
pub use load::BucketsLoad;
pub use registry::{Buckets, BucketsOptions, Neighbours, expired_rows};
pub use sealer::Sealer;
pub use state::{BucketState, SealTicket};

pub use crate::ledger::Digest;

use crate::journal::{Answer, IngestRecord};

/// An ingest on its way to the log.
pub struct Ingest {
    /// The encoded record, without its sequence.
    pub record: IngestRecord,
    pub rows: u32,
    /// Estimated memory of the rows in bytes.
    pub memory_bytes: usize,
    /// Ordinals of the sources that its rows belong to.
    pub sources: Vec<u32>,
    /// Digests of its idempotency key and body.
    pub idempotency: Option<(Digest, Digest)>,
    /// Time of the request, UTC nanoseconds.
    pub now_ns: i64,
}

/// Result of an ingest.
#[derive(Debug)]
pub enum Ingested {
    /// Durable and visible; the first row has this sequence.
    Stored {
        /// Sequence of the first row.
        first_sequence: u64,
    },
    /// The idempotency key was used before with the same body: nothing was stored now.
    Replayed(Answer),
    /// The idempotency key was used before with another body.
    KeyReused,
    /// A source was deleted while the request was in progress: read the catalog again.
    SourceGone,
}

/// The id of a point: four bytes of its bucket's ordinal and eight of its sequence, as 24 hex characters. It is
/// derived, so it costs no storage, and unique, because neither number is ever reused.
pub fn point_id(bucket: u32, sequence: u64) -> [u8; 24] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut id = [0; 24];
    let bytes = bucket.to_be_bytes().into_iter().chain(sequence.to_be_bytes());
    for (pair, byte) in id.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
    id
}

#[cfg(test)]
mod tests {
    #[test]
    fn point_ids_are_24_hex_characters_in_order_of_arrival() {
        assert_eq!(&super::point_id(1, 255), b"0000000100000000000000ff");
        assert!(super::point_id(7, u64::MAX) < super::point_id(8, 0));
    }
}
