//! The manifest names the files that make up the data directory, and the log record up to which they are complete. It
//! is replaced as a whole, which makes a checkpoint atomic. Documented in src/journal/FORMAT.md, "Manifest".

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use disk::Disk;
use engine::{BLOCK_VERSION, DeadRanges, SEGMENT_VERSION};
use serde::{Deserialize, Serialize};
use wal::{Flip, Sequence};

use super::layout::Layout;
use crate::bucket::{CarriedDir, CarriedFile};
use crate::checked_file::{self, CheckedFileError};
use crate::sealed_file::SealedDir;

/// Of manifests of each version that is read. The version is raised when an older program could misread the manifest, or
/// the files that it names. New members do not raise it.
const MAGICS: [&[u8; 8]; ManifestVersion::ALL.len()] =
    [b"TWMANI02", b"TWMANI03", b"TWMANI04", b"TWMANI05", b"TWMANI06"];
/// The prefix common to manifests of all versions.
const KIND: &[u8] = b"TWMANI";

/// Gap left in a bucket's sequences when its mark is lost. Deleted and lost rows used sequences that can no longer be
/// determined; new points are numbered after this gap, so that no two points ever share an id.
pub const SEQUENCES_UNKNOWN_MAX: u64 = 1 << 32;

/// The version of a manifest, which follows from its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestVersion {
    /// Without dead blocks; all blocks are of version 1.
    Plain,
    /// With dead blocks, whose points an older program would read again; all blocks are of version 1.
    DeadBlocks,
    /// With blocks of version 2, perhaps, which an older program would take for damaged ones.
    PackedBlocks,
    /// With segments of version 4, perhaps, which an older program would take for damaged ones.
    ShortEntries,
    /// With blocks of version 3, perhaps, which an older program would take for damaged ones.
    Digits,
}

impl ManifestVersion {
    pub const ALL: [Self; 5] = [
        Self::Plain,
        Self::DeadBlocks,
        Self::PackedBlocks,
        Self::ShortEntries,
        Self::Digits,
    ];

    fn magic(self) -> &'static [u8; 8] {
        MAGICS[self as usize]
    }
}

/// A version that nothing in the segments exceeds: from that which manifests leave out to that which this program writes.
/// The latter is the default; see [`Manifest::note_written_segment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UpTo<const FIRST: u8, const CURRENT: u8>(u8);

/// The version of the segments' blocks.
pub type BlocksVersion = UpTo<1, BLOCK_VERSION>;
/// The version of the segments; older ones than version 3 are not named by a manifest.
pub type SegmentsVersion = UpTo<3, SEGMENT_VERSION>;

/// Blocks and segments of other versions need another [`ManifestVersion`].
const _: () = assert!(BLOCK_VERSION == 3 && SEGMENT_VERSION == 4);

impl BlocksVersion {
    /// The first one with packed integers.
    pub const PACKED: Self = Self(2);
    /// The first one with integers as digits.
    pub const DIGITS: Self = Self(3);
}

impl<const FIRST: u8, const CURRENT: u8> UpTo<FIRST, CURRENT> {
    pub const FIRST: Self = Self(FIRST);

    fn first() -> Self {
        Self::FIRST
    }

    fn is_first(&self) -> bool {
        *self == Self::FIRST
    }
}

impl<const FIRST: u8, const CURRENT: u8> Default for UpTo<FIRST, CURRENT> {
    fn default() -> Self {
        Self(CURRENT)
    }
}

/// The files in use, and what they cover.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Log records up to this one are in the files or in carried files; the log holds everything after it.
    pub covered: Sequence,
    /// Catalog commands up to this record are in the catalog's runs.
    pub catalog_covered: Sequence,
    /// Number of the next segment.
    pub next_segment: u64,
    pub segments: Vec<u64>,
    /// Run files of the ledger, oldest first.
    pub runs: Vec<u64>,
    /// Marks by bucket ordinal. A bucket without one has no points in segments.
    pub buckets: BTreeMap<u32, BucketMark>,
    /// Files of carried records, by bucket and first record.
    #[serde(default)]
    pub carried: Vec<(u32, Sequence)>,
    /// Ordinals of buckets whose format 1 directory could not be converted yet.
    #[serde(default)]
    pub unconverted: Vec<u32>,
    /// Ordinals of buckets whose damaged format 1 directory was salvaged and is kept under another name.
    #[serde(default)]
    pub aside: Vec<u32>,
    /// The blocks that are not read any more, by segment: ranges of bytes, from the first to the one after the last. Left
    /// out if there are none, as in version 2.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dead: BTreeMap<u64, Vec<(u64, u64)>>,
    /// Left out if it is 1, as in versions 2 and 3.
    #[serde(
        default = "BlocksVersion::first",
        skip_serializing_if = "BlocksVersion::is_first"
    )]
    pub blocks: BlocksVersion,
    /// Left out if it is 3, as in versions 2 to 4.
    #[serde(
        default = "SegmentsVersion::first",
        skip_serializing_if = "SegmentsVersion::is_first"
    )]
    pub segments_version: SegmentsVersion,
}

/// A file that a manifest names.
pub enum NamedFile {
    Segment(u64),
    Run(u64),
    Carried(CarriedFile),
}

/// How much of a bucket is in segments. Encoded as an array without member names, because there may be many buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, Option<i64>)", into = "(u64, u64, Option<i64>)")]
pub struct BucketMark {
    /// The bucket's records up to this one are in segments.
    pub covered: Sequence,
    /// Sequence of the bucket's next row.
    pub next_sequence: u64,
    /// Time of the last of these ingests, in UTC nanoseconds; `None` also in manifests written by older programs.
    pub ingested_at_ns: Option<i64>,
}

impl From<(u64, u64, Option<i64>)> for BucketMark {
    fn from((covered, next_sequence, ingested_at_ns): (u64, u64, Option<i64>)) -> Self {
        BucketMark {
            covered,
            next_sequence,
            ingested_at_ns,
        }
    }
}

impl From<BucketMark> for (u64, u64, Option<i64>) {
    fn from(mark: BucketMark) -> Self {
        (mark.covered, mark.next_sequence, mark.ingested_at_ns)
    }
}

/// Why a manifest cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error(transparent)]
    File(CheckedFileError),
    #[error("{0} does not read: {1}")]
    Content(PathBuf, rmp_serde::decode::Error),
    /// Written by a newer program.
    #[error("{0} was written by a newer program: start that one")]
    Newer(PathBuf),
}

impl Manifest {
    /// Path of the manifest.
    pub fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("manifest")
    }

    /// Reads the manifest; returns `None` before the first checkpoint.
    ///
    /// # Errors
    /// A disk error, or damage.
    pub fn read(disk: &dyn Disk, data_dir: &Path) -> Result<Option<Self>, ManifestError> {
        let path = Self::path(data_dir);
        let bytes = match disk.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ManifestError::File(CheckedFileError::Io(path, error))),
        };
        let newest = MAGICS[MAGICS.len() - 1];
        let magic = match bytes.first_chunk() {
            Some(magic) if magic.starts_with(KIND) && magic > newest => {
                return Err(ManifestError::Newer(path));
            }
            Some(magic) if MAGICS.contains(&magic) => magic,
            _ => newest,
        };
        let damaged = |expected| ManifestError::File(CheckedFileError::Damaged(path.clone(), expected));
        let content = checked_file::decode(magic, &bytes).map_err(damaged)?;
        let read: Self =
            rmp_serde::from_slice(content).map_err(|error| ManifestError::Content(path.clone(), error))?;
        match read.version().magic() == magic {
            true => Ok(Some(read)),
            false => Err(damaged("the version that goes with its content")),
        }
    }

    /// Replaces the manifest on disk. All files that it names must already be durable.
    ///
    /// # Errors
    /// A disk error. Then either the old or the new manifest may be found after a crash.
    pub fn write(&self, disk: &dyn Disk, data_dir: &Path) -> Result<(), CheckedFileError> {
        let path = Self::path(data_dir);
        let content = rmp_serde::to_vec_named(self)
            .map_err(|error| CheckedFileError::Io(path.clone(), io::Error::other(error)))?;
        checked_file::write(disk, &path, self.version().magic(), &content)
    }

    /// The version as which it is written.
    pub fn version(&self) -> ManifestVersion {
        if self.blocks >= BlocksVersion::DIGITS {
            ManifestVersion::Digits
        } else if !self.segments_version.is_first() {
            ManifestVersion::ShortEntries
        } else if self.blocks >= BlocksVersion::PACKED {
            ManifestVersion::PackedBlocks
        } else if self.dead.is_empty() {
            ManifestVersion::Plain
        } else {
            ManifestVersion::DeadBlocks
        }
    }

    /// Notes that this program has written one of the segments.
    pub fn note_written_segment(&mut self) {
        self.blocks = BlocksVersion::default();
        self.segments_version = SegmentsVersion::default();
    }

    /// The blocks of a segment that are not read any more.
    pub fn dead_of(&self, segment: u64) -> DeadRanges {
        let ranges = self.dead.get(&segment).into_iter().flatten();
        ranges.map(|(start, end)| *start..*end).collect()
    }

    /// Replaces what [`Manifest::dead_of`] returns for a segment.
    pub fn set_dead(&mut self, segment: u64, dead: &DeadRanges) {
        let ranges = dead.iter().map(|range| (range.start, range.end)).collect();
        self.dead.insert(segment, ranges);
    }

    /// Number of ranges of dead blocks in all segments.
    pub fn dead_ranges(&self) -> usize {
        self.dead.values().map(Vec::len).sum()
    }

    /// Forgets dead blocks of segments that are not in use any more.
    pub fn forget_unused_dead(&mut self) {
        let segments = &self.segments;
        self.dead.retain(|segment, _| segments.contains(segment));
    }

    /// The last record that anything in the files covers.
    pub fn newest_covered(&self) -> Sequence {
        let buckets = self.buckets.values().map(|mark| mark.covered);
        buckets.fold(self.covered.max(self.catalog_covered), Sequence::max)
    }

    /// The files that it names, by path; without those of buckets in format 1.
    pub fn files<'a>(&'a self, layout: &Layout) -> BTreeMap<PathBuf, NamedFile> {
        let carried = CarriedDir::of(&layout.data_dir);
        let sealed = |dir: SealedDir, ids: &'a [u64], named: fn(u64) -> NamedFile| {
            ids.iter().map(move |id| (dir.file_path(*id), named(*id)))
        };
        let segments = sealed(layout.segments_dir(), &self.segments, NamedFile::Segment);
        let runs = sealed(layout.runs_dir(), &self.runs, NamedFile::Run);
        let carried = self.carried.iter().map(|(bucket, first)| {
            let file = carried.named(*bucket, *first);
            (file.path.clone(), NamedFile::Carried(file))
        });
        segments.chain(runs).chain(carried).collect()
    }
}

/// Finds the single bit flip that turns the bytes into a manifest as this program writes it; `None` if there is none.
/// The magic of a newer version may differ by one bit, but then the content differs, too.
pub fn flip_of_manifest(bytes: &[u8]) -> Option<Flip> {
    ManifestVersion::ALL.into_iter().find_map(|version| {
        checked_file::flip(bytes, version.magic(), |content| {
            let read = rmp_serde::from_slice::<Manifest>(content).ok();
            let read = read.filter(|manifest| manifest.version() == version);
            read.and_then(|manifest| rmp_serde::to_vec_named(&manifest).ok())
                .is_some_and(|written| written == content)
        })
    })
}

#[cfg(test)]
mod tests {
    use disk::sim::SimDisk;

    use super::*;

    #[test]
    fn a_manifest_round_trips() {
        let (disk, dir) = (SimDisk::new(1), Path::new("/data"));
        disk.create_dir_all(dir).unwrap();
        assert_eq!(Manifest::read(&disk, dir).unwrap(), None);
        let mut manifest = Manifest {
            covered: 7,
            catalog_covered: 9,
            next_segment: 4,
            segments: vec![1, 3],
            runs: vec![2],
            carried: vec![(5, 6)],
            unconverted: vec![8],
            ..Manifest::default()
        };
        let mark = BucketMark {
            covered: 5,
            next_sequence: 100,
            ingested_at_ns: Some(-1),
        };
        manifest.buckets.insert(2, mark);
        let round_trip = |manifest: &Manifest| {
            manifest.write(&disk, dir).unwrap();
            assert_eq!(Manifest::read(&disk, dir).unwrap().as_ref(), Some(manifest));
            disk.read(&Manifest::path(dir)).unwrap()[..8].to_vec()
        };
        let newest = b"TWMANI06";
        assert_eq!(
            round_trip(&manifest),
            newest,
            "an older program cannot read the digits of blocks"
        );
        manifest.blocks = BlocksVersion::PACKED;
        assert_eq!(
            round_trip(&manifest),
            b"TWMANI05",
            "an older program cannot read the segments"
        );
        manifest.segments_version = SegmentsVersion::FIRST;
        assert_eq!(
            round_trip(&manifest),
            b"TWMANI04",
            "an older program cannot read the blocks"
        );
        manifest.blocks = BlocksVersion::FIRST;
        assert_eq!(round_trip(&manifest), b"TWMANI02");
        manifest.set_dead(3, &[(8..20), (40..90)].into_iter().collect());
        assert_eq!(
            round_trip(&manifest),
            b"TWMANI03",
            "an older program would read the deleted points"
        );
        manifest.note_written_segment();
        assert_eq!(round_trip(&manifest), newest);
    }

    #[test]
    fn a_bucket_takes_few_bytes_of_the_manifest() {
        let (disk, dir) = (SimDisk::new(1), Path::new("/data"));
        disk.create_dir_all(dir).unwrap();
        let mark = BucketMark {
            covered: 1 << 40,
            next_sequence: 1 << 40,
            ingested_at_ns: Some(1_700_000_000_000_000_000),
        };
        let manifest = Manifest {
            buckets: (0..10_000).map(|ordinal| (ordinal + (1 << 20), mark)).collect(),
            ..Manifest::default()
        };
        manifest.write(&disk, dir).unwrap();
        let bytes = disk.len(&Manifest::path(dir)).unwrap();
        assert!(bytes <= 10_000 * 40, "{bytes}");
    }
}
