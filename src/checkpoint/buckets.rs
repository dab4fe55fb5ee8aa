//! The two messages that a checkpoint sends to a bucket's actor: collect unsaved rows, and replace them by the written
//! segment.

use engine::{Checkpoint, SegmentPart};
use tokio::sync::oneshot;

use super::manifest::BucketMark;
use crate::bucket::BucketHandle;
use crate::ledger::NewEntry;

/// Mark of a bucket that has never had a point.
pub(super) const NO_MARK: BucketMark = BucketMark {
    covered: 0,
    next_sequence: 1,
    ingested_at_ns: None,
};

/// Receives the segments that a store reads from, with its number of live rows in each.
pub(super) type LiveSegments = oneshot::Receiver<Vec<(u64, u64)>>;

/// What a bucket contributes to a checkpoint.
pub(super) struct Begun {
    handle: BucketHandle,
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) answers: Vec<NewEntry>,
    pub(super) mark: BucketMark,
    pub(super) live_segments: Vec<(u64, u64)>,
}

impl Begun {
    /// Asks the actor to collect all rows that are in no segment, and to drop expired rows.
    pub(super) fn ask(
        handle: &BucketHandle,
        cutoff_ns: impl Fn() -> i64 + Send + 'static,
        deletes_at_ns: Option<i64>,
    ) -> oneshot::Receiver<Begun> {
        let own = handle.clone();
        handle.ask(move |state| {
            state.store.expire(cutoff_ns());
            state.idempotency.forget(deletes_at_ns.unwrap_or(i64::MIN));
            Begun {
                handle: own,
                checkpoint: state.begin_checkpoint(),
                answers: state.idempotency.unsaved(),
                mark: BucketMark {
                    covered: state.applied,
                    next_sequence: state.next_sequence,
                    ingested_at_ns: state.ingested_at_ns,
                },
                live_segments: state.store.live_segments(),
            }
        })
    }

    /// Asks the actor to replace its in-memory rows by the segment that holds them, and to drop the answers, which
    /// readers now find in the ledger. Returns `None` when there is nothing to do; then the `live_segments` reported at
    /// the beginning are still valid.
    pub(super) fn finish(
        self,
        part: Option<SegmentPart>,
        cutoff_ns: impl Fn() -> i64 + Send + 'static,
    ) -> Option<LiveSegments> {
        let Begun {
            handle,
            checkpoint,
            answers,
            ..
        } = self;
        if checkpoint.is_none() && answers.is_empty() {
            return None;
        }
        Some(handle.ask(move |state| {
            state.idempotency.saved(&answers);
            if let Some(checkpoint) = checkpoint {
                state.store.finish_checkpoint(checkpoint, part, cutoff_ns());
            }
            state.store.live_segments()
        }))
    }
}
