//! Reads one log file frame by frame through a bounded window. Never writes, and does not interpret faults: `walk`
//! does.

use std::io;
use std::path::Path;

use crate::Sequence;
use crate::error::{FrameFault, HeaderFault, LogError};
use crate::file::{FILE_HEADER_BYTES, FORMAT_VERSION, FileHeader, HeaderError, array};
use crate::frame::{FRAME_HEADER_BYTES, FRAME_MAGIC, FrameHeader, Position};
use disk::DiskFile;

/// Bytes per read: large enough that small frames share one read, small compared to the frame limit.
const WINDOW_BYTES: u64 = 256 << 10;

/// An open log file and the part of it that is in memory: at most the window or one frame.
pub(crate) struct FileReader<'a> {
    file: Box<dyn DiskFile>,
    pub(crate) path: &'a Path,
    pub(crate) first_sequence: Sequence,
    pub(crate) file_bytes: u64,
    window: Vec<u8>,
    window_offset: u64,
}

/// Result of reading a frame at an offset.
pub(crate) enum Found<'a> {
    Frame(FrameHeader, &'a [u8]),
    Bad {
        fault: FrameFault,
        /// Where the frame would end; known if its header is valid and the file is long enough.
        end: Option<u64>,
    },
    End,
}

impl<'a> FileReader<'a> {
    /// Reads a file whose name says that it begins with `first_sequence`.
    pub(crate) fn new(
        file: Box<dyn DiskFile>,
        path: &'a Path,
        first_sequence: Sequence,
    ) -> Result<FileReader<'a>, LogError> {
        let file_bytes = file.len().map_err(LogError::io("read", path))?;
        Ok(FileReader {
            file,
            path,
            first_sequence,
            file_bytes,
            window: Vec::new(),
            window_offset: 0,
        })
    }

    /// Reads and verifies the file's header; returns it and its checksum.
    ///
    /// # Errors
    /// I/O errors; [`LogError::UnsupportedVersion`] for a valid header of a later version.
    pub(crate) fn header(&mut self) -> Result<Result<(FileHeader, u32), HeaderFault>, LogError> {
        let found = self.file_bytes;
        if found < FILE_HEADER_BYTES {
            return Ok(Err(HeaderFault::Short { found }));
        }
        match FileHeader::decode(&array(self.bytes(0, FILE_HEADER_BYTES)?, 0)) {
            Ok((header, crc)) if header.first_sequence == self.first_sequence => Ok(Ok((header, crc))),
            Ok((header, _)) => Ok(Err(HeaderFault::Name {
                found: header.first_sequence,
            })),
            Err(HeaderError::Fault(fault)) => Ok(Err(fault)),
            Err(HeaderError::Version(found)) => Err(LogError::UnsupportedVersion {
                path: self.path.to_owned(),
                found,
                supported: FORMAT_VERSION,
            }),
        }
    }

    /// Reads the frame at the offset and verifies its checksums.
    pub(crate) fn frame(&mut self, offset: u64) -> Result<Found<'_>, LogError> {
        let left = self.file_bytes.saturating_sub(offset);
        if left == 0 {
            return Ok(Found::End);
        }
        let header = match self.frame_header(offset)? {
            Ok(header) => header,
            Err(fault) => return Ok(Found::Bad { fault, end: None }),
        };
        let bytes = self.bytes(offset, header.frame_bytes())?;
        let payload = &bytes[FRAME_HEADER_BYTES..];
        Ok(match header.verify(payload) {
            Ok(()) => Found::Frame(header, payload),
            Err(fault) => Found::Bad {
                fault,
                end: Some(offset + header.frame_bytes()),
            },
        })
    }

    /// Finds the first valid frame at or after the offset whose sequence is at least `sequence`; returns its offset and
    /// sequence. Older frames are remains of earlier content and say nothing about what is missing.
    pub(crate) fn next_valid(
        &mut self,
        mut offset: u64,
        sequence: Sequence,
    ) -> Result<Option<(u64, Sequence)>, LogError> {
        while offset + FRAME_HEADER_BYTES as u64 <= self.file_bytes {
            let window_bytes = WINDOW_BYTES.min(self.file_bytes - offset);
            let window = self.bytes(offset, window_bytes)?;
            let Some(at) = window
                .windows(FRAME_MAGIC.len())
                .position(|bytes| bytes == FRAME_MAGIC)
            else {
                // The last bytes may be the beginning of a magic that continues behind the window.
                offset += window_bytes - (FRAME_MAGIC.len() as u64 - 1);
                continue;
            };
            offset += at as u64;
            // The header's checksum covers its position, so a false candidate hardly ever costs reading a payload.
            if let Ok(header) = self.frame_header(offset)?
                && header.first_sequence >= sequence
                && let Found::Frame(..) = self.frame(offset)?
            {
                return Ok(Some((offset, header.first_sequence)));
            }
            offset += 1;
        }
        Ok(None)
    }

    /// Whether all bytes from the offset on are zero.
    pub(crate) fn is_zero_from(&mut self, mut offset: u64) -> Result<bool, LogError> {
        while offset < self.file_bytes {
            let window_bytes = WINDOW_BYTES.min(self.file_bytes - offset);
            if self.bytes(offset, window_bytes)?.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            offset += window_bytes;
        }
        Ok(true)
    }

    fn frame_header(&mut self, offset: u64) -> Result<Result<FrameHeader, FrameFault>, LogError> {
        let left = self.file_bytes.saturating_sub(offset);
        let header_bytes = FRAME_HEADER_BYTES as u64;
        if left < header_bytes {
            return Ok(Err(FrameFault::Short {
                needed: header_bytes,
                found: left,
            }));
        }
        let position = Position(self.first_sequence, offset);
        let header = FrameHeader::decode(&array(self.bytes(offset, header_bytes)?, 0), position);
        // Checked before anything is allocated for the payload.
        Ok(header.and_then(|header| match header.frame_bytes() {
            needed if needed > left => Err(FrameFault::Short { needed, found: left }),
            _ => Ok(header),
        }))
    }

    /// Bytes of the file. The caller has checked that the range lies within it.
    fn bytes(&mut self, offset: u64, bytes: u64) -> Result<&[u8], LogError> {
        let end = offset + bytes;
        let window_end = self.window_offset + self.window.len() as u64;
        if offset < self.window_offset || end > window_end {
            let read = bytes.max(WINDOW_BYTES).min(self.file_bytes - offset);
            // Bytes of the previous window are overwritten: zeroing them first would cost as much as reading.
            self.window.resize(read as usize, 0);
            self.window_offset = offset;
            let filled = self.file.read_exact_at(offset, &mut self.window);
            filled.map_err(|error: io::Error| {
                self.window.clear();
                LogError::io("read", self.path)(error)
            })?;
        }
        let start = (offset - self.window_offset) as usize;
        Ok(&self.window[start..start + bytes as usize])
    }
}
