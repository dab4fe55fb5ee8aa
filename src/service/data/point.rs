//! `POST /api/data`.

use std::sync::Arc;

use super::idempotency::{Digests, IdempotencyKey};
use super::{IngestAnswer, Refusal, Sent, Store, Turn, with_buffers};
use crate::catalog::{Bucket, Source, SourceStatus};
use crate::error::ServiceError;
use crate::ingest::{Point, PointBody, SourceView, parse_point};
use crate::journal::IngestRecord;
use crate::service::{Caller, Service, bucket_for, source_for};

impl Service {
    /// Stores one point.
    ///
    /// # Errors
    /// 400 with all faults, 404, 403, 409 for an inactive source or a reused key, 503.
    pub async fn ingest_point(
        &self,
        caller: &Caller,
        body: &[u8],
        key: Option<&IdempotencyKey>,
    ) -> Result<IngestAnswer, ServiceError> {
        let point = parse_point(body)?;
        let digests = key.map(|key| key.digests(body));
        let now_ns = self.now_ns();
        let read = || {
            let bucket = self
                .catalog
                .read(|catalog| bucket_for(catalog, caller, point.bucket_id))?;
            self.catalog
                .read(|catalog| source_for(catalog, caller, point.bucket_id, point.source_id))
                .and_then(|(bucket, source)| self.read_point(&bucket, source, &point, now_ns, digests))
                .map_err(|error| Refusal {
                    bucket: Some(bucket),
                    error,
                })
        };
        self.ingest(caller, digests, now_ns, Sent::Point(body), read)
            .await
    }
    /// Writes the point's row, if its source accepts it.
    fn read_point(
        &self,
        bucket: &Arc<Bucket>,
        source: Arc<Source>,
        point: &PointBody<'_>,
        now_ns: i64,
        digests: Option<Digests>,
    ) -> Result<Turn, ServiceError> {
        let view = SourceView {
            source: Arc::clone(&source),
            oldest_ns: bucket.retention_cutoff_ns(now_ns),
        };
        with_buffers(|rows, _| {
            let written = point.write(&view, now_ns, rows).map_err(ServiceError::faults)?;
            if source.status == SourceStatus::Inactive {
                return Err(ServiceError::conflict(format!(
                    "the data source {:?} is inactive and takes no data; set its status to active first",
                    source.name
                )));
            }
            let outcome = match written {
                Point::NeedsFields(fields) => return Ok(Turn::Extend(Arc::clone(bucket), fields)),
                Point::Ready(outcome) => outcome,
            };
            let answer = IngestAnswer::of_point(bucket, &source, point, outcome.timestamp_ns, now_ns);
            let entry = digests.map(|digests| digests.entry(&answer));
            let record = IngestRecord::new(bucket.ordinal, now_ns, 1, entry, |out| rows.encode(out));
            let (bucket, sources) = (Arc::clone(bucket), vec![source.ordinal]);
            Ok(Turn::Store(Box::new(Store {
                newest: self.newest_heard(&bucket, rows),
                bucket,
                record,
                rows: 1,
                memory_bytes: rows.memory_bytes(),
                sources,
                refused: 0,
                answer,
            })))
        })
    }
}
