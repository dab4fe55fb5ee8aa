//! `POST /api/data/batch`.

use std::sync::Arc;

use super::{Accepted, Parsed, Request, once, with_buffers};
use crate::clock::DAY_NS;
use crate::error::{ErrorExtra, ServiceError};
use crate::ids::ObjectId;
use crate::ingest::{SourceView, parse_batch};
use crate::limits::BATCH_AGE_DAYS_MAX;
use crate::service::{Caller, Service};

impl Service {
    /// Writes the rows of the valid entries. 400 with all faults outside the entries.
    pub(super) fn parse_batch(&self, request: &Request<'_>, body: &[u8]) -> Result<Parsed, ServiceError> {
        let (caller, now_ns) = (request.caller, request.now_ns);
        let mut last = None;
        let mut look_up = |id: ObjectId| self.source_view(caller, id, now_ns, &mut last);
        with_buffers(|rows, scratch| {
            scratch.series.clear(request.attempt.room.clone());
            // Read before the sources, so that a change in between makes them those of an older version.
            scratch.version = self.catalog.sources_version(caller.organization_id);
            let batch = parse_batch(body, now_ns, &mut look_up, scratch, rows)?;
            let bucket = self.bucket(caller, batch.bucket_id)?;
            if !batch.new_fields.is_empty() {
                return Ok(Parsed::Extend(bucket, batch.new_fields));
            }
            let series = scratch.series.take()?;
            let compared = &request.attempt.compared;
            let duplicates = once::drop_repeats(rows, &series, &batch.once, compared);
            let (inserted, errors) = (rows.rows(), batch.errors);
            if inserted == 0 && duplicates == 0 {
                self.ingested.mine().refused(errors.len());
                // Carries the same members as an answer to a batch that is stored in part.
                let error = ServiceError::validation("all entries of the batch failed; see errors")
                    .with_extra(Some(ErrorExtra::Batch(errors)));
                return Ok(Parsed::Refused(bucket, error));
            }
            let accepted = Accepted::Batch {
                inserted,
                duplicates,
                errors: &errors,
            };
            self.store(
                request,
                bucket,
                rows,
                (series, &batch.once),
                errors.len(),
                &accepted,
            )
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
        let (source, bucket, oldest_ns) = self.catalog.read(|catalog| {
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
            let bucket = source
                .dimensions
                .as_ref()
                .and_then(|_| catalog.bucket(source.bucket_id));
            Some((Arc::clone(source), bucket.cloned(), oldest_ns))
        })?;
        let series = bucket.map(|bucket| self.find_series(&bucket));
        Some(SourceView {
            source,
            oldest_ns,
            series,
        })
    }
}
