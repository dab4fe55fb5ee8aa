//! Storage for data that is too large for memory and is accessed entry by entry: verdicts and triggers of rules,
//! finished webhook deliveries with their events, answers to idempotency keys, the objects of the catalog. Each kind is
//! a stream. There are millions of entries, so they are stored in immutable sorted run files, described in FORMAT.md.
//! Entries since the last checkpoint are kept in memory by the component that made them (see [`LedgerFiles::save`]). A checkpoint
//! writes them to one run per stream; the catalog's snapshot, which names the runs, is the ledger's manifest.
//!
//! [`Ledger`] is the reading side, for services and buckets; [`LedgerFiles`] is the writing side, owned by the
//! checkpointer. Payloads are opaque to the ledger, except for answers, which contain the time that determines when
//! they expire.

mod answers;
mod error;
mod files;
mod flip;
mod format;
mod keyed;
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
pub use error::LedgerError;
pub use files::{LedgerFiles, NewEntry};
pub use flip::flip_of_run;
pub use format::{checksum, take};
pub use merge::Keep;
pub use payload::Payload;
pub use run::{Run, runs_dir};
pub use verify::{RunReport, salvage, verify, without_header};
pub use view::{Content, Page, View};
pub use writer::Item;

use crate::catalog::{Catalog, Stream};
use crate::ids::ObjectId;

/// The reading side of the ledger. Cheap to clone; readers never wait for a checkpoint.
#[derive(Clone, Default)]
pub struct Ledger(Arc<RwLock<Runs>>);

/// Runs that are in use together, oldest first.
#[derive(Clone, Default)]
pub struct Runs(Arc<[Arc<Run>]>);

/// Statistics of the files in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerStats {
    /// Number of files.
    pub runs: u64,
    /// Number of entries; an entry with several versions may count several times.
    pub entries: u64,
    /// Total size in bytes.
    pub bytes: u64,
}

impl Ledger {
    /// The current entries of an owner. The caller holds the catalog's lock, under which a checkpoint moves entries
    /// from the tail to runs, so the view finds each entry in one of them. Reads no file; the cost grows with the
    /// owner's part of the tail.
    pub fn view(&self, catalog: &Catalog, stream: Stream, owner: ObjectId) -> View {
        self.view_with(catalog, stream, owner, [])
    }

    /// The same, with entries of the caller that are not in the ledger yet and override those that are: time, id,
    /// whether an older version exists, content.
    pub fn view_with<P>(
        &self,
        catalog: &Catalog,
        stream: Stream,
        owner: ObjectId,
        given: impl IntoIterator<Item = (i64, ObjectId, bool, P)>,
    ) -> View<P> {
        View::new(self.runs(), catalog.ledger(), stream, owner, given)
    }

    /// Size of an owner's entries in the files in use, in bytes. The cost grows with the number of files and the
    /// logarithm of their owners.
    ///
    /// # Errors
    /// Entries of a run cannot be read.
    pub fn bytes_of(&self, owner: ObjectId) -> Result<u64, LedgerError> {
        self.runs().0.iter().map(|run| run.bytes_of(owner)).sum()
    }

    /// Statistics of the files in use.
    pub fn stats(&self) -> LedgerStats {
        let runs = self.runs();
        LedgerStats {
            runs: runs.0.len() as u64,
            entries: runs.0.iter().map(|run| run.footer.entries).sum(),
            bytes: runs.0.iter().map(|run| run.bytes()).sum(),
        }
    }

    /// The files in use.
    pub fn runs(&self) -> Runs {
        self.0.read().clone()
    }
}

impl Runs {
    /// The ids by which a snapshot names them.
    pub fn ids(&self) -> Vec<u64> {
        self.0.iter().map(|run| run.id).collect()
    }

    /// The runs of a stream, oldest first.
    fn of(&self, stream: Stream) -> impl DoubleEndedIterator<Item = &Run> {
        self.0
            .iter()
            .map(|run| &**run)
            .filter(move |run| run.stream == stream)
    }
}

impl FromIterator<Arc<Run>> for Runs {
    fn from_iter<I: IntoIterator<Item = Arc<Run>>>(runs: I) -> Self {
        Self(runs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
