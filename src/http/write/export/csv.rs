//! Exports as CSV (RFC 4180): UTF-8, a header line, lines that end with LF. A missing value is empty, and an empty text is
//! two quotes.

use super::table::{RunColumns, Table};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::ingest::json::write_number;
use crate::service::query::{
    Answer, ExportShape, GroupValue, Groups, PIECE_BYTES, Points, QueryResult, Scalar, WriteExport,
};
use crate::timestamp::TimestampFormatter;

/// Estimated size of a row.
const ROW_BYTES: usize = 128;
/// Rows written before the size of the piece is looked at.
const ROWS_AT_ONCE: usize = 32;

/// Writes CSV.
pub struct CsvWriter {
    table: Table,
}

impl CsvWriter {
    pub fn new(shape: &ExportShape) -> Self {
        CsvWriter {
            table: Table::new(shape),
        }
    }

    fn write_points(&mut self, points: &Points<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
        let rows = points.rows();
        let mut held = answer.hold();
        let runs = self.table.runs(points, &mut held)?;
        let lines: Vec<LineWriter<'_>> = runs.iter().map(LineWriter::new).collect();
        let mut timestamps = TimestampFormatter::default();
        reserve(answer, rows.len())?;
        let mut written = 0;
        for rows in rows.chunks(ROWS_AT_ONCE) {
            if answer.is_full() {
                break;
            }
            answer.write(|out| {
                for (run, row) in rows {
                    lines[*run as usize].write(*row, &mut timestamps, out);
                }
            })?;
            written += rows.len();
        }
        Ok(written)
    }

    fn write_groups(&mut self, groups: &Groups<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
        let mut reader = self.table.groups(groups);
        let mut timestamps = TimestampFormatter::default();
        reserve(answer, groups.len())?;
        for (index, row) in groups.rows().enumerate() {
            if answer.is_full() {
                return Ok(index);
            }
            let values = reader.values(row);
            answer.write(|out| {
                out.extend_from_slice(timestamps.format(row.start_ns).as_bytes());
                if let Some(source_id) = row.source_id.map(ObjectId::to_hex) {
                    out.push(b',');
                    out.extend_from_slice(&source_id);
                }
                for value in row.dimensions {
                    out.push(b',');
                    if let Some(value) = value {
                        write_text(value, out);
                    }
                }
                for value in values {
                    out.push(b',');
                    if let Some(GroupValue::Value(value)) = value {
                        write_value(*value, out);
                    }
                }
                out.push(b'\n');
            })?;
        }
        Ok(groups.len())
    }
}

/// Reserves what rows are expected to need.
fn reserve(answer: &mut Answer<'_>, rows: usize) -> Result<(), ServiceError> {
    if answer.len() < PIECE_BYTES {
        let left = PIECE_BYTES - answer.len() + ROWS_AT_ONCE * ROW_BYTES;
        answer.reserve(left.min(rows * ROW_BYTES))?;
    }
    Ok(())
}

impl WriteExport for CsvWriter {
    fn begin(&mut self, answer: &mut Answer<'_>) -> Result<(), ServiceError> {
        answer.write(|out| {
            for (index, column) in self.table.columns.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_text(&column.name, out);
            }
            out.push(b'\n');
        })
    }

    fn write(&mut self, rows: &QueryResult<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
        match rows {
            QueryResult::Points(points) => self.write_points(points, answer),
            QueryResult::Groups(groups) => self.write_groups(groups, answer),
        }
    }

    fn end(&mut self, _: &mut Answer<'_>) -> Result<(), ServiceError> {
        Ok(())
    }
}

/// Writes the points of one run.
struct LineWriter<'a> {
    run: &'a RunColumns<'a>,
    /// The text between a point's timestamp and its id, which contains the source.
    source: [u8; 26],
}

impl<'a> LineWriter<'a> {
    fn new(run: &'a RunColumns<'a>) -> Self {
        let mut source = [b','; 26];
        source[1..25].copy_from_slice(&run.run.source_id.to_hex());
        LineWriter { run, source }
    }

    fn write(&self, row: u32, timestamps: &mut TimestampFormatter, out: &mut Vec<u8>) {
        let RunColumns {
            run,
            fields,
            expressions,
        } = self.run;
        out.extend_from_slice(timestamps.format(run.timestamp_ns(row)).as_bytes());
        out.extend_from_slice(&self.source);
        out.extend_from_slice(&run.point_id(row).to_hex());
        for column in fields {
            out.push(b',');
            if let Some(value) = column.and_then(|column| column.value(row as usize)) {
                write_value(value, out);
            }
        }
        for expression in expressions {
            out.push(b',');
            if let Some(number) = expression.value(row) {
                write_number(number, out);
            }
        }
        out.push(b',');
        if let Some(metadata) = run.metadata(row) {
            write_text(metadata, out);
        }
        out.push(b'\n');
    }
}

#[inline]
fn write_value(value: Scalar<'_>, out: &mut Vec<u8>) {
    match value {
        Scalar::Number(number) => write_number(number, out),
        Scalar::Boolean(true) => out.extend_from_slice(b"true"),
        Scalar::Boolean(false) => out.extend_from_slice(b"false"),
        Scalar::Text(text) => write_text(text, out),
    }
}

/// Writes a text, in quotes if it is empty or has a character that means something in CSV.
fn write_text(text: &str, out: &mut Vec<u8>) {
    let is_special = |byte: &u8| matches!(byte, b'"' | b',' | b'\n' | b'\r');
    if !text.is_empty() && !text.as_bytes().iter().any(is_special) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(place) = rest.iter().position(|byte| *byte == b'"') {
        out.extend_from_slice(&rest[..=place]);
        out.push(b'"');
        rest = &rest[place + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_where_rfc_4180_needs_it_and_where_they_are_empty() {
        for (text, written) in [
            ("", "\"\""),
            ("plain text", "plain text"),
            (" padded ", " padded "),
            ("a,b", "\"a,b\""),
            ("a\nb", "\"a\nb\""),
            ("a\rb", "\"a\rb\""),
            ("\"", "\"\"\"\""),
            ("say \"no\"", "\"say \"\"no\"\"\""),
            ("größer", "größer"),
        ] {
            let mut out = Vec::new();
            write_text(text, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), written);
        }
    }
}
