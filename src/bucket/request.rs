//! Requests to a bucket's actor about its state: what readers need, and the steps of a checkpoint and of a merge.

use std::sync::Arc;

use actix::Message;
use engine::{Checkpoint, ExpiredRows, Merge, SegmentPart};
use tokio::sync::oneshot;
use wal::Sequence;

use super::figures::BucketFigures;
use super::state::BucketState;
use crate::ledger::{Answered, Digest, LedgerError, NewEntry};
use crate::series::{NewSeries, StoreCounts};

/// A request that the actor answers from its state, in order with ingests and deletions.
pub trait Request: Send + 'static {
    type Answer: Send + 'static;

    fn answer(self, state: &mut BucketState) -> Self::Answer;
}

/// A request and the channel for its answer.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Ask<R: Request> {
    pub(super) request: R,
    pub(super) reply: oneshot::Sender<R::Answer>,
}

/// The sequence that the next point gets.
pub(super) struct NextSequence;

impl Request for NextSequence {
    type Answer = u64;

    fn answer(self, state: &mut BucketState) -> u64 {
        state.next_sequence
    }
}

/// The stored answer of an idempotency key.
pub(super) struct FindAnswer {
    pub(super) key: Digest,
    pub(super) now_ns: i64,
}

impl Request for FindAnswer {
    type Answer = Result<Option<Answered>, LedgerError>;

    fn answer(self, state: &mut BucketState) -> Self::Answer {
        state.idempotency.get(&self.key, self.now_ns)
    }
}

/// Statistics, without the rows that have expired.
pub(super) struct TakeFigures {
    pub(super) expired: Arc<[ExpiredRows]>,
}

impl Request for TakeFigures {
    type Answer = Result<BucketFigures, LedgerError>;

    fn answer(self, state: &mut BucketState) -> Self::Answer {
        Ok(BucketFigures {
            view: state.store.view().without(&self.expired),
            disk_bytes: state.disk_bytes()?,
            ingested_at_ns: state.ingested_at_ns,
        })
    }
}

/// The first step of a checkpoint: drops expired rows and answers, and collects what no file contains yet. The cutoff is
/// computed when the actor handles the request, because retention may change until then.
pub struct BeginCheckpoint<F> {
    pub cutoff_ns: F,
    /// Answers older than this are dropped.
    pub deletes_at_ns: Option<i64>,
}

/// What a bucket contributes to a checkpoint.
pub struct Unsaved {
    /// Rows that no segment contains.
    pub checkpoint: Option<Checkpoint>,
    /// Answers to idempotency keys that no file of the ledger contains.
    pub answers: Vec<NewEntry>,
    /// See [`BucketState::applied`].
    pub applied: Sequence,
    pub next_sequence: u64,
    pub ingested_at_ns: Option<i64>,
    /// Changes of the index of series that no file of the ledger contains.
    pub series: crate::series::Unsaved,
    /// The segments that the store reads from, with its number of live rows in each.
    pub live_segments: Vec<(u64, u64)>,
}

impl<F: Fn() -> i64 + Send + 'static> Request for BeginCheckpoint<F> {
    type Answer = Unsaved;

    fn answer(self, state: &mut BucketState) -> Unsaved {
        state.store.expire((self.cutoff_ns)());
        state.idempotency.forget(self.deletes_at_ns.unwrap_or(i64::MIN));
        state.series.note_counts(StoreCounts {
            series: state.store.series_count(),
            removed: state.store.removed_series(),
        });
        Unsaved {
            checkpoint: state.store.begin_checkpoint(),
            answers: state.idempotency.unsaved(),
            series: state.series.unsaved(),
            applied: state.applied,
            next_sequence: state.next_sequence,
            ingested_at_ns: state.ingested_at_ns,
            live_segments: state.store.live_segments(),
        }
    }
}

/// Forgets those of these series that still have no points. The bucket is held, so that no ingest names them.
pub struct ForgetSeries(pub Vec<NewSeries>);

impl Request for ForgetSeries {
    type Answer = usize;

    /// Returns how many were forgotten.
    fn answer(self, state: &mut BucketState) -> usize {
        let ForgetSeries(mut series) = self;
        series.retain(|it| state.store.newest_ns(it.series.ordinal).is_none());
        let count = series.len();
        state.series.forget(series);
        count
    }
}

/// The last step of a checkpoint: replaces rows in memory by the segment that contains them, and drops the answers,
/// which readers now find in the ledger. Answered with the segments in use, as in [`Unsaved`].
pub struct FinishCheckpoint<F> {
    pub checkpoint: Option<Checkpoint>,
    pub answers: Vec<NewEntry>,
    /// Changes of the index of series that the ledger contains now.
    pub series: crate::series::Unsaved,
    /// The bucket's part of the new segment.
    pub part: Option<SegmentPart>,
    pub cutoff_ns: F,
}

impl<F: Fn() -> i64 + Send + 'static> Request for FinishCheckpoint<F> {
    type Answer = Vec<(u64, u64)>;

    fn answer(self, state: &mut BucketState) -> Self::Answer {
        state.idempotency.saved(&self.answers);
        state.series.saved(&self.series);
        if let Some(checkpoint) = self.checkpoint {
            state
                .store
                .finish_checkpoint(checkpoint, self.part, (self.cutoff_ns)());
        }
        state.store.live_segments()
    }
}

/// The first step of a merge: the bucket's blocks in these segments; `None` if it reads from none of them.
pub struct BeginMerge {
    pub segments: Vec<u64>,
}

impl Request for BeginMerge {
    type Answer = Option<Merge>;

    fn answer(self, state: &mut BucketState) -> Option<Merge> {
        state.store.begin_merge(&self.segments)
    }
}

/// The last step of a merge: replaces the merged blocks. Answered with the segments in use, as in [`Unsaved`].
pub struct FinishMerge<F> {
    pub merge: Merge,
    /// The bucket's part of the new segment; `None` if no row of it is left.
    pub part: Option<SegmentPart>,
    pub cutoff_ns: F,
}

impl<F: Fn() -> i64 + Send + 'static> Request for FinishMerge<F> {
    type Answer = Vec<(u64, u64)>;

    fn answer(self, state: &mut BucketState) -> Self::Answer {
        state
            .store
            .finish_merge(self.merge, self.part, (self.cutoff_ns)());
        state.store.live_segments()
    }
}
