//! Point counts of a bucket, for listings.

use engine::{EngineError, SourceStats, View};

use super::registry::Buckets;
use crate::catalog::Bucket;
use crate::error::ServiceError;

/// Number of series that are counted on the caller's thread.
const SERIES_AT_ONCE_MAX: u64 = 1_024;

impl Buckets {
    /// Statistics of each requested source, in the same order, without expired points. Rows of a damaged block
    /// that would have to be read are not counted.
    ///
    /// # Errors
    /// 503 when the bucket is not available.
    pub async fn stats(&self, bucket: &Bucket, sources: &[u32]) -> Result<Vec<SourceStats>, ServiceError> {
        let (sources, damaged) = (sources.to_vec(), self.damaged().clone());
        let view = self.view(bucket)?;
        let series = sources
            .iter()
            .filter_map(|source| Some(view.members(*source)?.len()));
        let has_many = series.sum::<u64>() > SERIES_AT_ONCE_MAX;
        let count = move |view: &View, cutoff_ns: i64| {
            let mut pass_over = |error| damaged.pass_over(error);
            let stats = sources.into_iter();
            let stats = stats.map(|source| view.source_stats(source, cutoff_ns, &|| false, &mut pass_over));
            stats.collect()
        };
        self.counted(bucket, view, has_many, count).await
    }

    /// Number of points of the whole bucket, counted like [`Buckets::stats`].
    ///
    /// # Errors
    /// 503 when the bucket is not available.
    pub async fn points(&self, bucket: &Bucket) -> Result<u64, ServiceError> {
        let damaged = self.damaged().clone();
        let count = move |view: &View, cutoff_ns: i64| {
            view.stats(cutoff_ns, &|| false, &mut |error| damaged.pass_over(error))
        };
        let view = self.view(bucket)?;
        Ok(self.counted(bucket, view, false, count).await?.points)
    }

    /// Counts what a view of a bucket holds now, given its retention cutoff. If that takes long, it happens on a blocking
    /// thread, so that the caller's other requests do not wait for it: if points have expired, blocks may have to be read.
    async fn counted<R: Send + 'static>(
        &self,
        bucket: &Bucket,
        view: View,
        has_many: bool,
        count: impl FnOnce(&View, i64) -> Result<R, EngineError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        let cutoff_ns = bucket.retention_cutoff_ns(self.clock().now_ns());
        let counted = match has_many || view.has_expired(cutoff_ns) {
            false => count(&view, cutoff_ns),
            true => tokio::task::spawn_blocking(move || count(&view, cutoff_ns))
                .await
                .map_err(ServiceError::internal)?,
        };
        counted.map_err(ServiceError::internal)
    }

    /// Number of points of these sources together.
    ///
    /// # Errors
    /// 503 when the bucket is not available.
    pub async fn point_count(&self, bucket: &Bucket, sources: &[u32]) -> Result<u64, ServiceError> {
        let stats = self.stats(bucket, sources).await?;
        Ok(stats.iter().map(|stats| stats.points.points).sum())
    }
}
