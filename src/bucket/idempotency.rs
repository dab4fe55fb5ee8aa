//! Idempotency keys of a bucket: which request a key stood for, and what was answered. For 24 hours a repeated key
//! is answered from here. Recent entries are in memory; a checkpoint writes them to an answers file, sorted by key,
//! which is searched in place, so that memory does not grow with a day's requests. Drawn in FORMAT.md, "Answers".

use std::collections::HashMap;
use std::sync::Arc;

use wal::disk::Bytes;

use crate::clock::DAY_NS;
use crate::journal::{Answer, IdempotencyView};

/// How long a key is remembered.
pub const REMEMBERED_NS: i64 = DAY_NS;

/// Digest of a key or a body.
pub type Digest = [u8; 16];

const MAGIC: &[u8; 8] = b"TWANSW01";
/// Behind magic, count and newest creation.
const CHECKSUM_AT: usize = 8 + 8 + 8;
const HEADER_BYTES: usize = CHECKSUM_AT + 4;
/// Key, body, creation, status, offset and length of the answer.
const ENTRY_BYTES: usize = 16 + 16 + 8 + 2 + 8 + 4;

/// What a key stood for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Digest of the request's body.
    pub body: Digest,
    /// When it was taken, UTC nanoseconds.
    pub created_at_ns: i64,
    /// What was answered.
    pub answer: Answer,
}

/// The keys of one bucket.
#[derive(Default)]
pub struct IdempotencyIndex {
    recent: HashMap<Digest, Arc<Entry>>,
    files: Vec<AnswersFile>,
}

impl IdempotencyIndex {
    /// Takes in the entry of an applied record.
    pub fn insert(&mut self, entry: &IdempotencyView<'_>, created_at_ns: i64) {
        let answer = entry.answer.to_owned();
        self.recent.insert(
            entry.key,
            Arc::new(Entry {
                body: entry.body,
                created_at_ns,
                answer,
            }),
        );
    }

    /// The entry of a key, unless it is forgotten by now.
    pub fn get(&self, key: &Digest, now_ns: i64) -> Option<Entry> {
        let forgotten_ns = now_ns.saturating_sub(REMEMBERED_NS);
        let recent = self.recent.get(key).map(|entry| Entry::clone(entry));
        // A key that was forgotten may have been used again: the newest file knows best.
        let found = recent.or_else(|| self.files.iter().rev().find_map(|file| file.get(key)));
        found.filter(|entry| entry.created_at_ns > forgotten_ns)
    }

    /// Entries that no file holds, for a checkpoint to write.
    pub fn unsaved(&self) -> Vec<(Digest, Arc<Entry>)> {
        self.recent
            .iter()
            .map(|(key, entry)| (*key, Arc::clone(entry)))
            .collect()
    }

    /// Whether a checkpoint has something to write.
    pub fn has_unsaved(&self) -> bool {
        !self.recent.is_empty()
    }

    /// The written entries are in `file` from now on.
    pub fn saved(&mut self, written: &[(Digest, Arc<Entry>)], file: AnswersFile) {
        for (key, entry) in written {
            if self
                .recent
                .get(key)
                .is_some_and(|recent| Arc::ptr_eq(recent, entry))
            {
                self.recent.remove(key);
            }
        }
        self.add_file(file);
    }

    /// Takes in a file at start.
    pub fn add_file(&mut self, file: AnswersFile) {
        self.files.push(file);
    }

    /// Lets go of files whose newest entry is forgotten, and of forgotten recent entries.
    pub fn forget(&mut self, now_ns: i64) {
        let forgotten_ns = now_ns.saturating_sub(REMEMBERED_NS);
        self.files.retain(|file| file.newest_ns > forgotten_ns);
        self.recent.retain(|_, entry| entry.created_at_ns > forgotten_ns);
    }

    /// Bytes of the files in use.
    pub fn file_bytes(&self) -> u64 {
        self.files
            .iter()
            .map(|file| (*file.bytes).as_ref().len() as u64)
            .sum()
    }

    /// Ids of the files in use.
    pub fn files(&self) -> Vec<u64> {
        self.files.iter().map(|file| file.id).collect()
    }
}

/// Of all of a file but the checksum itself.
fn checksum(file: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&file[..CHECKSUM_AT]);
    hasher.update(&file[HEADER_BYTES..]);
    hasher.finalize()
}

/// A sorted file of entries, searched in place.
pub struct AnswersFile {
    id: u64,
    newest_ns: i64,
    count: usize,
    bytes: Arc<dyn Bytes>,
}

impl AnswersFile {
    /// The bytes of a file with these entries.
    pub fn encode(entries: &[(Digest, Arc<Entry>)]) -> Vec<u8> {
        let mut sorted: Vec<&(Digest, Arc<Entry>)> = entries.iter().collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        let newest_ns = sorted
            .iter()
            .map(|(_, entry)| entry.created_at_ns)
            .max()
            .unwrap_or(i64::MIN);
        let mut content = Vec::new();
        let mut offset = (HEADER_BYTES + sorted.len() * ENTRY_BYTES) as u64;
        for (key, entry) in &sorted {
            content.extend_from_slice(key);
            content.extend_from_slice(&entry.body);
            content.extend_from_slice(&entry.created_at_ns.to_le_bytes());
            content.extend_from_slice(&entry.answer.status.to_le_bytes());
            content.extend_from_slice(&offset.to_le_bytes());
            content.extend_from_slice(&(entry.answer.body.len() as u32).to_le_bytes());
            offset += entry.answer.body.len() as u64;
        }
        sorted
            .iter()
            .for_each(|(_, entry)| content.extend_from_slice(&entry.answer.body));
        let mut file = Vec::with_capacity(HEADER_BYTES + content.len());
        file.extend_from_slice(MAGIC);
        file.extend_from_slice(&(sorted.len() as u64).to_le_bytes());
        file.extend_from_slice(&newest_ns.to_le_bytes());
        file.extend_from_slice(&[0; 4]);
        file.extend_from_slice(&content);
        let checksum = checksum(&file);
        file[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        file
    }

    /// Opens a file; `None` when it is not whole.
    pub fn open(id: u64, bytes: Arc<dyn Bytes>) -> Option<Self> {
        let all = (*bytes).as_ref();
        let rest = all.strip_prefix(MAGIC)?;
        let (count, rest) = rest.split_first_chunk()?;
        let (newest, rest) = rest.split_first_chunk()?;
        let (stored, content) = rest.split_first_chunk()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        let whole = count
            .checked_mul(ENTRY_BYTES)
            .is_some_and(|entries| entries <= content.len());
        if !whole || checksum(all) != u32::from_le_bytes(*stored) {
            return None;
        }
        Some(AnswersFile {
            id,
            newest_ns: i64::from_le_bytes(*newest),
            count,
            bytes,
        })
    }

    /// The file's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    fn entry(&self, index: usize) -> Option<&[u8; ENTRY_BYTES]> {
        (*self.bytes)
            .as_ref()
            .get(HEADER_BYTES + index * ENTRY_BYTES..)?
            .first_chunk()
    }

    fn get(&self, key: &Digest) -> Option<Entry> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            if self.entry(middle)?[..16] < key[..] {
                low = middle + 1
            } else {
                high = middle
            }
        }
        if low == self.count {
            return None;
        }
        let (found, rest) = self.entry(low)?.split_first_chunk::<16>()?;
        let (body, rest) = rest.split_first_chunk()?;
        let (created_at, rest) = rest.split_first_chunk()?;
        let (status, rest) = rest.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let (len, _) = rest.split_first_chunk()?;
        let offset = u64::from_le_bytes(*offset) as usize;
        let answer = (*self.bytes)
            .as_ref()
            .get(offset..offset.checked_add(u32::from_le_bytes(*len) as usize)?)?;
        (found == key).then(|| Entry {
            body: *body,
            created_at_ns: i64::from_le_bytes(*created_at),
            answer: Answer {
                status: u16::from_le_bytes(*status),
                body: answer.into(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::AnswerView;

    fn entry(key: u8, body: &'static [u8]) -> IdempotencyView<'static> {
        IdempotencyView {
            key: [key; 16],
            body: [9; 16],
            answer: AnswerView { status: 207, body },
        }
    }

    #[test]
    fn a_key_is_found_in_memory_and_in_its_file_until_a_day_has_passed() {
        let mut index = IdempotencyIndex::default();
        for key in 0..100 {
            index.insert(&entry(key, b"answer"), 1_000);
        }
        let in_memory = index.get(&[42; 16], 2_000).unwrap();
        let unsaved = index.unsaved();
        index.insert(&entry(200, b"later"), 3_000);
        index.saved(
            &unsaved,
            AnswersFile::open(1, Arc::new(AnswersFile::encode(&unsaved))).unwrap(),
        );
        assert_eq!(index.get(&[42; 16], 2_000).unwrap(), in_memory);
        assert_eq!(&*index.get(&[200; 16], 4_000).unwrap().answer.body, b"later");
        assert_eq!(index.get(&[101; 16], 2_000), None);
        assert_eq!(
            index.get(&[42; 16], 1_000 + REMEMBERED_NS),
            None,
            "forgotten after 24 hours"
        );
        index.forget(1_000 + REMEMBERED_NS);
        assert_eq!(index.files(), Vec::<u64>::new());
        assert!(index.has_unsaved());
    }

    #[test]
    fn a_damaged_file_is_not_opened() {
        let mut index = IdempotencyIndex::default();
        index.insert(&entry(1, b"answer"), 5);
        let whole = AnswersFile::encode(&index.unsaved());
        assert!(AnswersFile::open(1, Arc::new(whole.clone())).is_some());
        for byte in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[byte] ^= 1;
            assert!(
                AnswersFile::open(1, Arc::new(flipped)).is_none(),
                "flipped at {byte}"
            );
        }
        assert!(AnswersFile::open(1, Arc::new(whole[..whole.len() - 1].to_vec())).is_none());
    }
}
