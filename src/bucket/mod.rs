//! Buckets: one actor per bucket, which alone changes the bucket's engine store. Rows are numbered by the intake, made
//! durable by the journal, and applied by the actor when they come back from it. A reader therefore sees only what a crash
//! cannot lose.
//!
//! [`Buckets`] is the interface for other modules. The queue of a [`BucketHandle`] is bounded in bytes; a full queue
//! refuses an ingest before taking it.

mod actor;
mod additions;
mod budget;
mod carried;
mod counts;
mod damaged;
mod figures;
mod handle;
mod hold;
mod idempotency;
mod intake;
mod load;
mod pool;
mod registry;
mod request;
mod sealer;
mod shared;
mod state;
mod waiting;

pub use carried::{CARRIED_AT_ONCE_MAX, CarriedDir, CarriedFile, CarriedWriter, flip_of_carried};
pub use damaged::{DamagedBlocks, NamedDamage};
pub use figures::BucketFigures;
pub use handle::{BucketHandle, IndexedView};
pub use hold::PointsHold;
pub use load::BucketsLoad;
pub use pool::{BucketPool, BucketPoolOptions};
pub use registry::{Buckets, Dependencies, expired_rows};
pub use request::{
    BeginCheckpoint, BeginMerge, FinishCheckpoint, FinishMerge, ForgetSeries, Request, Unsaved,
};
pub use sealer::Sealer;
pub use state::BucketState;

pub use crate::ledger::Digest;

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use crate::ingest::{RequestSeries, SeriesRoom};
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
    /// The series that its rows belong to, in the order of the record.
    pub series: Vec<RequestSeries>,
    /// Which rows may be there already, for sources that do not take points twice.
    pub repeats: Vec<MayRepeat>,
    /// Digests of its idempotency key and body.
    pub idempotency: Option<(Digest, Digest)>,
    /// Time of the request, UTC nanoseconds.
    pub now_ns: i64,
    /// The number of [`Buckets::releases`] before it was parsed.
    pub releases: u64,
    /// The right to compare rows with those that are there, held until its rows can be seen.
    pub alone: Option<Arc<OwnedMutexGuard<()>>>,
}

impl Ingest {
    /// Whether files may have to be read before it can be numbered: those with the answers to idempotency keys, or with the
    /// index of series.
    fn may_need_files(&self) -> bool {
        self.idempotency.is_some() || !self.series.is_empty() || !self.repeats.is_empty()
    }
}

/// Rows of a series that is stored only once, of which some may be there already.
#[derive(Clone, Copy, Debug)]
pub struct MayRepeat {
    /// The table of the rows.
    pub table: u32,
    /// The least timestamp among rows that were not compared with what is there; `None` if all were.
    pub oldest_unchecked_ns: Option<i64>,
    /// The greatest timestamp.
    pub newest_ns: i64,
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
    /// Rows may be there already: compare them, and send the others.
    MayRepeat,
    /// The bucket takes only so many new series.
    NoRoom(SeriesRoom),
}
