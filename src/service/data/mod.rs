//! Ingestion: a body becomes a record, the record goes through its bucket's actor to the log, and only then is the
//! answer given. What is read of a body is `ingest`'s to say; here it meets the catalog, the key and the bucket.

mod answer;
mod batch;
mod idempotency;
mod point;
mod received;

use std::cell::RefCell;
use std::sync::Arc;

use engine::rows::{NewestRows, RowsWriter};

pub use answer::IngestAnswer;
pub use idempotency::IdempotencyKey;

use super::{Caller, Service};
use crate::bucket::{Ingest, Ingested};
use crate::catalog::{Bucket, Command, Field, text_bytes};
use crate::delivery::NewPoints;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::ingest::{NewField, Scratch};
use crate::journal::IngestRecord;
use idempotency::Digests;

/// A request is read again when what it names changed meanwhile: a source was deleted, or got the fields it brings.
/// Each turn needs another change by somebody else, so this many say that something is wrong.
const TURNS_MAX: usize = 8;

/// Buffers of rows that a thread keeps: a rare huge request must not hold its memory for good.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

thread_local! {
    /// Buffers of the parser, kept from request to request. Never held across an await.
    static BUFFERS: RefCell<(RowsWriter, Scratch)> = RefCell::new((RowsWriter::new(), Scratch::new()));
}

fn with_buffers<R>(work: impl FnOnce(&mut RowsWriter, &mut Scratch) -> R) -> R {
    BUFFERS.with_borrow_mut(|(rows, scratch)| {
        let result = work(rows, scratch);
        rows.clear_keeping(BUFFER_BYTES_KEPT);
        result
    })
}

/// A request as read against the catalog of one moment.
enum Turn {
    /// A record to store, and the answer to give when it is.
    Store(Box<Store>),
    /// Fields to add first.
    Extend(Arc<Bucket>, Vec<NewField>),
}

struct Store {
    bucket: Arc<Bucket>,
    record: IngestRecord,
    rows: u32,
    /// About the memory that the rows will take, in bytes.
    memory_bytes: usize,
    /// Ordinals of the sources with rows.
    sources: Vec<u32>,
    /// Entries that are not stored.
    refused: usize,
    answer: IngestAnswer,
    /// What webhooks are told; `None` when none hears of this bucket's points.
    newest: Option<NewestRows>,
}

/// The body of a request.
#[derive(Clone, Copy)]
enum Sent<'a> {
    Point(&'a [u8]),
    Batch(&'a [u8]),
}

impl Sent<'_> {
    fn bytes(self) -> usize {
        match self {
            Sent::Point(body) | Sent::Batch(body) => body.len(),
        }
    }
}

/// A request that cannot be stored. A repeated key is answered as before all the same, once its bucket is known.
struct Refusal {
    bucket: Option<Arc<Bucket>>,
    error: ServiceError,
}

impl From<ServiceError> for Refusal {
    fn from(error: ServiceError) -> Self {
        Refusal { bucket: None, error }
    }
}

impl Service {
    /// What webhooks will be told of these rows, if any hears of the bucket's points.
    fn newest_heard(&self, bucket: &Bucket, rows: &RowsWriter) -> Option<NewestRows> {
        self.deliveries.hears_received(bucket).then(|| rows.newest())
    }

    /// Whether points would be taken now; to be asked before their body is read.
    ///
    /// # Errors
    /// 503 when the memory or the log is full.
    pub fn admit_points(&self) -> Result<(), ServiceError> {
        self.buckets.admit()
    }

    /// To be told when points were refused for want of room, whoever did it.
    pub fn points_refused(&self) {
        self.buckets.press();
    }

    /// Reads a request until it is stored, answered from its key, or refused.
    async fn ingest(
        &self,
        caller: &Caller,
        digests: Option<Digests>,
        now_ns: i64,
        sent: Sent<'_>,
        read: impl Fn() -> Result<Turn, Refusal>,
    ) -> Result<IngestAnswer, ServiceError> {
        for _ in 0..TURNS_MAX {
            let store = match read() {
                Ok(Turn::Store(store)) => store,
                Ok(Turn::Extend(bucket, _)) => {
                    // A request that will be refused, or is not the first, must leave no fields behind.
                    if let Some(answer) = self.answered(&bucket, digests).await? {
                        return Ok(answer);
                    }
                    self.extend_schemas(caller, &read).await?;
                    continue;
                }
                Err(refusal) => return self.answered_or(refusal, digests).await,
            };
            let Store {
                bucket,
                record,
                rows,
                memory_bytes,
                sources,
                refused,
                answer,
                newest,
            } = *store;
            let ingest = Ingest {
                record,
                rows,
                memory_bytes,
                sources,
                idempotency: digests.map(|it| (it.key, it.body)),
                now_ns,
            };
            match self.buckets.ingest(&bucket, ingest).await? {
                Ingested::Stored { first_sequence } => {
                    let counts = self.ingested.mine();
                    counts.stored(rows, sent.bytes());
                    counts.refused(refused);
                    let answer = answer.numbered(bucket.ordinal, first_sequence);
                    if let Some(rows) = newest {
                        self.deliveries.offer_received(NewPoints {
                            organization_id: bucket.organization_id,
                            bucket_id: bucket.id,
                            bucket_ordinal: bucket.ordinal,
                            first_sequence,
                            batch: matches!(sent, Sent::Batch(_)),
                            received_at_ns: now_ns,
                            rows,
                            show: received::show,
                        });
                    }
                    return Ok(answer);
                }
                Ingested::Replayed(answer) => {
                    self.ingested.mine().replayed();
                    return Ok(IngestAnswer::replayed(answer));
                }
                Ingested::KeyReused => return Err(idempotency::key_reused()),
                Ingested::SourceGone => {}
            }
        }
        Err(ServiceError::unavailable(
            "what the request names keeps changing; send it again",
            1,
        ))
    }

    /// What was answered to the key before, else the refusal.
    async fn answered_or(
        &self,
        refusal: Refusal,
        digests: Option<Digests>,
    ) -> Result<IngestAnswer, ServiceError> {
        let Some(bucket) = refusal.bucket else {
            return Err(refusal.error);
        };
        self.answered(&bucket, digests).await?.ok_or(refusal.error)
    }

    /// What was answered to the key before, if there is a key and it was used.
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

    /// Adds the fields that a request brings, in one command for each source.
    async fn extend_schemas(
        &self,
        caller: &Caller,
        read: impl Fn() -> Result<Turn, Refusal>,
    ) -> Result<(), ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        // Somebody else may have added these, or have used up the schema's room, since the request was read.
        let Ok(Turn::Extend(_, new_fields)) = read() else {
            return Ok(());
        };
        let mut by_source: Vec<(ObjectId, Vec<Field>)> = Vec::new();
        for NewField {
            source_id,
            name,
            kind,
        } in new_fields
        {
            let field = Field {
                name: name.into(),
                kind,
                unit: None,
                description: None,
            };
            match by_source.iter_mut().find(|(id, _)| *id == source_id) {
                Some((_, fields)) => fields.push(field),
                None => by_source.push((source_id, vec![field])),
            }
        }
        for (source_id, fields) in &by_source {
            self.admit_fields(caller.organization_id, *source_id, fields)?;
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

    /// Whether a source's schema may grow by these fields. One that another source has already takes nothing.
    fn admit_fields(
        &self,
        organization_id: ObjectId,
        source_id: ObjectId,
        fields: &[Field],
    ) -> Result<(), ServiceError> {
        let grown = self.catalog.read(|catalog| {
            let grown = catalog.source(source_id)?.schema.extended(fields)?;
            (!catalog.has_schema(organization_id, &grown)).then_some(grown)
        });
        match grown {
            Some(schema) => self.admit_text(organization_id, 0, text_bytes::of_schema(&schema.fields)),
            None => Ok(()),
        }
    }
}
