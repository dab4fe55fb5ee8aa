//! The entries of one owner at one moment: those of the run files, overridden by those in memory.
//!
//! Entries are positioned by (time, id), and a newer version has the same position as the older. Exactly one version of
//! each entry is a *first*, so the number of firsts over all sources is the number of entries, whichever version
//! overrides which. Totals and offsets are therefore computed from counts stored in the runs, without reading the
//! entries between.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::Runs;
use super::error::LedgerError;
use super::format::{Place, place_of};
use super::payload::Payload;
use super::source::Source;
use crate::catalog::{EntryKey, LedgerTail, Stream, TailPayload};
use crate::clock::SECOND_NS;
use crate::ids::ObjectId;

/// The entries of one owner at one moment. `P` is the type of the caller's additional entries, see
/// [`Ledger::view_with`](super::Ledger::view_with).
pub struct View<P = Infallible> {
    runs: Runs,
    stream: Stream,
    owner: ObjectId,
    recent: BTreeMap<Place, Recent<P>>,
}

/// An entry in memory.
pub(super) struct Recent<P> {
    pub content: Held<P>,
    pub again: bool,
}

/// Content of an entry in memory.
pub(super) enum Held<P> {
    /// A payload of the ledger's tail.
    Tail(TailPayload),
    /// A value of the caller.
    Given(P),
}

/// Content of an entry.
#[derive(Clone, Debug)]
pub enum Content<P = Infallible> {
    /// A payload of the ledger.
    Stored(Payload),
    /// A value of the caller.
    Given(P),
}

/// A part of the list, newest first.
#[derive(Debug)]
pub struct Page<P = Infallible> {
    /// The readable entries.
    pub entries: Vec<(EntryKey, Content<P>)>,
    /// Number of entries in the whole list.
    pub total: u64,
    /// Errors of the unreadable entries of this page, which are missing from `entries`.
    pub damaged: Vec<LedgerError>,
}

impl<P> View<P> {
    /// The entries of the ledger, overridden by `given` ones that are not in it yet: time, id, whether an older version
    /// exists, content. All must be read under the same lock of the catalog.
    pub(super) fn new(
        runs: Runs,
        tail: &LedgerTail,
        stream: Stream,
        owner: ObjectId,
        given: impl IntoIterator<Item = (i64, ObjectId, bool, P)>,
    ) -> Self {
        let mut recent = BTreeMap::new();
        for (key, entry) in tail.of(stream, owner) {
            let (content, again) = (Held::Tail(entry.payload), entry.again);
            recent.insert((key.at_ns, key.id), Recent { content, again });
        }
        for (at_ns, id, again, content) in given {
            let content = Held::Given(content);
            // The oldest version decides whether the entry counts.
            let again = recent.get(&(at_ns, id)).map_or(again, |held| held.again);
            recent.insert((at_ns, id), Recent { content, again });
        }
        Self {
            runs,
            stream,
            owner,
            recent,
        }
    }
}

impl<P: Clone> View<P> {
    /// Up to `limit` entries after the `offset` newest ones, newest first; those before `not_before_ns` are neither
    /// listed nor counted. The cost grows with the number of runs, the logarithm of their lengths, `limit`, and the
    /// entries in memory; it does not depend on `offset`.
    ///
    /// # Errors
    /// Entries of a run cannot be read, so it is unknown which they are.
    pub fn page(&self, not_before_ns: i64, offset: u64, limit: usize) -> Result<Page<P>, LedgerError> {
        let mut sources = self.sources(not_before_ns)?;
        let mut page = Page {
            entries: Vec::new(),
            total: count(&mut sources)?,
            damaged: Vec::new(),
        };
        skip(&mut sources, offset)?;
        for _ in 0..limit {
            let Some((newest, place)) = newest(&mut sources)? else {
                break;
            };
            match sources[newest].last_content() {
                Ok(content) => page.entries.push((self.key(place), content)),
                Err(error) => page.damaged.push(error),
            }
            for source in &mut sources {
                if source.last()? == Some(place) {
                    source.range.end -= 1;
                }
            }
        }
        Ok(page)
    }

    /// Number of entries that are not before `not_before_ns`. The cost grows with the number of runs, the logarithm of
    /// their lengths, and the entries in memory.
    ///
    /// # Errors
    /// As for [`View::page`].
    pub fn count(&self, not_before_ns: i64) -> Result<u64, LedgerError> {
        count(&mut self.sources(not_before_ns)?)
    }

    /// The newest version of an entry that is not before `not_before_ns`.
    ///
    /// An id contains the second in which it was made, so that second is searched first: a logarithmic number of the
    /// owner's entries, and those of that second. If the entry's time is in another second because the clock stepped,
    /// or if there is no such entry, all entries of the owner are read, 40 bytes each.
    ///
    /// # Errors
    /// This entry, or others on the path to it, cannot be read.
    pub fn get(
        &self,
        id: ObjectId,
        not_before_ns: i64,
    ) -> Result<Option<(EntryKey, Content<P>)>, LedgerError> {
        let [a, b, c, d, ..] = *id.as_bytes();
        let second_ns = i64::from(u32::from_be_bytes([a, b, c, d])) * SECOND_NS;
        let within = (place_of(second_ns), place_of(second_ns + SECOND_NS));
        let mut sources = self.sources(not_before_ns)?;
        for within in [Some(within), None] {
            for source in sources.iter_mut().rev() {
                if let Some((place, content)) = source.find(id, within)? {
                    return Ok(Some((self.key(place), content)));
                }
            }
        }
        Ok(None)
    }

    /// All sources, oldest first.
    fn sources(&self, not_before_ns: i64) -> Result<Vec<Source<'_, P>>, LedgerError> {
        let from = place_of(not_before_ns);
        let mut sources = Vec::new();
        for run in self.runs.of(self.stream) {
            if run.footer.newest_ns >= not_before_ns {
                let entries = run.entries_of(self.owner)?;
                sources.push(Source::run(run, entries, &from)?);
            }
        }
        sources.push(Source::memory(self.recent.range(from..)));
        Ok(sources)
    }

    fn key(&self, (at_ns, id): Place) -> EntryKey {
        EntryKey {
            stream: self.stream,
            owner: self.owner,
            at_ns,
            id,
        }
    }
}

/// Number of entries.
fn count<P: Clone>(sources: &mut [Source<'_, P>]) -> Result<u64, LedgerError> {
    sources
        .iter_mut()
        .map(|source| source.firsts(source.range.clone()))
        .sum()
}

/// The newest entry, and the newest of the sources that have it.
fn newest<P: Clone>(sources: &mut [Source<'_, P>]) -> Result<Option<(usize, Place)>, LedgerError> {
    let mut newest: Option<(usize, Place)> = None;
    for (index, source) in sources.iter_mut().enumerate() {
        if let Some(place) = source.last()?
            && newest.is_none_or(|(_, other)| other <= place)
        {
            newest = Some((index, place));
        }
    }
    Ok(newest)
}

/// Removes the `offset` newest entries from the sources.
///
/// An entry is among them if at most `offset` firsts are at or after its position. This holds after some position and
/// not before it, so that position is found by binary search: in each step, the middle entry of the source with the
/// widest range of candidates decides for all sources.
fn skip<P: Clone>(sources: &mut [Source<'_, P>], offset: u64) -> Result<(), LedgerError> {
    if offset == 0 {
        return Ok(());
    }
    // The range in which the end of each source lies.
    let mut open: Vec<_> = sources.iter().map(|source| source.range.clone()).collect();
    while let Some(widest) = (0..open.len()).max_by_key(|index| open[*index].end - open[*index].start)
        && !open[widest].is_empty()
    {
        let middle = open[widest].start + (open[widest].end - open[widest].start) / 2;
        let place = sources[widest].place(middle)?;
        let mut bounds = Vec::with_capacity(sources.len());
        let mut behind = 0;
        for (source, open) in sources.iter_mut().zip(&open) {
            let bound = source.lower_bound(open.clone(), &place)?;
            behind += source.firsts(bound..source.range.end)?;
            bounds.push(bound);
        }
        for ((source, open), bound) in sources.iter_mut().zip(&mut open).zip(bounds) {
            if behind <= offset {
                open.end = bound;
            } else if bound < open.end && source.place(bound)? == place {
                open.start = bound + 1;
            } else {
                open.start = bound;
            }
        }
    }
    for (source, open) in sources.iter_mut().zip(open) {
        source.range.end = open.end;
    }
    Ok(())
}
