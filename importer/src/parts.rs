//! Where a file of text is cut into parts: behind the last row that fits.

use std::io::{self, Read};

use crate::Format;

/// Size of a part, as long as a row fits.
pub const PART_BYTES: usize = 4 << 20;
/// Size of a row; the service refuses smaller ones already.
pub const ROW_BYTES_MAX: usize = 16 << 20;

/// Finds the ends of rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowEnds {
    is_csv: bool,
    /// Whether the bytes are within quotes.
    is_quoted: bool,
    /// Whether a byte that is not special stands in the field: a quote behind it is a character.
    is_in_field: bool,
}

impl RowEnds {
    pub fn new(format: Format) -> Self {
        RowEnds {
            is_csv: format == Format::Csv,
            ..RowEnds::default()
        }
    }

    /// Whether a row ends with this byte.
    fn ends_with(&mut self, byte: u8) -> bool {
        if !self.is_csv {
            return byte == b'\n';
        }
        match byte {
            b'"' if self.is_quoted => self.is_quoted = false,
            // The second of two quotes is a character, and the field goes on.
            b'"' if !self.is_in_field => self.is_quoted = true,
            _ if self.is_quoted => {}
            b',' => self.is_in_field = false,
            b'\n' => {
                self.is_in_field = false;
                return true;
            }
            _ => self.is_in_field = true,
        }
        false
    }

    /// Where the last row of these bytes ends.
    fn last_end(mut self, bytes: &[u8]) -> Option<usize> {
        let mut last = None;
        for (at, byte) in bytes.iter().enumerate() {
            if self.ends_with(*byte) {
                last = Some(at + 1);
            }
        }
        last
    }
}

/// Cuts what a reader gives into parts.
pub struct Parts<R> {
    reader: R,
    ends: RowEnds,
    held: Vec<u8>,
    has_ended: bool,
}

/// Number of line ends.
pub fn lines_of(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Why there is no part.
#[derive(Debug)]
pub enum Uncut {
    Io(io::Error),
    /// A row is too large.
    Row,
}

impl<R: Read> Parts<R> {
    pub fn new(reader: R, format: Format) -> Self {
        Parts {
            reader,
            ends: RowEnds::new(format),
            held: Vec::new(),
            has_ended: false,
        }
    }

    /// The first row, such as a header; `None` if there is none.
    pub fn row(&mut self) -> Result<Option<Vec<u8>>, Uncut> {
        self.fill(PART_BYTES)?;
        let mut ends = self.ends;
        let end = self.held.iter().position(|byte| ends.ends_with(*byte));
        let end = match end {
            Some(end) => end + 1,
            None if self.has_ended => self.held.len(),
            None => return Err(Uncut::Row),
        };
        let row: Vec<u8> = self.held.drain(..end).collect();
        Ok(Some(row).filter(|row| !row.is_empty()))
    }

    /// Rows that follow each other; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, Uncut> {
        let mut bytes_max = PART_BYTES;
        loop {
            self.fill(bytes_max)?;
            if self.has_ended && self.held.len() <= bytes_max {
                let bytes = std::mem::take(&mut self.held);
                return Ok(Some(bytes).filter(|bytes| !bytes.is_empty()));
            }
            if let Some(end) = self.ends.last_end(&self.held) {
                return Ok(Some(self.held.drain(..end).collect()));
            }
            if bytes_max >= ROW_BYTES_MAX {
                return Err(Uncut::Row);
            }
            bytes_max *= 2;
        }
    }

    /// Reads until so many bytes are held, or the reader ends.
    fn fill(&mut self, bytes: usize) -> Result<(), Uncut> {
        let more = bytes.saturating_sub(self.held.len()) as u64;
        let read = self.reader.by_ref().take(more).read_to_end(&mut self.held);
        self.has_ended |= (read.map_err(Uncut::Io)? as u64) < more;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(format: Format, text: &str) -> Vec<usize> {
        let mut ends = RowEnds::new(format);
        let bytes = text.bytes().enumerate();
        bytes
            .filter(|(_, byte)| ends.ends_with(*byte))
            .map(|(at, _)| at + 1)
            .collect()
    }

    #[test]
    fn rows_end_outside_of_quotes() {
        assert_eq!(ends(Format::Csv, "a,b\n1,2\n"), [4, 8]);
        assert_eq!(ends(Format::Csv, "a,\"x\ny\"\nb,c\n"), [8, 12]);
        assert_eq!(ends(Format::Csv, "a,\"x\"\"\n\"\nb\n"), [9, 11]);
        // A quote within a field is a character of it.
        assert_eq!(ends(Format::Csv, "5\" pipe,1\n6,2\n"), [10, 14]);
        assert_eq!(ends(Format::Ndjson, "{\"a\":\"\\\"\"}\n{}\n"), [11, 14]);
    }

    #[test]
    fn parts_are_the_file_and_end_with_rows() {
        let mut file = Vec::new();
        for row in 0..900_000 {
            file.extend_from_slice(format!("{row},\"a\nb\"\n").as_bytes());
        }
        let mut parts = Parts::new(&file[..], Format::Csv);
        assert_eq!(parts.row().unwrap().unwrap(), b"0,\"a\nb\"\n");
        let (mut whole, mut lines) = (Vec::new(), 0);
        while let Some(part) = parts.next().unwrap() {
            assert!(part.len() <= PART_BYTES);
            assert!(part.ends_with(b"b\"\n"));
            lines += lines_of(&part);
            whole.extend(part);
        }
        assert!(whole == file[8..]);
        assert_eq!(lines, 2 * 899_999);
    }

    #[test]
    fn a_row_without_an_end_is_no_part() {
        let file = vec![b'"'; ROW_BYTES_MAX + 2];
        assert!(matches!(
            Parts::new(&file[..], Format::Ndjson).next(),
            Err(Uncut::Row)
        ));
    }
}
