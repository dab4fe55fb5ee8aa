//! `POST /api/data`.

use std::sync::Arc;

use super::idempotency::Digests;
use super::{Accepted, AcceptedPoint, IngestAnswer, Parsed, Request, WriteAnswer, with_buffers};
use crate::catalog::{Bucket, Source, SourceStatus};
use crate::error::ServiceError;
use crate::ingest::{Point, PointBody, SourceView, parse_point};
use crate::service::{Caller, Service};

impl Service {
    /// Stores one point. `key` is the request's idempotency key.
    ///
    /// # Errors
    /// 400 with all faults, 404, 403, 409 for an inactive source or a reused key, 503.
    pub async fn ingest_point(
        &self,
        caller: &Caller,
        body: &[u8],
        key: Option<&[u8]>,
        write: WriteAnswer,
    ) -> Result<IngestAnswer, ServiceError> {
        let point = parse_point(body)?;
        let request = Request {
            caller,
            body,
            is_batch: false,
            digests: key.map(|key| Digests::of(key, body)),
            now_ns: self.now_ns(),
            write,
        };
        let parse = || {
            let bucket = self.bucket(caller, point.bucket_id)?;
            let parsed = self
                .find_source(caller, point.bucket_id, point.source_id)
                .and_then(|(bucket, source)| self.parse_point(&request, bucket, source, &point));
            Ok(parsed.unwrap_or_else(|error| Parsed::Refused(bucket, error)))
        };
        self.ingest(&request, parse).await
    }

    /// Writes the point's row, if its source accepts it.
    fn parse_point(
        &self,
        request: &Request<'_>,
        bucket: Arc<Bucket>,
        source: Arc<Source>,
        point: &PointBody<'_>,
    ) -> Result<Parsed, ServiceError> {
        let now_ns = request.now_ns;
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
            let timestamp_ns = match written {
                Point::NeedsFields(fields) => return Ok(Parsed::Extend(bucket, fields)),
                Point::Ready { timestamp_ns } => timestamp_ns,
            };
            let answer = (request.write)(&Accepted::Point(AcceptedPoint {
                bucket_id: bucket.id,
                source_id: source.id,
                point,
                timestamp_ns,
                created_at_ns: now_ns,
            }))?;
            Ok(self.store(request, bucket, rows, 0, answer))
        })
    }
}
