//! CSV: `csv-core` finds the fields, wherever the bytes are split.

use csv_core::ReadFieldResult;

use crate::text::line_ends;
use crate::{BATCH_BYTES, COLUMNS_MAX, ROW_BYTES_MAX, Rows, Unreadable};

/// Bytes that the parser gives at a time.
const PART_BYTES: usize = 1_024;

pub struct CsvReader {
    pub rows: Rows,
    parser: csv_core::Reader,
    /// What the parser gave last.
    part: [u8; PART_BYTES],
    has_header: bool,
    /// Lines that were ended.
    lines: u64,
    /// The row that is being read; `None` between rows.
    row: Option<RowBegun>,
    /// The texts of its fields.
    row_text: Vec<u8>,
}

#[derive(Default)]
struct RowBegun {
    line: u64,
    /// Number of fields that have ended.
    fields: usize,
    /// Where the text of the current field begins among those of the row.
    field: usize,
    is_in_field: bool,
    /// Whether the current field begins with a quote.
    is_quoted: bool,
    is_too_large: bool,
    /// Whether one of the fields is not UTF-8.
    is_not_utf8: bool,
}

impl Default for CsvReader {
    fn default() -> Self {
        CsvReader {
            rows: Rows::default(),
            parser: csv_core::Reader::new(),
            part: [0; PART_BYTES],
            has_header: false,
            lines: 0,
            row: None,
            row_text: Vec::new(),
        }
    }
}

impl CsvReader {
    pub fn read(&mut self, bytes: &[u8]) -> Result<usize, Unreadable> {
        self.rows.reserve_text(bytes.len().min(BATCH_BYTES));
        let mut taken = 0;
        while self.row.is_some() || !self.rows.is_full() {
            if self.row.is_none() {
                // Blank lines, and the second half of a line end.
                let ends = bytes[taken..]
                    .iter()
                    .take_while(|byte| matches!(byte, b'\r' | b'\n'));
                let ends = ends.count();
                self.lines += line_ends(&bytes[taken..taken + ends]);
                taken += ends;
            }
            if taken == bytes.len() {
                break;
            }
            taken += self.read_field(&bytes[taken..])?;
        }
        Ok(taken)
    }

    pub fn finish(&mut self) -> Result<(), Unreadable> {
        if self.row.is_some() {
            self.read_field(&[])?;
        }
        match self.has_header {
            true => Ok(()),
            false => Err(Unreadable(
                "the file is empty; its first line has to name the columns".to_owned(),
            )),
        }
    }

    /// Reads bytes of a field, until it ends or they do. No bytes end the file.
    fn read_field(&mut self, bytes: &[u8]) -> Result<usize, Unreadable> {
        let text = &mut self.row_text;
        let row = self.row.get_or_insert_with(|| {
            text.clear();
            RowBegun {
                line: self.lines + 1,
                ..RowBegun::default()
            }
        });
        if !row.is_in_field {
            row.is_in_field = true;
            row.field = text.len();
            row.is_quoted = bytes.first() == Some(&b'"');
        }
        let mut taken = 0;
        loop {
            let (result, read, written) = self.parser.read_field(&bytes[taken..], &mut self.part);
            self.lines += line_ends(&bytes[taken..taken + read]);
            taken += read;
            row.is_too_large |= text.len() + written > ROW_BYTES_MAX;
            if row.is_too_large {
                text.clear();
            } else {
                text.extend_from_slice(&self.part[..written]);
            }
            match result {
                ReadFieldResult::OutputFull => {}
                ReadFieldResult::InputEmpty => return Ok(taken),
                ReadFieldResult::Field { record_end } => {
                    self.end_field(record_end)?;
                    return Ok(taken);
                }
                ReadFieldResult::End => {
                    // The parser was between two records.
                    self.row = None;
                    return Ok(taken);
                }
            }
        }
    }

    fn end_field(&mut self, ends_row: bool) -> Result<(), Unreadable> {
        let Some(row) = &mut self.row else {
            return Ok(());
        };
        row.is_in_field = false;
        let text = row.field.min(self.row_text.len())..self.row_text.len();
        row.is_not_utf8 |= std::str::from_utf8(&self.row_text[text.clone()]).is_err();
        let is_known = !self.has_header || row.fields < self.rows.columns().len();
        if (row.is_quoted || !text.is_empty()) && is_known && !row.is_too_large {
            self.rows.push_untyped(row.fields as u32, text);
        } else if !self.has_header && !row.is_too_large {
            return Err(Unreadable(format!(
                "column {} of the header has no name",
                row.fields + 1
            )));
        }
        row.fields += 1;
        if !self.has_header && row.fields > COLUMNS_MAX {
            return Err(Unreadable(format!(
                "the header has more than {COLUMNS_MAX} columns"
            )));
        }
        match ends_row {
            true => self.end_row(),
            false => Ok(()),
        }
    }

    fn end_row(&mut self) -> Result<(), Unreadable> {
        let Some(row) = self.row.take() else {
            return Ok(());
        };
        // A text may be whole where its fields are not.
        let text = std::str::from_utf8(&self.row_text)
            .ok()
            .filter(|_| !row.is_not_utf8);
        let is_utf8 = text.is_some();
        match text {
            Some(text) => self.rows.push_row_text(text),
            None => self.rows.push_faulty_bytes(&self.row_text),
        }
        if !self.has_header {
            return self.end_header(&row, is_utf8);
        }
        let columns = self.rows.columns().len();
        if row.is_too_large {
            self.rows
                .end_faulty_row(Some(row.line), format!("is longer than {ROW_BYTES_MAX} bytes"));
        } else if row.fields != columns {
            let fault = format!("has {} cells, and the header has {columns}", row.fields);
            self.rows.end_faulty_row(Some(row.line), fault);
        } else if !is_utf8 {
            self.rows.end_faulty_row(Some(row.line), "is not UTF-8");
        } else {
            self.rows.end_row(Some(row.line));
        }
        Ok(())
    }

    fn end_header(&mut self, row: &RowBegun, is_utf8: bool) -> Result<(), Unreadable> {
        if row.is_too_large {
            return Err(Unreadable(format!(
                "the header is longer than {ROW_BYTES_MAX} bytes"
            )));
        }
        if !is_utf8 {
            return Err(Unreadable("the header is not UTF-8".to_owned()));
        }
        self.rows.end_row(Some(row.line));
        let names: Vec<String> = self
            .rows
            .iter()
            .flat_map(|row| row.cells())
            .map(|(_, cell)| match cell {
                crate::Cell::Untyped(name) => name.to_owned(),
                _ => String::new(),
            })
            .collect();
        self.rows.clear_all();
        for (index, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(Unreadable(format!(
                    "column {} of the header has no name",
                    index + 1
                )));
            }
            if self.rows.add_column(name).is_none() {
                return Err(Unreadable(format!("the header has the column {name:?} twice")));
            }
        }
        self.has_header = true;
        Ok(())
    }
}
