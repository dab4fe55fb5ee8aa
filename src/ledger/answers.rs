//! Answers to idempotency keys as entries of the ledger: where the entry of a key stands, what it says, and how it is
//! found. Drawn in FORMAT.md, "Answers".

use std::sync::Arc;

use super::error::LedgerError;
use super::files::NewEntry;
use super::format::{Entry, Place};
use super::run::Run;
use super::{Ledger, Runs};
use crate::catalog::{Stream, bucket_owner};
use crate::ids::ObjectId;
use crate::journal::{Answer, IdempotencyView};

/// Digest of a key or a body.
pub type Digest = [u8; 16];

/// Taken at, digest of the body, status.
const HEAD_BYTES: usize = 8 + 16 + 2;

/// What a key stood for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Digest of the request's body.
    pub body: Digest,
    /// When it was taken, UTC nanoseconds.
    pub created_at_ns: i64,
    /// What was answered.
    pub answer: Answer,
}

impl Answered {
    /// What the payload of an entry says; `None` where it is too short to be one.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let (created_at, rest) = payload.split_first_chunk()?;
        let (body, rest) = rest.split_first_chunk()?;
        let (status, answer) = rest.split_first_chunk()?;
        Some(Self {
            body: *body,
            created_at_ns: i64::from_le_bytes(*created_at),
            answer: Answer {
                status: u16::from_le_bytes(*status),
                body: answer.into(),
            },
        })
    }
}

/// The payload of an entry: what [`Answered::decode`] reads.
pub fn encode_answer(entry: &IdempotencyView<'_>, created_at_ns: i64) -> Arc<[u8]> {
    let mut payload = Vec::with_capacity(HEAD_BYTES + entry.answer.body.len());
    payload.extend_from_slice(&created_at_ns.to_le_bytes());
    payload.extend_from_slice(&entry.body);
    payload.extend_from_slice(&entry.answer.status.to_le_bytes());
    payload.extend_from_slice(entry.answer.body);
    payload.into()
}

impl NewEntry {
    /// The entry of a key of a bucket, with a payload of [`encode_answer`].
    pub fn answer(bucket: u32, key: &Digest, payload: Arc<[u8]>) -> Self {
        let (at_ns, id) = place_of(key);
        Self {
            owner: bucket_owner(bucket),
            at_ns,
            id,
            payload,
        }
    }

    /// The key that this is the answer to.
    pub fn answered_key(&self) -> Digest {
        let mut key = [0; 16];
        let (first, second) = key.split_at_mut(8);
        first.copy_from_slice(&self.at_ns.to_be_bytes());
        second.copy_from_slice(&self.id.as_bytes()[..8]);
        key
    }
}

/// A key's place: its halves stand where other streams have a moment and an id. No moment is meant; places of keys are
/// only put in order and compared.
fn place_of(key: &Digest) -> Place {
    let [a, b, c, d, e, f, g, h, second @ ..] = *key;
    let mut id = [0; 12];
    id[..8].copy_from_slice(&second);
    (
        i64::from_be_bytes([a, b, c, d, e, f, g, h]),
        ObjectId::from_bytes(id),
    )
}

impl Ledger {
    /// What was answered to a key of a bucket, as the newest of the files has it that has it. Files that hold nothing
    /// but what is forgotten at `now_ns` are passed over; an entry of another one may be forgotten all the same. The
    /// cost grows with the files of this stream; in each, few blocks are read.
    ///
    /// # Errors
    /// Entries on the way to it, or itself, do not read.
    pub fn answer(&self, bucket: u32, key: &Digest, now_ns: i64) -> Result<Option<Answered>, LedgerError> {
        let (owner, place) = (bucket_owner(bucket), place_of(key));
        let cutoff_ns = Stream::Answers.cutoff_ns(now_ns);
        let runs: Runs = self.runs();
        for run in runs.of(Stream::Answers).rev() {
            if run.newest_ns() < cutoff_ns {
                continue;
            }
            let numbers = run.entries_of(owner)?;
            if let Some(entry) = run.entries().find_spread(numbers, &place)? {
                return read(run, &entry).map(Some);
            }
        }
        Ok(None)
    }

    /// Bytes that the answers of a bucket take in the files in use. The cost grows with the files of this stream and
    /// the logarithm of their buckets.
    ///
    /// # Errors
    /// Entries of a run do not read.
    pub fn answers_bytes(&self, bucket: u32) -> Result<u64, LedgerError> {
        let owner = bucket_owner(bucket);
        let runs = self.runs();
        runs.of(Stream::Answers).map(|run| run.bytes_of(owner)).sum()
    }
}

fn read(run: &Run, entry: &Entry) -> Result<Answered, LedgerError> {
    let payload = run.payload(entry)?;
    Answered::decode(&payload).ok_or_else(|| run.damaged(entry.offset, "an answer"))
}
