//! Answers files, one per checkpoint and bucket, in which older programs stored the answers to idempotency keys. They
//! are only read, to move their entries to the ledger. Documented in src/journal/FORMAT.md, "Answers".

use std::sync::Arc;

use disk::Bytes;

use crate::journal::{AnswerView, IdempotencyView};
use crate::ledger::{self, take};

const MAGIC: &[u8; 8] = b"TWANSW01";
/// After the magic, the count and the newest creation time.
const CHECKSUM_AT: usize = 8 + 8 + 8;
const HEADER_BYTES: usize = CHECKSUM_AT + 4;
/// Key, body, creation time, status, offset and length of the answer.
const ENTRY_BYTES: usize = 16 + 16 + 8 + 2 + 8 + 4;

/// An answers file whose checksum has been verified.
pub struct AnswersFile {
    count: usize,
    bytes: Arc<dyn Bytes>,
}

impl AnswersFile {
    /// Opens a file; returns `None` if it is damaged or truncated.
    pub fn open(bytes: Arc<dyn Bytes>) -> Option<Self> {
        let all = (*bytes).as_ref();
        let rest = &mut all.strip_prefix(MAGIC)?;
        let count = usize::try_from(u64::from_le_bytes(take(rest)?)).ok()?;
        let _newest: [u8; 8] = take(rest)?;
        let stored = u32::from_le_bytes(take(rest)?);
        let whole = count
            .checked_mul(ENTRY_BYTES)
            .is_some_and(|entries| entries <= rest.len());
        if !whole || checksum(all) != stored {
            return None;
        }
        let file = AnswersFile { count, bytes };
        let reads = (0..count).all(|index| file.entry(index).is_some());
        reads.then_some(file)
    }

    /// The entries in the order of their keys, each with the time of its request in UTC nanoseconds.
    pub fn entries(&self) -> impl Iterator<Item = (IdempotencyView<'_>, i64)> {
        // All entries were read successfully when the file was opened.
        (0..self.count).filter_map(|index| self.entry(index))
    }

    fn entry(&self, index: usize) -> Option<(IdempotencyView<'_>, i64)> {
        let all = (*self.bytes).as_ref();
        let rest = &mut all.get(HEADER_BYTES + index * ENTRY_BYTES..)?;
        let (key, body) = (take(rest)?, take(rest)?);
        let created_at_ns = i64::from_le_bytes(take(rest)?);
        let status = u16::from_le_bytes(take(rest)?);
        let offset = usize::try_from(u64::from_le_bytes(take(rest)?)).ok()?;
        let len = u32::from_le_bytes(take(rest)?) as usize;
        let answer = AnswerView {
            status,
            body: all.get(offset..offset.checked_add(len)?)?,
        };
        Some((IdempotencyView { key, body, answer }, created_at_ns))
    }
}

/// The checksum of a whole file except the checksum itself.
fn checksum(file: &[u8]) -> u32 {
    ledger::checksum(&[&file[..CHECKSUM_AT], &file[HEADER_BYTES..]])
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    const NEWEST_NS: i64 = 1_700_000_000 * crate::clock::SECOND_NS;

    /// Key, body, creation, status and answer.
    type Written = ([u8; 16], [u8; 16], i64, u16, Vec<u8>);

    /// A file as older programs wrote it.
    fn encode(entries: &[Written]) -> Vec<u8> {
        let mut sorted: Vec<&Written> = entries.iter().collect();
        sorted.sort_unstable_by_key(|entry| entry.0);
        let newest_ns = sorted.iter().map(|entry| entry.2).max().unwrap_or(i64::MIN);
        let mut content = Vec::new();
        let mut offset = (HEADER_BYTES + sorted.len() * ENTRY_BYTES) as u64;
        for (key, body, created_at_ns, status, answer) in &sorted {
            content.extend_from_slice(key);
            content.extend_from_slice(body);
            content.extend_from_slice(&created_at_ns.to_le_bytes());
            content.extend_from_slice(&status.to_le_bytes());
            content.extend_from_slice(&offset.to_le_bytes());
            content.extend_from_slice(&(answer.len() as u32).to_le_bytes());
            offset += answer.len() as u64;
        }
        sorted
            .iter()
            .for_each(|entry| content.extend_from_slice(&entry.4));
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

    fn path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/answers-1.bin")
    }

    /// Moments on both sides of 1970, an empty answer, both statuses; not in order.
    fn entries() -> Vec<Written> {
        let entry = |number: u8| {
            let answer = format!("{{\"number\":{number}}}").repeat(usize::from(number) % 4);
            (
                [number.wrapping_mul(91); 16],
                [!number; 16],
                if number == 0 {
                    -1
                } else {
                    NEWEST_NS - i64::from(number)
                },
                if number.is_multiple_of(3) { 207 } else { 201 },
                answer.into_bytes(),
            )
        };
        (0..40).map(entry).collect()
    }

    fn read(file: &AnswersFile) -> Vec<Written> {
        let owned = |(view, created_at_ns): (IdempotencyView<'_>, i64)| {
            let AnswerView { status, body } = view.answer;
            (view.key, view.body, created_at_ns, status, body.to_vec())
        };
        file.entries().map(owned).collect()
    }

    /// `TIDEWATCH_WRITE_FIXTURES=1` wrote the file at the time when this was the present format.
    #[test]
    fn an_answers_file_of_version_1_is_read() {
        let present = encode(&entries());
        if std::env::var_os("TIDEWATCH_WRITE_FIXTURES").is_some() {
            std::fs::write(path(), &present).unwrap();
        }
        let bytes = std::fs::read(path()).unwrap();
        assert!(bytes == present, "the version has not changed");
        let mut expected = entries();
        expected.sort_unstable();
        assert_eq!(read(&AnswersFile::open(Arc::new(bytes)).unwrap()), expected);
    }

    #[test]
    fn a_damaged_file_is_not_opened() {
        let whole = encode(&entries()[..1]);
        assert!(AnswersFile::open(Arc::new(whole.clone())).is_some());
        for byte in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[byte] ^= 1;
            assert!(
                AnswersFile::open(Arc::new(flipped)).is_none(),
                "flipped at {byte}"
            );
        }
        assert!(AnswersFile::open(Arc::new(whole[..whole.len() - 1].to_vec())).is_none());
        assert!(AnswersFile::open(Arc::new(encode(&[]))).is_some());
    }
}
