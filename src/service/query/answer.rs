//! The growing bytes of an answer, accounted to the query's memory budget.

use engine::query::{Budget, Held};

use crate::error::ServiceError;

/// A piece of an answer ends after the row that reaches this size.
pub const PIECE_BYTES: usize = 512 * 1_024;

/// Capacity reserved before each row; most rows fit.
const ROW_BYTES: usize = 512;

/// An answer, or a piece of one, that is being written.
pub struct Answer<'b> {
    bytes: Vec<u8>,
    held: Held<'b>,
    budget: &'b Budget,
}

impl<'b> Answer<'b> {
    pub(super) fn new(budget: &'b Budget) -> Self {
        Answer {
            bytes: Vec::new(),
            held: budget.hold(),
            budget,
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing is written yet.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether the piece is complete.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= PIECE_BYTES
    }

    /// Reserves capacity for this many more bytes.
    ///
    /// # Errors
    /// 400 if the query exceeds its memory limit.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), ServiceError> {
        Ok(self.held.reserve(&mut self.bytes, bytes)?)
    }

    /// Writes a row or another short part of the answer.
    ///
    /// # Errors
    /// 400 if the query exceeds its memory limit.
    pub fn write<R>(&mut self, part: impl FnOnce(&mut Vec<u8>) -> R) -> Result<R, ServiceError> {
        self.reserve(ROW_BYTES)?;
        let result = part(&mut self.bytes);
        // A larger part has grown the buffer itself; account for it.
        self.held.set(self.bytes.capacity())?;
        Ok(result)
    }

    /// A reservation for other memory that is needed to write the answer.
    pub fn hold(&self) -> Held<'b> {
        self.budget.hold()
    }

    /// Returns the body. Also reserves memory for its compressed copy, which takes at most about half as much.
    pub(super) fn finish(mut self) -> Result<(Vec<u8>, Held<'b>), ServiceError> {
        self.held.grow(self.bytes.len() / 2)?;
        Ok((self.bytes, self.held))
    }
}
