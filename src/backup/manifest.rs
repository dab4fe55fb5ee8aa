//! The manifest of a backup. Documented in FORMAT.md.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::BackupError;
use crate::checkpoint::Layout;
use crate::hex;

/// Format version that this program writes, and the latest that it reads. It determines the layout of the data
/// directory inside: 1 has a directory per bucket, 2 one manifest for all.
pub(super) const FORMAT_VERSION: u32 = 2;

/// Name of the manifest within a backup.
pub(super) const MANIFEST_NAME: &str = "MANIFEST";
/// Prefix of the names of all other files.
pub(super) const DATA_PREFIX: &str = "data/";

const MAGIC: &str = "tidewatch-backup";

/// The names in a data directory, of either version. Nothing else is restored into one.
const ROOTS: [&str; 9] = Layout::NAMES;

/// The files of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// When the backup began, in RFC 3339.
    pub created_at: String,
    /// Version of the program that made it.
    pub program: String,
    /// Sequence of the last record in it.
    pub last_record: u64,
    /// Sorted by path.
    pub files: Vec<FileEntry>,
    /// Damage of the files before they were copied, for the operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damages: Vec<String>,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path within the data directory, with `/`.
    pub path: String,
    pub bytes: u64,
    /// SHA-256 of the content, 64 hex digits.
    pub sha256: String,
}

impl Manifest {
    pub(super) fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let mut content = serde_json::to_vec_pretty(self)?;
        content.push(b'\n');
        let mut bytes = format!("{MAGIC} {FORMAT_VERSION} {}\n", sha256(&content)).into_bytes();
        bytes.extend_from_slice(&content);
        Ok(bytes)
    }

    /// Decodes the manifest of the backup at this path.
    pub(super) fn decode(backup: &Path, bytes: &[u8]) -> Result<Self, BackupError> {
        let damaged = || {
            let fault = format!("{MANIFEST_NAME} is not what was written");
            BackupError::Faults(backup.to_owned(), vec![fault])
        };
        let (version, content) = split(bytes).ok_or_else(damaged)?;
        match version {
            1..=FORMAT_VERSION => serde_json::from_slice(content).map_err(|_| damaged()),
            0 => Err(damaged()),
            _ => Err(BackupError::Version(backup.to_owned(), version)),
        }
    }

    /// Total length of the files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// The format version and the content; `None` if the first line is not one of a manifest with this content.
fn split(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (head, content) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]);
    let [magic, version, checksum] = head.split(' ').collect::<Vec<_>>().try_into().ok()?;
    (magic == MAGIC && checksum == sha256(content)).then_some((version.parse().ok()?, content))
}

/// Whether a path in a backup is a path of a data directory that does not lead outside.
pub(super) fn is_of_data_dir(path: &str) -> bool {
    let mut parts = path.split('/');
    let root = parts.next().unwrap_or_default();
    ROOTS.contains(&root) && parts.all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
}

/// The checksum as the manifest writes it.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex::text(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            created_at: "2026-01-02T03:04:05Z".to_owned(),
            program: "0.1.0".to_owned(),
            last_record: 7,
            files: vec![FileEntry {
                path: "log/00000000000000000001.log".to_owned(),
                bytes: 3,
                sha256: sha256(b"abc"),
            }],
            damages: Vec::new(),
        }
    }

    fn decode(bytes: &[u8]) -> Result<Manifest, BackupError> {
        Manifest::decode(Path::new("backup"), bytes)
    }

    #[test]
    fn a_manifest_round_trips() {
        let encoded = manifest().encode().unwrap();
        assert_eq!(decode(&encoded).unwrap(), manifest());
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(manifest().files[0].sha256, known);
    }

    #[test]
    fn version_1_is_read_and_later_versions_are_refused() {
        let encoded = String::from_utf8(manifest().encode().unwrap()).unwrap();
        let of = |version: u32| encoded.replacen(" 2 ", &format!(" {version} "), 1).into_bytes();
        assert_eq!(decode(&of(1)).unwrap(), manifest());
        assert!(matches!(decode(&of(0)), Err(BackupError::Faults(..))));
        assert!(matches!(decode(&of(3)), Err(BackupError::Version(_, 3))));
    }

    #[test]
    fn a_truncated_or_altered_manifest_is_refused() {
        let encoded = manifest().encode().unwrap();
        for end in 0..encoded.len() {
            let read = decode(&encoded[..end]);
            assert!(matches!(read, Err(BackupError::Faults(..))), "{end}");
        }
        for at in 0..encoded.len() {
            let mut altered = encoded.clone();
            altered[at] ^= 4;
            let read = decode(&altered);
            // The version's digit is the only byte that can change and still read.
            assert!(
                matches!(read, Err(BackupError::Faults(..) | BackupError::Version(_, 6))),
                "{at}: {read:?}"
            );
        }
    }

    #[test]
    fn paths_outside_the_data_directory_are_refused() {
        for path in [
            "log/1.log",
            "manifest",
            "segments/1.segment",
            "catalog.snapshot",
            "buckets/00000001/manifest",
        ] {
            assert!(is_of_data_dir(path), "{path}");
        }
        for path in [
            "",
            "LOCK",
            "/etc/passwd",
            "../log",
            "log/../../x",
            "log//x",
            "log/./x",
            "log/",
            "x/log",
        ] {
            assert!(!is_of_data_dir(path), "{path}");
        }
    }
}
