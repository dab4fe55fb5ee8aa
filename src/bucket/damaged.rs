//! Damaged blocks found while reading segments. Each is counted once and reported with its file, offset, bucket and
//! source, so that an operator can find it. Blocks of deleted segments are forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::{DamagedBlock, EngineError, source_of_ends};
use parking_lot::Mutex;

use crate::catalog::{Catalog, CatalogHandle};
use crate::error::ServiceError;
use crate::ids::ObjectId;

/// Maximum number of distinct blocks counted. If a disk fails altogether, the gauge stops there; each block is still
/// logged.
const DAMAGED_BLOCKS_MAX: usize = 10_000;

/// The damaged blocks found so far. Cheap to clone.
#[derive(Clone)]
pub struct DamagedBlocks(Arc<Inner>);

struct Inner {
    catalog: CatalogHandle,
    segment_path: Box<dyn Fn(u64) -> PathBuf + Send + Sync>,
    /// Offsets of damaged blocks, by segment.
    known: Mutex<BTreeMap<u64, BTreeSet<u64>>>,
    reads: AtomicU64,
}

/// A damaged block, described by file and ids.
#[derive(Debug)]
pub struct NamedDamage {
    path: PathBuf,
    offset: u64,
    bucket: Option<u32>,
    bucket_id: Option<ObjectId>,
    source_id: Option<ObjectId>,
    fault: EngineError,
}

impl DamagedBlocks {
    /// An empty set. `segment_path` returns the path of a segment, given its number.
    pub fn new(
        catalog: CatalogHandle,
        segment_path: impl Fn(u64) -> PathBuf + Send + Sync + 'static,
    ) -> Self {
        DamagedBlocks(Arc::new(Inner {
            catalog,
            segment_path: Box::new(segment_path),
            known: Mutex::default(),
            reads: AtomicU64::new(0),
        }))
    }

    /// Counts a block found by work other than a query, and logs it the first time.
    pub fn note(&self, block: &DamagedBlock) {
        let damage = self.name(block);
        if self.remember(block) {
            tracing::error!(%damage, "a block is damaged; `tidewatch check` lists all damaged blocks");
        }
    }

    /// Records a damaged block that can be skipped, so that the operation continues.
    ///
    /// # Errors
    /// Any error that is not a damaged block.
    pub fn pass_over(&self, error: EngineError) -> Result<(), EngineError> {
        match error {
            EngineError::Damaged(block) => {
                self.note(&block);
                Ok(())
            }
            other => Err(other),
        }
    }

    /// Adds file and ids to a query's error about a damaged block. The code that answers the query logs it.
    pub fn explain(&self, error: ServiceError) -> ServiceError {
        let cause = error.cause().and_then(|cause| cause.downcast_ref());
        let Some(EngineError::Damaged(block)) = cause else {
            return error;
        };
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        self.remember(block);
        ServiceError::internal(self.name(block))
    }

    /// Number of damaged blocks found in segments that are in use.
    pub fn count(&self) -> u64 {
        let known = self.0.known.lock();
        known.values().map(|offsets| offsets.len() as u64).sum()
    }

    /// Number of queries that met a damaged block since the start.
    pub fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// Forgets damaged blocks of segments that are no longer in use.
    pub fn retain(&self, in_use: impl Fn(u64) -> bool) {
        self.0.known.lock().retain(|segment, _| in_use(*segment));
    }

    /// Adds a block; returns whether it was new.
    fn remember(&self, block: &DamagedBlock) -> bool {
        let mut known = self.0.known.lock();
        let is_known = |offsets: &BTreeSet<u64>| offsets.contains(&block.offset);
        if known.get(&block.segment).is_some_and(is_known) {
            return false;
        }
        if known.values().map(BTreeSet::len).sum::<usize>() < DAMAGED_BLOCKS_MAX {
            known.entry(block.segment).or_default().insert(block.offset);
        }
        true
    }

    fn name(&self, block: &DamagedBlock) -> NamedDamage {
        let ids = |catalog: &Catalog| {
            let bucket = catalog.bucket_by_ordinal(block.bucket?)?.id;
            let mut sources = catalog.sources_of(bucket);
            let of_source = |ordinal: u32| source_of_ends(ordinal).unwrap_or(ordinal);
            let ordinal = block.source.map(of_source);
            let source = sources.find(|source| Some(source.ordinal) == ordinal);
            Some((bucket, source.map(|source| source.id)))
        };
        let ids = self.0.catalog.read(ids);
        NamedDamage {
            path: (self.0.segment_path)(block.segment),
            offset: block.offset,
            bucket: block.bucket,
            bucket_id: ids.map(|(bucket, _)| bucket),
            source_id: ids.and_then(|(_, source)| source),
            fault: block.fault.clone(),
        }
    }
}

impl fmt::Display for NamedDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged at offset {}", self.path.display(), self.offset)?;
        match (self.bucket_id, self.bucket) {
            (Some(id), _) => write!(f, ", in bucket {id}")?,
            (None, Some(ordinal)) => write!(f, ", in bucket number {ordinal}")?,
            (None, None) => {}
        }
        if let Some(id) = self.source_id {
            write!(f, ", data source {id}")?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl std::error::Error for NamedDamage {}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> DamagedBlocks {
        let path = |segment| PathBuf::from(format!("data/segments/{segment}.segment"));
        DamagedBlocks::new(CatalogHandle::new(Catalog::default()), path)
    }

    fn block(segment: u64, offset: u64) -> DamagedBlock {
        DamagedBlock {
            segment,
            offset,
            bucket: Some(3),
            source: Some(1),
            fault: EngineError::Corrupt {
                what: "block",
                offset: 5,
                expected: "a section",
            },
        }
    }

    fn failed(block: DamagedBlock) -> ServiceError {
        ServiceError::internal(EngineError::Damaged(Box::new(block)))
    }

    #[test]
    fn a_damaged_block_counts_once_and_each_query_of_it_counts() {
        let blocks = blocks();
        for _ in 0..2 {
            let named = blocks.explain(failed(block(7, 80)));
            let cause = named.cause().map(ToString::to_string).unwrap_or_default();
            assert_eq!(
                cause,
                "data/segments/7.segment is damaged at offset 80, in bucket number 3: corrupt block at offset 5: \
                 expected a section"
            );
        }
        blocks.note(&block(7, 81));
        blocks.note(&block(8, 80));
        assert_eq!((blocks.count(), blocks.reads()), (3, 2));
        blocks.retain(|segment| segment != 7);
        assert_eq!((blocks.count(), blocks.reads()), (1, 2));
    }

    #[test]
    fn other_errors_are_passed_on_unchanged() {
        let blocks = blocks();
        let error = blocks.explain(ServiceError::internal(EngineError::Stopped));
        assert_eq!(
            error.cause().map(ToString::to_string),
            Some(EngineError::Stopped.to_string())
        );
        assert_eq!((blocks.count(), blocks.reads()), (0, 0));
    }

    #[test]
    fn blocks_beyond_the_bound_are_logged_but_not_counted() {
        let blocks = blocks();
        for offset in 0..DAMAGED_BLOCKS_MAX as u64 + 5 {
            blocks.explain(failed(block(1, offset)));
        }
        assert_eq!(blocks.count(), DAMAGED_BLOCKS_MAX as u64);
        let named = blocks.explain(failed(block(2, 9)));
        let cause = named.cause().map(ToString::to_string).unwrap_or_default();
        assert!(cause.contains("segments/2.segment"), "{cause}");
    }
}
