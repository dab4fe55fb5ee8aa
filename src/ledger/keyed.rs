//! Entries of streams that are read by key: the newest version of one entry, or of all within a range.

use std::ops::{Range, RangeInclusive};

use super::error::LedgerError;
use super::format::{Entry, Place};
use super::payload::Payload;
use super::run::{Entries, Run};
use super::{Ledger, Runs};
use crate::catalog::Stream;
use crate::ids::ObjectId;

impl Ledger {
    /// The newest version of an entry, from the newest file that has it; `None` if there is none, or a tombstone. If
    /// `is_spread`, the places of the owner's entries are evenly distributed, as digests are. The cost grows with the
    /// number of files of this stream; few blocks are read in each.
    ///
    /// # Errors
    /// The entry, or entries on the path to it, cannot be read.
    pub fn newest(
        &self,
        stream: Stream,
        owner: ObjectId,
        place: (i64, ObjectId),
        is_spread: bool,
    ) -> Result<Option<Payload>, LedgerError> {
        let runs = self.runs();
        for run in runs.of(stream).rev() {
            let numbers = run.entries_of(owner)?;
            let mut entries = run.entries();
            let found = match is_spread {
                true => entries.find_spread(numbers, &place)?,
                false => {
                    let number = entries.lower_bound(numbers.clone(), &place)?;
                    let entry = (number < numbers.end).then(|| entries.get(number)).transpose()?;
                    entry.filter(|entry| entry.place() == place)
                }
            };
            if let Some(entry) = found {
                let payload = run.payload(&entry)?;
                return Ok((!payload.is_empty()).then_some(payload));
            }
        }
        Ok(None)
    }

    /// Passes the newest version of each entry of an owner within the range to `each`, in order, without tombstones. Ends
    /// early if `each` returns false.
    ///
    /// # Errors
    /// Entries cannot be read, or an error of `each`.
    pub fn for_each_within<E: From<LedgerError>>(
        &self,
        stream: Stream,
        owner: ObjectId,
        range: RangeInclusive<(i64, ObjectId)>,
        mut each: impl FnMut((i64, ObjectId), Payload) -> Result<bool, E>,
    ) -> Result<(), E> {
        let runs = self.runs();
        let mut parts = Vec::new();
        for run in runs.of(stream) {
            let numbers = run.entries_of(owner)?;
            let mut entries = run.entries();
            let first = entries.lower_bound(numbers.clone(), range.start())?;
            let mut part = Part {
                run,
                entries,
                numbers: first..numbers.end,
                next: None,
            };
            part.advance(range.end())?;
            parts.push(part);
        }
        loop {
            let places = parts.iter().filter_map(Part::place);
            let Some(place) = places.min() else { return Ok(()) };
            let is_at = |part: &Part<'_>| part.place() == Some(place);
            let newest = parts.iter().rfind(|part| is_at(part));
            if let Some((run, entry)) = newest.and_then(|part| Some((part.run, part.next?))) {
                let payload = run.payload(&entry)?;
                if !payload.is_empty() && !each(place, payload)? {
                    return Ok(());
                }
            }
            // Not before: an early end reads no further entry.
            for part in parts.iter_mut().filter(|part| is_at(part)) {
                part.advance(range.end())?;
            }
        }
    }

    /// The owners of a stream's entries within the range, ascending, each once.
    ///
    /// # Errors
    /// The tables of a file cannot be read.
    pub fn owners_within(
        &self,
        stream: Stream,
        range: RangeInclusive<ObjectId>,
    ) -> Result<Vec<ObjectId>, LedgerError> {
        let Runs(runs) = self.runs();
        let mut owners = Vec::new();
        for run in runs.iter().filter(|run| run.stream == stream) {
            run.add_owners_within(&range, &mut owners)?;
        }
        owners.sort_unstable();
        owners.dedup();
        Ok(owners)
    }
}

/// The part of a run that is read.
struct Part<'r> {
    run: &'r Run,
    entries: Entries<'r>,
    /// The numbers of the entries that follow the next one.
    numbers: Range<u64>,
    next: Option<Entry>,
}

impl Part<'_> {
    /// The place of the next entry.
    fn place(&self) -> Option<Place> {
        self.next.as_ref().map(Entry::place)
    }

    /// Moves to the next entry; there is none once it lies behind `last`.
    fn advance(&mut self, last: &Place) -> Result<(), LedgerError> {
        let number = self.numbers.next();
        let entry = number.map(|number| self.entries.get(number)).transpose()?;
        self.next = entry.filter(|entry| entry.place() <= *last);
        Ok(())
    }
}
