//! The directory of a bucket in format 1, and the manifest that names the files in use.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use disk::{Disk, list_existing};
use serde::{Deserialize, Serialize};
use wal::Sequence;

use crate::checked_file;
use crate::checkpoint::manifest::SEQUENCES_UNKNOWN_MAX;

const MANIFEST_MAGIC: &[u8; 8] = b"TWMANI01";
const MANIFEST_NAME: &str = "manifest";
const SEGMENT_SUFFIX: &str = ".segment";
const ANSWERS_SUFFIX: &str = ".answers";
/// Suffix of the name under which the directory of a damaged bucket is kept.
const ASIDE_SUFFIX: &str = ".damaged";

/// Which files make up a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketManifest {
    /// Records up to this one are in the segments.
    pub covered: Sequence,
    /// Sequence of the next row.
    pub next_sequence: u64,
    /// Id of the next file.
    pub next_file: u64,
    /// Segments in use.
    pub segments: Vec<u64>,
    /// Answers files in use, oldest first.
    pub answers: Vec<u64>,
    /// Time of the last of these ingests, in UTC nanoseconds; `None` also if an older program wrote this.
    #[serde(default)]
    pub ingested_at_ns: Option<i64>,
}

/// The directory of one bucket.
#[derive(Clone, Debug)]
pub struct BucketDir(PathBuf);

/// The contents of a bucket's directory, by name.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Ids of segment files.
    pub segments: Vec<u64>,
    /// Ids of answers files.
    pub answers: Vec<u64>,
}

impl BucketDir {
    /// Path of the directory of a bucket.
    pub fn of(data_dir: &Path, ordinal: u32) -> Self {
        BucketDir(data_dir.join("buckets").join(format!("{ordinal:08}")))
    }

    /// The ordinal of a name in `buckets/`; `None` if it is not the name of a bucket.
    pub fn ordinal(name: &OsString) -> Option<u32> {
        let name = name.to_str()?;
        let ordinal = name.parse::<u32>().ok()?;
        (name == format!("{ordinal:08}")).then_some(ordinal)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn manifest_path(&self) -> PathBuf {
        self.0.join(MANIFEST_NAME)
    }

    pub fn segment_path(&self, id: u64) -> PathBuf {
        self.0.join(format!("{id:012}{SEGMENT_SUFFIX}"))
    }

    /// The path of an answers file.
    pub fn answers_path(&self, id: u64) -> PathBuf {
        self.0.join(format!("{id:012}{ANSWERS_SUFFIX}"))
    }

    /// Reads the manifest; returns `None` if there is none.
    ///
    /// # Errors
    /// A disk error, or damage, as a message for the operator.
    pub fn read_manifest(&self, disk: &dyn Disk) -> Result<Option<BucketManifest>, String> {
        let path = self.manifest_path();
        let content = checked_file::read(disk, &path, MANIFEST_MAGIC).map_err(|error| error.to_string())?;
        let decoded = content.map(|content| rmp_serde::from_slice(&content)).transpose();
        decoded.map_err(|error| format!("{} does not read: {error}", path.display()))
    }

    /// Lists the directory; empty if it does not exist.
    ///
    /// # Errors
    /// A disk error.
    pub fn list(&self, disk: &dyn Disk) -> io::Result<Listing> {
        let mut listing = Listing::default();
        let names = list_existing(disk, &self.0)?;
        let id = |name: &OsString, suffix: &str| name.to_str()?.strip_suffix(suffix)?.parse::<u64>().ok();
        for name in names {
            if let Some(id) = id(&name, SEGMENT_SUFFIX) {
                listing.segments.push(id);
            } else if let Some(id) = id(&name, ANSWERS_SUFFIX) {
                listing.answers.push(id);
            }
        }
        Ok(listing)
    }

    /// Moves the directory to a name that is never removed automatically.
    ///
    /// # Errors
    /// A disk error.
    pub fn move_aside(&self, disk: &dyn Disk) -> io::Result<()> {
        let mut aside = self.0.as_os_str().to_owned();
        aside.push(ASIDE_SUFFIX);
        let aside = PathBuf::from(aside);
        disk.create_dir_all(&aside)?;
        for name in disk.list(&self.0)? {
            disk.rename(&self.0.join(&name), &aside.join(&name))?;
        }
        disk.sync_dir(&aside)?;
        disk.remove_dir_all(&self.0)
    }
}

impl BucketManifest {
    /// Reconstructs the manifest of a bucket that has lost it from its file names. Takes only the newest segment,
    /// because a merge may have rewritten the rows of the others.
    pub fn of_newest(listing: &Listing) -> Self {
        BucketManifest {
            next_sequence: SEQUENCES_UNKNOWN_MAX,
            segments: listing.segments.iter().max().copied().into_iter().collect(),
            answers: listing.answers.clone(),
            ..BucketManifest::default()
        }
    }
}
