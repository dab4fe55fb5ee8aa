//! Idempotency keys of a bucket: which request a key stood for, and what was answered. For 24 hours a repeated key
//! is answered from here. Recent entries are in memory; a checkpoint brings them to the ledger, where older ones are
//! looked up, so that memory does not grow with a day's requests.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::Stream;
use crate::journal::IdempotencyView;
use crate::ledger::{Answered, Digest, Ledger, LedgerError, NewEntry, encode_answer};

/// The keys of one bucket.
pub struct IdempotencyIndex {
    bucket: u32,
    ledger: Ledger,
    /// As the ledger will have them: what a checkpoint writes is not copied.
    recent: HashMap<Digest, Arc<[u8]>>,
}

impl IdempotencyIndex {
    /// The keys of the bucket of this ordinal, of which the ledger has those that no log holds any more.
    pub fn new(bucket: u32, ledger: Ledger) -> Self {
        IdempotencyIndex {
            bucket,
            ledger,
            recent: HashMap::new(),
        }
    }

    /// Takes in the entry of an applied record.
    pub fn insert(&mut self, entry: &IdempotencyView<'_>, created_at_ns: i64) {
        self.recent.insert(entry.key, encode_answer(entry, created_at_ns));
    }

    /// The entry of a key, unless it is forgotten by now.
    ///
    /// # Errors
    /// What the ledger has of it does not read, so that nobody knows whether the key was used.
    pub fn get(&self, key: &Digest, now_ns: i64) -> Result<Option<Answered>, LedgerError> {
        // A key that was forgotten may have been used again: what is recent knows best.
        let found = match self.recent.get(key) {
            Some(payload) => Some(decoded(payload)),
            None => self.ledger.answer(self.bucket, key, now_ns)?,
        };
        let forgotten_ns = Stream::Answers.cutoff_ns(now_ns);
        Ok(found.filter(|entry| entry.created_at_ns > forgotten_ns))
    }

    /// Entries that the ledger does not have yet, for a checkpoint to bring there.
    pub fn unsaved(&self) -> Vec<NewEntry> {
        let entries = self.recent.iter();
        entries
            .map(|(key, payload)| NewEntry::answer(self.bucket, key, Arc::clone(payload)))
            .collect()
    }

    /// Lets go of exactly these entries. To be called once readers of the ledger find them there, so that each is found
    /// in one of the two at any time.
    pub fn saved(&mut self, written: &[NewEntry]) {
        for entry in written {
            let key = entry.answered_key();
            if self
                .recent
                .get(&key)
                .is_some_and(|recent| Arc::ptr_eq(recent, &entry.payload))
            {
                self.recent.remove(&key);
            }
        }
    }

    /// Lets go of recent entries that are forgotten. Those in the ledger's files expire there.
    pub fn forget(&mut self, now_ns: i64) {
        let forgotten_ns = Stream::Answers.cutoff_ns(now_ns);
        self.recent
            .retain(|_, payload| decoded(payload).created_at_ns > forgotten_ns);
    }

    /// Bytes that the bucket's answers take in the ledger's files.
    ///
    /// # Errors
    /// The files do not read.
    pub fn file_bytes(&self) -> Result<u64, LedgerError> {
        self.ledger.answers_bytes(self.bucket)
    }
}

fn decoded(payload: &[u8]) -> Answered {
    match Answered::decode(payload) {
        Some(entry) => entry,
        None => unreachable!("BUG: an answer encoded by this program does not read"),
    }
}
