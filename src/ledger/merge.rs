//! Chooses the runs to merge, and merges their entries into one sequence.

use std::collections::HashSet;
use std::ops::Range;

use super::error::LedgerError;
use super::format::{Entry, checksum, moment_ns};
use super::run::{Entries, Run};
use super::writer::Item;
use crate::catalog::{EntryKey, Stream, kept_series_owner};
use crate::ids::ObjectId;

/// A run is not merged if it is larger than all newer ones together by this factor. The number of runs is then the
/// base-3 logarithm of the total size, and an entry is rewritten each time the total has grown by half.
const RATIO: u64 = 2;
/// Smaller runs are treated as having this size: rewriting so little is cheap, and each additional run slows lookups.
const RUN_BYTES_MIN: u64 = 256 << 10;
/// Number of catalog runs of similar size that are merged. Consecutive checkpoints may write the same objects, so
/// merging every two runs would write as much again as the checkpoint did; and there are no lookups in these runs. With
/// four, 100,000 pending deliveries whose receiver is down had 3.3 bytes written for each byte of log.
const CATALOG_RUNS_MIN: usize = 6;

/// Decides which entries are kept when files are written.
pub struct Keep {
    owners: HashSet<ObjectId>,
    now_ns: i64,
}

impl Keep {
    /// Keeps entries of these owners that have not expired at `now_ns`.
    pub fn new(owners: HashSet<ObjectId>, now_ns: i64) -> Self {
        Self { owners, now_ns }
    }

    pub(super) fn keeps<P>(&self, item: &Item<P>) -> bool {
        let EntryKey { stream, owner, .. } = item.key;
        self.not_expired(stream, item.moment_ns)
            && match stream {
                Stream::Catalog => true,
                Stream::Series => self.owners.contains(&kept_series_owner(owner)),
                _ => self.owners.contains(&owner),
            }
    }

    pub(super) fn not_expired(&self, stream: Stream, moment_ns: i64) -> bool {
        moment_ns >= stream.cutoff_ns(self.now_ns)
    }
}

/// The runs of a stream to merge, given the sizes of all its runs in bytes, oldest first. They always include the
/// newest, so that of two runs the one with the larger number is the newer.
pub(super) fn worth_merging(stream: Stream, sizes: &[u64]) -> Option<Range<usize>> {
    let mut end = sizes.len();
    if stream != Stream::Catalog {
        // The newest runs, up to one that is too large.
        let first = first_similar(sizes, end.checked_sub(1)?, |all, size| all + size);
        return (end - first > 1).then_some(first..end);
    }
    // Enough runs of similar size, and the newer ones after them, which are smaller.
    while end > 0 {
        let first = first_similar(sizes, end - 1, u64::max);
        if end - first >= CATALOG_RUNS_MIN {
            return Some(first..sizes.len());
        }
        end = first;
    }
    None
}

/// The oldest of the runs up to `last` of which none is too large for the newer ones, whose sizes `join` combines.
fn first_similar(sizes: &[u64], last: usize, join: fn(u64, u64) -> u64) -> usize {
    let size = |index: usize| sizes[index].max(RUN_BYTES_MIN);
    let mut first = last;
    let mut newer = size(first);
    while first > 0 && size(first - 1) <= RATIO * newer {
        first -= 1;
        newer = join(newer, size(first));
    }
    first
}

/// The entries of several runs in order, the newest version of each.
pub(super) struct NewestVersions<'a> {
    /// Oldest run first.
    cursors: Vec<Cursor<'a>>,
}

/// The newest version of an entry, with `again` taken from the oldest.
pub(super) struct Version<'a> {
    pub owner: ObjectId,
    pub entry: Entry,
    pub run: &'a Run,
}

impl<'a> NewestVersions<'a> {
    /// Reads these runs, oldest first.
    pub fn new(runs: impl Iterator<Item = &'a Run>) -> Result<Self, LedgerError> {
        Ok(Self {
            cursors: runs.map(Cursor::new).collect::<Result<_, _>>()?,
        })
    }

    /// The next entry that replaces those of the runs when they are merged: without expired entries and entries of
    /// deleted owners. `with_oldest` means that the stream has no older run: then a tombstone has nothing left to
    /// override and is dropped.
    pub fn next_kept(
        &mut self,
        keep: &Keep,
        with_oldest: bool,
    ) -> Result<Option<Item<&'a [u8]>>, LedgerError> {
        while let Some(version) = self.next()? {
            if with_oldest && version.is_tombstone() {
                continue;
            }
            let item = version.item()?;
            if keep.keeps(&item) {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    pub fn next(&mut self) -> Result<Option<Version<'a>>, LedgerError> {
        let heads = self.cursors.iter().filter_map(|cursor| cursor.head);
        let Some(place) = heads.map(|(owner, entry)| (owner, entry.place())).min() else {
            return Ok(None);
        };
        let mut newest: Option<Version<'a>> = None;
        for cursor in &mut self.cursors {
            let head = cursor
                .head
                .filter(|(owner, entry)| (*owner, entry.place()) == place);
            let Some((owner, entry)) = head else { continue };
            // Taken from the oldest version, which decides whether the entry counts.
            let again = newest.map_or(entry.again, |older| older.entry.again);
            newest = Some(Version {
                owner,
                entry: Entry { again, ..entry },
                run: cursor.entries.run,
            });
            cursor.advance()?;
        }
        Ok(newest)
    }
}

impl<'a> Version<'a> {
    /// Whether this marks an object of the catalog, or a series, as deleted.
    pub fn is_tombstone(&self) -> bool {
        matches!(self.run.stream, Stream::Catalog | Stream::Series) && self.entry.len == 0
    }

    /// Copies the entry without verifying it: its checksum is copied with it.
    fn item(&self) -> Result<Item<&'a [u8]>, LedgerError> {
        let (run, entry) = (self.run, &self.entry);
        let payload = run.unchecked_payload(entry)?;
        // A damaged answer does not tell its time. It is kept as long as any entry of its run may be: if it were
        // dropped, a repeated request would be stored again instead of being refused.
        let is_damaged = run.stream == Stream::Answers && checksum(&[payload]) != entry.crc;
        let key = entry.key(run.stream, self.owner);
        let moment_ns = moment_ns(&key, payload).filter(|_| !is_damaged);
        Ok(Item {
            key,
            again: entry.again,
            moment_ns: moment_ns.unwrap_or(run.footer.newest_ns),
            payload,
            crc: entry.crc,
        })
    }
}

/// Iterates over a run from its first entry to its last.
struct Cursor<'a> {
    entries: Entries<'a>,
    /// Number of the next entry.
    next: u64,
    /// The current entry and its owner.
    head: Option<(ObjectId, Entry)>,
}

impl<'a> Cursor<'a> {
    fn new(run: &'a Run) -> Result<Self, LedgerError> {
        let mut cursor = Self {
            entries: run.entries(),
            next: 0,
            head: None,
        };
        cursor.advance()?;
        Ok(cursor)
    }

    fn advance(&mut self) -> Result<(), LedgerError> {
        let number = self.next;
        self.head = None;
        if number < self.entries.run.footer.entries {
            self.next += 1;
            self.head = Some((self.entries.owner(number)?, self.entries.get(number)?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Sizes of the runs, maximum number of runs, and bytes written, after checkpoints of this size.
    fn grow(stream: Stream, checkpoints: u64, bytes: u64) -> (Vec<u64>, usize, u64) {
        let (mut sizes, mut most, mut written) = (Vec::new(), 0, 0);
        for _ in 0..checkpoints {
            sizes.push(bytes);
            written += bytes;
            if let Some(runs) = worth_merging(stream, &sizes) {
                let merged = sizes[runs.clone()].iter().sum();
                sizes.splice(runs, [merged]);
                written += merged;
            }
            most = most.max(sizes.len());
        }
        (sizes, most, written)
    }

    #[test]
    fn runs_stay_few_and_entries_are_rarely_rewritten() {
        for (checkpoints, bytes) in [(1_000, MIB), (30_000, MIB), (20_000, 8 * MIB), (5_000, 10)] {
            let (sizes, most, written) = grow(Stream::History, checkpoints, bytes);
            let total: u64 = sizes.iter().sum();
            assert_eq!(total, checkpoints * bytes, "nothing is lost");
            let amplification = written as f64 / total as f64;
            println!(
                "{checkpoints} of {bytes} bytes: at most {most} runs, each byte written {amplification:.1} times"
            );
            assert!(most <= 11, "{most} runs");
            if bytes >= MIB {
                // Once each time the total has grown by half, and the first time.
                let bound = 2.0 + (checkpoints as f64).ln() / 1.5f64.ln();
                assert!(amplification <= bound, "{amplification} > {bound}");
            } else {
                assert!(sizes.len() <= 2, "small runs become one: {sizes:?}");
            }
        }
    }

    #[test]
    fn runs_of_the_catalog_grow_with_the_logarithm_of_the_changes() {
        for (checkpoints, bytes) in [(5_000, 10), (5_000, MIB)] {
            let (sizes, most, written) = grow(Stream::Catalog, checkpoints, bytes);
            assert_eq!(sizes.iter().sum::<u64>(), checkpoints * bytes, "nothing is lost");
            let classes = (checkpoints as f64).log(CATALOG_RUNS_MIN as f64) as usize + 1;
            assert!(most <= CATALOG_RUNS_MIN * classes, "{most} runs");
            let amplification = written as f64 / (checkpoints * bytes) as f64;
            if bytes >= MIB {
                assert!(amplification <= classes as f64 + 1.0, "{amplification}");
            }
        }
    }

    /// Objects that change again and again, after a run of objects that do not.
    #[test]
    fn merging_repeated_changes_adds_a_fifth_to_checkpoint_writes() {
        let (mut sizes, mut merged) = (vec![100 * MIB], 0);
        for _ in 0..300 {
            sizes.push(24 * MIB);
            if let Some(runs) = worth_merging(Stream::Catalog, &sizes) {
                assert!(runs.start > 0, "the rest is not written again: {sizes:?}");
                sizes.splice(runs, [24 * MIB]);
                merged += 1;
            }
        }
        assert!(merged <= 60, "{merged} merges");
    }

    #[test]
    fn a_single_run_is_not_merged() {
        for stream in Stream::ALL {
            assert_eq!(worth_merging(stream, &[]), None);
            assert_eq!(worth_merging(stream, &[5]), None);
            assert_eq!(worth_merging(stream, &[100 * MIB, MIB]), None);
        }
        let sizes = [100 * MIB, MIB, MIB];
        assert_eq!(worth_merging(Stream::History, &sizes), Some(1..3));
        assert_eq!(worth_merging(Stream::Catalog, &sizes), None);
        let sizes = [&[100 * MIB][..], &[MIB; CATALOG_RUNS_MIN]].concat();
        assert_eq!(worth_merging(Stream::Catalog, &sizes), Some(1..7));
    }
}
