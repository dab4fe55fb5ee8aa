//! Reads files, counts and hashes their bytes while they are copied, and distinguishes read errors from write errors.

use std::io::{self, Read, Write};
use std::path::Path;

use disk::DiskFile;
use sha2::{Digest, Sha256};

use super::error::BackupError;
use super::manifest::hex;

/// Size of the copy buffer.
const COPY_BYTES: usize = 256 << 10;

/// A reader that counts and hashes what is read.
pub(super) struct Content<'a> {
    from: &'a mut dyn Read,
    digest: Sha256,
    bytes: u64,
    failed: bool,
}

/// Whether reading or writing failed.
pub(super) enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

impl CopyError {
    /// Adds the path of the file that could not be read or written.
    pub(super) fn of(self, source: &Path, target: &Path) -> BackupError {
        match self {
            CopyError::Read(error) => BackupError::Read(source.to_owned(), error),
            CopyError::Write(error) => BackupError::Write(target.to_owned(), error),
        }
    }
}

/// Reads an open file from its beginning.
pub(super) struct FileReader<'a> {
    file: &'a dyn DiskFile,
    offset: u64,
    bytes: u64,
}

impl<'a> FileReader<'a> {
    pub(super) fn new(file: &'a dyn DiskFile) -> io::Result<Self> {
        Ok(Self {
            file,
            offset: 0,
            bytes: file.len()?,
        })
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.bytes - self.offset).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        self.file.read_exact_at(self.offset, &mut buffer[..length])?;
        self.offset += length as u64;
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

    /// Classifies an error of a copy from this reader as a read or a write error.
    pub(super) fn classify(&self, error: io::Error) -> CopyError {
        if self.failed {
            CopyError::Read(error)
        } else {
            CopyError::Write(error)
        }
    }

    /// Copies the rest of the content.
    pub(super) fn copy_to(&mut self, to: &mut dyn Write) -> Result<(), CopyError> {
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            match self.read(&mut buffer).map_err(CopyError::Read)? {
                0 => return Ok(()),
                length => to.write_all(&buffer[..length]).map_err(CopyError::Write)?,
            }
        }
    }

    /// Length and SHA-256 of the bytes read.
    pub(super) fn finish(self) -> (u64, String) {
        (self.bytes, hex(&self.digest.finalize()))
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
