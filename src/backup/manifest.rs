//! The manifest of a backup. Documented in FORMAT.md.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::checkpoint::Layout;

/// Format version that this program writes, and the latest that it reads. It determines the layout of the data
/// directory inside: 1 has a directory per bucket, 2 one manifest for all.
pub(super) const FORMAT_VERSION: u32 = 2;

/// Name of the manifest within a backup.
pub(super) const MANIFEST_NAME: &str = "MANIFEST";
/// Prefix of the names of all other files.
pub(super) const DATA_PREFIX: &str = "data/";

const MAGIC: &str = "tidewatch-backup";

/// The names in a data directory, of either version. Nothing else is restored into one.
pub(super) const ROOTS: [&str; 8] = Layout::NAMES;

/// The files of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    /// When the backup began, in RFC 3339.
    pub(super) created_at: String,
    /// Version of the program that made it.
    pub(super) program: String,
    /// Sequence of the last record in it.
    pub(super) last_record: u64,
    /// Sorted by path.
    pub(super) files: Vec<FileEntry>,
    /// Damage of the files before they were copied, for the operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) damages: Vec<String>,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    /// Path within the data directory, with `/`.
    pub(super) path: String,
    pub(super) bytes: u64,
    /// SHA-256 of the content, 64 hex digits.
    pub(super) sha256: String,
}

/// Why bytes are not a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ManifestError {
    /// Truncated, altered, or not a manifest at all.
    Damaged,
    /// Of a later format version.
    Version(u32),
}

impl Manifest {
    pub(super) fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let mut content = serde_json::to_vec_pretty(self)?;
        content.push(b'\n');
        let mut bytes = format!("{MAGIC} {FORMAT_VERSION} {}\n", sha256(&content)).into_bytes();
        bytes.extend_from_slice(&content);
        Ok(bytes)
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        let damaged = || ManifestError::Damaged;
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(damaged)?;
        let (head, content) = (&bytes[..end], &bytes[end + 1..]);
        let head = std::str::from_utf8(head).map_err(|_| ManifestError::Damaged)?;
        let mut words = head.split(' ');
        if words.next() != Some(MAGIC) {
            return Err(ManifestError::Damaged);
        }
        let version = words.next().and_then(|word| word.parse().ok());
        let version = version.ok_or_else(damaged)?;
        if words.next() != Some(sha256(content).as_str()) || words.next().is_some() {
            return Err(ManifestError::Damaged);
        }
        match version {
            0 => return Err(ManifestError::Damaged),
            1..=FORMAT_VERSION => {}
            _ => return Err(ManifestError::Version(version)),
        }
        serde_json::from_slice(content).map_err(|_| ManifestError::Damaged)
    }

    /// Damage of the files before they were copied.
    #[cfg(test)]
    pub(crate) fn damages(&self) -> &[String] {
        &self.damages
    }

    /// Total length of the files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// Whether a path in a backup is a path of a data directory that does not lead outside.
pub(super) fn is_of_data_dir(path: &str) -> bool {
    let mut parts = path.split('/');
    let root = parts.next().unwrap_or_default();
    ROOTS.contains(&root) && parts.all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
}

/// The checksum as the manifest writes it.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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

    #[test]
    fn a_manifest_reads_as_it_was_written() {
        let encoded = manifest().encode().unwrap();
        assert_eq!(Manifest::decode(&encoded), Ok(manifest()));
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(manifest().files[0].sha256, known);
    }

    #[test]
    fn manifests_of_version_1_are_read_and_later_ones_are_not() {
        let encoded = String::from_utf8(manifest().encode().unwrap()).unwrap();
        let of = |version: u32| encoded.replacen(" 2 ", &format!(" {version} "), 1).into_bytes();
        assert_eq!(Manifest::decode(&of(1)), Ok(manifest()));
        assert_eq!(Manifest::decode(&of(0)), Err(ManifestError::Damaged));
        assert_eq!(Manifest::decode(&of(3)), Err(ManifestError::Version(3)));
    }

    #[test]
    fn a_manifest_cut_short_or_altered_anywhere_is_none() {
        let encoded = manifest().encode().unwrap();
        for end in 0..encoded.len() {
            assert_eq!(
                Manifest::decode(&encoded[..end]),
                Err(ManifestError::Damaged),
                "{end}"
            );
        }
        for at in 0..encoded.len() {
            let mut altered = encoded.clone();
            altered[at] ^= 4;
            let read = Manifest::decode(&altered);
            // The version's digit is the only byte that can change and still read.
            assert!(
                matches!(read, Err(ManifestError::Damaged | ManifestError::Version(6))),
                "{at}: {read:?}"
            );
        }
    }

    #[test]
    fn paths_that_lead_out_of_the_data_directory_are_refused() {
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
