//! A segment whose blocks are in an object store, as the engine reads it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use disk::Bytes;
use engine::{Content, EngineError};

use super::EXTENT_BYTES;
use super::cache::{ExtentCache, Source};

/// Extents that are downloaded at most in one request.
pub(super) const LOAD_EXTENTS_MAX: u64 = 16;

/// An object whose last bytes are here. The others are read through a cache. Its extents leave the cache when this is
/// dropped.
pub struct RemoteFile {
    cache: ExtentCache,
    source: Source,
    tail: Arc<dyn Bytes>,
    tail_start: usize,
    /// Extent after those of the last request.
    behind: AtomicU64,
    /// Number of extents of the last request.
    last: AtomicU64,
}

impl RemoteFile {
    /// The object of this name and length, given its last bytes.
    pub fn new(cache: &ExtentCache, object: String, bytes: u64, tail: Arc<dyn Bytes>) -> Self {
        let tail_bytes = (*tail).as_ref().len() as u64;
        RemoteFile {
            source: cache.source(object, bytes),
            cache: cache.clone(),
            tail_start: bytes.saturating_sub(tail_bytes) as usize,
            tail,
            behind: AtomicU64::new(0),
            last: AtomicU64::new(0),
        }
    }

    fn through_cache(&self, range: Range<usize>, again: bool) -> Result<Cow<'_, [u8]>, EngineError> {
        if range.start > range.end || range.end > self.len() {
            let expected = "a range within the file";
            return Err(EngineError::Corrupt {
                what: "file",
                offset: range.start,
                expected,
            });
        }
        let ahead = |index, wanted| self.extents_ahead(index, wanted);
        let range = range.start as u64..range.end as u64;
        let read = self.cache.read(&self.source, range, again, &ahead);
        read.map(Cow::Owned).map_err(EngineError::Unavailable)
    }

    /// How many extents to download from this one on, of which so many are `wanted` now. A reader that goes on where the
    /// last download ended reads blocks in their order, and gets twice as many each time.
    fn extents_ahead(&self, index: u64, wanted: u64) -> u64 {
        let is_next = self.behind.load(Ordering::Relaxed) == index;
        let last = self.last.load(Ordering::Relaxed);
        let more = if is_next { 2 * last } else { 1 };
        // Those of the footer are not needed.
        let blocks_end = (self.tail_start as u64).div_ceil(EXTENT_BYTES);
        let more = more.min(blocks_end.saturating_sub(index));
        let count = more.max(wanted).min(LOAD_EXTENTS_MAX);
        self.last.store(count, Ordering::Relaxed);
        self.behind.store(index + count, Ordering::Relaxed);
        count
    }
}

impl Content for RemoteFile {
    fn len(&self) -> usize {
        self.source.bytes as usize
    }

    fn tail(&self) -> &[u8] {
        (*self.tail).as_ref()
    }

    fn read(&self, range: Range<usize>) -> Result<Cow<'_, [u8]>, EngineError> {
        let in_tail = range
            .start
            .checked_sub(self.tail_start)
            .and_then(|start| self.tail().get(start..range.end.checked_sub(self.tail_start)?));
        match in_tail {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => self.through_cache(range, false),
        }
    }

    fn read_again(&self, range: Range<usize>) -> Result<Option<Cow<'_, [u8]>>, EngineError> {
        self.through_cache(range, true).map(Some)
    }
}

impl Drop for RemoteFile {
    fn drop(&mut self) {
        self.cache.forget(&self.source);
    }
}
