//! The growing bytes of an answer, accounted to the query's memory budget.

use engine::EngineError;
use engine::query::{Budget, Held};

/// Capacity reserved before each row; most rows fit.
const ROW_BYTES: usize = 512;

/// An answer that is being written.
pub(super) struct Answer<'b> {
    pub(super) bytes: Vec<u8>,
    held: Held<'b>,
}

impl<'b> Answer<'b> {
    /// An empty answer with capacity for about `bytes`.
    pub(super) fn new(bytes: usize, budget: &'b Budget) -> Result<Self, EngineError> {
        let mut answer = Answer {
            bytes: Vec::new(),
            held: budget.hold(),
        };
        answer.held.reserve(&mut answer.bytes, bytes)?;
        Ok(answer)
    }

    /// Writes a row or the end of the answer.
    pub(super) fn write(&mut self, row: impl FnOnce(&mut Vec<u8>)) -> Result<(), EngineError> {
        self.held.reserve(&mut self.bytes, ROW_BYTES)?;
        row(&mut self.bytes);
        // A larger row has grown the buffer itself; account for it.
        self.held.set(self.bytes.capacity())
    }

    /// Returns the body. Also reserves memory for its compressed copy, which takes at most about half as much.
    pub(super) fn finish(mut self) -> Result<(Vec<u8>, Held<'b>), EngineError> {
        self.held.grow(self.bytes.len() / 2)?;
        Ok((self.bytes, self.held))
    }
}
