//! The directory of a bucket: its names, and the manifest that says which of them count.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wal::Sequence;
use wal::disk::{Disk, list_existing};

use crate::checked_file;
use crate::checkpoint::manifest::SEQUENCES_UNKNOWN_MAX;

const MANIFEST_MAGIC: &[u8; 8] = b"TWMANI01";
const MANIFEST_NAME: &str = "manifest";
const SEGMENT_SUFFIX: &str = ".segment";
const ANSWERS_SUFFIX: &str = ".answers";
/// Ending of the name under which the directory of a damaged bucket is kept.
const ASIDE_SUFFIX: &str = ".damaged";

/// Which files make up a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketManifest {
    /// Records up to here are in the segments.
    pub covered: Sequence,
    /// Sequence the next row gets.
    pub next_sequence: u64,
    /// Id of the next file.
    pub next_file: u64,
    /// Segments in use.
    pub segments: Vec<u64>,
    /// Answers files in use, oldest first.
    pub answers: Vec<u64>,
    /// When the last of the ingests covered was taken, UTC nanoseconds; `None` also where an older program wrote this.
    #[serde(default)]
    pub ingested_at_ns: Option<i64>,
}

/// The directory of one bucket.
#[derive(Clone, Debug)]
pub struct BucketDir(PathBuf);

/// What is in a bucket's directory, by name.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Ids of segment files.
    pub segments: Vec<u64>,
    /// Ids of answers files.
    pub answers: Vec<u64>,
}

impl BucketDir {
    /// Where the directory of a bucket is.
    pub fn of(data_dir: &Path, ordinal: u32) -> Self {
        BucketDir(data_dir.join("buckets").join(format!("{ordinal:08}")))
    }

    /// The ordinal that a name in `buckets/` stands for; `None` for a name that is none of ours.
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

    /// The manifest, `None` when there is none.
    ///
    /// # Errors
    /// The disk's, or damage, for people.
    pub fn read_manifest(&self, disk: &dyn Disk) -> Result<Option<BucketManifest>, String> {
        let path = self.manifest_path();
        let content = checked_file::read(disk, &path, MANIFEST_MAGIC).map_err(|error| error.to_string())?;
        let decoded = content.map(|content| rmp_serde::from_slice(&content)).transpose();
        decoded.map_err(|error| format!("{} does not read: {error}", path.display()))
    }

    /// What is in it; nothing when it does not exist.
    ///
    /// # Errors
    /// The disk's.
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

    /// Has it bear another name, which nobody removes.
    ///
    /// # Errors
    /// The disk's.
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
    /// What a bucket has whose manifest is lost, as far as the names of its files tell: the newest segment, for a merge
    /// may have written the rows of the others again.
    pub fn of_newest(listing: &Listing) -> Self {
        BucketManifest {
            next_sequence: SEQUENCES_UNKNOWN_MAX,
            segments: listing.segments.iter().max().copied().into_iter().collect(),
            answers: listing.answers.clone(),
            ..BucketManifest::default()
        }
    }
}
