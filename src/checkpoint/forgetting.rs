//! Series without points leave the index of their bucket, see [`crate::series`].

use wal::Sequence;

use super::task::Task;
use crate::bucket::{BucketHandle, ForgetSeries};
use crate::ledger::LedgerError;
use crate::series::ForgettingBudget;

impl Task {
    /// Lets these buckets forget series without points, where they have many. The checkpoint that follows, which reaches
    /// `covered`, removes their entries from the ledger.
    pub(super) fn forget_series(&self, asked: &[(u32, BucketHandle)], covered: Sequence) {
        let mut budget = ForgettingBudget::default();
        // Each checkpoint begins with another bucket.
        let (later, first) = asked.split_at(covered as usize % asked.len().max(1));
        let with_many = with_many_without_points(first).chain(with_many_without_points(later));
        for (bucket, handle) in with_many {
            match self.forget(*bucket, handle, &mut budget) {
                Ok(0) => {}
                Ok(forgotten) => tracing::debug!(bucket, forgotten, "series without points were forgotten"),
                // They stay in the index.
                Err(error) => tracing::warn!(bucket, %error, "series without points cannot be found"),
            }
        }
    }

    /// Returns the number of series that were forgotten: none if the bucket's actor has stopped.
    fn forget(
        &self,
        bucket: u32,
        handle: &BucketHandle,
        budget: &mut ForgettingBudget,
    ) -> Result<usize, LedgerError> {
        let Ok(view) = handle.view() else {
            return Ok(0);
        };
        let index = handle.series();
        let is_split = |source| self.catalog.read(|catalog| catalog.is_split(bucket, source));
        index.find_without_points(view, is_split, budget)?;
        let series = index.take_without_points();
        if series.is_empty() {
            return Ok(0);
        }
        let Ok(_hold) = handle.hold(None).blocking_recv() else {
            return Ok(0);
        };
        Ok(handle.send(ForgetSeries(series)).blocking_recv().unwrap_or(0))
    }
}

/// Those of these buckets that may have many series without points.
pub(super) fn with_many_without_points(
    asked: &[(u32, BucketHandle)],
) -> impl Iterator<Item = &(u32, BucketHandle)> {
    let has_many = |(_, handle): &&(u32, BucketHandle)| handle.series().has_many_without_points();
    asked.iter().filter(has_many)
}
