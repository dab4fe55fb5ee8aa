//! The root: the object that names all others of a checkpoint. Documented in FORMAT.md.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::RemoteError;
use super::names::Epoch;
use crate::catalog::Bytes;
use crate::checked_file;
use crate::checkpoint::{Manifest, ManifestVersion};

/// Of roots whose manifest is of each version. The version is raised when an older program could misread a root, or the
/// files that it names. New members do not raise it.
const fn magic_of(version: ManifestVersion) -> &'static [u8; 8] {
    match version {
        ManifestVersion::Plain => b"TWROOT01",
        ManifestVersion::DeadBlocks => b"TWROOT02",
        ManifestVersion::PackedBlocks => b"TWROOT03",
        ManifestVersion::ShortEntries => b"TWROOT04",
        ManifestVersion::Digits => b"TWROOT05",
    }
}
/// The number of the newest version.
const VERSION: u32 = ManifestVersion::ALL.len() as u32;
/// The prefix common to roots of all versions.
const KIND: &[u8] = b"TWROOT";

/// Largest root that is written or read: 40 bytes for each bucket, and a few hundred for each file.
pub(super) const ROOT_BYTES_MAX: u64 = 256 << 20;

/// Bytes at each end of a file that [`ends`] covers.
const END_BYTES: usize = 4_096;

/// A checkpoint in an object store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// When it was published, in UTC nanoseconds by the writer's clock.
    pub at_ns: i64,
    /// Version of the program that wrote it.
    pub program: String,
    pub shard: u16,
    pub epoch: Epoch,
    pub number: u64,
    pub manifest: Manifest,
    /// The files that the manifest names, sorted by `local`.
    pub files: Vec<FileEntry>,
}

/// A file, and the object that has its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path within the data directory, with `/`.
    pub local: String,
    /// Name of the object.
    pub object: String,
    pub bytes: u64,
    /// SHA-256 of the content.
    pub sha256: Bytes<32>,
    /// See [`ends`].
    pub ends: u32,
}

impl Root {
    /// The bytes of the object.
    ///
    /// # Errors
    /// It is too large, or does not encode.
    pub fn encode(&self) -> Result<Vec<u8>, RemoteError> {
        let content = rmp_serde::to_vec_named(self)?;
        match content.len() as u64 > ROOT_BYTES_MAX {
            true => Err(RemoteError::RootTooLarge(content.len() as u64)),
            false => {
                let magic = magic_of(self.manifest.version());
                Ok(checked_file::encode(magic, &content))
            }
        }
    }

    /// Decodes the object of this name.
    ///
    /// # Errors
    /// It is damaged, or of a later version.
    pub fn decode(name: &str, bytes: &[u8]) -> Result<Self, RemoteError> {
        let damaged = |what: String| RemoteError::DamagedRoot(name.to_owned(), what);
        let magics = ManifestVersion::ALL.map(magic_of);
        let known = magics.iter().find(|magic| bytes.starts_with(magic.as_slice()));
        let magic = known.unwrap_or(&magics[0]);
        let content = checked_file::decode(magic, bytes).map_err(|expected| {
            let version = bytes
                .strip_prefix(KIND)
                .and_then(|rest| std::str::from_utf8(rest.get(..2)?).ok()?.parse::<u32>().ok());
            match version {
                Some(version) if version > VERSION => RemoteError::Version(name.to_owned(), version),
                _ => damaged(format!("expected {expected}")),
            }
        })?;
        let root: Self = rmp_serde::from_slice(content).map_err(|error| damaged(error.to_string()))?;
        match magic_of(root.manifest.version()) == *magic {
            true => Ok(root),
            false => Err(damaged(
                "expected the version that goes with its manifest".to_owned(),
            )),
        }
    }

    /// Total length of the files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// Identifies a file's content without reading all of it: the CRC-32 of its first and last 4 KiB. Files of a data
/// directory end with tables and checksums of everything before. It tells a file from another that has its number, as
/// after a crash, or in another directory; what is stored and restored is checked by SHA-256.
pub(super) fn ends(bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[..bytes.len().min(END_BYTES)]);
    crc.update(&bytes[bytes.len().saturating_sub(END_BYTES)..]);
    crc.finalize()
}

pub(super) fn sha256(bytes: &[u8]) -> Bytes<32> {
    Bytes(Sha256::digest(bytes).into())
}
