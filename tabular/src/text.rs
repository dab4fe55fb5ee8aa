//! Files of text, whose bytes come in pieces.

use crate::csv::CsvReader;
use crate::ndjson::NdjsonReader;
use crate::{Rows, Unreadable};

/// A byte order mark, which a file in UTF-8 may begin with.
const BOM: [u8; 3] = *b"\xef\xbb\xbf";

/// A format of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values with a header line (RFC 4180).
    Csv,
    /// A JSON object on each line.
    Ndjson,
}

/// Reads a file of text.
pub struct TextReader {
    /// The first bytes, until there are enough to know whether they are a byte order mark.
    begin: Option<Vec<u8>>,
    reader: Reader,
}

enum Reader {
    Csv(Box<CsvReader>),
    Ndjson(Box<NdjsonReader>),
}

impl TextReader {
    /// Begins a file.
    pub fn new(format: Format) -> Self {
        TextReader {
            begin: Some(Vec::new()),
            reader: match format {
                Format::Csv => Reader::Csv(Box::default()),
                Format::Ndjson => Reader::Ndjson(Box::default()),
            },
        }
    }

    /// Reads bytes that follow, as far as the batch takes their rows: if it is full, it has to be cleared before the other
    /// bytes are given again. Returns the number of bytes read.
    ///
    /// # Errors
    /// The header is not valid.
    pub fn read(&mut self, bytes: &[u8]) -> Result<usize, Unreadable> {
        let mut taken = 0;
        if let Some(begin) = &mut self.begin {
            taken = (BOM.len() - begin.len()).min(bytes.len());
            begin.extend_from_slice(&bytes[..taken]);
            if begin.len() < BOM.len() {
                return Ok(taken);
            }
            self.read_begin()?;
        }
        Ok(taken + self.reader.read(&bytes[taken..])?)
    }

    /// Reads what was kept of the beginning. So few bytes fill no batch.
    fn read_begin(&mut self) -> Result<(), Unreadable> {
        let begin = self.begin.take().unwrap_or_default();
        if begin != BOM {
            self.reader.read(&begin)?;
        }
        Ok(())
    }

    /// Reads what is left when the file has ended. The batch is not full before.
    ///
    /// # Errors
    /// The header is not valid, or missing.
    pub fn finish(&mut self) -> Result<(), Unreadable> {
        self.read_begin()?;
        match &mut self.reader {
            Reader::Csv(reader) => reader.finish(),
            Reader::Ndjson(reader) => {
                reader.finish();
                Ok(())
            }
        }
    }

    /// The batch.
    pub fn rows(&self) -> &Rows {
        match &self.reader {
            Reader::Csv(reader) => &reader.rows,
            Reader::Ndjson(reader) => &reader.rows,
        }
    }

    /// Empties the batch.
    pub fn clear(&mut self) {
        match &mut self.reader {
            Reader::Csv(reader) => reader.rows.clear(),
            // The columns of the next batch are those of its own rows.
            Reader::Ndjson(reader) => reader.rows.clear_all(),
        }
    }
}

impl Reader {
    fn read(&mut self, bytes: &[u8]) -> Result<usize, Unreadable> {
        match self {
            Reader::Csv(reader) => reader.read(bytes),
            Reader::Ndjson(reader) => Ok(reader.read(bytes)),
        }
    }
}

/// Number of line ends.
pub(crate) fn line_ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
