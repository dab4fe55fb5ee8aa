//! `POST /api/data/batch`.

use std::sync::Arc;

use super::idempotency::Digests;
use super::{Accepted, IngestAnswer, Parsed, Request, WriteAnswer, with_buffers};
use crate::clock::DAY_NS;
use crate::error::{ErrorExtra, ServiceError};
use crate::ids::ObjectId;
use crate::ingest::{Batch, SourceView, parse_batch};
use crate::limits::BATCH_AGE_DAYS_MAX;
use crate::service::{Caller, Service};

impl Service {
    /// Stores the valid entries of a batch. `key` is the request's idempotency key.
    ///
    /// # Errors
    /// 400 with all faults outside the entries, or when all entries failed; 404, 403, 409 for a reused key, 503.
    pub async fn ingest_batch(
        &self,
        caller: &Caller,
        body: &[u8],
        key: Option<&[u8]>,
        write: WriteAnswer,
    ) -> Result<IngestAnswer, ServiceError> {
        let request = Request {
            caller,
            body,
            is_batch: true,
            digests: key.map(|key| Digests::of(key, body)),
            now_ns: self.now_ns(),
            write,
        };
        self.ingest(&request, || self.parse_batch(&request)).await
    }

    fn parse_batch(&self, request: &Request<'_>) -> Result<Parsed, ServiceError> {
        let (caller, now_ns) = (request.caller, request.now_ns);
        let mut last = None;
        let mut look_up = |id: ObjectId| self.source_view(caller, id, now_ns, &mut last);
        with_buffers(|rows, scratch| {
            let batch = parse_batch(request.body, now_ns, &mut look_up, scratch, rows)?;
            let bucket_id = match &batch {
                Batch::Ready(outcome) => outcome.bucket_id,
                Batch::NeedsFields { bucket_id, .. } => *bucket_id,
            };
            let bucket = self.bucket(caller, bucket_id)?;
            let outcome = match batch {
                Batch::NeedsFields { new_fields, .. } => return Ok(Parsed::Extend(bucket, new_fields)),
                Batch::Ready(outcome) => outcome,
            };
            if rows.rows() == 0 {
                self.ingested.mine().refused(outcome.errors.len());
                // Carries the same members as an answer to a batch that is stored in part.
                let error = ServiceError::validation("all entries of the batch failed; see errors")
                    .with_extra(Some(ErrorExtra::Batch(outcome.errors)));
                return Ok(Parsed::Refused(bucket, error));
            }
            let answer = (request.write)(&Accepted::Batch {
                inserted: rows.rows(),
                errors: &outcome.errors,
            })?;
            Ok(self.store(request, bucket, rows, outcome.errors.len(), answer))
        })
    }

    /// Finds a source of the caller's organization, and the oldest timestamp that a batch entry of it may have. `last`
    /// caches the previous source's bucket and its oldest timestamp: nearly always the same.
    fn source_view(
        &self,
        caller: &Caller,
        id: ObjectId,
        now_ns: i64,
        last: &mut Option<(ObjectId, i64)>,
    ) -> Option<SourceView> {
        self.catalog.read(|catalog| {
            let source = catalog.source(id)?;
            let oldest_ns = match *last {
                Some((bucket_id, oldest_ns)) if bucket_id == source.bucket_id => oldest_ns,
                _ => {
                    let bucket = catalog.bucket(source.bucket_id)?;
                    if bucket.organization_id != caller.organization_id {
                        return None;
                    }
                    let oldest_ns = now_ns.saturating_sub(BATCH_AGE_DAYS_MAX * DAY_NS);
                    let oldest_ns = oldest_ns.max(bucket.retention_cutoff_ns(now_ns));
                    *last = Some((bucket.id, oldest_ns));
                    oldest_ns
                }
            };
            Some(SourceView {
                source: Arc::clone(source),
                oldest_ns,
            })
        })
    }
}
