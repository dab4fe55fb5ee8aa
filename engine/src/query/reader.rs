//! The sorted runs of a source's rows: blocks, and chunks of its head. Queries walk over runs and read their columns
//! alike; those of a block are decoded one by one.

use std::borrow::Cow;
use std::sync::Arc;

use super::budget::Held;
use super::directory_bytes;
use crate::EngineError;
use crate::block::BlockReader;
use crate::cache::Cache;
use crate::column::Column;
use crate::columns::Columns;
use crate::entry::BlockEntry;
use crate::snapshot::Live;
use crate::times::Times;

/// A sorted run of at least one row.
#[derive(Clone, Copy)]
pub(crate) enum Run<'a> {
    Block(&'a BlockEntry),
    Chunk(&'a Arc<Columns>),
}

impl Live {
    /// The runs that overlap the range, both ends inclusive: blocks by their first timestamps, then chunks.
    pub(super) fn runs(&self, (start, end): (i64, i64)) -> impl DoubleEndedIterator<Item = Run<'_>> {
        let reached = self.blocks.partition_point(|entry| entry.first_ns <= end);
        let runs = self.blocks[..reached].iter().map(Run::Block);
        let runs = runs.chain(self.chunks.iter().map(Run::Chunk));
        runs.filter(move |run| {
            let (first, last) = run.bounds_ns();
            first <= end && last >= start
        })
    }
}

impl<'a> Run<'a> {
    pub(super) fn rows(self) -> usize {
        match self {
            Run::Block(entry) => entry.rows as usize,
            Run::Chunk(chunk) => chunk.rows(),
        }
    }

    /// Least and greatest timestamp.
    pub(super) fn bounds_ns(self) -> (i64, i64) {
        match self {
            Run::Block(entry) => (entry.first_ns, entry.last_ns),
            Run::Chunk(chunk) => (chunk.timestamps_ns[0], chunk.timestamps_ns[chunk.rows() - 1]),
        }
    }

    /// Whether one of the fields has a value in every row; determined without reading the run.
    pub(super) fn has_in_every_row(self, fields: &[u16], cache: &Cache) -> Result<bool, EngineError> {
        Ok(match self {
            Run::Block(entry) => entry.block(cache)?.summary.has_in_every_row(fields),
            Run::Chunk(chunk) => fields.iter().any(|field| {
                let column = chunk.field(*field);
                column.is_some_and(|column| column.present.is_none())
            }),
        })
    }

    /// Opens the run; `held` grows by what that takes.
    pub(super) fn open(self, cache: &Cache, held: &mut Held<'_>) -> Result<RunReader<'a>, EngineError> {
        Ok(match self {
            Run::Block(entry) => {
                let block = entry.block(cache)?;
                held.grow(directory_bytes(&block.summary))?;
                RunReader::Block(BlockReader::new(&block)?)
            }
            Run::Chunk(chunk) => RunReader::Chunk(chunk),
        })
    }
}

/// An open run. What it returns of a chunk is shared with the head.
pub(super) enum RunReader<'a> {
    Block(BlockReader),
    Chunk(&'a Columns),
}

impl<'a> RunReader<'a> {
    /// Size of a decoded part that has this many bytes; zero if it is shared.
    pub(super) fn decoded_bytes(&self, bytes: usize) -> usize {
        match self {
            RunReader::Block(_) => bytes,
            RunReader::Chunk(_) => 0,
        }
    }

    pub(super) fn rows(&self) -> usize {
        match self {
            RunReader::Block(reader) => reader.rows(),
            RunReader::Chunk(chunk) => chunk.rows(),
        }
    }

    pub(super) fn times(&self) -> Result<Times<'a>, EngineError> {
        match self {
            RunReader::Block(reader) => reader.times(),
            RunReader::Chunk(chunk) => Ok(Times::Listed((&chunk.timestamps_ns).into())),
        }
    }

    pub(super) fn timestamps_ns(&self) -> Result<Cow<'a, [i64]>, EngineError> {
        match self {
            RunReader::Block(reader) => reader.timestamps_ns().map(Cow::Owned),
            RunReader::Chunk(chunk) => Ok(Cow::Borrowed(&chunk.timestamps_ns)),
        }
    }

    pub(super) fn sequences(&self) -> Result<Cow<'a, [u64]>, EngineError> {
        match self {
            RunReader::Block(reader) => reader.sequences().map(Cow::Owned),
            RunReader::Chunk(chunk) => Ok(Cow::Borrowed(&chunk.sequences)),
        }
    }

    pub(super) fn field(&self, field: u16) -> Result<Option<Cow<'a, Column>>, EngineError> {
        Ok(match self {
            RunReader::Block(reader) => reader.field(field)?.map(Cow::Owned),
            RunReader::Chunk(chunk) => chunk.field(field).map(Cow::Borrowed),
        })
    }

    pub(super) fn metadata(&self) -> Result<Option<Cow<'a, Column>>, EngineError> {
        Ok(match self {
            RunReader::Block(reader) => reader.metadata()?.map(|column| Cow::Owned(*column)),
            RunReader::Chunk(chunk) => chunk.metadata.as_deref().map(Cow::Borrowed),
        })
    }
}
