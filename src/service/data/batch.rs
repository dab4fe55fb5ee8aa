//! `POST /api/data/batch`.

use std::sync::Arc;

use super::idempotency::{Digests, IdempotencyKey};
use super::{IngestAnswer, Refusal, Sent, Store, Turn, with_buffers};
use crate::clock::DAY_NS;
use crate::error::{ErrorExtra, ServiceError};
use crate::ids::ObjectId;
use crate::ingest::{Batch, SourceView, parse_batch};
use crate::journal::IngestRecord;
use crate::limits::BATCH_AGE_DAYS_MAX;
use crate::service::{Caller, Service, bucket_for};

impl Service {
    /// Stores the valid entries of a batch.
    ///
    /// # Errors
    /// 400 with all faults outside the entries, or when all entries failed; 404, 403, 409 for a reused key, 503.
    pub async fn ingest_batch(
        &self,
        caller: &Caller,
        body: &[u8],
        key: Option<&IdempotencyKey>,
    ) -> Result<IngestAnswer, ServiceError> {
        let digests = key.map(|key| key.digests(body));
        let now_ns = self.now_ns();
        self.ingest(caller, digests, now_ns, Sent::Batch(body), || {
            self.read_batch(caller, body, now_ns, digests)
        })
        .await
    }

    fn read_batch(
        &self,
        caller: &Caller,
        body: &[u8],
        now_ns: i64,
        digests: Option<Digests>,
    ) -> Result<Turn, Refusal> {
        let mut last = None;
        let mut look_up = |id: ObjectId| self.source_view(caller, id, now_ns, &mut last);
        with_buffers(|rows, scratch| {
            let batch = parse_batch(body, now_ns, &mut look_up, scratch, rows).map_err(ServiceError::from)?;
            let bucket_id = match &batch {
                Batch::Ready(outcome) => outcome.bucket_id,
                Batch::NeedsFields { bucket_id, .. } => *bucket_id,
            };
            let bucket = self
                .catalog
                .read(|catalog| bucket_for(catalog, caller, bucket_id))?;
            let outcome = match batch {
                Batch::NeedsFields { new_fields, .. } => return Ok(Turn::Extend(bucket, new_fields)),
                Batch::Ready(outcome) => outcome,
            };
            if rows.rows() == 0 {
                self.ingested.mine().refused(outcome.errors.len());
                return Err(Refusal {
                    bucket: Some(bucket),
                    // Carries the same members as a 207.
                    error: ServiceError::validation("all entries of the batch failed; see errors")
                        .with_extra(Some(ErrorExtra::Batch(outcome.errors))),
                });
            }
            let answer = IngestAnswer::of_batch(&outcome, rows.rows());
            let entry = digests.map(|digests| digests.entry(&answer));
            let record =
                IngestRecord::new(bucket.ordinal, now_ns, rows.rows(), entry, |out| rows.encode(out));
            let sources = rows.sources().collect();
            Ok(Turn::Store(Box::new(Store {
                newest: self.newest_heard(&bucket, rows),
                bucket,
                record,
                rows: rows.rows(),
                memory_bytes: rows.memory_bytes(),
                sources,
                refused: outcome.errors.len(),
                answer,
            })))
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
