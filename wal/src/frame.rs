//! The bytes of a frame: one group of records that becomes durable together. Pure: no disk, no state.
//!
//! `FORMAT.md` describes them. The log encodes frames, the reader decodes them.

use crate::error::FrameFault;
use crate::{Sequence, file};

/// Maximum size of any frame in bytes, header included, whatever the options say. It limits what a corrupt length can
/// make a reader allocate.
pub const FRAME_BYTES_LIMIT: u32 = 64 << 20;

/// Size of a frame's header in bytes.
pub(crate) const FRAME_HEADER_BYTES: usize = 32;

/// The first byte never occurs in UTF-8, so text in a payload cannot be mistaken for a frame.
pub(crate) const FRAME_MAGIC: [u8; 4] = [0xF7, b'T', b'W', b'F'];

/// Size of the length in front of each record of a payload.
const RECORD_LENGTH_BYTES: usize = 4;

const _: () = assert!(FRAME_BYTES_LIMIT as usize > FRAME_HEADER_BYTES);
const _: () = assert!(FRAME_HEADER_BYTES < file::FILE_HEADER_BYTES as usize);

/// Position of a frame: the first sequence of its file, and its offset there. It is part of the checksum, so a frame that
/// was written to, or is read from, another place is invalid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position(pub(crate) Sequence, pub(crate) u64);

/// Type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// At least one record.
    Records = 1,
    /// No records: the log was closed cleanly, so everything before it is complete.
    Closed = 2,
}

/// A frame's header, with its checksum verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    pub(crate) payload_bytes: u32,
    pub(crate) records: u32,
    pub(crate) first_sequence: Sequence,
    pub(crate) payload_crc: u32,
    /// Checksum over position, header and, through `payload_crc`, the payload: it identifies this frame.
    pub(crate) crc: u32,
}

/// Size of a frame with these records in bytes, header included.
pub(crate) fn frame_bytes(records: &[impl AsRef<[u8]>]) -> u64 {
    records.iter().fold(FRAME_HEADER_BYTES as u64, |bytes, record| {
        bytes + (RECORD_LENGTH_BYTES + record.as_ref().len()) as u64
    })
}

/// Encodes a frame into the buffer, replacing its content, and returns the frame's checksum. The caller has checked
/// [`frame_bytes`] against a limit of at most [`FRAME_BYTES_LIMIT`].
pub(crate) fn encode(
    buffer: &mut Vec<u8>,
    position: Position,
    kind: FrameKind,
    first_sequence: Sequence,
    records: &[impl AsRef<[u8]>],
) -> u32 {
    buffer.clear();
    buffer.resize(FRAME_HEADER_BYTES, 0);
    for record in records {
        let record = record.as_ref();
        buffer.extend_from_slice(&(record.len() as u32).to_le_bytes());
        buffer.extend_from_slice(record);
    }
    let (header, payload) = buffer.split_at_mut(FRAME_HEADER_BYTES);
    header[0..4].copy_from_slice(&FRAME_MAGIC);
    header[4] = kind as u8;
    header[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[12..16].copy_from_slice(&(records.len() as u32).to_le_bytes());
    header[16..24].copy_from_slice(&first_sequence.to_le_bytes());
    header[24..28].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    let crc = header_crc(position, &header[..28]);
    header[28..32].copy_from_slice(&crc.to_le_bytes());
    crc
}

impl FrameHeader {
    /// Decodes and verifies a header that was read at the position.
    pub(crate) fn decode(
        bytes: &[u8; FRAME_HEADER_BYTES],
        position: Position,
    ) -> Result<FrameHeader, FrameFault> {
        let magic = file::array(bytes, 0);
        if magic != FRAME_MAGIC {
            return Err(FrameFault::Magic { found: magic });
        }
        let expected = u32::from_le_bytes(file::array(bytes, 28));
        let found = header_crc(position, &bytes[..28]);
        if expected != found {
            return Err(FrameFault::HeaderChecksum { expected, found });
        }
        let kind = match bytes[4] {
            1 => FrameKind::Records,
            2 => FrameKind::Closed,
            _ => return Err(FrameFault::Layout),
        };
        let header = FrameHeader {
            kind,
            payload_bytes: u32::from_le_bytes(file::array(bytes, 8)),
            records: u32::from_le_bytes(file::array(bytes, 12)),
            first_sequence: u64::from_le_bytes(file::array(bytes, 16)),
            payload_crc: u32::from_le_bytes(file::array(bytes, 24)),
            crc: expected,
        };
        let bytes = header.frame_bytes();
        if bytes > u64::from(FRAME_BYTES_LIMIT) {
            return Err(FrameFault::TooLarge { bytes });
        }
        let least = u64::from(header.records) * RECORD_LENGTH_BYTES as u64;
        let fits = match kind {
            FrameKind::Records => header.records > 0 && least <= u64::from(header.payload_bytes),
            FrameKind::Closed => header.records == 0 && header.payload_bytes == 0,
        };
        // The sequence behind the last record, and the one behind that, must not overflow.
        let behind = header.first_sequence.checked_add(u64::from(header.records) + 1);
        if !fits || behind.is_none() {
            return Err(FrameFault::Layout);
        }
        Ok(header)
    }

    /// Size of the whole frame in bytes.
    pub(crate) fn frame_bytes(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + u64::from(self.payload_bytes)
    }

    /// Verifies the payload against this header.
    pub(crate) fn verify(&self, payload: &[u8]) -> Result<(), FrameFault> {
        let found = crc32fast::hash(payload);
        if found != self.payload_crc {
            return Err(FrameFault::PayloadChecksum {
                expected: self.payload_crc,
                found,
            });
        }
        let whole = records(payload).try_fold(0_u32, |count, record| record.map(|_| count + 1));
        if whole == Some(self.records) {
            Ok(())
        } else {
            Err(FrameFault::Layout)
        }
    }
}

/// The records of a payload, in order; ends with one `None` where a length does not fit.
pub(crate) fn records(mut payload: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    std::iter::from_fn(move || {
        if payload.is_empty() {
            return None;
        }
        let record = payload.split_first_chunk().and_then(|(length, rest)| {
            let length = u32::from_le_bytes(*length) as usize;
            rest.split_at_checked(length)
        });
        let (record, rest) = match record {
            Some((record, rest)) => (Some(record), rest),
            None => (None, &[][..]),
        };
        payload = rest;
        Some(record)
    })
}

fn header_crc(position: Position, header: &[u8]) -> u32 {
    let Position(file_first_sequence, offset) = position;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&file_first_sequence.to_le_bytes());
    hasher.update(&offset.to_le_bytes());
    hasher.update(header);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by the fuzz target `log_file`: reading a frame that ends with the last sequence but one panicked with
    /// overflow checks.
    #[test]
    fn a_frame_beyond_the_last_sequence_is_refused() {
        let position = Position(1, 64);
        let mut buffer = Vec::new();
        for (first_sequence, reads) in [
            (1, true),
            (u64::MAX - 2, true),
            (u64::MAX - 1, false),
            (u64::MAX, false),
        ] {
            encode(
                &mut buffer,
                position,
                FrameKind::Records,
                first_sequence,
                &[b"record"],
            );
            let header = FrameHeader::decode(&file::array(&buffer, 0), position);
            assert_eq!(header.is_ok(), reads, "{first_sequence}");
        }
    }
}
