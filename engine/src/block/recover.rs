//! Recovers a block without its footer entry: the directory contains its length and its fields, and everything else
//! follows from its rows.

use std::ops::Range;

use super::read::{Directory, SectionKind};
use super::{
    BLOCK_ROWS_MAX, Block, BlockReader, BlockSummary, FieldKind, FieldSummary, MissingLevels, encode_block,
};
use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::content::SharedBytes;

/// Length of the block at the beginning of these bytes; `None` if they do not begin with a valid directory.
pub(crate) fn own_length(bytes: &[u8]) -> Option<usize> {
    Directory::read(bytes, bytes.len())
        .ok()
        .map(|directory| directory.block_bytes)
}

/// Recovers the block at this range of a file as rows of the source. It is encoded again, so that it has rollups and a
/// summary whatever happened to those in the file.
///
/// # Errors
/// [`EngineError::Corrupt`] if a row cannot be read.
pub(crate) fn recover(home: &SharedBytes, place: Range<usize>, source: u32) -> Result<Block, EngineError> {
    let corrupt = |expected| EngineError::corrupt("block", place.start, expected);
    let bytes = home.read(place.clone())?;
    let directory = Directory::read(&bytes, bytes.len())?;
    let rows = u32::try_from(directory.rows).ok();
    let rows = rows.filter(|rows| (1..=BLOCK_ROWS_MAX).contains(&(*rows as usize)));
    let of_fields = directory
        .sections
        .iter()
        .filter(|section| section.kind == SectionKind::Field as u8);
    let mut fields = Vec::new();
    for section in of_fields {
        fields.push(FieldSummary {
            field: u16::try_from(section.of).map_err(|_| corrupt("a field below 2^16"))?,
            // Only the field's ordinal is used.
            kind: FieldKind::Number,
            aggregate: Aggregate::default(),
        });
    }
    let summary = BlockSummary {
        missing_levels: MissingLevels::default(),
        source,
        rows: rows.ok_or_else(|| corrupt("as many rows as a block may have"))?,
        first_ns: 0,
        last_ns: 0,
        first_sequence: 0,
        last_sequence: 0,
        fields: fields.into_boxed_slice(),
    };
    let block = Block::new(summary, SharedBytes::clone(home), place.clone());
    let columns = BlockReader::new(&block)?.columns()?;
    if !columns.is_sorted() {
        return Err(corrupt("rows in order of time and sequence"));
    }
    Ok(encode_block(source, &columns))
}
