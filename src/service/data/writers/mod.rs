//! Points of agents: requests of protocols whose entries name their source, and create it if there is none.
//!
//! A protocol's parser (crate `protocols`) hands its points to [`EntrySink`], which writes them as rows. Sources and fields
//! that are missing are made durable first; then the body is parsed again, so that no row is ever written with a schema
//! that is not on disk.
//!
//! Ends of series are rows, too, of series that exist. An end that is sent again is logged again and means the same.

mod sink;
mod sources;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::idempotency::{self, Digests};
use super::once::drop_repeats;
use super::{Accepted, Attempt, IngestAnswer, Parsed, Request, with_buffers};
use crate::catalog::Bucket;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::REFUSALS_SHOWN_MAX;
use crate::service::{Caller, Service, bucket_for};

pub use sink::EntrySink;
use sources::Described;
pub(super) use sources::NewSourceFields;

/// Refusals of a request that are kept for a repetition of its idempotency key.
const REFUSALS_KEPT_MAX: usize = 100;

/// What became of the entries of a request. An idempotency key keeps it as JSON, so its names stay.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Written {
    /// Number of samples that are values, without refused ones. Those that are there already, and those that are never
    /// stored, count.
    pub values: u64,
    /// The same of histograms and summaries.
    #[serde(default)]
    pub histograms: u64,
    /// Number of points that are there already.
    pub duplicates: u64,
    /// Number of samples, or lines, that are refused.
    pub refused: u64,
    /// The first refused entries, by their numbers, with the reasons.
    pub refusals: Vec<(u32, String)>,
}

impl Written {
    fn refuse(&mut self, entry: u32, samples: u32, reason: impl FnOnce() -> String) {
        self.refused += u64::from(samples);
        if self.refusals.len() < REFUSALS_SHOWN_MAX {
            self.refusals.push((entry, reason()));
        }
    }

    /// What a repetition of the request's idempotency key is answered from.
    fn to_kept(&self) -> Result<Vec<u8>, ServiceError> {
        let refusals = self.refusals.iter().take(REFUSALS_KEPT_MAX).cloned().collect();
        let kept = Written { refusals, ..*self };
        serde_json::to_vec(&kept).map_err(ServiceError::internal)
    }

    /// Reads it. The key may have been used by a request of another route, whose answer is another.
    fn from_kept(kept: &[u8]) -> Result<Self, ServiceError> {
        serde_json::from_slice(kept).map_err(|_| idempotency::key_reused())
    }
}

/// What the last pass over a body has found.
#[derive(Default)]
struct Found {
    written: Written,
    described: Vec<Described>,
}

/// How a request says which bucket it writes to.
#[derive(Clone, Debug, Default)]
pub struct BucketName(pub Option<String>);

impl Service {
    /// The bucket that a request of an agent writes to or reads from: that of its key, otherwise the one that it names by id
    /// or name.
    ///
    /// # Errors
    /// 400 if it names none, 404 for one that does not exist.
    pub fn named_bucket(&self, caller: &Caller, name: &BucketName) -> Result<Arc<Bucket>, ServiceError> {
        if let Some(id) = caller.bucket_id() {
            // Agents always send some name.
            return self.bucket(caller, id);
        }
        let Some(name) = name.0.as_deref().map(str::trim).filter(|name| !name.is_empty()) else {
            return Err(ServiceError::validation(
                "an admin key has to name the bucket, by its id or name: as parameter bucket or db, or as X-Bucket; the \
                 key of a bucket names it by itself",
            ));
        };
        self.catalog.read(|catalog| {
            if let Ok(id) = name.parse::<ObjectId>()
                && let Ok(bucket) = bucket_for(catalog, caller, id)
            {
                return Ok(bucket);
            }
            let named = catalog.bucket_by_name(caller.organization_id, name);
            named.cloned().ok_or_else(|| ServiceError::not_found("bucket"))
        })
    }

    /// Stores the entries that `parse` hands to the sink, as far as they are valid. `body_bytes`: size of the body.
    ///
    /// # Errors
    /// Those of `parse`: then nothing is stored; 403, 503.
    pub async fn write_entries(
        &self,
        caller: &Caller,
        bucket: Arc<Bucket>,
        body_bytes: usize,
        parse: impl Fn(&mut EntrySink<'_>) -> Result<(), ServiceError>,
    ) -> Result<Written, ServiceError> {
        self.write_entries_once(caller, bucket, body_bytes, None, parse)
            .await
    }

    /// The same, under an idempotency key: a second request of the same key and body stores nothing, and gives the
    /// numbers of the first.
    ///
    /// # Errors
    /// Also 409 for a key that was used with another body.
    pub(super) async fn write_entries_once(
        &self,
        caller: &Caller,
        bucket: Arc<Bucket>,
        body_bytes: usize,
        digests: Option<Digests>,
        parse: impl Fn(&mut EntrySink<'_>) -> Result<(), ServiceError>,
    ) -> Result<Written, ServiceError> {
        let found = RefCell::new(Found::default());
        // The answer is written from `found`, in each protocol's own way.
        let write = |_: &Accepted<'_>| {
            let mut answer = IngestAnswer::none();
            if digests.is_some() {
                answer.body = found.borrow().written.to_kept()?;
            }
            Ok(answer)
        };
        let request = Request {
            caller,
            body_bytes,
            digests,
            now_ns: self.now_ns(),
            write: &write,
            attempt: Attempt::default(),
        };
        let read = |request: &Request<'_>| self.read_entries(request, &bucket, &parse, &found);
        let answer = self.store_parsed(request, true, read).await?;
        if answer.replayed {
            return Written::from_kept(&answer.body);
        }
        let Found { written, described } = found.into_inner();
        self.describe_sources(caller, &bucket, described).await;
        Ok(written)
    }

    fn read_entries(
        &self,
        request: &Request<'_>,
        bucket: &Arc<Bucket>,
        parse: &impl Fn(&mut EntrySink<'_>) -> Result<(), ServiceError>,
        found: &RefCell<Found>,
    ) -> Result<Parsed, ServiceError> {
        with_buffers(|rows, scratch| {
            rows.clear();
            scratch.series.clear(request.attempt.room.clone());
            let mut sink = EntrySink::new(self, bucket, request, rows, &mut scratch.series);
            parse(&mut sink)?;
            let read = sink.finish();
            if !read.missing.is_empty() {
                return Ok(Parsed::Prepare(Arc::clone(bucket), read.missing));
            }
            let series = scratch.series.take()?;
            let duplicates = drop_repeats(rows, &series, &read.once, &request.attempt.compared);
            let refused = read.written.refusals.len();
            let mut written = read.written;
            written.duplicates = u64::from(duplicates);
            found.replace(Found {
                written,
                described: read.described,
            });
            self.store(
                request,
                Arc::clone(bucket),
                rows,
                (series, &read.once),
                refused,
                &Accepted::Entries,
            )
        })
    }
}

/// Sources that could not be created, with the reason.
pub(super) type RefusedSources = HashMap<Box<str>, String>;
