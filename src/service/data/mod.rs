//! Ingestion: a body becomes a record, the bucket writes the record to the log, and then the answer is sent.
//! `ingest` parses bodies; this module combines the result with the catalog, the idempotency key and the bucket.

mod answer;
mod batch;
mod idempotency;
mod imports;
mod once;
mod point;
mod series;
mod writers;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use engine::rows::{NewestRows, RowsWriter};

pub use answer::{Accepted, IngestAnswer, WriteAnswer};
pub use imports::{EpochUnit, Import, ImportFormat, ImportSettings, Imported};
pub use writers::{BucketName, EntrySink, Written};

use super::{Caller, Service};
use crate::bucket::{Ingest, Ingested};
use crate::catalog::{Bucket, Command, Field, text_bytes};
use crate::delivery::NewPoints;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::ingest::{NewField, RequestSeries, Scratch, SeriesRoom, parse_point};
use crate::journal::{AnswerView, IdempotencyView, IngestRecord, RecordSeries};
use idempotency::Digests;
use once::{Compared, OnceRows, of_record, source_of};
use writers::{NewSourceFields, RefusedSources};

/// A request is parsed again when the catalog changed meanwhile, as when a source was deleted or got the fields that the
/// request adds, and twice at most to compare its rows with those that are there. Each further repetition needs another
/// concurrent change, so reaching this limit indicates a bug.
const PARSES_MAX: usize = 8;

/// Row buffers up to this size are kept by a thread: a rare huge request must not hold its memory forever.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

thread_local! {
    /// The parser's buffers, reused between requests. Never held across an await.
    static BUFFERS: RefCell<(RowsWriter, Scratch)> = RefCell::new((RowsWriter::new(), Scratch::default()));
}

fn with_buffers<R>(work: impl FnOnce(&mut RowsWriter, &mut Scratch) -> R) -> R {
    BUFFERS.with_borrow_mut(|(rows, scratch)| {
        let result = work(rows, scratch);
        rows.clear_keeping(BUFFER_BYTES_KEPT);
        result
    })
}

/// A request parsed against a snapshot of the catalog.
enum Parsed {
    /// A record to store, and the answer to send afterwards.
    Store(Box<Store>),
    /// Fields that must be added first.
    Extend(Arc<Bucket>, Vec<NewField>),
    /// Sources and fields must be added first, as far as the organization may have them; then parse again.
    Prepare(Arc<Bucket>, Vec<NewSourceFields>),
    /// An error. If the idempotency key was used before, the request still gets the earlier answer.
    Refused(Arc<Bucket>, ServiceError),
    /// All points are there already, and no key: there is nothing to store.
    Repeated(IngestAnswer),
}

struct Store {
    bucket: Arc<Bucket>,
    ingest: Ingest,
    /// Number of points among the rows.
    points: u32,
    /// Number of entries that are not stored.
    refused: usize,
    answer: IngestAnswer,
    /// Whether a webhook subscribes to this bucket's points.
    is_subscribed: bool,
    /// The newest points; `None` when nobody asks for them: no webhook, and no source that is waited for.
    newest: Option<NewestRows>,
    /// Points that may be there already, if they were asked for.
    once: Vec<OnceRows>,
}

/// What a body contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    Point,
    Batch,
}

/// A request to store points.
struct Request<'a> {
    caller: &'a Caller,
    body_bytes: usize,
    /// The digests of its idempotency key and body, if it has a key.
    digests: Option<Digests>,
    now_ns: i64,
    write: &'a dyn Fn(&Accepted<'_>) -> Result<IngestAnswer, ServiceError>,
    /// How often the bucket has returned it.
    attempt: Attempt,
}

/// What has been said about a request so far.
#[derive(Default)]
struct Attempt {
    /// The new series that it may add.
    room: Option<SeriesRoom>,
    /// Whether its points were asked for, and those of them that are there already.
    compares: bool,
    compared: HashMap<u32, Compared>,
    /// Sources that the request names and the organization may not have.
    refused_sources: RefusedSources,
    /// The number of releases before it was parsed.
    releases: u64,
}

impl Service {
    /// Stores a point, or the valid entries of a batch. `key` is the request's idempotency key.
    ///
    /// # Errors
    /// 400 with all faults of a point, all faults outside the entries of a batch, or when all entries failed; 404, 403,
    /// 409 for an inactive source of a point or a reused key, 503.
    pub async fn ingest(
        &self,
        caller: &Caller,
        kind: BodyKind,
        body: &[u8],
        key: Option<&[u8]>,
        write: WriteAnswer,
    ) -> Result<IngestAnswer, ServiceError> {
        let point = match kind {
            BodyKind::Point => Some(parse_point(body)?),
            BodyKind::Batch => None,
        };
        let request = Request {
            caller,
            body_bytes: body.len(),
            digests: key.map(|key| Digests::of(key, body)),
            now_ns: self.now_ns(),
            write: &write,
            attempt: Attempt::default(),
        };
        let parse = |request: &Request<'_>| match &point {
            Some(point) => self.parse_point(request, point),
            None => self.parse_batch(request, body),
        };
        self.store_parsed(request, kind == BodyKind::Batch, parse).await
    }

    /// Stores what `parse` returns; parses again whenever what it depends on has changed.
    ///
    /// What happens rarely is boxed, so that the future of each request stays small.
    async fn store_parsed(
        &self,
        mut request: Request<'_>,
        is_batch: bool,
        parse: impl Fn(&Request<'_>) -> Result<Parsed, ServiceError>,
    ) -> Result<IngestAnswer, ServiceError> {
        let caller = request.caller;
        let digests = request.digests;
        let mut alone = None;
        for _ in 0..PARSES_MAX {
            request.attempt.releases = self.buckets.releases();
            let store = match parse(&request)? {
                Parsed::Store(store) => store,
                Parsed::Extend(bucket, _) => {
                    // A repeated request, or one that will be refused, must not add fields.
                    if let Some(answer) = Box::pin(self.answered(&bucket, digests)).await? {
                        return Ok(answer);
                    }
                    Box::pin(self.extend_schemas(caller, || parse(&request))).await?;
                    continue;
                }
                Parsed::Prepare(bucket, missing) => {
                    let refused = Box::pin(self.prepare_sources(caller, &bucket, missing)).await?;
                    request.attempt.refused_sources.extend(refused);
                    continue;
                }
                Parsed::Repeated(answer) => return Ok(answer),
                Parsed::Refused(bucket, error) => {
                    return Box::pin(self.answered(&bucket, digests)).await?.ok_or(error);
                }
            };
            let mut store = *store;
            store.ingest.alone.clone_from(&alone);
            let bucket = &store.bucket;
            if request.attempt.compares && !store.once.is_empty() {
                request.attempt.compared = Box::pin(self.compare(bucket, store.once)).await?;
                request.attempt.compares = false;
                continue;
            }
            match self.buckets.ingest(bucket, store.ingest).await? {
                Ingested::Stored { first_sequence } => {
                    let counts = self.ingested.mine();
                    counts.stored(store.points, request.body_bytes);
                    counts.refused(store.refused);
                    let answer = store.answer.numbered(bucket.ordinal, first_sequence);
                    if let Some(rows) = store.newest {
                        let points = NewPoints {
                            organization_id: bucket.organization_id,
                            bucket_id: bucket.id,
                            bucket_ordinal: bucket.ordinal,
                            first_sequence,
                            batch: is_batch,
                            received_at_ns: request.now_ns,
                            rows,
                        };
                        self.note_arrival(&points);
                        if store.is_subscribed {
                            self.deliveries.offer_received(points);
                        }
                    }
                    return Ok(answer);
                }
                Ingested::Replayed(answer) => {
                    self.ingested.mine().replayed();
                    return Ok(IngestAnswer::replayed(answer));
                }
                Ingested::KeyReused => return Err(idempotency::key_reused()),
                Ingested::SourceGone => {}
                Ingested::MayRepeat => {
                    if alone.is_none() {
                        alone = Some(Arc::new(self.buckets.handle(bucket)?.compare_alone().await));
                    }
                    request.attempt.compares = true;
                }
                Ingested::NoRoom(room) => request.attempt.room = Some(room),
            }
        }
        let message = "what the request names keeps changing; send it again";
        Err(ServiceError::unavailable(message, 1))
    }

    /// Encodes the record of these rows, and writes the answer.
    fn store(
        &self,
        request: &Request<'_>,
        bucket: Arc<Bucket>,
        rows: &RowsWriter,
        (series, once): (Vec<RequestSeries>, &[u32]),
        refused: usize,
        accepted: &Accepted<'_>,
    ) -> Result<Parsed, ServiceError> {
        let (count, points, now_ns) = (rows.rows(), rows.points(), request.now_ns);
        if count == 0 && request.digests.is_none() {
            return Ok(Parsed::Repeated((request.write)(accepted)?));
        }
        // Without rows, the record has only the answer to the key.
        let series = if count == 0 { Vec::new() } else { series };
        let source_of = |table: u32| source_of(&series, table);
        let compared = &request.attempt.compared;
        let answer = (request.write)(accepted)?;
        let entry = request.digests.map(|Digests { key, body }| {
            let (status, text) = (answer.status, answer.body.as_slice());
            let answered = AnswerView { status, body: text };
            let entry = IdempotencyView {
                key,
                body,
                answer: answered,
            };
            (entry, answer.id_at)
        });
        let is_subscribed = points > 0 && self.deliveries.has_subscriber(&bucket);
        let needs_newest = points > 0 && (is_subscribed || self.watch.waits_for(bucket.id));
        let mut sources: Vec<u32> = rows.sources().map(source_of).collect();
        if !series.is_empty() {
            sources.sort_unstable();
            sources.dedup();
        }
        let of_record: Vec<RecordSeries<'_>> = series.iter().map(of_record).collect();
        let record = IngestRecord::new(bucket.ordinal, now_ns, count, entry, &of_record, |out| {
            rows.encode(out)
        });
        let labels_bytes: usize = series.iter().map(|series| series.labels.len()).sum();
        let newest = needs_newest.then(|| rows.newest(source_of));
        let once_rows = match request.attempt.compares {
            true => once::once_rows(rows, &series, once),
            false => Vec::new(),
        };
        Ok(Parsed::Store(Box::new(Store {
            ingest: Ingest {
                record,
                rows: count,
                memory_bytes: rows.memory_bytes() + labels_bytes,
                sources,
                repeats: once::may_repeat(rows, &series, once, compared),
                series,
                idempotency: request.digests.map(|digests| (digests.key, digests.body)),
                now_ns,
                releases: request.attempt.releases,
                alone: None,
            },
            bucket,
            points,
            refused,
            answer,
            newest,
            is_subscribed,
            once: once_rows,
        })))
    }

    /// Returns the earlier answer for the key, if there is one.
    async fn answered(
        &self,
        bucket: &Bucket,
        digests: Option<Digests>,
    ) -> Result<Option<IngestAnswer>, ServiceError> {
        let Some(digests) = digests else {
            return Ok(None);
        };
        match self.buckets.answered(bucket, digests.key).await? {
            Some((body, answer)) if body == digests.body => {
                self.ingested.mine().replayed();
                Ok(Some(IngestAnswer::replayed(answer)))
            }
            Some(_) => Err(idempotency::key_reused()),
            None => Ok(None),
        }
    }

    /// Adds the request's new fields, with one command for each source.
    async fn extend_schemas(
        &self,
        caller: &Caller,
        parse: impl Fn() -> Result<Parsed, ServiceError>,
    ) -> Result<(), ServiceError> {
        let organization_id = caller.organization_id;
        let decision = self.decisions.begin(organization_id).await;
        // Since the request was parsed, another request may have added these fields or used up the schema's limit.
        let Ok(Parsed::Extend(_, new_fields)) = parse() else {
            return Ok(());
        };
        let mut by_source: BTreeMap<ObjectId, Vec<Field>> = BTreeMap::new();
        for new in new_fields {
            by_source.entry(new.source_id).or_default().push(Field {
                name: new.name.into(),
                kind: new.kind,
                unit: None,
                description: None,
            });
        }
        for (source_id, fields) in &by_source {
            // A schema that another source already has is shared and costs nothing.
            let grown = self.catalog.read(|catalog| {
                let grown = catalog.source(*source_id)?.schema.extended(fields)?;
                (!catalog.has_schema(organization_id, &grown)).then_some(grown)
            });
            let text_bytes = grown.map_or(0, |schema| text_bytes::of_schema(&schema.fields));
            self.admit_text(organization_id, 0, text_bytes)?;
        }
        let at_ns = self.now_ns();
        let extended = |(source_id, fields)| Command::SchemaExtended {
            source_id,
            fields,
            at_ns,
        };
        let commands = by_source.into_iter().map(extended).collect();
        let _settled = decision.commit_all(commands).await?;
        Ok(())
    }
}
