//! What a checkpoint asks of one bucket's actor: to set its rows aside, and to take them back out of a segment.

use engine::{Checkpoint, SegmentPart};
use tokio::sync::oneshot;

use super::manifest::BucketMark;
use crate::bucket::BucketHandle;
use crate::ledger::NewEntry;

/// Of a bucket that never had a point.
pub(super) const NO_MARK: BucketMark = BucketMark {
    covered: 0,
    next_sequence: 1,
    ingested_at_ns: None,
};

/// Segments with the rows that a store uses of each, once its actor has told.
pub(super) type LiveSegments = oneshot::Receiver<Vec<(u64, u64)>>;

/// What a bucket brings to a checkpoint.
pub(super) struct Begun {
    handle: BucketHandle,
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) answers: Vec<NewEntry>,
    pub(super) mark: BucketMark,
    pub(super) live_segments: Vec<(u64, u64)>,
}

impl Begun {
    /// Has what no segment holds set aside, and expired rows let go of.
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

    /// Has the rows replaced by what a segment holds of them, and the answers let go of: readers of the ledger find
    /// them there by now. `None` where there is nothing to do, and what it told at the beginning holds.
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
