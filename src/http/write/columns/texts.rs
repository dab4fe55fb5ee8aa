//! The text of an array that is written beside others: row by row, or many rows at once.

use crate::error::ServiceError;
use crate::service::query::{Answer, Held};

/// Capacity that there is before each entry; most fit.
const ENTRY_BYTES: usize = 32;
/// So many entries show how much capacity the others need.
const ENTRIES: usize = 64;

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
        if self.entries < row {
            self.fill(row)?;
        }
        self.make_room()?;
        write(&mut self.text);
        self.text.push(b',');
        // A larger entry has grown the text itself.
        self.held.set(self.text.capacity())?;
        self.entries = row + 1;
        Ok(())
    }

    /// Writes the entries of several rows, each of at most [`ENTRY_BYTES`].
    ///
    /// # Errors
    /// 400 if the query exceeds its memory limit.
    #[inline]
    pub(super) fn put_short<T>(
        &mut self,
        entries: impl Iterator<Item = (usize, T)>,
        write: impl Fn(T, &mut Vec<u8>),
    ) -> Result<(), ServiceError> {
        for (row, entry) in entries {
            if self.entries < row {
                self.fill(row)?;
            }
            self.make_room()?;
            write(entry, &mut self.text);
            self.text.push(b',');
            self.entries = row + 1;
        }
        Ok(())
    }

    /// Makes room for another entry and the comma behind it. Once there are some, it is made for all that follow, if these
    /// are as long as those before on average; not for long texts, whose lengths differ.
    #[inline]
    fn make_room(&mut self) -> Result<(), ServiceError> {
        if self.text.capacity() - self.text.len() <= ENTRY_BYTES {
            let following = self.rows.saturating_sub(self.entries).max(1);
            let bytes = match self.entries {
                0..ENTRIES => following.min(ENTRIES) * (ENTRY_BYTES + 1),
                entries => following * (self.text.len() / entries + 1).min(ENTRY_BYTES),
            };
            self.held.reserve(&mut self.text, bytes.max(ENTRY_BYTES + 1))?;
        }
        Ok(())
    }

    /// Adds null for each row before this one that has no entry.
    fn fill(&mut self, row: usize) -> Result<(), ServiceError> {
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
