//! The text of an array that is written beside others: row by row, or many rows at once.

use crate::error::ServiceError;
use crate::service::query::{Answer, Held};

/// Capacity reserved before each entry; most fit.
const ENTRY_BYTES: usize = 32;
/// So many short entries get their capacity at once.
const ENTRIES: usize = 64;
/// Capacity reserved for each row at first; most entries take as much or more.
const ROW_BYTES: usize = 4;

const NULL: &[u8] = b"null,";

/// The entries of an array.
pub(super) struct ArrayText<'b> {
    /// Each entry with a comma behind it.
    text: Vec<u8>,
    /// Number of entries.
    entries: usize,
    /// Number of rows of the answer.
    rows: usize,
    held: Held<'b>,
}

impl<'b> ArrayText<'b> {
    /// An array of an answer of this number of rows, without entries.
    pub(super) fn new(rows: usize, answer: &Answer<'b>) -> Self {
        ArrayText {
            text: Vec::new(),
            entries: 0,
            rows,
            held: answer.hold(),
        }
    }

    /// Whether it has no entries.
    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Writes the entry of a row. Rows come in ascending order; those without an entry get null.
    ///
    /// # Errors
    /// 400 if the query exceeds its memory limit.
    #[inline]
    pub(super) fn put(&mut self, row: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), ServiceError> {
        debug_assert!(row >= self.entries, "one entry for each row");
        if self.entries < row || self.text.is_empty() {
            self.fill(row)?;
        }
        self.held.reserve(&mut self.text, ENTRY_BYTES)?;
        write(&mut self.text);
        self.text.push(b',');
        // A larger entry has grown the text itself.
        self.held.set(self.text.capacity())?;
        self.entries = row + 1;
        Ok(())
    }

    /// The same for an entry of at most [`ENTRY_BYTES`], of which many follow each other.
    ///
    /// # Errors
    /// 400 if the query exceeds its memory limit.
    #[inline]
    pub(super) fn put_short(
        &mut self,
        row: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), ServiceError> {
        if self.entries < row || self.text.capacity() - self.text.len() <= ENTRY_BYTES {
            self.make_room(row)?;
        }
        write(&mut self.text);
        self.text.push(b',');
        self.entries = row + 1;
        Ok(())
    }

    /// Makes room for short entries from this row on.
    #[cold]
    fn make_room(&mut self, row: usize) -> Result<(), ServiceError> {
        self.fill(row)?;
        let entries = ENTRIES.min(self.rows.saturating_sub(row)).max(1);
        Ok(self.held.reserve(&mut self.text, entries * (ENTRY_BYTES + 1))?)
    }

    /// Adds null for each row before this one that has no entry.
    fn fill(&mut self, row: usize) -> Result<(), ServiceError> {
        if self.text.is_empty() {
            self.held.reserve(&mut self.text, self.rows * ROW_BYTES)?;
        }
        let missing = row.saturating_sub(self.entries);
        self.held.reserve(&mut self.text, missing * NULL.len())?;
        (0..missing).for_each(|_| self.text.extend_from_slice(NULL));
        self.entries += missing;
        Ok(())
    }

    /// The entries of all rows, separated by commas.
    ///
    /// # Errors
    /// 400 if the query exceeds its memory limit.
    pub(super) fn complete(&mut self) -> Result<&[u8], ServiceError> {
        self.fill(self.rows)?;
        Ok(self.text.strip_suffix(b",").unwrap_or(&self.text))
    }
}
