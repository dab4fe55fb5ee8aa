//! Sorted runs of rows, as a scan meets them: blocks and chunks of a head, told apart only here.

use std::borrow::Cow;
use std::sync::Arc;

use super::{MetadataFilter, metadata_passes};
use crate::EngineError;
use crate::block::{Block, BlockReader};
use crate::column::{Column, FieldColumn};
use crate::columns::Columns;

/// A time in the direction of the scan: descending scans see time mirrored, so that one algorithm serves both.
pub(super) fn directed(timestamp_ns: i64, descending: bool) -> i64 {
    if descending { !timestamp_ns } else { timestamp_ns }
}

#[derive(Clone, Copy)]
pub(super) enum Origin<'a> {
    Block(&'a Block),
    Chunk(&'a Arc<Columns>),
}

/// A sorted run that may hold rows of the page; times are directed.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) rows: u64,
    pub(super) selection: usize,
    pub(super) origin: Origin<'a>,
}

/// An opened run.
pub(super) struct Open<'a> {
    pub(super) selection: usize,
    content: Content<'a>,
    pub(super) timestamps_ns: Vec<i64>,
    pub(super) sequences: Vec<u64>,
    /// Rows that count; `None` for all.
    pub(super) visible: Option<Vec<bool>>,
    /// Next row, counted in the direction of the scan.
    pub(super) next: usize,
    /// Rows taken for the page.
    pub(super) taken: bool,
}

/// A block keeps its reader: its directory is read once, whether its fields are wanted in the end or not.
enum Content<'a> {
    Block(&'a Block, BlockReader<'a>),
    Chunk(&'a Arc<Columns>),
}

impl<'a> Open<'a> {
    /// Opens a run: its order is decoded, its fields only where they decide which rows count.
    pub(super) fn new(
        candidate: Candidate<'a>,
        all_visible: bool,
        fields: Option<&[u16]>,
        filter: Option<MetadataFilter<'_>>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, EngineError> {
        let total = candidate.rows as usize;
        let passes = |metadata: Option<&Column>| match filter {
            Some(filter) => metadata_passes(filter, metadata, total, stop),
            None => Ok(vec![true; total]),
        };
        let (timestamps_ns, sequences, visible, content) = match candidate.origin {
            Origin::Chunk(chunk) => {
                let visible = (!all_visible).then(|| {
                    let visible = passes(chunk.metadata.as_deref())?;
                    and_present(visible, fields, |field| Ok(chunk.field(field).map(Cow::Borrowed)))
                });
                (
                    chunk.timestamps_ns.clone(),
                    chunk.sequences.clone(),
                    visible.transpose()?,
                    Content::Chunk(chunk),
                )
            }
            Origin::Block(block) => {
                let reader = BlockReader::new(block)?;
                let visible = (!all_visible).then(|| {
                    let visible = passes(reader.metadata()?.as_deref())?;
                    and_present(visible, fields, |field| Ok(reader.field(field)?.map(Cow::Owned)))
                });
                (
                    reader.timestamps_ns()?,
                    reader.sequences()?,
                    visible.transpose()?,
                    Content::Block(block, reader),
                )
            }
        };
        Ok(Open {
            selection: candidate.selection,
            content,
            timestamps_ns,
            sequences,
            visible,
            next: 0,
            taken: false,
        })
    }

    /// The run's rows with the fields wanted, `None` for all.
    pub(super) fn into_columns(self, fields: Option<&[u16]>) -> Result<Arc<Columns>, EngineError> {
        let (block, reader) = match self.content {
            Content::Chunk(chunk) => return Ok(Arc::clone(chunk)),
            Content::Block(block, reader) => (block, reader),
        };
        let all = || block.summary.fields.iter().map(|summary| summary.field).collect();
        let wanted: Vec<u16> = fields.map_or_else(all, <[u16]>::to_vec);
        let mut fields = Vec::with_capacity(wanted.len());
        for field in wanted {
            if let Some(column) = reader.field(field)? {
                fields.push(FieldColumn { field, column });
            }
        }
        let (timestamps_ns, sequences) = (self.timestamps_ns, self.sequences);
        Ok(Arc::new(Columns {
            timestamps_ns,
            sequences,
            fields,
            metadata: reader.metadata()?,
        }))
    }
}

/// Leaves visible only rows that have at least one of the fields.
fn and_present<'c>(
    mut visible: Vec<bool>,
    fields: Option<&[u16]>,
    column: impl Fn(u16) -> Result<Option<Cow<'c, Column>>, EngineError>,
) -> Result<Vec<bool>, EngineError> {
    let Some(fields) = fields else { return Ok(visible) };
    let mut present = vec![false; visible.len()];
    for field in fields {
        if let Some(column) = column(*field)? {
            present
                .iter_mut()
                .enumerate()
                .for_each(|(row, present)| *present |= column.has(row));
        }
    }
    visible
        .iter_mut()
        .zip(present)
        .for_each(|(visible, present)| *visible &= present);
    Ok(visible)
}
