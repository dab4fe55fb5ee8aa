//! Encodes sorted rows as a block.

use std::sync::Arc;

use super::read::{SectionKind, rollup_of};
use super::{BLOCK_VERSION, Block, BlockSummary, FieldSummary, MissingLevels, first_last};
use crate::bitmap::Bitmap;
use crate::bytes::put_varint;
use crate::codec::{encode_doubles, encode_integers, encode_texts};
use crate::column::{Column, Values};
use crate::columns::Columns;
use crate::rollup::{self, HOUR, LEVELS};

/// Encodes rows that are sorted by (timestamp, sequence), at least one and at most [`super::BLOCK_ROWS_MAX`].
pub(crate) fn encode_block(source: u32, columns: &Columns) -> Block {
    let rows = columns.rows();
    let mut sections = Sections::default();
    encode_integers(sections.open(), &columns.timestamps_ns);
    sections.close(SectionKind::Timestamps, 0);
    let sequences: Vec<i64> = columns
        .sequences
        .iter()
        .map(|sequence| *sequence as i64)
        .collect();
    encode_integers(sections.open(), &sequences);
    sections.close(SectionKind::Sequences, 0);
    if let Some(metadata) = &columns.metadata {
        encode_column(sections.open(), metadata);
        sections.close(SectionKind::Metadata, 0);
    }

    let levels = LEVELS.map(|level| rollup::cells(level, &columns.timestamps_ns));
    for (level, cells) in levels.iter().enumerate() {
        if let Some(cells) = cells {
            // Start times in units of the level: neighbouring cells differ by one.
            let unit = LEVELS[level].next_ns(0);
            let starts: Vec<i64> = cells.iter().map(|(start, _)| start.div_euclid(unit)).collect();
            put_varint(sections.open(), cells.len() as u64);
            encode_integers(sections.open(), &starts);
            sections.close(SectionKind::RollupStarts, level as u32);
        }
    }
    if let Some(hours) = &levels[HOUR]
        && columns.fields.iter().all(|field| field.column.present.is_some())
    {
        // Row counts are stored because no field has a value in every row.
        let counts: Vec<i64> = hours.iter().map(|(_, rows)| rows.len() as i64).collect();
        encode_integers(sections.open(), &counts);
        sections.close(SectionKind::RollupRows, HOUR as u32);
    }
    let mut fields = Vec::with_capacity(columns.fields.len());
    for field in &columns.fields {
        let mantissas = encode_column(sections.open(), &field.column);
        sections.close(SectionKind::Field, u32::from(field.field));
        let decimals = field.column.values.decimals();
        let mantissas = mantissas.as_deref().map(|mantissas| (mantissas, decimals));
        fields.push(FieldSummary {
            field: field.field,
            kind: field.column.values.kind(),
            aggregate: rollup::aggregate(&field.column, mantissas, 0..rows),
        });
        for (level, cells) in levels.iter().enumerate() {
            if let Some(cells) = cells {
                let aggregates: Vec<_> = cells
                    .iter()
                    .map(|(_, rows)| rollup::aggregate(&field.column, mantissas, rows.clone()))
                    .collect();
                let of = rollup_of(field.field, level);
                rollup::encode(sections.open(), &aggregates, &field.column.values);
                sections.close(SectionKind::Rollup, of);
                if rollup::encode_carries(sections.open(), &aggregates) {
                    sections.close(SectionKind::RollupCarries, of);
                }
            }
        }
    }

    let least = columns.sequences.iter().min().copied().unwrap_or_default();
    let greatest = columns.sequences.iter().max().copied().unwrap_or_default();
    if first_last::encode(sections.open(), columns, (least, greatest)) {
        sections.close(SectionKind::FirstLast, 0);
    }

    let summary = BlockSummary {
        missing_levels: MissingLevels::default(),
        source,
        rows: rows as u32,
        first_ns: columns.timestamps_ns[0],
        last_ns: columns.timestamps_ns[rows - 1],
        first_sequence: least,
        last_sequence: greatest,
        fields: fields.into_boxed_slice(),
    };
    let bytes = sections.finish(rows);
    let place = 0..bytes.len();
    Block::new(summary, Arc::new(bytes), place)
}

/// Encodes presence, then values. Returns the mantissas if the column is stored as decimals.
fn encode_column(out: &mut Vec<u8>, column: &Column) -> Option<Vec<i64>> {
    out.push(u8::from(column.present.is_some()));
    if let Some(present) = &column.present {
        present.encode(out);
    }
    match &column.values {
        Values::Numbers { values, decimals } => {
            out.push(0);
            return encode_doubles(out, values, *decimals);
        }
        Values::Booleans(values) => {
            out.push(1);
            let mut bits = Bitmap::default();
            values.iter().for_each(|value| bits.push(*value));
            bits.encode(out);
        }
        Values::Texts(texts) => {
            out.push(2);
            encode_texts(out, texts);
        }
    }
    None
}

/// Concatenated sections, and the directory that will precede them.
#[derive(Default)]
struct Sections {
    body: Vec<u8>,
    start: usize,
    directory: Vec<u8>,
    count: u64,
}

impl Sections {
    /// The buffer to which the current section is appended.
    fn open(&mut self) -> &mut Vec<u8> {
        &mut self.body
    }

    fn close(&mut self, kind: SectionKind, of: u32) {
        let section = &self.body[self.start..];
        self.directory.push(kind as u8);
        put_varint(&mut self.directory, u64::from(of));
        put_varint(&mut self.directory, section.len() as u64);
        self.directory
            .extend_from_slice(&crc32fast::hash(section).to_le_bytes());
        self.start = self.body.len();
        self.count += 1;
    }

    fn finish(self, rows: usize) -> Vec<u8> {
        let mut header = vec![BLOCK_VERSION];
        put_varint(&mut header, rows as u64);
        put_varint(&mut header, self.count);
        header.extend_from_slice(&self.directory);
        let mut bytes = Vec::with_capacity(8 + header.len() + self.body.len());
        bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(&self.body);
        bytes
    }
}
