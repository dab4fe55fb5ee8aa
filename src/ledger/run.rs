//! A run file, mapped: what is checked when it is opened, and how entries are found in it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wal::disk::Bytes;

use super::error::LedgerError;
use super::format::{
    BLOCK_ENTRIES, BLOCK_ROW_BYTES, BlockRow, ENTRY_BYTES, Entry, FOOTER_BYTES, Footer, HEADER_BYTES,
    OWNER_ROW_BYTES, OwnerRow, Place, checksum, stream_of,
};
use super::payload::Payload;
use crate::catalog::Stream;
use crate::ids::ObjectId;

/// Of evenly spread places, the doubly logarithmic number of guesses finds one among more than any run has.
const GUESSES_MAX: u32 = 12;

/// An opened run. Holds nothing in memory but the footer: tables and entries are searched where they lie.
pub struct Run {
    id: u64,
    path: PathBuf,
    stream: Stream,
    footer: Footer,
    bytes: Arc<dyn Bytes>,
}

impl Run {
    /// Reads footer and tables.
    ///
    /// # Errors
    /// They are not what was written; entries and payloads are not read.
    pub fn open(id: u64, path: &Path, bytes: Arc<dyn Bytes>) -> Result<Self, LedgerError> {
        let all = (*bytes).as_ref();
        let damaged = |offset: usize, expected| LedgerError::Damaged {
            path: path.to_owned(),
            offset: offset as u64,
            expected,
        };
        let header = all.first_chunk::<HEADER_BYTES>();
        let header = header.ok_or_else(|| damaged(0, "a whole header"))?;
        let stream = stream_of(header).ok_or_else(|| damaged(0, "a run of this version"))?;
        let footer_at = all.len().saturating_sub(FOOTER_BYTES);
        let footer = all.last_chunk().and_then(|footer| Footer::decode(header, footer));
        let footer = footer.ok_or_else(|| damaged(footer_at, "a footer with its checksum"))?;
        let tables = usize::try_from(footer.tables_at)
            .ok()
            .and_then(|at| all.get(at..footer_at))
            .filter(|tables| Some(tables.len()) == footer.tables_bytes());
        let tables = tables.ok_or_else(|| damaged(footer_at, "tables as long as the footer says"))?;
        if checksum(&[tables]) != footer.tables_crc {
            return Err(damaged(footer.tables_at as usize, "tables with their checksum"));
        }
        Ok(Self {
            id,
            path: path.to_owned(),
            stream,
            footer,
            bytes,
        })
    }

    /// The file's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Which kind of entries it holds.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// How many, older versions in older runs not counted out.
    pub fn entry_count(&self) -> u64 {
        self.footer.entries
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.all().len() as u64
    }

    /// When its newest entry happened, UTC nanoseconds.
    pub fn newest_ns(&self) -> i64 {
        self.footer.newest_ns
    }

    pub(super) fn owners(&self) -> u64 {
        self.footer.owners
    }

    /// An owner by its place among them.
    pub(super) fn owner(&self, number: u64) -> Result<OwnerRow, LedgerError> {
        let table_at = self.footer.tables_at + self.footer.blocks() * BLOCK_ROW_BYTES as u64;
        let at = table_at + number * OWNER_ROW_BYTES as u64;
        self.part(at, OWNER_ROW_BYTES)
            .and_then(OwnerRow::decode)
            .ok_or_else(|| self.damaged(at, "an owner"))
    }

    /// Numbers of the entries of an owner.
    pub(super) fn entries_of(&self, owner: ObjectId) -> Result<Range<u64>, LedgerError> {
        let (mut low, mut high) = (0, self.owners());
        while low < high {
            let middle = low + (high - low) / 2;
            let row = self.owner(middle)?;
            match row.owner.cmp(&owner) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(row.first..self.end_of_owner(middle)?),
            }
        }
        Ok(0..0)
    }

    /// The number behind the last entry of an owner.
    pub(super) fn end_of_owner(&self, number: u64) -> Result<u64, LedgerError> {
        if number + 1 < self.owners() {
            Ok(self.owner(number + 1)?.first)
        } else {
            Ok(self.entry_count())
        }
    }

    /// Bytes that an owner's entries take: payloads, entries, and its row in the table.
    pub(super) fn bytes_of(&self, owner: ObjectId) -> Result<u64, LedgerError> {
        let numbers = self.entries_of(owner)?;
        if numbers.is_empty() {
            return Ok(0);
        }
        let mut entries = self.entries();
        let mut payloads_before = |number: u64| {
            let (at, entries_before) = if number < self.entry_count() {
                (
                    entries.get(number)?.offset,
                    number / BLOCK_ENTRIES * BLOCK_ENTRIES,
                )
            } else {
                (self.footer.tables_at, self.entry_count())
            };
            Ok::<_, LedgerError>(at.saturating_sub(entries_before * ENTRY_BYTES as u64))
        };
        let payloads = payloads_before(numbers.end)?.saturating_sub(payloads_before(numbers.start)?);
        let count = numbers.end - numbers.start;
        Ok(payloads + count * ENTRY_BYTES as u64 + OWNER_ROW_BYTES as u64)
    }

    pub(super) fn entries(&self) -> Entries<'_> {
        Entries {
            run: self,
            block: None,
        }
    }

    /// The entries of a block, checked.
    fn block(&self, number: u64) -> Result<Block<'_>, LedgerError> {
        let row_at = self.footer.tables_at + number * BLOCK_ROW_BYTES as u64;
        let row = self
            .part(row_at, BLOCK_ROW_BYTES)
            .and_then(BlockRow::decode)
            .ok_or_else(|| self.damaged(row_at, "a block"))?;
        let count = self.footer.entries.saturating_sub(number * BLOCK_ENTRIES);
        let bytes = count.min(BLOCK_ENTRIES) as usize * ENTRY_BYTES;
        let entries = self.part(row.entries_at, bytes);
        let entries = entries.filter(|entries| checksum(&[entries]) == row.crc);
        let entries = entries.ok_or_else(|| self.damaged(row.entries_at, "entries with their checksum"))?;
        Ok(Block {
            number,
            firsts: row.firsts,
            entries,
        })
    }

    /// The payload of an entry, as it is on the disk.
    pub(super) fn unchecked_payload(&self, entry: &Entry) -> Result<&[u8], LedgerError> {
        self.part(entry.offset, entry.len as usize)
            .ok_or_else(|| self.damaged(entry.offset, "a payload within the file"))
    }

    /// The payload of an entry.
    pub(super) fn payload(&self, entry: &Entry) -> Result<Payload, LedgerError> {
        if checksum(&[self.unchecked_payload(entry)?]) != entry.crc {
            return Err(self.damaged(entry.offset, "a payload with its checksum"));
        }
        let start = entry.offset as usize;
        Ok(Payload::mapped(
            Arc::clone(&self.bytes),
            start..start + entry.len as usize,
        ))
    }

    fn all(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    fn part(&self, at: u64, len: usize) -> Option<&[u8]> {
        let at = usize::try_from(at).ok()?;
        self.all().get(at..at.checked_add(len)?)
    }

    pub(super) fn damaged(&self, offset: u64, expected: &'static str) -> LedgerError {
        LedgerError::Damaged {
            path: self.path.clone(),
            offset,
            expected,
        }
    }
}

/// Entries of one block, checked.
#[derive(Clone, Copy)]
struct Block<'a> {
    number: u64,
    firsts: u64,
    entries: &'a [u8],
}

/// The entries of a run by number. Keeps the block it read last, as neighbours follow each other.
pub(super) struct Entries<'a> {
    run: &'a Run,
    block: Option<Block<'a>>,
}

impl<'a> Entries<'a> {
    pub fn run(&self) -> &'a Run {
        self.run
    }

    /// An entry by number.
    pub fn get(&mut self, number: u64) -> Result<Entry, LedgerError> {
        Ok(self.find(number)?.1)
    }

    /// How many entries that count stand before this number.
    pub fn firsts_before(&mut self, number: u64) -> Result<u64, LedgerError> {
        if number >= self.run.entry_count() {
            return Ok(self.run.footer.firsts);
        }
        let (block, entry) = self.find(number)?;
        Ok(block.firsts + u64::from(entry.firsts))
    }

    /// Number of the first entry in the range that stands at the place or behind it; the range's end when none does.
    /// All of the range belong to one owner. Looks at the logarithm of the range's length of entries.
    pub fn lower_bound(&mut self, range: Range<u64>, place: &Place) -> Result<u64, LedgerError> {
        let Range {
            start: mut low,
            end: mut high,
        } = range;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle)?.place() < *place {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// The entry of the range that stands at the place, where the moments of places are spread evenly over all there
    /// are, as digests are. Guesses by the distance to the ends, so that a few blocks are read and not a logarithm of
    /// them; where guesses do not help, the range is halved as elsewhere. All of the range belong to one owner.
    pub fn find_spread(&mut self, range: Range<u64>, place: &Place) -> Result<Option<Entry>, LedgerError> {
        let Range {
            start: mut low,
            end: mut high,
        } = range;
        let (mut low_ns, mut high_ns) = (i64::MIN, i64::MAX);
        let mut guesses = 0;
        while low < high {
            let middle = if guesses < GUESSES_MAX {
                guesses += 1;
                let before = u128::from(low_ns.abs_diff(place.0)) * u128::from(high - low);
                low + ((before / (u128::from(low_ns.abs_diff(high_ns)) + 1)) as u64).min(high - low - 1)
            } else {
                low + (high - low) / 2
            };
            let entry = self.get(middle)?;
            match entry.place().cmp(place) {
                std::cmp::Ordering::Less => (low, low_ns) = (middle + 1, entry.at_ns),
                std::cmp::Ordering::Greater => (high, high_ns) = (middle, entry.at_ns),
                std::cmp::Ordering::Equal => return Ok(Some(entry)),
            }
        }
        Ok(None)
    }

    fn find(&mut self, number: u64) -> Result<(Block<'a>, Entry), LedgerError> {
        let wanted = number / BLOCK_ENTRIES;
        let block = match self.block {
            Some(block) if block.number == wanted => block,
            _ => *self.block.insert(self.run.block(wanted)?),
        };
        let at = (number % BLOCK_ENTRIES) as usize * ENTRY_BYTES;
        let entry = block.entries.get(at..).and_then(Entry::decode);
        let entry = entry.ok_or_else(|| self.run.damaged(0, "an entry of that number"))?;
        Ok((block, entry))
    }
}
