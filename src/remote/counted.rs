//! Counts what is read of an object store to take over a shard.

use std::ops::Range;
use std::sync::Arc;

use objects::{Bytes, Existing, Listed, ObjectError, ObjectStore};

use crate::extents::ExtentFigures;

/// An object store whose reads are counted.
pub(super) struct Counted<'a> {
    pub(super) store: &'a dyn ObjectStore,
    pub(super) figures: Arc<ExtentFigures>,
}

impl Counted<'_> {
    fn count(&self, read: Result<Bytes, ObjectError>) -> Result<Bytes, ObjectError> {
        self.figures
            .took_over(read.as_ref().map_or(0, |bytes| bytes.len() as u64));
        read
    }
}

impl ObjectStore for Counted<'_> {
    fn put(&self, name: &str, bytes: Bytes, existing: Existing) -> Result<(), ObjectError> {
        self.store.put(name, bytes, existing)
    }

    fn get(&self, name: &str, bytes_max: u64) -> Result<Bytes, ObjectError> {
        self.count(self.store.get(name, bytes_max))
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, ObjectError> {
        self.count(self.store.get_range(name, range))
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, ObjectError> {
        self.store.list(prefix)
    }

    fn delete(&self, names: &[String]) -> Result<(), ObjectError> {
        self.store.delete(names)
    }
}
