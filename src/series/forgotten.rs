//! Series without points are forgotten, so that the index grows with the series that have points, and not with all that
//! ever were.
//!
//! A checkpoint removes the entries of a forgotten series from the ledger. Points with the same labels make a new series:
//! an ordinal is never used again. Segments may contain expired blocks of the old one, so its ordinal stays among those
//! that a restart ignores.

use std::sync::Arc;

use engine::{SERIES_ORDINALS_FROM, SeriesRef, View};
use roaring::RoaringBitmap;

use super::digest_of;
use super::entries::{EVERYWHERE, all_place, chunk_of};
use super::index::{NewSeries, SeriesIndex};
use crate::catalog::SeriesEntry;
use crate::ledger::LedgerError;

/// Number of series that one checkpoint forgets in all buckets; more follow at the next one.
const FORGOTTEN_MAX: usize = 1 << 14;
/// Size of their labels in bytes.
const FORGOTTEN_BYTES_MAX: usize = 8 << 20;
/// The index is compared with the store once more than one eighth as many series have lost their points as have some. The
/// cost of a comparison is then shared by the series that it finds.
const REMOVED_SHARE: u64 = 8;

/// How many series may be forgotten.
#[derive(Debug)]
pub struct ForgettingBudget {
    series: usize,
    bytes: usize,
}

impl Default for ForgettingBudget {
    fn default() -> Self {
        Self {
            series: FORGOTTEN_MAX,
            bytes: FORGOTTEN_BYTES_MAX,
        }
    }
}

impl ForgettingBudget {
    /// A budget of so many series.
    #[cfg(test)]
    pub(super) fn of(series: usize) -> Self {
        Self {
            series,
            ..Self::default()
        }
    }

    fn takes(&mut self, series: &NewSeries) -> bool {
        let bytes = series.labels.as_bytes().len();
        let takes = self.series > 0 && bytes <= self.bytes;
        if takes {
            self.series -= 1;
            self.bytes -= bytes;
        }
        takes
    }
}

/// Held by whoever reads a view of the bucket with the index: labels of series in the view stay known.
#[derive(Clone, Debug, Default)]
pub struct IndexReader(Arc<()>);

/// Series that were forgotten, and those that may be.
#[derive(Default)]
pub(super) struct Forgotten {
    /// Those that were forgotten since the start: the ledger may have entries of them until the next checkpoint.
    pub(super) ordinals: RoaringBitmap,
    /// Series without points, and the readers whose views may have points of them.
    candidates: Option<(IndexReader, Vec<NewSeries>)>,
    /// Shared by the readers since the last comparison.
    reader: IndexReader,
    store: StoreCounts,
    /// The number of removed series when the index was last compared; `None` if it was not since the start.
    compared_at: Option<u64>,
}

/// Numbers of series in the bucket's store.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreCounts {
    /// Those that have points.
    pub series: u64,
    /// Those that have lost their points since the start.
    pub removed: u64,
}

impl SeriesIndex {
    /// Notes the numbers of series in the store.
    pub fn note_counts(&self, counts: StoreCounts) {
        self.state.write().forgotten.store = counts;
    }

    /// Whether enough series may be without points to look for them.
    pub fn has_many_without_points(&self) -> bool {
        let state = self.state.read();
        let forgotten = &state.forgotten;
        let (series, removed) = (forgotten.store.series, forgotten.store.removed);
        let are_many = || {
            forgotten
                .compared_at
                .is_none_or(|at| removed - at > series / REMOVED_SHARE)
        };
        // While a checkpoint fails, no more are added to what the next one has to write.
        state.unsaved.saved_below > SERIES_ORDINALS_FROM
            && state.unsaved.forgotten.is_empty()
            && (forgotten.candidates.is_some() || are_many())
    }

    /// Registers a reader. Its view is taken afterwards.
    pub fn reader(&self) -> IndexReader {
        self.state.read().forgotten.reader.clone()
    }

    /// Looks for series in the ledger that have no points in this view, as far as the budget reaches. `is_split`: whether a
    /// source exists and is split by dimensions; the entries of others are dropped by merges.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn find_without_points(
        &self,
        view: View,
        is_split: impl Fn(u32) -> bool,
        budget: &mut ForgettingBudget,
    ) -> Result<(), LedgerError> {
        if let Some((_, candidates)) = &mut self.state.write().forgotten.candidates {
            // Points may have come while they wait for readers, of whom later ones may see these.
            let has_points = |SeriesRef { ordinal, source }| {
                view.members(source)
                    .is_some_and(|members| members.contains(ordinal))
            };
            candidates.retain(|it| !has_points(it.series));
            return Ok(());
        }
        if budget.series == 0 {
            return Ok(());
        }
        let removed = self.state.read().forgotten.store.removed;
        let mut without = Vec::new();
        self.for_each_source(SeriesEntry::All, |source| {
            if is_split(source) {
                let mut saved = self.saved_of(SeriesEntry::All, source, EVERYWHERE, |_| true)?;
                if let Some(members) = view.members(source) {
                    saved -= &**members;
                }
                saved -= &self.state.read().forgotten.ordinals;
                without.push((source, saved));
            }
            Ok(())
        })?;
        // While somebody has a view, the store copies what it changes.
        drop(view);
        let (mut found, mut has_all) = (Vec::new(), true);
        'sources: for (source, without) in without {
            for ordinal in without {
                let series = SeriesRef { ordinal, source };
                // Without labels its other entries cannot be found; they are lost.
                let Some(labels) = self.labels(series)? else {
                    continue;
                };
                let series = NewSeries { series, labels };
                if !budget.takes(&series) {
                    has_all = false;
                    break 'sources;
                }
                found.push(series);
            }
        }
        let forgotten = &mut self.state.write().forgotten;
        if has_all {
            forgotten.compared_at = Some(removed);
        }
        if !found.is_empty() {
            let readers = std::mem::take(&mut forgotten.reader);
            forgotten.candidates = Some((readers, found));
        }
        Ok(())
    }

    /// Takes the series that were found without points, unless there are readers from before.
    pub fn take_without_points(&self) -> Vec<NewSeries> {
        let candidates = &mut self.state.write().forgotten.candidates;
        let unread = candidates.take_if(|(readers, _)| Arc::strong_count(&readers.0) == 1);
        unread.map(|(_, series)| series).unwrap_or_default()
    }

    /// Forgets these series. None of them has points, and no ingest that was parsed before this call may be applied after
    /// it.
    pub fn forget(&self, series: Vec<NewSeries>) {
        if series.is_empty() {
            return;
        }
        let digests = series
            .iter()
            .map(|it| digest_of(it.series.source, it.labels.as_bytes()));
        let digests: Vec<_> = digests.collect();
        let mut state = self.state.write();
        self.change_version();
        for (it, digest) in series.iter().zip(&digests) {
            if state.known.get(digest) == Some(&it.series.ordinal) {
                state.known.remove(digest);
            }
            state.forgotten.ordinals.insert(it.series.ordinal);
        }
        state.unsaved.forgotten.push(series.into());
    }

    /// Forgets all series of a source that has no points and gets none meanwhile, because its dimensions change. While it
    /// has no dimensions, merges drop the entries of its series.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn forget_source(&self, source: u32) -> Result<(), LedgerError> {
        let series = self.all_of(source)?;
        let mut state = self.state.write();
        self.change_version();
        state.known.retain(|_, ordinal| !series.contains(*ordinal));
        state.forgotten.ordinals |= series;
        Ok(())
    }

    /// Whether the ledger says of a series that it was forgotten.
    pub(super) fn is_forgotten(&self, source: u32, ordinal: u32) -> Result<bool, LedgerError> {
        let place = all_place(chunk_of(ordinal));
        let forgotten = self.saved_of(SeriesEntry::Forgotten, source, place..=place, |_| true)?;
        Ok(forgotten.contains(ordinal))
    }

    /// Passes the series whose blocks in segments are ignored to `each`.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn for_each_forgotten(&self, mut each: impl FnMut(u32)) -> Result<(), LedgerError> {
        self.for_each_source(SeriesEntry::Forgotten, |source| {
            let forgotten = self.saved_of(SeriesEntry::Forgotten, source, EVERYWHERE, |_| true)?;
            forgotten.iter().for_each(&mut each);
            Ok(())
        })
    }
}
