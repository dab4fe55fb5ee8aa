//! Reads files, counts and hashes their bytes while they are copied, and distinguishes read errors from write errors.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use disk::DiskFile;
use sha2::{Digest, Sha256};

use super::error::BackupError;
use crate::hex;
use crate::progress::Progress;

/// Size of the copy buffer.
const COPY_BYTES: usize = 256 << 10;

/// A reader that counts and hashes what is read.
pub(super) struct Content<'a> {
    from: &'a mut dyn Read,
    digest: Sha256,
    bytes: u64,
    failed: bool,
}

/// Reads an open file from its beginning.
pub(super) struct FileReader<'a> {
    file: &'a dyn DiskFile,
    offset: u64,
    bytes: u64,
    progress: &'a dyn Progress,
}

impl<'a> FileReader<'a> {
    pub(super) fn new(file: &'a dyn DiskFile, progress: &'a dyn Progress) -> io::Result<Self> {
        Ok(Self {
            file,
            offset: 0,
            bytes: file.len()?,
            progress,
        })
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.bytes - self.offset).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        self.file.read_exact_at(self.offset, &mut buffer[..length])?;
        self.offset += length as u64;
        self.progress.advance(length as u64);
        Ok(length)
    }
}

impl<'a> Content<'a> {
    pub(super) fn new(from: &'a mut dyn Read) -> Self {
        Self {
            from,
            digest: Sha256::new(),
            bytes: 0,
            failed: false,
        }
    }

    /// Adds the path to an error of a copy from this reader: that of the `source` if reading failed.
    pub(super) fn error(&self, error: io::Error, source: &Path, target: &Path) -> BackupError {
        if self.failed {
            BackupError::Read(source.to_owned(), error)
        } else {
            BackupError::Write(target.to_owned(), error)
        }
    }

    /// Copies the rest of the content. Errors are those of reading or of writing, see [`Content::error`].
    pub(super) fn copy_to(&mut self, to: &mut dyn Write) -> io::Result<()> {
        io::copy(&mut BufReader::with_capacity(COPY_BYTES, self), to).map(drop)
    }

    /// Length and SHA-256 of the bytes read.
    pub(super) fn finish(self) -> (u64, String) {
        (self.bytes, hex::text(&self.digest.finalize()))
    }
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer);
        self.failed = read.is_err();
        let length = read?;
        self.digest.update(&buffer[..length]);
        self.bytes += length as u64;
        Ok(length)
    }
}
