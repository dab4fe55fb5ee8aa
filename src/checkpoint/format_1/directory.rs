//! The directory of a bucket in format 1, and the manifest that names the files in use.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use engine::SegmentFile;
use serde::{Deserialize, Serialize};
use wal::Sequence;

use super::answers::AnswersFile;
use super::files::bucket_dir;
use crate::checked_file;
use crate::checkpoint::data_dir::DataDir;
use crate::checkpoint::layout::{at, message};
use crate::checkpoint::manifest::SEQUENCES_UNKNOWN_MAX;
use crate::checkpoint::segments::shared;
use crate::sealed_file::SealedDir;

const MANIFEST_MAGIC: &[u8; 8] = b"TWMANI01";
const MANIFEST_NAME: &str = "manifest";
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
pub struct BucketDir<'a> {
    dir: &'a DataDir,
    ordinal: u32,
    pub path: PathBuf,
}

impl<'a> BucketDir<'a> {
    /// The directory of the bucket with this ordinal.
    pub fn of(dir: &'a DataDir, ordinal: u32) -> Self {
        BucketDir {
            dir,
            ordinal,
            path: bucket_dir(dir.path(), ordinal),
        }
    }

    pub fn manifest_path(&self) -> PathBuf {
        self.path.join(MANIFEST_NAME)
    }

    pub fn segments(&self) -> SealedDir {
        SealedDir::new(self.path.clone(), ".segment")
    }

    fn answers(&self) -> SealedDir {
        SealedDir::new(self.path.clone(), ".answers")
    }

    /// Opens a segment and reads its entries; blocks are not read.
    ///
    /// # Errors
    /// A disk error, or damage, as a message for the operator.
    pub fn open_segment(&self, id: u64) -> Result<Arc<SegmentFile>, String> {
        let path = self.segments().file_path(id);
        let bytes = shared(self.dir.map(&path)?);
        let segment = SegmentFile::open_of_bucket(id, self.ordinal, bytes).map_err(at(&path))?;
        segment.part(self.ordinal).map_err(at(&path))?;
        Ok(segment)
    }

    /// Opens an answers file.
    ///
    /// # Errors
    /// A disk error, or damage, as a message for the operator.
    pub fn open_answers(&self, id: u64) -> Result<AnswersFile, String> {
        let path = self.answers().file_path(id);
        AnswersFile::open(self.dir.map(&path)?).ok_or_else(|| format!("{} is damaged", path.display()))
    }

    /// Reads the manifest; returns `None` if there is none.
    ///
    /// # Errors
    /// A disk error, or damage, as a message for the operator.
    pub fn read_manifest(&self) -> Result<Option<BucketManifest>, String> {
        let path = self.manifest_path();
        let content = checked_file::read(self.dir.disk(), &path, MANIFEST_MAGIC).map_err(message)?;
        let decoded = content.map(|content| rmp_serde::from_slice(&content)).transpose();
        decoded.map_err(|error| format!("{} does not read: {error}", path.display()))
    }

    /// Reconstructs the manifest of a bucket that has lost it from its file names. Takes only the newest segment,
    /// because a merge may have rewritten the rows of the others.
    ///
    /// # Errors
    /// A disk error, as a message for the operator.
    pub fn manifest_of_newest(&self) -> Result<BucketManifest, String> {
        let list = |files: SealedDir| files.list(self.dir.disk()).map_err(at(&self.path));
        Ok(BucketManifest {
            next_sequence: SEQUENCES_UNKNOWN_MAX,
            segments: list(self.segments())?.ids.pop().into_iter().collect(),
            answers: list(self.answers())?.ids,
            ..BucketManifest::default()
        })
    }

    /// Moves the directory to a name that is never removed automatically.
    ///
    /// # Errors
    /// A disk error.
    pub fn move_aside(&self) -> io::Result<()> {
        let disk = self.dir.disk();
        let mut aside = self.path.as_os_str().to_owned();
        aside.push(ASIDE_SUFFIX);
        let aside = PathBuf::from(aside);
        disk.create_dir_all(&aside)?;
        for name in disk.list(&self.path)? {
            disk.rename(&self.path.join(&name), &aside.join(&name))?;
        }
        disk.sync_dir(&aside)?;
        disk.remove_dir_all(&self.path)
    }
}
