//! What blocks are read from: a buffer, a mapped file, or a file of which only a part is on this machine.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::EngineError;

/// Immutable bytes with blocks in them. Shared between threads.
///
/// Everything that is a slice of bytes is content that is complete. Other content has its last bytes, and gets what is
/// before them when it is asked.
pub trait Content: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> usize;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The last bytes, which are here: all of them, or at least the footer of a segment.
    fn tail(&self) -> &[u8];

    /// The bytes of a range within the content. May wait for another machine, if the range does not lie in
    /// [`Content::tail`].
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] if the bytes cannot be had now.
    fn read(&self, range: Range<usize>) -> Result<Cow<'_, [u8]>, EngineError>;

    /// The bytes of a range once more, from where they came from, because those that `read` returned are damaged; `None`
    /// if they are not a copy of anything.
    ///
    /// # Errors
    /// As for [`Content::read`].
    fn read_again(&self, range: Range<usize>) -> Result<Option<Cow<'_, [u8]>>, EngineError> {
        let _ = range;
        Ok(None)
    }
}

/// Read-only bytes that contain blocks.
pub type SharedBytes = Arc<dyn Content>;

impl<T: AsRef<[u8]> + Send + Sync> Content for T {
    fn len(&self) -> usize {
        self.as_ref().len()
    }

    fn tail(&self) -> &[u8] {
        self.as_ref()
    }

    fn read(&self, range: Range<usize>) -> Result<Cow<'_, [u8]>, EngineError> {
        let start = range.start;
        let bytes = self.as_ref().get(range);
        let bytes = bytes.ok_or_else(|| EngineError::corrupt("file", start, "a range within the file"));
        bytes.map(Cow::Borrowed)
    }
}

/// The last bytes of a file, addressed by their offsets in the file.
#[derive(Clone, Copy)]
pub(crate) struct Tail<'a> {
    bytes: &'a [u8],
    /// Offset of the first of them.
    start: usize,
}

impl<'a> Tail<'a> {
    /// The last bytes of a file of this length.
    pub(crate) fn new(bytes: &'a [u8], len: usize) -> Self {
        Tail {
            start: len.saturating_sub(bytes.len()),
            bytes,
        }
    }

    pub(crate) fn of(content: &'a dyn Content) -> Self {
        Self::new(content.tail(), content.len())
    }

    /// Length of the file in bytes.
    pub(crate) fn len(self) -> usize {
        self.start + self.bytes.len()
    }

    /// Offset of the first byte that is here.
    pub(crate) fn start(self) -> usize {
        self.start
    }

    /// The bytes of a range of the file; `None` if they are not in it, or not here.
    pub(crate) fn get(self, range: Range<usize>) -> Option<&'a [u8]> {
        let relative = range.start.checked_sub(self.start)?..range.end.checked_sub(self.start)?;
        self.bytes.get(relative)
    }
}
