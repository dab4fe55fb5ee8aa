//! A file's bytes on their way through: counted and hashed as they pass, and told apart by who failed.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

use super::manifest::hex;

/// Bytes moved at once.
const COPY_BYTES: usize = 256 << 10;

/// Counts and hashes what is read through it.
pub(super) struct Content<'a> {
    from: &'a mut dyn Read,
    digest: Sha256,
    bytes: u64,
    failed: bool,
}

/// Who failed.
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

    /// Says whose error one is that came out of a copy of this.
    pub(super) fn blame(&self, error: io::Error) -> CopyError {
        if self.failed {
            CopyError::Read(error)
        } else {
            CopyError::Write(error)
        }
    }

    /// Moves all of it.
    pub(super) fn copy_to(&mut self, to: &mut dyn Write) -> Result<(), CopyError> {
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            match self.read(&mut buffer).map_err(CopyError::Read)? {
                0 => return Ok(()),
                length => to.write_all(&buffer[..length]).map_err(CopyError::Write)?,
            }
        }
    }

    /// Length and SHA-256 of what was read.
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
