//! What is too much for memory and is looked at entry by entry: verdicts and triggers of rules, finished deliveries of
//! webhooks and what they said, answers to idempotency keys, the objects of the catalog. Each kind is a stream. Millions of entries, so
//! they lie in immutable sorted run files, drawn in FORMAT.md. Entries younger than the last checkpoint are in memory,
//! with whoever made them (see [`Saving`]); a checkpoint writes them to a run for each stream, and the catalog's
//! snapshot, which names the runs, is the ledger's manifest.
//!
//! [`Ledger`] is what services and buckets read; [`LedgerFiles`] is the checkpointer's, the only one who writes. What an
//! entry says is its writer's matter, but for answers, which say themselves when they expire.

mod answers;
mod directory;
mod error;
mod files;
mod flip;
mod format;
mod merge;
mod payload;
mod run;
mod source;
mod verify;
mod view;
mod writer;

use std::sync::Arc;

use parking_lot::RwLock;

pub use answers::{Answered, Digest, encode_answer};
pub use directory::{LedgerDir, Listing};
pub use error::LedgerError;
pub use files::{LedgerFiles, NewEntry, Saving};
pub use flip::flip_of_run;
pub use merge::Keep;
pub use payload::Payload;
pub use run::Run;
pub use verify::{EntryPlace, RunReport, for_each_sound, salvage, verify, without_header};
pub use view::{Content, Page, View};

use crate::catalog::{Catalog, Stream};
use crate::ids::ObjectId;

/// The ledger, as readers have it. Cheap to clone; no reader waits for a checkpoint.
#[derive(Clone, Default)]
pub struct Ledger(Arc<RwLock<Runs>>);

/// Runs that are in use together, oldest first.
#[derive(Clone, Default)]
pub struct Runs(Arc<[Arc<Run>]>);

/// Figures of the files in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerStats {
    /// Files.
    pub runs: u64,
    /// Entries in them; one that has several versions may count for each.
    pub entries: u64,
    /// Bytes of them.
    pub bytes: u64,
}

impl Ledger {
    fn new(runs: Runs) -> Self {
        Self(Arc::new(RwLock::new(runs)))
    }

    /// An owner's entries now. Whoever has a `&Catalog` holds its lock, under which a checkpoint moves entries from
    /// tail to runs: so a view finds each in one of them. Reads no file; takes as long as the owner's part of the tail.
    pub fn view(&self, catalog: &Catalog, stream: Stream, owner: ObjectId) -> View {
        View::new(self.runs(), catalog.ledger(), stream, owner)
    }

    /// Bytes that the entries of an owner take in the files in use. The cost grows with the files and the logarithm of
    /// their owners.
    ///
    /// # Errors
    /// Entries of a run do not read.
    pub fn bytes_of(&self, owner: ObjectId) -> Result<u64, LedgerError> {
        self.runs().0.iter().map(|run| run.bytes_of(owner)).sum()
    }

    /// Figures of the files in use.
    pub fn stats(&self) -> LedgerStats {
        let runs = self.runs();
        LedgerStats {
            runs: runs.0.len() as u64,
            entries: runs.0.iter().map(|run| run.entry_count()).sum(),
            bytes: runs.0.iter().map(|run| run.bytes()).sum(),
        }
    }

    /// The files in use.
    pub fn runs(&self) -> Runs {
        self.0.read().clone()
    }

    fn adopt(&self, runs: Runs) {
        *self.0.write() = runs;
    }
}

impl Runs {
    /// Their ids, as a snapshot names them.
    pub fn ids(&self) -> Vec<u64> {
        self.0.iter().map(|run| run.id()).collect()
    }

    /// Those of a stream, oldest first.
    fn of(&self, stream: Stream) -> impl DoubleEndedIterator<Item = &Run> {
        self.0
            .iter()
            .map(|run| &**run)
            .filter(move |run| run.stream() == stream)
    }

    fn to_vec(&self) -> Vec<Arc<Run>> {
        self.0.to_vec()
    }
}

impl FromIterator<Arc<Run>> for Runs {
    fn from_iter<I: IntoIterator<Item = Arc<Run>>>(runs: I) -> Self {
        Self(runs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
