//! Name and header of a log file, as described in `FORMAT.md`. Pure: no disk, no state.

use std::ffi::OsStr;

use crate::Sequence;
use crate::error::HeaderFault;

/// Format version that this program writes, and the latest that it reads.
pub const FORMAT_VERSION: u32 = 1;

/// Size of a file's header in bytes.
pub(crate) const FILE_HEADER_BYTES: u64 = 64;

const FILE_MAGIC: [u8; 8] = [0xF7, b'T', b'W', b'L', b'O', b'G', b'\r', b'\n'];

const NAME_DIGITS: usize = 20;
const NAME_SUFFIX: &str = ".log";

const _: () = assert!(
    u64::MAX.ilog10() as usize + 1 == NAME_DIGITS,
    "names sort as their numbers do"
);

/// Name of the file whose first record is `first_sequence`.
pub(crate) fn name(first_sequence: Sequence) -> String {
    format!("{first_sequence:0NAME_DIGITS$}{NAME_SUFFIX}")
}

/// First sequence of a log file, parsed from its name; `None` if this is not the name of a log file.
pub(crate) fn parse_name(name: &OsStr) -> Option<Sequence> {
    let digits = name.to_str()?.strip_suffix(NAME_SUFFIX)?;
    let ours = digits.len() == NAME_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|&first| ours && first > 0)
}

/// The decoded header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) first_sequence: Sequence,
    pub(crate) predecessor: Predecessor,
}

/// The previous file, as it was when this file was created; all zero if there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Predecessor {
    pub(crate) first_sequence: Sequence,
    pub(crate) bytes: u64,
    /// Checksum of its last frame, or of its header if it has no frame.
    pub(crate) crc: u32,
}

/// Why a header could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderError {
    Fault(HeaderFault),
    /// Valid, but of an unknown version.
    Version(u32),
}

impl FileHeader {
    /// Encodes the header; returns its bytes and their checksum.
    pub(crate) fn encode(&self) -> ([u8; FILE_HEADER_BYTES as usize], u32) {
        let mut bytes = [0; FILE_HEADER_BYTES as usize];
        bytes[0..8].copy_from_slice(&FILE_MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.predecessor.first_sequence.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.predecessor.bytes.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.predecessor.crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        (bytes, crc)
    }

    /// Decodes a header; returns it and its checksum.
    pub(crate) fn decode(bytes: &[u8; FILE_HEADER_BYTES as usize]) -> Result<(FileHeader, u32), HeaderError> {
        if bytes[0..8] != FILE_MAGIC {
            return Err(HeaderError::Fault(HeaderFault::Magic));
        }
        let expected = u32::from_le_bytes(array(bytes, 60));
        let found = crc32fast::hash(&bytes[..60]);
        if expected != found {
            return Err(HeaderError::Fault(HeaderFault::Checksum { expected, found }));
        }
        let version = u32::from_le_bytes(array(bytes, 8));
        if version != FORMAT_VERSION {
            return Err(HeaderError::Version(version));
        }
        let header = FileHeader {
            first_sequence: u64::from_le_bytes(array(bytes, 16)),
            predecessor: Predecessor {
                first_sequence: u64::from_le_bytes(array(bytes, 24)),
                bytes: u64::from_le_bytes(array(bytes, 32)),
                crc: u32::from_le_bytes(array(bytes, 40)),
            },
        };
        Ok((header, expected))
    }
}

/// The `N` bytes at an offset of a header. Offsets are constants that lie within it.
pub(crate) fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[offset..offset + N]);
    array
}
