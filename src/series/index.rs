//! The index of a bucket's series, shared by the bucket's actor, which adds series, and by everybody who looks one up.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::{SERIES_ORDINALS_FROM, SeriesRef};
use parking_lot::RwLock;
use roaring::RoaringBitmap;

use super::entries::{self, EVERYWHERE, LABELS_FORMAT, digest_place, labels_place, ordinal_of};
use super::forgotten::Forgotten;
use super::labels::{Labels, digest_of};
use super::postings::{Posting, postings};
use super::values::{DimensionValues, SINGLE_SERIES_MAX};
use super::{Digest, Matcher};
use crate::catalog::{SeriesEntry, Stream, series_owner, source_of_series_owner};
use crate::ledger::{Ledger, LedgerError};

/// A series with its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSeries {
    pub series: SeriesRef,
    pub labels: Labels,
}

/// What has changed since the last checkpoint.
#[derive(Clone, Debug, Default)]
pub struct Unsaved {
    /// The new series, as they were added.
    pub(super) series: Vec<Arc<[NewSeries]>>,
    /// The series that were forgotten, as they were.
    pub(super) forgotten: Vec<Arc<[NewSeries]>>,
    /// The ordinal that the next series gets.
    pub(super) next_ordinal: u32,
    /// Series from this ordinal on are in no file of the ledger.
    pub(super) saved_below: u32,
}

impl Unsaved {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty() && self.forgotten.is_empty() && self.next_ordinal == self.saved_below
    }
}

/// The series of a bucket.
pub struct SeriesIndex {
    pub(super) bucket: u32,
    pub(super) ledger: Ledger,
    pub(super) state: RwLock<State>,
    version: AtomicU64,
}

/// A version that no index of this process has had.
fn next_version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Number of series whose ordinals are kept in memory; more only if no file contains them yet.
const KNOWN_MAX: usize = 1 << 20;

#[derive(Default)]
pub(super) struct State {
    /// Series since the last checkpoint, by source.
    recent: HashMap<u32, Recent>,
    /// Ordinals by digest: recent series, and others that were looked up. Digests are spread, so the hash is cheap.
    pub(super) known: HashMap<Digest, u32, foldhash::fast::RandomState>,
    pub(super) forgotten: Forgotten,
    pub(super) unsaved: Unsaved,
    /// Memory of the recent series.
    recent_bytes: usize,
    /// By source, the dimension with most values, and the ordinal that the next series had when it was found.
    pub(super) fullest: HashMap<u32, (u32, Option<DimensionValues>)>,
}

/// Series of a source since the last checkpoint.
#[derive(Default)]
struct Recent {
    /// As they were added.
    added: Vec<Arc<[NewSeries]>>,
    labels: HashMap<u32, Labels, foldhash::fast::RandomState>,
}

impl Recent {
    fn add(&mut self, added: Arc<[NewSeries]>) {
        let labels = added.iter().map(|it| (it.series.ordinal, it.labels.clone()));
        self.labels.extend(labels);
        self.added.push(added);
    }
}

impl State {
    fn know(&mut self, digest: Digest, ordinal: u32) {
        if self.known.len() >= KNOWN_MAX {
            let recent = self.recent.values().flat_map(|recent| recent.labels.keys());
            let recent: HashSet<u32> = recent.copied().collect();
            self.known.retain(|_, ordinal| recent.contains(ordinal));
        }
        self.known.insert(digest, ordinal);
    }
}

fn bytes_of(series: &[NewSeries]) -> usize {
    let bytes = series.iter().map(|it| it.labels.as_bytes().len());
    bytes.sum::<usize>() + series.len() * SERIES_BYTES
}

/// Approximate memory of a recent series, in addition to its labels.
const SERIES_BYTES: usize = 2 * size_of::<NewSeries>() + 3 * size_of::<Digest>();

impl SeriesIndex {
    /// The series of the bucket with this ordinal, as the ledger has them.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn open(bucket: u32, ledger: Ledger) -> Result<Self, LedgerError> {
        let next_ordinal = entries::next_ordinal(bucket, &ledger)?.unwrap_or(SERIES_ORDINALS_FROM);
        let unsaved = Unsaved {
            next_ordinal,
            saved_below: next_ordinal,
            ..Unsaved::default()
        };
        let state = RwLock::new(State {
            unsaved,
            ..State::default()
        });
        Ok(SeriesIndex {
            bucket,
            ledger,
            state,
            version: AtomicU64::new(next_version()),
        })
    }

    /// Another one whenever series are forgotten, and for each index: while it stays, the series that were found are there
    /// with these ordinals.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Called with the state locked, by whoever forgets series.
    pub(super) fn change_version(&self) {
        self.version.store(next_version(), Ordering::Release);
    }

    /// Passes all series in the ledger to `each`, by source.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn for_each_saved(&self, mut each: impl FnMut(SeriesRef)) -> Result<(), LedgerError> {
        self.for_each_source(SeriesEntry::All, |source| {
            for ordinal in self.saved_of(SeriesEntry::All, source, EVERYWHERE, |_| true)? {
                each(SeriesRef { ordinal, source });
            }
            Ok(())
        })
    }

    /// Passes the sources that have such entries in the ledger to `each`, ascending.
    pub(super) fn for_each_source(
        &self,
        entry: SeriesEntry,
        mut each: impl FnMut(u32) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        let owner = |source| series_owner(entry, self.bucket, source);
        let owners = owner(0)..=owner(u32::MAX);
        let owners = self.ledger.owners_within(Stream::Series, owners)?;
        owners
            .into_iter()
            .try_for_each(|owner| each(source_of_series_owner(owner)))
    }

    /// Passes all series in the ledger to `each`, found by the entries of their digests: if entries that list the series
    /// of a source are lost, they are still found here. Reads an entry for each series.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn for_each_digest(&self, mut each: impl FnMut(SeriesRef)) -> Result<(), LedgerError> {
        self.for_each_source(SeriesEntry::Digest, |source| {
            let owner = series_owner(SeriesEntry::Digest, self.bucket, source);
            self.ledger
                .for_each_within(Stream::Series, owner, EVERYWHERE, |_, payload| {
                    let ordinal = ordinal_of(&payload).ok_or(LedgerError::Series(self.bucket))?;
                    each(SeriesRef { ordinal, source });
                    Ok(true)
                })
        })
    }

    /// The ordinal of a source's series with these labels; `None` if there is none yet.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn find(&self, source: u32, digest: &Digest) -> Result<Option<u32>, LedgerError> {
        if let Some(ordinal) = self.state.read().known.get(digest) {
            return Ok(Some(*ordinal));
        }
        let owner = series_owner(SeriesEntry::Digest, self.bucket, source);
        let payload = self
            .ledger
            .newest(Stream::Series, owner, digest_place(digest), true)?;
        let Some(ordinal) = payload.and_then(|payload| ordinal_of(&payload)) else {
            return Ok(None);
        };
        // A repair may have lost that the digest's entry was removed, and restarts ignore blocks of such a series.
        if self.is_forgotten(source, ordinal)? {
            return Ok(None);
        }
        let mut state = self.state.write();
        // The entry may have been read before the series was forgotten.
        if state.forgotten.ordinals.contains(ordinal) {
            return Ok(None);
        }
        state.know(*digest, ordinal);
        Ok(Some(ordinal))
    }

    /// Never assigns ordinals up to this one: points of such series exist.
    pub fn reserve(&self, greatest: u32) {
        let unsaved = &mut self.state.write().unsaved;
        unsaved.next_ordinal = unsaved.next_ordinal.max(greatest.saturating_add(1));
    }

    /// Takes an ordinal for a new series; `None` when all are used. It is used once the series is [added](Self::add).
    pub fn take_ordinal(&self) -> Option<u32> {
        let unsaved = &mut self.state.write().unsaved;
        let ordinal = unsaved.next_ordinal;
        unsaved.next_ordinal = ordinal.checked_add(1)?;
        Some(ordinal)
    }

    /// Adds the series of an applied record.
    pub fn add(&self, new: &[NewSeries]) {
        let mut state = self.state.write();
        let mut by_source: HashMap<u32, Vec<NewSeries>> = HashMap::new();
        for it in new {
            let digest = digest_of(it.series.source, it.labels.as_bytes());
            let unsaved = &mut state.unsaved;
            unsaved.next_ordinal = unsaved.next_ordinal.max(it.series.ordinal.saturating_add(1));
            // A series that was forgotten comes back with another ordinal, also when a log is replayed that has both.
            if state.known.get(&digest) != Some(&it.series.ordinal) {
                state.know(digest, it.series.ordinal);
                by_source.entry(it.series.source).or_default().push(it.clone());
            }
        }
        for (source, added) in by_source {
            let added: Arc<[NewSeries]> = added.into();
            state.recent_bytes += bytes_of(&added);
            state.unsaved.series.push(Arc::clone(&added));
            state.recent.entry(source).or_default().add(added);
        }
    }

    /// What a checkpoint has to write.
    pub fn unsaved(&self) -> Unsaved {
        self.state.read().unsaved.clone()
    }

    /// Drops from memory what a checkpoint has written. Called after readers of the ledger can find it there, so that
    /// each series can be found in one of the two at any time.
    pub fn saved(&self, written: &Unsaved) {
        let mut state = self.state.write();
        let is_written = |some: &Arc<[NewSeries]>| written.series.iter().any(|it| Arc::ptr_eq(it, some));
        let State {
            recent,
            unsaved,
            recent_bytes,
            ..
        } = &mut *state;
        unsaved.forgotten.drain(..written.forgotten.len());
        // Written series are the first ones, because series are only ever added at the end.
        let count = unsaved.series.iter().take_while(|some| is_written(some)).count();
        unsaved.series.drain(..count);
        unsaved.saved_below = unsaved.saved_below.max(written.next_ordinal);
        recent.clear();
        *recent_bytes = 0;
        for some in &unsaved.series {
            *recent_bytes += bytes_of(some);
            // All of one source.
            if let Some(first) = some.first() {
                recent
                    .entry(first.series.source)
                    .or_default()
                    .add(Arc::clone(some));
            }
        }
    }

    /// Memory of the series that no file contains yet, in bytes.
    pub fn unsaved_bytes(&self) -> usize {
        self.state.read().recent_bytes
    }

    /// The labels of a series; `None` if it is not known.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn labels(&self, series: SeriesRef) -> Result<Option<Labels>, LedgerError> {
        let of_recent = |state: &State| {
            state
                .recent
                .get(&series.source)?
                .labels
                .get(&series.ordinal)
                .cloned()
        };
        if let Some(found) = of_recent(&self.state.read()) {
            return Ok(Some(found));
        }
        let owner = series_owner(SeriesEntry::Labels, self.bucket, series.source);
        let place = labels_place(series.ordinal);
        let payload = self.ledger.newest(Stream::Series, owner, place, true)?;
        let bytes = payload.as_ref().and_then(|payload| payload.split_first());
        Ok(bytes.and_then(|(format, labels)| match *format {
            LABELS_FORMAT => Labels::decode(labels),
            _ => None,
        }))
    }

    /// The number of series of a source since the last checkpoint. They are looked through one by one.
    pub fn recent_len(&self, source: u32) -> usize {
        let state = self.state.read();
        state.recent.get(&source).map_or(0, |recent| recent.labels.len())
    }

    /// The series since the last checkpoint.
    pub(super) fn recent(&self, source: u32) -> Vec<Arc<[NewSeries]>> {
        let state = self.state.read();
        state
            .recent
            .get(&source)
            .map(|recent| recent.added.clone())
            .unwrap_or_default()
    }

    /// All series of a source in the index.
    pub(super) fn all_of(&self, source: u32) -> Result<RoaringBitmap, LedgerError> {
        let mut all = self.saved_of(SeriesEntry::All, source, EVERYWHERE, |_| true)?;
        let recent = self.recent(source);
        let recent = recent.iter().flat_map(|some| some.iter());
        all.extend(recent.map(|it| it.series.ordinal));
        Ok(all)
    }

    /// The series of entries of the ledger, as far as `wanted` by their value.
    pub(super) fn saved_of(
        &self,
        entry: SeriesEntry,
        source: u32,
        range: std::ops::RangeInclusive<entries::Place>,
        mut wanted: impl FnMut(&Posting<'_>) -> bool,
    ) -> Result<RoaringBitmap, LedgerError> {
        let mut found = RoaringBitmap::new();
        self.for_each_posting(entry, source, range, |posting| {
            if wanted(&posting) {
                posting.series.add_to(&mut found);
            }
            Ok::<_, LedgerError>(true)
        })?;
        Ok(found)
    }

    /// Passes the postings of entries of the ledger to `each`. Ends early if it returns false.
    pub(super) fn for_each_posting<E: From<LedgerError>>(
        &self,
        entry: SeriesEntry,
        source: u32,
        range: std::ops::RangeInclusive<entries::Place>,
        mut each: impl FnMut(Posting<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let owner = series_owner(entry, self.bucket, source);
        self.ledger
            .for_each_within(Stream::Series, owner, range, |_, payload| {
                for posting in postings(&payload) {
                    if !each(posting.ok_or(LedgerError::Series(self.bucket))?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            })
    }

    /// Whether a series of a source has a label of this name and passes `is_wanted`. Reads no more than it takes to find
    /// one.
    ///
    /// # Errors
    /// The ledger cannot be read, or an error of `is_wanted`.
    pub fn any_having<E: From<LedgerError>>(
        &self,
        source: u32,
        name: &str,
        mut is_wanted: impl FnMut(u32) -> Result<bool, E>,
    ) -> Result<bool, E> {
        for it in self.recent(source).iter().flat_map(|some| some.iter()) {
            if it.labels.get(name).is_some() && is_wanted(it.series.ordinal)? {
                return Ok(true);
            }
        }
        let mut found = false;
        self.for_each_posting(SeriesEntry::Name, source, entries::of_name(name), |posting| {
            if *posting.name == *name {
                for ordinal in posting.series.into_bitmap() {
                    if is_wanted(ordinal)? {
                        found = true;
                        return Ok(false);
                    }
                }
            }
            Ok::<_, E>(true)
        })?;
        Ok(found)
    }

    /// The series of a source, among `all`, that have a label of this name.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn having(&self, source: u32, name: &str, all: &RoaringBitmap) -> Result<RoaringBitmap, LedgerError> {
        let recent = self.recent(source);
        let range = entries::of_name(name);
        let mut found = self.saved_of(SeriesEntry::Name, source, range, |it| *it.name == *name)?;
        let recent = recent.iter().flat_map(|some| some.iter());
        let having = recent.filter(|it| it.labels.get(name).is_some());
        found.extend(having.map(|it| it.series.ordinal));
        Ok(found & all)
    }

    /// The series of a source, among `all`, whose label `name` passes the matcher.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn select(
        &self,
        source: u32,
        name: &str,
        matcher: &Matcher,
        all: &RoaringBitmap,
    ) -> Result<RoaringBitmap, LedgerError> {
        if all.len() <= SINGLE_SERIES_MAX {
            let mut found = RoaringBitmap::new();
            for ordinal in all {
                let labels = self.labels(SeriesRef { ordinal, source })?;
                if matcher.passes(labels.as_ref().and_then(|labels| labels.get(name))) {
                    found.insert(ordinal);
                }
            }
            return Ok(found);
        }
        let (wanted, is_complement) = matcher.positive();
        // Recent series first: one that a checkpoint moves meanwhile is then found at least once.
        let recent = self.recent(source);
        let mut found = match &wanted.texts {
            Some(texts) => {
                let mut found = RoaringBitmap::new();
                let ordinals = all.min().unwrap_or_default()..=all.max().unwrap_or_default();
                for text in texts {
                    let range = entries::of_value(name, text, ordinals.clone());
                    found |= self.saved_of(SeriesEntry::Value, source, range, |it| {
                        *it.name == *name && *it.value == **text
                    })?;
                }
                found
            }
            None => {
                let range = entries::of_values(name, "");
                self.saved_of(SeriesEntry::Value, source, range, |it| {
                    *it.name == *name && wanted.passes(Some(it.value))
                })?
            }
        };
        if wanted.absent {
            found |= all - self.having(source, name, all)?;
        }
        for it in recent.iter().flat_map(|some| some.iter()) {
            if wanted.passes(it.labels.get(name)) {
                found.insert(it.series.ordinal);
            } else {
                found.remove(it.series.ordinal);
            }
        }
        if is_complement {
            return Ok(all - found);
        }
        found &= all;
        Ok(found)
    }
}
