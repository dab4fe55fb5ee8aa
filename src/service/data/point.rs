//! `POST /api/data`.

use super::{Accepted, Parsed, Request, once, with_buffers};
use crate::catalog::{Duplicates, SourceStatus};
use crate::error::ServiceError;
use crate::ingest::{PointBody, SourceView};
use crate::service::Service;

impl Service {
    /// Writes the point's row, if its source accepts it. 404 and 403 for the bucket; everything else is a refusal.
    pub(super) fn parse_point(
        &self,
        request: &Request<'_>,
        point: &PointBody<'_>,
    ) -> Result<Parsed, ServiceError> {
        let (caller, now_ns) = (request.caller, request.now_ns);
        let bucket = self.bucket(caller, point.bucket_id)?;
        let found = self.find_source(caller, point.bucket_id, point.source_id);
        let parsed = found.and_then(|(bucket, source)| {
            let view = SourceView {
                series: source.dimensions.as_ref().map(|_| self.find_series(&bucket)),
                source,
                oldest_ns: bucket.retention_cutoff_ns(now_ns),
            };
            with_buffers(|rows, scratch| {
                scratch.series.clear(request.attempt.room.clone());
                let new_fields = point.write(&view, now_ns, rows, &mut scratch.series)?;
                if view.source.status == SourceStatus::Inactive {
                    return Err(ServiceError::conflict(format!(
                        "the data source {:?} is inactive and takes no data; set its status to active first",
                        view.source.name
                    )));
                }
                if !new_fields.is_empty() {
                    return Ok(Parsed::Extend(bucket, new_fields));
                }
                let series = scratch.series.take()?;
                let once: &[u32] = match view.source.duplicates {
                    Duplicates::Keep => &[],
                    Duplicates::Skip => &[view.source.ordinal],
                };
                let repeated = once::drop_repeats(rows, &series, once, &request.attempt.compared);
                let accepted = match repeated {
                    0 => Accepted::Point {
                        point,
                        created_at_ns: now_ns,
                    },
                    _ => Accepted::Repeated,
                };
                self.store(request, bucket, rows, (series, once), 0, &accepted)
            })
        });
        Ok(parsed.unwrap_or_else(|error| Parsed::Refused(bucket, error)))
    }
}
