//! Series without points are forgotten, so that the index grows with the series that have points, and not with all that
//! ever were.
//!
//! A checkpoint removes the entries of a forgotten series from the ledger. Points with the same labels make a new series:
//! an ordinal is never used again. Segments may contain expired blocks of the old one until they are merged, so its ordinal
//! is kept among those that a restart ignores.

use std::collections::HashMap;
use std::sync::Arc;

use engine::{SERIES_ORDINALS_FROM, SeriesRef, View};

use super::entries::EVERYWHERE;
use super::index::{NewSeries, SeriesIndex};
use super::{Digest, digest_of};
use crate::catalog::{SeriesEntry, Stream, series_owner, source_of_series_owner};
use crate::ledger::LedgerError;

/// Number of series of a bucket that are forgotten at once; more follow at the next checkpoint.
const FORGOTTEN_MAX: usize = 1 << 14;
/// The index is compared with the store when so many series have lost their points as this part of those that have some, so
/// that the cost of a comparison is shared by the series that it finds.
const REMOVED_SHARE: u64 = 8;

/// Series that are forgotten, but have entries until the next checkpoint.
#[derive(Default)]
pub(super) struct Forgotten {
    /// Their ordinals by digest.
    pub(super) ordinals: HashMap<Digest, u32, foldhash::fast::RandomState>,
    /// Changes whenever series are forgotten or their entries are removed.
    pub(super) changes: u64,
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
        let Forgotten {
            store, compared_at, ..
        } = state.forgotten;
        let has_saved = state.unsaved.saved_below > SERIES_ORDINALS_FROM;
        has_saved && compared_at.is_none_or(|at| store.removed - at > store.series / REMOVED_SHARE)
    }

    /// Series in the ledger that have no points in this view, up to a number.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn without_points(&self, view: &View) -> Result<Vec<NewSeries>, LedgerError> {
        let mut found = Vec::new();
        let owner = |source| series_owner(SeriesEntry::All, self.bucket, source);
        let owners = owner(0)..=owner(u32::MAX);
        'sources: for owner in self.ledger.owners_within(Stream::Series, owners)? {
            let source = source_of_series_owner(owner);
            let mut without = self.saved_of(SeriesEntry::All, source, EVERYWHERE, |_| true)?;
            if let Some(members) = view.members(source) {
                without -= &**members;
            }
            for ordinal in without {
                if found.len() == FORGOTTEN_MAX {
                    break 'sources;
                }
                let series = SeriesRef { ordinal, source };
                // Without labels its other entries cannot be found; they are lost.
                let Some(labels) = self.labels(series)? else {
                    continue;
                };
                let digest = digest_of(source, labels.as_bytes());
                if self.state.read().forgotten.ordinals.get(&digest) != Some(&ordinal) {
                    found.push(NewSeries { series, labels });
                }
            }
        }
        if found.len() < FORGOTTEN_MAX {
            let forgotten = &mut self.state.write().forgotten;
            forgotten.compared_at = Some(forgotten.store.removed);
        }
        Ok(found)
    }

    /// Forgets these series. None of them has points, and no ingest that was parsed before this call may be applied after
    /// it.
    pub fn forget(&self, series: Vec<NewSeries>) {
        if series.is_empty() {
            return;
        }
        let mut state = self.state.write();
        for it in &series {
            let digest = digest_of(it.series.source, it.labels.as_bytes());
            if state.known.get(&digest) == Some(&it.series.ordinal) {
                state.known.remove(&digest);
            }
            state.forgotten.ordinals.insert(digest, it.series.ordinal);
        }
        state.forgotten.changes += 1;
        state.unsaved.forgotten.push(series.into());
    }

    /// Passes the series whose blocks in segments are ignored to `each`.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn for_each_forgotten(&self, mut each: impl FnMut(u32)) -> Result<(), LedgerError> {
        let owner = |source| series_owner(SeriesEntry::Forgotten, self.bucket, source);
        let owners = owner(0)..=owner(u32::MAX);
        for owner in self.ledger.owners_within(Stream::Series, owners)? {
            let source = source_of_series_owner(owner);
            let forgotten = self.saved_of(SeriesEntry::Forgotten, source, EVERYWHERE, |_| true)?;
            forgotten.iter().for_each(&mut each);
        }
        Ok(())
    }
}

impl Forgotten {
    /// The entries of these series were removed.
    pub(super) fn saved(&mut self, written: &[Arc<[NewSeries]>]) {
        for it in written.iter().flat_map(|some| some.iter()) {
            let digest = digest_of(it.series.source, it.labels.as_bytes());
            if self.ordinals.get(&digest) == Some(&it.series.ordinal) {
                self.ordinals.remove(&digest);
            }
        }
        self.changes += u64::from(!written.is_empty());
    }
}
