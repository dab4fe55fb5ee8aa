//! The series of points: where a request looks them up.

use std::sync::Arc;

use crate::catalog::Bucket;
use crate::error::{ErrorKind, ServiceError};
use crate::ingest::FindSeries;
use crate::series::{Digest, DimensionValues, SeriesIndex};
use crate::service::Service;

impl Service {
    /// The index of a bucket's series.
    pub(super) fn find_series(&self, bucket: &Bucket) -> Arc<dyn FindSeries> {
        match self.buckets.handle(bucket) {
            Ok(handle) => Arc::clone(handle.series()) as Arc<dyn FindSeries>,
            Err(error) => Arc::new(Unavailable(error.kind, error.message)),
        }
    }
}

impl FindSeries for SeriesIndex {
    fn find(&self, source: u32, digest: &Digest) -> Result<Option<u32>, ServiceError> {
        SeriesIndex::find(self, source, digest).map_err(ServiceError::internal)
    }

    fn version(&self) -> Option<u64> {
        Some(SeriesIndex::version(self))
    }

    fn fullest(&self, source: u32) -> Result<Option<DimensionValues>, ServiceError> {
        SeriesIndex::fullest(self, source).map_err(ServiceError::internal)
    }
}

/// Of a bucket that is not available, for this reason.
struct Unavailable(ErrorKind, String);

impl FindSeries for Unavailable {
    fn find(&self, _: u32, _: &Digest) -> Result<Option<u32>, ServiceError> {
        Err(ServiceError::new(self.0, self.1.as_str()))
    }

    fn version(&self) -> Option<u64> {
        None
    }

    fn fullest(&self, _: u32) -> Result<Option<DimensionValues>, ServiceError> {
        Err(ServiceError::new(self.0, self.1.as_str()))
    }
}
