//! Answers to idempotency keys as entries of the ledger: the position of a key's entry, its encoding, and its lookup.
//! The format is described in FORMAT.md, "Answers".

use std::sync::Arc;

use super::Ledger;
use super::error::LedgerError;
use super::files::NewEntry;
use super::format::{Place, take};
use crate::catalog::{EntryKey, Stream, bucket_owner};
use crate::ids::ObjectId;
use crate::journal::{Answer, IdempotencyView};

/// Digest of a key or a request body.
pub type Digest = [u8; 16];

/// Time received, digest of the body, status.
const HEAD_BYTES: usize = 8 + 16 + 2;

/// The stored result of a request with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Digest of the request's body.
    pub body: Digest,
    /// When the request was received, UTC nanoseconds.
    pub created_at_ns: i64,
    /// The answer that was sent.
    pub answer: Answer,
}

impl Answered {
    /// Decodes the payload of an entry; `None` if it is too short.
    pub fn decode(mut payload: &[u8]) -> Option<Self> {
        Some(Self {
            created_at_ns: i64::from_le_bytes(take(&mut payload)?),
            body: take(&mut payload)?,
            answer: Answer {
                status: u16::from_le_bytes(take(&mut payload)?),
                body: payload.into(),
            },
        })
    }
}

/// Encodes the payload of an entry, for [`Answered::decode`].
pub fn encode_answer(entry: &IdempotencyView<'_>, created_at_ns: i64) -> Arc<[u8]> {
    let mut payload = Vec::with_capacity(HEAD_BYTES + entry.answer.body.len());
    payload.extend_from_slice(&created_at_ns.to_le_bytes());
    payload.extend_from_slice(&entry.body);
    payload.extend_from_slice(&entry.answer.status.to_le_bytes());
    payload.extend_from_slice(entry.answer.body);
    payload.into()
}

impl NewEntry {
    /// The entry of a bucket's key, with a payload from [`encode_answer`].
    pub fn answer(bucket: u32, key: &Digest, payload: Arc<[u8]>) -> Self {
        let (at_ns, id) = place_of(key);
        let key = EntryKey {
            stream: Stream::Answers,
            owner: bucket_owner(bucket),
            at_ns,
            id,
        };
        Self { key, payload }
    }

    /// The key whose answer this is.
    pub fn answered_key(&self) -> Digest {
        let mut key = [0; 16];
        let (first, second) = key.split_at_mut(8);
        first.copy_from_slice(&self.key.at_ns.to_be_bytes());
        second.copy_from_slice(&self.key.id.as_bytes()[..8]);
        key
    }
}

/// Position of a key: its two halves take the place of the time and the id of other streams. The value has no meaning
/// as a time; positions of keys are only ordered and compared.
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
    /// The stored answer for a bucket's key, from the newest file that has it. Files whose entries have all expired at
    /// `now_ns` are skipped; an entry from another file may still have expired. The cost grows with the number of files
    /// of this stream; few blocks are read in each.
    ///
    /// # Errors
    /// The entry, or entries on the path to it, cannot be read.
    pub fn answer(&self, bucket: u32, key: &Digest, now_ns: i64) -> Result<Option<Answered>, LedgerError> {
        let (owner, place) = (bucket_owner(bucket), place_of(key));
        let cutoff_ns = Stream::Answers.cutoff_ns(now_ns);
        let runs = self.runs();
        for run in runs.of(Stream::Answers).rev() {
            if run.footer.newest_ns < cutoff_ns {
                continue;
            }
            let numbers = run.entries_of(owner)?;
            if let Some(entry) = run.entries().find_spread(numbers, &place)? {
                let found = Answered::decode(&run.payload(&entry)?);
                let found = found.ok_or_else(|| run.damaged(entry.offset, "an answer"));
                return found.map(Some);
            }
        }
        Ok(None)
    }
}
