//! A memory-mapped run file: verification when it is opened, and lookup of entries.

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Bytes, Disk};

use super::error::LedgerError;
use super::format::{
    BLOCK_ENTRIES, BLOCK_ROW_BYTES, BlockRow, ENTRY_BYTES, Entry, FOOTER_BYTES, Footer, HEADER_BYTES,
    OWNER_ROW_BYTES, OwnerRow, Place, checksum, stream_of,
};
use super::payload::Payload;
use crate::catalog::Stream;
use crate::ids::ObjectId;
use crate::sealed_file::SealedDir;

/// The directory of the run files of a data directory.
pub fn runs_dir(data_dir: &Path) -> SealedDir {
    SealedDir::new(data_dir.join("ledger"), ".run")
}

/// For evenly distributed positions, interpolation search needs a doubly logarithmic number of guesses: this is enough
/// for more entries than any run has.
const GUESSES_MAX: u32 = 12;

/// An open run. Only the footer is in memory: tables and entries are searched in the mapped file.
pub struct Run {
    pub id: u64,
    path: PathBuf,
    /// The kind of entries it contains.
    pub stream: Stream,
    pub(super) footer: Footer,
    bytes: Arc<dyn Bytes>,
}

impl Run {
    /// Opens a file of the directory of runs.
    ///
    /// # Errors
    /// I/O errors, or damage.
    pub fn open_file(disk: &dyn Disk, dir: &SealedDir, id: u64) -> Result<Self, LedgerError> {
        let path = dir.file_path(id);
        let bytes = disk
            .map(&path)
            .map_err(|error| LedgerError::Io(path.clone(), error))?;
        Self::open(id, &path, bytes)
    }

    /// Reads and verifies footer and tables.
    ///
    /// # Errors
    /// They are damaged. Entries and payloads are not read.
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

    /// Size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.all().len() as u64
    }

    /// An owner by its index in the owner table.
    pub(super) fn owner(&self, number: u64) -> Result<OwnerRow, LedgerError> {
        let table_at = self.footer.tables_at + self.footer.blocks() * BLOCK_ROW_BYTES as u64;
        let at = table_at + number * OWNER_ROW_BYTES as u64;
        self.part(at, OWNER_ROW_BYTES)
            .and_then(OwnerRow::decode)
            .ok_or_else(|| self.damaged(at, "an owner"))
    }

    /// Numbers of an owner's entries.
    pub(super) fn entries_of(&self, owner: ObjectId) -> Result<Range<u64>, LedgerError> {
        let is_before = |number| Ok(self.owner(number)?.owner < owner);
        let number = partition_point(0..self.footer.owners, is_before)?;
        if number < self.footer.owners {
            let row = self.owner(number)?;
            if row.owner == owner {
                return Ok(row.first..self.end_of_owner(number)?);
            }
        }
        Ok(0..0)
    }

    /// Number after the last entry of an owner.
    pub(super) fn end_of_owner(&self, number: u64) -> Result<u64, LedgerError> {
        if number + 1 < self.footer.owners {
            Ok(self.owner(number + 1)?.first)
        } else {
            Ok(self.footer.entries)
        }
    }

    /// Adds the owners within a range.
    pub(super) fn add_owners_within(
        &self,
        range: &RangeInclusive<ObjectId>,
        owners: &mut Vec<ObjectId>,
    ) -> Result<(), LedgerError> {
        let is_before = |number| Ok(self.owner(number)?.owner < *range.start());
        let first = partition_point(0..self.footer.owners, is_before)?;
        for number in first..self.footer.owners {
            let owner = self.owner(number)?.owner;
            if owner > *range.end() {
                break;
            }
            owners.push(owner);
        }
        Ok(())
    }

    /// Size of an owner's entries in bytes: payloads, entries, and its row in the table.
    pub(super) fn bytes_of(&self, owner: ObjectId) -> Result<u64, LedgerError> {
        let numbers = self.entries_of(owner)?;
        if numbers.is_empty() {
            return Ok(0);
        }
        let mut entries = self.entries();
        let mut payloads_before = |number: u64| {
            let (at, entries_before) = if number < self.footer.entries {
                (
                    entries.get(number)?.offset,
                    number / BLOCK_ENTRIES * BLOCK_ENTRIES,
                )
            } else {
                (self.footer.tables_at, self.footer.entries)
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
            owner: ObjectId::from_bytes([0; 12]),
            owner_end: 0,
            next_owner: 0,
        }
    }

    /// The entries of a block, verified.
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

    /// The payload of an entry, without verifying its checksum.
    pub(super) fn unchecked_payload(&self, entry: &Entry) -> Result<&[u8], LedgerError> {
        self.part(entry.offset, entry.len as usize)
            .ok_or_else(|| self.damaged(entry.offset, "a payload within the file"))
    }

    /// The payload of an entry, verified.
    pub(super) fn payload(&self, entry: &Entry) -> Result<Payload, LedgerError> {
        if checksum(&[self.unchecked_payload(entry)?]) != entry.crc {
            return Err(self.damaged(entry.offset, "a payload with its checksum"));
        }
        let start = entry.offset as usize;
        let range = start..start + entry.len as usize;
        Ok(Payload::mapped(Arc::clone(&self.bytes), range))
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

/// The first number of the range that is not before what is searched; the end of the range if there is none.
fn partition_point(
    range: Range<u64>,
    mut is_before: impl FnMut(u64) -> Result<bool, LedgerError>,
) -> Result<u64, LedgerError> {
    let Range {
        start: mut low,
        end: mut high,
    } = range;
    while low < high {
        let middle = low + (high - low) / 2;
        match is_before(middle)? {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    Ok(low)
}

/// Entries of one block, verified.
#[derive(Clone, Copy)]
struct Block<'a> {
    number: u64,
    firsts: u64,
    entries: &'a [u8],
}

/// Access to a run's entries by number. Caches the last block read, because accesses are mostly sequential.
/// Likewise the last owner.
pub(super) struct Entries<'a> {
    pub run: &'a Run,
    block: Option<Block<'a>>,
    owner: ObjectId,
    /// Number after the last entry of this owner, and the next owner's index.
    owner_end: u64,
    next_owner: u64,
}

impl<'a> Entries<'a> {
    /// The owner of an entry by number. Numbers must not decrease from call to call.
    pub fn owner(&mut self, number: u64) -> Result<ObjectId, LedgerError> {
        while number >= self.owner_end {
            self.owner = self.run.owner(self.next_owner)?.owner;
            self.owner_end = self.run.end_of_owner(self.next_owner)?;
            self.next_owner += 1;
        }
        Ok(self.owner)
    }

    /// An entry by number.
    pub fn get(&mut self, number: u64) -> Result<Entry, LedgerError> {
        Ok(self.find(number)?.1)
    }

    /// Number of firsts (entries that count) before this number.
    pub fn firsts_before(&mut self, number: u64) -> Result<u64, LedgerError> {
        if number >= self.run.footer.entries {
            return Ok(self.run.footer.firsts);
        }
        let (block, entry) = self.find(number)?;
        Ok(block.firsts + u64::from(entry.firsts))
    }

    /// Number of the first entry in the range at or after the position; the end of the range if there is none. All
    /// entries of the range must belong to one owner. Binary search: reads a logarithmic number of entries.
    pub fn lower_bound(&mut self, range: Range<u64>, place: &Place) -> Result<u64, LedgerError> {
        partition_point(range, |number| Ok(self.get(number)?.place() < *place))
    }

    /// The entry of the range at the position, for positions whose time part is evenly distributed, as with digests.
    /// Interpolation search, so that a few blocks are read rather than a logarithmic number; after too many guesses it
    /// falls back to binary search. All entries of the range must belong to one owner.
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
