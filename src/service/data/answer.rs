//! Answers to ingestion requests. The caller of the service writes them, and the same bytes are stored for a repeated
//! idempotency key.

use crate::error::{EntryError, ServiceError};
use crate::ids::ObjectId;
use crate::ingest::PointBody;
use crate::journal::Answer;

/// What a request stores.
pub enum Accepted<'a> {
    /// One point. Its id is known only when its record has a position in the log.
    Point {
        point: &'a PointBody<'a>,
        /// When the request was received, UTC nanoseconds; the timestamp of a point that has none.
        created_at_ns: i64,
    },
    /// A point that is there already.
    Repeated,
    /// The valid entries of a batch.
    Batch {
        /// Number of entries that are stored.
        inserted: u32,
        /// Number of entries that are there already.
        duplicates: u32,
        /// The other entries.
        errors: &'a [EntryError],
    },
    /// Entries of an agent, which are answered by their protocol.
    Entries,
}

/// Writes the answer to a request, before it is stored.
pub type WriteAnswer = fn(&Accepted<'_>) -> Result<IngestAnswer, ServiceError>;

/// An answer to an ingestion request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestAnswer {
    /// The status, as the caller numbers it.
    pub status: u16,
    pub body: Vec<u8>,
    /// Position of a placeholder for the id of a single point.
    pub id_at: Option<usize>,
    /// Whether this repeats an earlier answer to the same key and body.
    pub replayed: bool,
}

impl IngestAnswer {
    /// No answer yet: an agent's protocol writes it from what was stored.
    pub(super) fn none() -> Self {
        IngestAnswer {
            status: 0,
            body: Vec::new(),
            id_at: None,
            replayed: false,
        }
    }

    pub(super) fn replayed(answer: Answer) -> Self {
        IngestAnswer {
            status: answer.status,
            body: answer.body.into_vec(),
            id_at: None,
            replayed: true,
        }
    }

    /// Replaces the placeholder with the point's id.
    pub(super) fn numbered(mut self, bucket: u32, sequence: u64) -> Self {
        if let Some(at) = self.id_at {
            let id = ObjectId::of_point(bucket, sequence).to_hex();
            self.body[at..at + id.len()].copy_from_slice(&id);
        }
        self
    }
}
