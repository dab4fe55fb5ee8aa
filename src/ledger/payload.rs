//! The payload of an entry, without copying it.

use std::ops::{Deref, Range};
use std::sync::Arc;

use disk::Bytes;

/// Bytes of an entry, in memory or in a run file, which stays mapped as long as the payload exists.
#[derive(Clone)]
pub struct Payload(Storage);

#[derive(Clone)]
enum Storage {
    Memory(Arc<[u8]>, Range<usize>),
    Run(Arc<dyn Bytes>, Range<usize>),
}

impl Payload {
    pub(super) fn mapped(bytes: Arc<dyn Bytes>, range: Range<usize>) -> Self {
        Self(Storage::Run(bytes, range))
    }
}

impl From<Arc<[u8]>> for Payload {
    fn from(bytes: Arc<[u8]>) -> Self {
        let whole = 0..bytes.len();
        Self(Storage::Memory(bytes, whole))
    }
}

/// The range is within the bytes.
impl From<(Arc<[u8]>, Range<usize>)> for Payload {
    fn from((bytes, range): (Arc<[u8]>, Range<usize>)) -> Self {
        Self(Storage::Memory(bytes, range))
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            // The ranges were checked when the payload was created.
            Storage::Memory(bytes, range) => &bytes[range.clone()],
            Storage::Run(bytes, range) => &(**bytes).as_ref()[range.clone()],
        }
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}
