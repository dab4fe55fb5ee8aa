//! The two sources of a view's entries: a run, or memory. Entries are accessed by number, in order of their positions.

use std::collections::btree_map;
use std::ops::Range;

use super::error::LedgerError;
use super::format::Place;
use super::run::{Entries, Run};
use super::view::{Content, Held, Recent};
use crate::catalog::Unpacker;
use crate::ids::ObjectId;

pub(super) struct Source<'a, P> {
    storage: Storage<'a, P>,
    /// Numbers of the entries.
    pub range: Range<u64>,
}

enum Storage<'a, P> {
    Run(Entries<'a>),
    Memory {
        entries: Vec<(Place, &'a Held<P>)>,
        unpacker: Unpacker,
        /// Number of firsts before each entry, and of all.
        firsts_before: Vec<u64>,
    },
}

impl<'a, P: Clone> Source<'a, P> {
    /// The owner's entries of a run at or after `from`.
    pub fn run(run: &'a Run, entries_of_owner: Range<u64>, from: &Place) -> Result<Self, LedgerError> {
        let mut entries = run.entries();
        let end = entries_of_owner.end;
        let start = entries.lower_bound(entries_of_owner, from)?;
        Ok(Self {
            storage: Storage::Run(entries),
            range: start..end,
        })
    }

    pub fn memory(recent: btree_map::Range<'a, Place, Recent<P>>) -> Self {
        let (mut entries, mut firsts, mut firsts_before) = (Vec::new(), 0, vec![0]);
        for (place, entry) in recent {
            firsts += u64::from(!entry.again);
            firsts_before.push(firsts);
            entries.push((*place, &entry.content));
        }
        Self {
            range: 0..entries.len() as u64,
            storage: Storage::Memory {
                entries,
                unpacker: Unpacker::default(),
                firsts_before,
            },
        }
    }

    pub fn place(&mut self, number: u64) -> Result<Place, LedgerError> {
        match &mut self.storage {
            Storage::Run(entries) => Ok(entries.get(number)?.place()),
            Storage::Memory { entries, .. } => Ok(entries[number as usize].0),
        }
    }

    /// Number of firsts (entries that count) in the range.
    pub fn firsts(&mut self, range: Range<u64>) -> Result<u64, LedgerError> {
        match &mut self.storage {
            Storage::Run(entries) => {
                Ok(entries.firsts_before(range.end)? - entries.firsts_before(range.start)?)
            }
            Storage::Memory { firsts_before, .. } => {
                Ok(firsts_before[range.end as usize] - firsts_before[range.start as usize])
            }
        }
    }

    /// Number of the first entry in the range at or after the position.
    pub fn lower_bound(&mut self, range: Range<u64>, place: &Place) -> Result<u64, LedgerError> {
        match &mut self.storage {
            Storage::Run(entries) => entries.lower_bound(range, place),
            Storage::Memory { entries, .. } => {
                let within = &entries[range.start as usize..range.end as usize];
                let before = within.partition_point(|(other, _)| other < place);
                Ok(range.start + before as u64)
            }
        }
    }

    /// The newest entry.
    pub fn last(&mut self) -> Result<Option<Place>, LedgerError> {
        if self.range.is_empty() {
            return Ok(None);
        }
        self.place(self.range.end - 1).map(Some)
    }

    /// Content of the newest entry.
    pub fn last_content(&mut self) -> Result<Content<P>, LedgerError> {
        self.content(self.range.end - 1)
    }

    /// Finds an entry by its id, between two positions or among all entries.
    pub fn find(
        &mut self,
        id: ObjectId,
        within: Option<(Place, Place)>,
    ) -> Result<Option<(Place, Content<P>)>, LedgerError> {
        let mut range = self.range.clone();
        if let Some((from, until)) = within {
            range.start = self.lower_bound(range.clone(), &from)?;
            range.end = self.lower_bound(range.clone(), &until)?;
        }
        for number in range {
            let place = self.place(number)?;
            if place.1 == id {
                return Ok(Some((place, self.content(number)?)));
            }
        }
        Ok(None)
    }

    fn content(&mut self, number: u64) -> Result<Content<P>, LedgerError> {
        match &mut self.storage {
            Storage::Run(entries) => {
                let entry = entries.get(number)?;
                Ok(Content::Stored(entries.run.payload(&entry)?))
            }
            Storage::Memory {
                entries, unpacker, ..
            } => match entries[number as usize].1 {
                Held::Tail(payload) => {
                    let (bytes, range) = unpacker.read(payload).map_err(LedgerError::Packed)?;
                    // A page would keep all packs of its entries in memory.
                    let own = match range.len() == bytes.len() {
                        true => bytes,
                        false => bytes[range].into(),
                    };
                    Ok(Content::Stored(own.into()))
                }
                Held::Given(given) => Ok(Content::Given(given.clone())),
            },
        }
    }
}
