//! The pages of a Parquet file, looked at before they are read: a page says how large it is when it is decompressed, and
//! the library reserves as much. Headers of pages are structures in the compact protocol of Thrift.
//!
//! Source: the Parquet format, `parquet.thrift` (`PageHeader`), and the Thrift compact protocol.

use std::io::{self, Read, Seek, SeekFrom};

use crate::ReadError;

/// Size of a page, decompressed. Writers make pages of about 1 MiB.
pub const PAGE_BYTES_MAX: u64 = 16 << 20;
/// Size of a page's header, which may have statistics.
const HEADER_BYTES_MAX: u64 = 1 << 20;
/// Structures within structures.
const DEPTH_MAX: usize = 8;

/// Size of the largest page of a column chunk, decompressed.
///
/// # Errors
/// A page is larger than [`PAGE_BYTES_MAX`], or the headers are not valid.
pub fn largest_page(file: &mut (impl Read + Seek), start: u64, bytes: u64) -> Result<u64, ReadError> {
    file.seek(SeekFrom::Start(start))?;
    let (mut at, mut largest) = (0, 0);
    while at < bytes {
        let mut header = Header {
            file: &mut *file,
            read: 0,
        };
        let (uncompressed, compressed) = header.sizes()?;
        let size = uncompressed.max(compressed);
        if size > PAGE_BYTES_MAX {
            return Err(ReadError::Page(size));
        }
        largest = largest.max(size);
        at += header.read + compressed;
        let skipped = i64::try_from(compressed).map_err(|_| invalid())?;
        file.seek(SeekFrom::Current(skipped))?;
    }
    match at == bytes {
        true => Ok(largest),
        false => Err(invalid()),
    }
}

fn invalid() -> ReadError {
    ReadError::Damaged("the header of a page is not valid".to_owned())
}

struct Header<'f, F> {
    file: &'f mut F,
    read: u64,
}

impl<F: Read> Header<'_, F> {
    fn byte(&mut self) -> Result<u8, ReadError> {
        self.read += 1;
        if self.read > HEADER_BYTES_MAX {
            return Err(invalid());
        }
        let mut byte = [0];
        self.file.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    /// A number of 7 bits a byte, the lowest first.
    fn varint(&mut self) -> Result<u64, ReadError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(invalid())
    }

    /// A signed number whose sign is its lowest bit.
    fn size(&mut self) -> Result<u64, ReadError> {
        let number = self.varint()?;
        match number & 1 {
            0 => Ok(number >> 1),
            _ => Err(invalid()),
        }
    }

    /// The sizes of a page: fields 2 and 3 of its header.
    fn sizes(&mut self) -> Result<(u64, u64), ReadError> {
        let (mut uncompressed, mut compressed) = (None, None);
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                (2, 5) => uncompressed = Some(self.size()?),
                (3, 5) => compressed = Some(self.size()?),
                _ => self.skip(kind, 0)?,
            }
        }
        uncompressed.zip(compressed).ok_or_else(invalid)
    }

    /// The type of the next field of a structure; `None` at its end. `id` is that of the field before.
    fn field(&mut self, id: &mut u64) -> Result<Option<u8>, ReadError> {
        let byte = self.byte()?;
        let kind = byte & 0x0f;
        if kind == 0 {
            return Ok(None);
        }
        *id = match byte >> 4 {
            0 => self.varint()? >> 1,
            delta => *id + u64::from(delta),
        };
        Ok(Some(kind))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Result<(), ReadError> {
        if depth > DEPTH_MAX {
            return Err(invalid());
        }
        match kind {
            // Booleans, whose type is their value.
            1 | 2 => {}
            3 => drop(self.byte()?),
            4..=6 => drop(self.varint()?),
            7 => {
                for _ in 0..8 {
                    self.byte()?;
                }
            }
            8 => {
                for _ in 0..self.varint()? {
                    self.byte()?;
                }
            }
            12 => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth + 1)?;
                }
            }
            // Lists and the like are in no header.
            _ => return Err(invalid()),
        }
        Ok(())
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::Damaged("the file ends too early".to_owned()),
            _ => ReadError::Io(error),
        }
    }
}
