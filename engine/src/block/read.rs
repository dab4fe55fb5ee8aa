//! Reads the sections of a block. Each is verified and decoded only when it is needed.

use std::borrow::Cow;

use super::{BLOCK_VERSION, Block, FieldKind, FieldSummary, FirstLast, first_last};
use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::bitmap::Bitmap;
use crate::bytes::Reader;
use crate::codec::{decode_doubles, decode_integers, decode_texts, even};
use crate::column::{Column, FieldColumn, Values};
use crate::columns::Columns;
use crate::rollup::{self, LEVELS};
use crate::times::Times;

/// Bytes that are read at first of a block that is not here: more than most directories have.
const FIRST_BYTES: usize = 4 << 10;

/// Type of a section; the numbers are those of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SectionKind {
    Timestamps = 0,
    Sequences = 1,
    Metadata = 2,
    Field = 3,
    RollupStarts = 4,
    Rollup = 5,
    RollupRows = 6,
    RollupCarries = 7,
    FirstLast = 8,
}

pub(super) struct Section {
    pub(super) kind: u8,
    pub(super) of: u32,
    start: usize,
    len: usize,
    checksum: u32,
}

/// The directory of a block, which has its own checksum.
pub(super) struct Directory {
    pub(super) rows: usize,
    pub(super) sections: Vec<Section>,
    /// Size of the directory in bytes; the sections follow.
    header_bytes: usize,
    /// Size of directory and sections in bytes.
    pub(super) block_bytes: usize,
}

impl Directory {
    /// Reads the directory of a block. For a block that is not here, only the beginning is read.
    fn of(block: &Block) -> Result<Self, EngineError> {
        let len = block.place().len();
        let first = block.read(0..len.min(FIRST_BYTES))?;
        match Self::bytes(&first).min(len) {
            whole if whole > first.len() => Self::read(&block.read(0..whole)?, len),
            _ => Self::read(&first, len),
        }
    }

    /// Reads the directory again, after a damage; `None` if the block's bytes are not a copy of anything.
    fn of_original(block: &Block) -> Result<Option<Self>, EngineError> {
        let len = block.place().len();
        let bytes = block.read_again(0..len)?;
        bytes.map(|bytes| Self::read(&bytes, len)).transpose()
    }

    /// Length of the directory at the beginning of these bytes, as far as they say.
    fn bytes(first: &[u8]) -> usize {
        let header_len = Reader::new(first, "block").le_u32().unwrap_or(0);
        (header_len as usize).saturating_add(8)
    }

    /// Decodes the directory at the beginning of these bytes, which belong to a block of `block_len` bytes.
    pub(super) fn read(bytes: &[u8], block_len: usize) -> Result<Self, EngineError> {
        let mut outer = Reader::new(bytes, "block");
        let header_len = outer.le_u32()? as usize;
        let checksum = outer.le_u32()?;
        let header = outer.take(header_len)?;
        if crc32fast::hash(header) != checksum {
            return Err(outer.corrupt("a directory with the checksum written before it"));
        }
        let header_bytes = bytes.len() - outer.rest().len();
        let body_bytes = block_len.saturating_sub(header_bytes);
        let mut reader = Reader::new(header, "block directory");
        if !(1..=BLOCK_VERSION).contains(&reader.byte()?) {
            return Err(reader.corrupt("block version 1 or 2"));
        }
        let rows = reader.u32()? as usize;
        let count = reader.count()?;
        let mut sections = Vec::with_capacity(count);
        let mut start = 0usize;
        for _ in 0..count {
            let kind = reader.byte()?;
            let of = reader.u32()?;
            let len = reader.varint()? as usize;
            let checksum = reader.le_u32()?;
            let end = start.checked_add(len).filter(|end| *end <= body_bytes);
            let end = end.ok_or_else(|| reader.corrupt("sections within the block"))?;
            sections.push(Section {
                kind,
                of,
                start,
                len,
                checksum,
            });
            start = end;
        }
        Ok(Directory {
            rows,
            sections,
            header_bytes,
            block_bytes: header_bytes + start,
        })
    }
}

/// A block whose directory has been read and verified.
pub struct BlockReader {
    block: Block,
    pub(super) directory: Directory,
}

impl BlockReader {
    /// Reads and verifies the directory.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if the bytes are not a block of a known version.
    pub fn new(block: &Block) -> Result<Self, EngineError> {
        let directory = match Directory::of(block) {
            Err(error @ EngineError::Corrupt { .. }) => {
                Directory::of_original(block).and_then(|original| original.ok_or(error))
            }
            read => read,
        };
        let directory = block.located(directory)?;
        if directory.rows != block.summary.rows as usize {
            let expected = "as many rows as the footer says";
            return block.located(Err(EngineError::corrupt("block directory", 0, expected)));
        }
        let block = block.clone();
        Ok(BlockReader { block, directory })
    }

    pub(crate) fn rows(&self) -> usize {
        self.directory.rows
    }

    /// Verifies the checksums of all sections, without decoding them.
    pub(crate) fn compare_checksums(&self) -> Result<(), EngineError> {
        let mut sections = self.directory.sections.iter();
        sections.try_for_each(|section| self.compare(section).map(drop))
    }

    fn section(&self, kind: SectionKind, of: u32) -> Result<Option<Cow<'_, [u8]>>, EngineError> {
        let is_it = |section: &&Section| section.kind == kind as u8 && section.of == of;
        let section = self.directory.sections.iter().find(is_it);
        section.map(|section| self.compare(section)).transpose()
    }

    fn compare(&self, section: &Section) -> Result<Cow<'_, [u8]>, EngineError> {
        let start = self.directory.header_bytes + section.start;
        let range = start..start + section.len;
        let is_sound = |bytes: &[u8]| crc32fast::hash(bytes) == section.checksum;
        let bytes = self.block.read(range.clone())?;
        if is_sound(&bytes) {
            return Ok(bytes);
        }
        let original = self.block.read_again(range)?;
        original.filter(|bytes| is_sound(bytes)).ok_or_else(|| {
            let expected = "a section with the checksum of the directory";
            self.corrupt(section.start, expected)
        })
    }

    fn required(&self, kind: SectionKind) -> Result<Cow<'_, [u8]>, EngineError> {
        let section = self.section(kind, 0)?;
        section.ok_or_else(|| self.corrupt(0, "timestamps and sequences"))
    }

    /// The error for an offset in the block, with the location of the block.
    fn corrupt(&self, offset: usize, expected: &'static str) -> EngineError {
        self.block.locate(EngineError::corrupt("block", offset, expected))
    }

    /// The timestamps in ascending order, one per row.
    pub fn timestamps_ns(&self) -> Result<Vec<i64>, EngineError> {
        let bytes = self.required(SectionKind::Timestamps)?;
        self.block.located(decode_integers(&bytes, self.rows()))
    }

    /// The timestamps; evenly spaced ones are not expanded.
    pub(crate) fn times(&self) -> Result<Times<'static>, EngineError> {
        let bytes = self.required(SectionKind::Timestamps)?;
        if let Some((first_ns, step_ns)) = self.block.located(even(&bytes))?
            && step_ns >= 0
            && let Ok(steps) = i64::try_from(self.rows().saturating_sub(1))
            && let Some(span_ns) = step_ns.checked_mul(steps)
            && first_ns.checked_add(span_ns).is_some()
        {
            let rows = self.rows();
            return Ok(Times::Even {
                first_ns,
                step_ns,
                rows,
            });
        }
        let listed = self.block.located(decode_integers(&bytes, self.rows()))?;
        Ok(Times::Listed(listed.into()))
    }

    /// The sequences, one per row.
    pub fn sequences(&self) -> Result<Vec<u64>, EngineError> {
        let bytes = self.required(SectionKind::Sequences)?;
        let sequences = self.block.located(decode_integers(&bytes, self.rows()))?;
        Ok(sequences.into_iter().map(|sequence| sequence as u64).collect())
    }

    /// The values of a field; `None` if no row has one.
    pub fn field(&self, field: u16) -> Result<Option<Column>, EngineError> {
        let section = self.section(SectionKind::Field, u32::from(field))?;
        let column = section.map(|bytes| decode_column(&bytes, self.rows()));
        self.block.located(column.transpose())
    }

    /// The first and the last values, ascending by field; `None` if they are not stored.
    pub(crate) fn first_last(&self) -> Result<Option<Vec<FirstLast>>, EngineError> {
        let section = self.section(SectionKind::FirstLast, 0)?;
        let decoded = section.map(|bytes| first_last::decode(&bytes, &self.block.summary));
        self.block.located(decoded.transpose())
    }

    /// The metadata texts; `None` if no row has any.
    pub fn metadata(&self) -> Result<Option<Box<Column>>, EngineError> {
        let section = self.section(SectionKind::Metadata, 0)?;
        let column = section.map(|bytes| Ok(Box::new(decode_column(&bytes, self.rows())?)));
        self.block.located(column.transpose())
    }

    /// All columns of the block.
    pub fn columns(&self) -> Result<Columns, EngineError> {
        let summaries = &self.block.summary.fields;
        if !summaries.is_sorted_by(|one, next| one.field < next.field) {
            return Err(self.corrupt(0, "fields in order, each once"));
        }
        let mut fields = Vec::with_capacity(summaries.len());
        for FieldSummary { field, .. } in summaries {
            if let Some(column) = self.field(*field)? {
                let field = *field;
                fields.push(FieldColumn { field, column });
            }
        }
        Ok(Columns {
            timestamps_ns: self.timestamps_ns()?,
            sequences: self.sequences()?,
            fields,
            metadata: self.metadata()?,
        })
    }

    /// Start times of a rollup level's cells; `None` if the level is not stored.
    pub(crate) fn rollup_starts_ns(&self, level: usize) -> Result<Option<Vec<i64>>, EngineError> {
        let section = self.section(SectionKind::RollupStarts, level as u32)?;
        let starts_ns = section.map(|bytes| self.decode_starts(&bytes, level));
        self.block.located(starts_ns.transpose())
    }

    fn decode_starts(&self, bytes: &[u8], level: usize) -> Result<Vec<i64>, EngineError> {
        let mut reader = Reader::new(bytes, "rollup");
        let count = reader.varint()? as usize;
        if count > self.rows() {
            return Err(reader.corrupt("at most as many cells as rows"));
        }
        let unit = LEVELS[level].next_ns(0);
        let starts = decode_integers(reader.rest(), count)?;
        let starts_ns = starts.into_iter().map(|start| start.saturating_mul(unit));
        Ok(starts_ns.collect())
    }

    /// Row counts of a stored level's cells. `None` if they must be taken from a field that has a value in every row,
    /// or if the block was written before rows were counted.
    pub(crate) fn rollup_rows(&self, level: usize, cells: usize) -> Result<Option<Vec<u64>>, EngineError> {
        let Some(bytes) = self.section(SectionKind::RollupRows, level as u32)? else {
            return Ok(None);
        };
        let rows = self.block.located(decode_integers(&bytes, cells))?;
        Ok(Some(rows.into_iter().map(|rows| rows as u64).collect()))
    }

    /// Aggregates of a field in the cells of a stored level; empty aggregates for a field without values.
    pub(crate) fn rollup(
        &self,
        level: usize,
        field: u16,
        cells: usize,
    ) -> Result<Vec<Aggregate>, EngineError> {
        let Some(summary) = self.block.summary.field(field) else {
            return Ok(vec![Aggregate::default(); cells]);
        };
        let of = rollup_of(field, level);
        let Some(bytes) = self.section(SectionKind::Rollup, of)? else {
            return Err(self.corrupt(0, "a rollup of the field"));
        };
        let carries = self.section(SectionKind::RollupCarries, of)?;
        let is_number = summary.kind == FieldKind::Number;
        self.block
            .located(rollup::decode(&bytes, carries.as_deref(), cells, is_number))
    }
}

/// What the sections of a field's rollup at a level belong to.
pub(super) fn rollup_of(field: u16, level: usize) -> u32 {
    u32::from(field) * LEVELS.len() as u32 + level as u32
}

fn decode_column(bytes: &[u8], rows: usize) -> Result<Column, EngineError> {
    let mut reader = Reader::new(bytes, "column");
    let present = match reader.byte()? {
        0 => None,
        _ => Some(Box::new(Bitmap::decode(&mut reader, rows)?)),
    };
    let values = match reader.byte()? {
        0 => {
            let (values, decimals) = decode_doubles(reader.rest(), rows)?;
            Values::Numbers { values, decimals }
        }
        1 => {
            let bits = Bitmap::decode(&mut reader, rows)?;
            Values::Booleans((0..rows).map(|row| bits.get(row)).collect())
        }
        2 => Values::Texts(Box::new(decode_texts(reader.rest(), rows)?)),
        _ => return Err(reader.corrupt("a kind of column")),
    };
    Ok(Column { present, values })
}
