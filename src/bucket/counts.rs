//! Point counts of a bucket, for listings.

use engine::{EngineError, SeriesStats, View};

use super::registry::Buckets;
use crate::catalog::Bucket;
use crate::error::ServiceError;

impl Buckets {
    /// Statistics of each requested source, in the same order, without expired points. Rows of a damaged block that would have to be read are
    /// not counted.
    ///
    /// # Errors
    /// 503 when the bucket is not available.
    pub async fn stats(&self, bucket: &Bucket, sources: &[u32]) -> Result<Vec<SeriesStats>, ServiceError> {
        let (sources, damaged) = (sources.to_vec(), self.damaged().clone());
        let count = move |view: &View, cutoff_ns: i64| {
            let mut pass_over = |error| damaged.pass_over(error);
            let stats = sources.into_iter().map(|source| match view.source(source) {
                Some(series) => series.stats_within((cutoff_ns, i64::MAX), &|| false, &mut pass_over),
                None => Ok(SeriesStats::default()),
            });
            stats.collect()
        };
        self.counted(bucket, count).await
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
        Ok(self.counted(bucket, count).await?.points)
    }

    /// Counts what a bucket holds now, given its retention cutoff. If points have expired, blocks may have to be read,
    /// which happens on a blocking thread: neither the actor nor the caller's other requests wait for it.
    async fn counted<R: Send + 'static>(
        &self,
        bucket: &Bucket,
        count: impl FnOnce(&View, i64) -> Result<R, EngineError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        let view = self.view(bucket).await?;
        let cutoff_ns = bucket.retention_cutoff_ns(self.clock().now_ns());
        let counted = match view.has_expired(cutoff_ns) {
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
        Ok(stats.iter().map(|stats| stats.points).sum())
    }
}
