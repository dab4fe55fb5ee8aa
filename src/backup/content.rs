//! Counts and hashes the bytes of a file while they are copied, and distinguishes read errors from write errors.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

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
    pub(super) fn blame(&self, error: io::Error) -> CopyError {
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
        let read = loop {
            match self.from.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.failed = read.is_err();
        let length = read?;
        self.digest.update(&buffer[..length]);
        self.bytes += length as u64;
        Ok(length)
    }
}
