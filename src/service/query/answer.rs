//! An answer's bytes while they grow, counted against the query's budget.

use engine::EngineError;
use engine::query::{Budget, Held};

/// Room that is made before anything is written: most rows fit.
const ROW_BYTES: usize = 512;

/// A body on its way.
pub(super) struct Answer<'b> {
    pub(super) bytes: Vec<u8>,
    held: Held<'b>,
}

impl<'b> Answer<'b> {
    /// An empty one, with room for about so many bytes.
    pub(super) fn new(bytes: usize, budget: &'b Budget) -> Result<Self, EngineError> {
        let mut answer = Answer {
            bytes: Vec::new(),
            held: budget.hold(),
        };
        answer.held.reserve(&mut answer.bytes, bytes)?;
        Ok(answer)
    }

    /// Lets a row, or the end, be written.
    pub(super) fn write(&mut self, row: impl FnOnce(&mut Vec<u8>)) -> Result<(), EngineError> {
        self.held.reserve(&mut self.bytes, ROW_BYTES)?;
        row(&mut self.bytes);
        // A larger one has made its own room.
        self.held.set(self.bytes.capacity())
    }

    /// The body; from now on it has the memory of its packed copy to it, which is about half as large at most.
    pub(super) fn finish(mut self) -> Result<(Vec<u8>, Held<'b>), EngineError> {
        self.held.grow(self.bytes.len() / 2)?;
        Ok((self.bytes, self.held))
    }
}
