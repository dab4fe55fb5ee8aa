//! What a checkpoint collects from a bucket, until the written segment replaces it.

use engine::SegmentPart;
use tokio::sync::oneshot;

use super::manifest::BucketMark;
use crate::bucket::{BucketHandle, FinishCheckpoint, Unsaved};

/// Mark of a bucket that has never had a point.
pub(super) const NO_MARK: BucketMark = BucketMark {
    covered: 0,
    next_sequence: 1,
    ingested_at_ns: None,
};

/// Receives the segments that a store reads from, with its number of live rows in each.
pub(super) type LiveSegments = oneshot::Receiver<Vec<(u64, u64)>>;

/// What a bucket contributes to a checkpoint.
pub(super) struct BucketCheckpoint {
    pub(super) ordinal: u32,
    pub(super) handle: BucketHandle,
    pub(super) unsaved: Unsaved,
}

impl BucketCheckpoint {
    /// The bucket's mark in the manifest.
    pub(super) fn mark(&self) -> BucketMark {
        BucketMark {
            covered: self.unsaved.applied,
            next_sequence: self.unsaved.next_sequence,
            ingested_at_ns: self.unsaved.ingested_at_ns,
        }
    }

    /// Asks the actor to replace its rows in memory by the segment that contains them. Returns `None` when there is
    /// nothing to do; then the `live_segments` reported at the beginning are still valid.
    pub(super) fn finish(
        self,
        part: Option<SegmentPart>,
        cutoff_ns: impl Fn() -> i64 + Send + 'static,
    ) -> Option<LiveSegments> {
        let Unsaved {
            checkpoint,
            answers,
            series,
            ..
        } = self.unsaved;
        if checkpoint.is_none() && answers.is_empty() && series.is_empty() {
            return None;
        }
        Some(self.handle.send(FinishCheckpoint {
            checkpoint,
            answers,
            series,
            part,
            cutoff_ns,
        }))
    }
}
