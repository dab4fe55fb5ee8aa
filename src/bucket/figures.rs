//! Queries many buckets at once, for statistics over all of them.

use std::sync::Arc;

use engine::View;

use super::handle::gone;
use super::registry::Buckets;
use super::request::TakeFigures;
use crate::catalog::Bucket;
use crate::error::{ErrorKind, ServiceError};

/// Statistics of a bucket at one moment.
pub struct BucketFigures {
    /// A view of its points.
    pub view: View,
    /// Size on disk in bytes: see [`BucketState::disk_bytes`](super::BucketState::disk_bytes).
    pub disk_bytes: u64,
    /// When its last ingest was received, UTC nanoseconds.
    pub ingested_at_ns: Option<i64>,
}

impl Buckets {
    /// Statistics of these buckets. All requests are sent before the first answer is awaited. Buckets that are set
    /// apart, or deleted in the meantime, are left out.
    ///
    /// # Errors
    /// 503 if a bucket is not available, 500 if its answers in the ledger cannot be read.
    pub async fn figures(
        &self,
        buckets: impl IntoIterator<Item = Arc<Bucket>>,
    ) -> Result<Vec<(Arc<Bucket>, BucketFigures)>, ServiceError> {
        let mut asked = Vec::new();
        for bucket in buckets {
            let handle = match self.handle(&bucket) {
                Err(error) if error.kind == ErrorKind::NotFound => continue,
                // Statistics of the other buckets are still returned.
                Err(_) if self.is_set_apart(&bucket) => continue,
                handle => handle?,
            };
            let expired = self.expired_rows(&bucket);
            asked.push((bucket, handle.send(TakeFigures { expired })));
        }
        let mut figures = Vec::with_capacity(asked.len());
        for (bucket, answer) in asked {
            match answer.await {
                Ok(answer) => figures.push((bucket, answer.map_err(ServiceError::internal)?)),
                Err(_) if self.is_deleted(&bucket) => {}
                Err(_) => return Err(gone()),
            }
        }
        Ok(figures)
    }
}
