//! The series of the sources that are split by dimensions: sets of ordinals, which readers share with the store. A clone
//! is a snapshot; while somebody holds one, a change copies the list of sources and the set that it touches.

use std::collections::HashMap;
use std::sync::Arc;

use roaring::RoaringBitmap;

/// The first ordinal of a series. Smaller ones are those of sources, whose points without dimensions form a series with
/// the source's own ordinal.
pub const SERIES_ORDINALS_FROM: u32 = 1 << 31;

/// A series of a source that is split by dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeriesRef {
    /// The series' ordinal, from [`SERIES_ORDINALS_FROM`] on.
    pub ordinal: u32,
    /// The source's ordinal.
    pub source: u32,
}

/// Sets of series by source.
#[derive(Clone, Default)]
pub(crate) struct Members {
    sets: Arc<HashMap<u32, Arc<RoaringBitmap>>>,
    /// Number of series in all sets.
    len: u64,
    /// Number of series that were removed so far.
    removed: u64,
}

impl Members {
    pub(crate) fn of(&self, source: u32) -> Option<&Arc<RoaringBitmap>> {
        self.sets.get(&source)
    }

    pub(crate) fn insert(&mut self, series: SeriesRef) {
        if self
            .of(series.source)
            .is_some_and(|set| set.contains(series.ordinal))
        {
            return;
        }
        let set = Arc::make_mut(&mut self.sets).entry(series.source).or_default();
        Arc::make_mut(set).insert(series.ordinal);
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, series: SeriesRef) {
        if !self
            .of(series.source)
            .is_some_and(|set| set.contains(series.ordinal))
        {
            return;
        }
        self.len -= 1;
        self.removed += 1;
        let sets = Arc::make_mut(&mut self.sets);
        if let Some(set) = sets.get_mut(&series.source) {
            let set = Arc::make_mut(set);
            set.remove(series.ordinal);
            if set.is_empty() {
                sets.remove(&series.source);
            }
        }
    }

    /// The sources that have series.
    pub(crate) fn sources(&self) -> impl Iterator<Item = u32> {
        self.sets.keys().copied()
    }

    /// Number of series of all sources.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Number of series that were removed so far.
    pub(crate) fn removed(&self) -> u64 {
        self.removed
    }
}
