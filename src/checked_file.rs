//! Small files that are replaced as a whole (the manifest): a magic that identifies kind and version, a length, a
//! checksum, the content. Documented in src/journal/FORMAT.md, "Checked files".

use std::io;
use std::path::{Path, PathBuf};

use disk::{Disk, replace_file};
use wal::Flip;

const HEADER_BYTES: usize = 8 + 8 + 4;

/// Why a checked file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CheckedFileError {
    /// A disk error.
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// The file is damaged, or of another kind or version.
    #[error("{0} is damaged: expected {1}; restore it from a backup")]
    Damaged(PathBuf, &'static str),
}

/// Replaces the file atomically and durably.
///
/// # Errors
/// A disk error. Then the old content stays.
pub fn write(disk: &dyn Disk, path: &Path, magic: &[u8; 8], content: &[u8]) -> Result<(), CheckedFileError> {
    replace_file(disk, path, &encode(magic, content))
        .map_err(|error| CheckedFileError::Io(path.to_owned(), error))
}

/// The bytes of a file with this content.
pub fn encode(magic: &[u8; 8], content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + content.len());
    bytes.extend_from_slice(magic);
    bytes.extend_from_slice(&(content.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(content).to_le_bytes());
    bytes.extend_from_slice(content);
    bytes
}

/// The content of a file's bytes.
///
/// # Errors
/// What was expected and is not there.
pub fn decode<'a>(magic: &[u8; 8], bytes: &'a [u8]) -> Result<&'a [u8], &'static str> {
    let rest = bytes.strip_prefix(magic);
    content(rest.ok_or("a file of this kind and version")?)
}

/// Reads the content; returns `None` if the file does not exist.
///
/// # Errors
/// A disk error, or damage.
pub fn read(disk: &dyn Disk, path: &Path, magic: &[u8; 8]) -> Result<Option<Vec<u8>>, CheckedFileError> {
    let bytes = match disk.read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CheckedFileError::Io(path.to_owned(), error)),
    };
    decode(magic, &bytes)
        .map(|content| Some(content.to_vec()))
        .map_err(|expected| CheckedFileError::Damaged(path.to_owned(), expected))
}

/// Extracts the content from the bytes after the magic.
fn content(after_magic: &[u8]) -> Result<&[u8], &'static str> {
    const WHOLE: &str = "a whole header";
    let (len, rest) = after_magic.split_first_chunk().ok_or(WHOLE)?;
    let (checksum, content) = rest.split_first_chunk().ok_or(WHOLE)?;
    if u64::from_le_bytes(*len) != content.len() as u64 {
        return Err("as many bytes as the header says");
    }
    if crc32fast::hash(content) != u32::from_le_bytes(*checksum) {
        return Err("content with the checksum of the header");
    }
    Ok(content)
}

/// Finds the single bit flip that turns the bytes into a checked file with readable content; `None` if there is none.
pub fn flip(bytes: &[u8], magic: &[u8; 8], reads: impl Fn(&[u8]) -> bool) -> Option<Flip> {
    let (header, found) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let begins = |header: &[u8; HEADER_BYTES]| {
        header.starts_with(magic) && header[8..16] == (found.len() as u64).to_le_bytes()
    };
    let checksum = |header: &[u8; HEADER_BYTES]| header[16..].first_chunk().map(|it| u32::from_le_bytes(*it));
    let hash = crc32fast::hash(found);
    let is_sound = |header: &[u8; HEADER_BYTES]| begins(header) && checksum(header) == Some(hash);
    if is_sound(header) {
        return None;
    }
    let of_header = Flip::by_trial(header, is_sound).filter(|_| reads(found));
    of_header.or_else(|| {
        let flip = Flip::by_checksum(found, checksum(header).filter(|_| begins(header))?)?;
        let mut turned = found.to_vec();
        flip.turn(&mut turned);
        reads(&turned).then(|| flip.behind(HEADER_BYTES))
    })
}
