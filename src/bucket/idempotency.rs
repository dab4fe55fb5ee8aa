//! Idempotency keys of a bucket: the request that a key was used for, and its answer. For 24 hours a repeated key is
//! answered from here. Recent entries are in memory; a checkpoint moves them to the ledger, so that memory does not
//! grow with a day's requests.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::{Stream, bucket_owner};
use crate::journal::IdempotencyView;
use crate::ledger::{Answered, Digest, Ledger, LedgerError, NewEntry, encode_answer};

/// The idempotency keys of one bucket.
pub struct IdempotencyIndex {
    bucket: u32,
    ledger: Ledger,
    /// Encoded as in the ledger, so that a checkpoint does not have to copy them.
    recent: HashMap<Digest, Arc<[u8]>>,
}

impl IdempotencyIndex {
    /// The keys of the bucket with this ordinal. The ledger has those that are no longer in the log.
    pub fn new(bucket: u32, ledger: Ledger) -> Self {
        IdempotencyIndex {
            bucket,
            ledger,
            recent: HashMap::new(),
        }
    }

    /// Adds the entry of an applied record.
    pub fn insert(&mut self, entry: &IdempotencyView<'_>, created_at_ns: i64) {
        self.recent.insert(entry.key, encode_answer(entry, created_at_ns));
    }

    /// The entry of a key, unless it has expired.
    ///
    /// # Errors
    /// The ledger's entry cannot be read, so it is unknown whether the key was used.
    pub fn get(&self, key: &Digest, now_ns: i64) -> Result<Option<Answered>, LedgerError> {
        // An expired key may have been used again, so recent entries take precedence.
        let found = match self.recent.get(key) {
            Some(payload) => Some(decoded(payload)),
            None => self.ledger.answer(self.bucket, key, now_ns)?,
        };
        let forgotten_ns = Stream::Answers.cutoff_ns(now_ns);
        Ok(found.filter(|entry| entry.created_at_ns > forgotten_ns))
    }

    /// Entries that the ledger does not have yet, for a checkpoint to write.
    pub fn unsaved(&self) -> Vec<NewEntry> {
        let entries = self.recent.iter();
        entries
            .map(|(key, payload)| NewEntry::answer(self.bucket, key, Arc::clone(payload)))
            .collect()
    }

    /// Drops exactly these entries from memory. Must be called after readers of the ledger can find them there, so that
    /// each entry can be found in one of the two at any time.
    pub fn saved(&mut self, written: &[NewEntry]) {
        for entry in written {
            let key = entry.answered_key();
            let is_it = |recent: &Arc<[u8]>| Arc::ptr_eq(recent, &entry.payload);
            if self.recent.get(&key).is_some_and(is_it) {
                self.recent.remove(&key);
            }
        }
    }

    /// Drops expired entries from memory. Those in the ledger's files expire there.
    pub fn forget(&mut self, now_ns: i64) {
        let forgotten_ns = Stream::Answers.cutoff_ns(now_ns);
        self.recent
            .retain(|_, payload| decoded(payload).created_at_ns > forgotten_ns);
    }

    /// Size of the bucket's answers in the ledger's files, in bytes.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn file_bytes(&self) -> Result<u64, LedgerError> {
        self.ledger.bytes_of(bucket_owner(self.bucket))
    }
}

fn decoded(payload: &[u8]) -> Answered {
    match Answered::decode(payload) {
        Some(entry) => entry,
        None => unreachable!("BUG: an answer encoded by this program cannot be decoded"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use disk::Disk;
    use disk::sim::SimDisk;

    use super::*;
    use crate::catalog::{FrozenTail, bucket_owner};
    use crate::clock::DAY_NS;
    use crate::journal::AnswerView;
    use crate::ledger::{Keep, LedgerFiles};

    const BUCKET: u32 = 7;

    fn entry(key: u8, body: &'static [u8]) -> IdempotencyView<'static> {
        IdempotencyView {
            key: [key; 16],
            body: [9; 16],
            answer: AnswerView { status: 207, body },
        }
    }

    fn ledger(disk: &SimDisk) -> LedgerFiles {
        let port: Arc<dyn Disk> = Arc::new(disk.clone());
        LedgerFiles::open(port, Path::new("data"), &[]).unwrap()
    }

    fn save(files: &mut LedgerFiles, written: &[NewEntry]) {
        let keep = Keep::new(HashSet::from([bucket_owner(BUCKET)]), 0);
        let runs = files
            .save(&FrozenTail::default(), written.iter().collect(), &keep)
            .unwrap();
        files.adopt(runs);
    }

    fn said(index: &IdempotencyIndex, key: u8, now_ns: i64) -> Option<String> {
        let found = index.get(&[key; 16], now_ns).unwrap()?;
        assert_eq!((found.body, found.answer.status), ([9; 16], 207));
        Some(String::from_utf8(found.answer.body.into()).unwrap())
    }

    #[test]
    fn a_key_is_found_in_memory_and_in_the_ledger_until_a_day_has_passed() {
        let mut files = ledger(&SimDisk::new(1));
        let mut index = IdempotencyIndex::new(BUCKET, files.ledger().clone());
        for key in 0..100 {
            index.insert(&entry(key, b"answer"), 1_000);
        }
        let in_memory = index.get(&[42; 16], 2_000).unwrap().unwrap();
        let written = index.unsaved();
        index.insert(&entry(200, b"later"), 3_000);
        index.insert(&entry(43, b"again"), 1_000 + DAY_NS);
        save(&mut files, &written);
        assert_eq!(said(&index, 42, 2_000).as_deref(), Some("answer"), "in both");
        index.saved(&written);
        assert_eq!(index.unsaved().len(), 2, "what came meanwhile stays");
        assert_eq!(index.get(&[42; 16], 2_000).unwrap().unwrap(), in_memory);
        assert_eq!(said(&index, 200, 4_000).as_deref(), Some("later"));
        assert_eq!(said(&index, 43, 1_000 + DAY_NS).as_deref(), Some("again"));
        assert_eq!(said(&index, 101, 2_000), None);
        assert_eq!(said(&index, 42, 999 + DAY_NS).as_deref(), Some("answer"));
        assert_eq!(said(&index, 42, 1_000 + DAY_NS), None, "forgotten after 24 hours");
        assert_eq!(
            IdempotencyIndex::new(BUCKET + 1, files.ledger().clone())
                .get(&[42; 16], 2_000)
                .unwrap(),
            None,
            "another bucket's"
        );
        index.forget(3_000 + DAY_NS);
        assert_eq!(index.unsaved().len(), 1);
        assert!(index.file_bytes().unwrap() > 100 * 40);
    }

    #[test]
    fn a_key_with_an_unreadable_answer_is_neither_known_nor_new() {
        let disk = SimDisk::new(1);
        let mut files = ledger(&disk);
        let mut index = IdempotencyIndex::new(BUCKET, files.ledger().clone());
        index.insert(&entry(1, b"answer"), 1_000);
        let written = index.unsaved();
        save(&mut files, &written);
        let path = disk.files().into_keys().next().unwrap();
        disk.flip_bit(&path, 20, 0);
        let port: Arc<dyn Disk> = Arc::new(disk);
        let rotten = LedgerFiles::open(port, Path::new("data"), &files.ledger().runs().ids()).unwrap();
        let index = IdempotencyIndex::new(BUCKET, rotten.ledger().clone());
        index.get(&[1; 16], 2_000).unwrap_err();
        assert_eq!(said(&index, 2, 2_000), None);
    }
}
