//! Series without points leave the index of their bucket, see [`crate::series`].

use super::task::Task;
use crate::bucket::{BucketHandle, ForgetSeries, TakeView};
use crate::ledger::LedgerError;

impl Task {
    /// Lets these buckets forget series without points, where they have many. The checkpoint that follows removes their
    /// entries from the ledger.
    pub(super) fn forget_series(asked: &[(u32, BucketHandle)]) {
        let with_many = asked
            .iter()
            .filter(|(_, handle)| handle.series().has_many_without_points());
        for (bucket, handle) in with_many {
            match forget(handle) {
                Ok(0) => {}
                Ok(forgotten) => tracing::debug!(bucket, forgotten, "series without points were forgotten"),
                // They stay in the index.
                Err(error) => tracing::warn!(bucket, %error, "series without points cannot be found"),
            }
        }
    }
}

/// Returns the number of series that were forgotten: none if the bucket's actor has stopped.
fn forget(handle: &BucketHandle) -> Result<usize, LedgerError> {
    let Ok(view) = handle.send(TakeView).blocking_recv() else {
        return Ok(0);
    };
    let series = handle.series().without_points(&view)?;
    if series.is_empty() {
        return Ok(0);
    }
    let Ok(_hold) = handle.hold().blocking_recv() else {
        return Ok(0);
    };
    Ok(handle.send(ForgetSeries(series)).blocking_recv().unwrap_or(0))
}
