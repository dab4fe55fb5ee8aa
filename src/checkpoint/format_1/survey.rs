//! What a data directory of format 1 holds, for `tidewatch check`: all of it is read, nothing is altered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use engine::SegmentFile;
use wal::Sequence;
use wal::disk::{Disk, list_existing};

use super::answers::AnswersFile;
use super::directory::{BucketDir, BucketManifest};
use super::files;
use crate::catalog::Catalog;
use crate::checkpoint::segments::shared;

/// What was found.
#[derive(Default)]
pub struct Survey {
    /// What existed, and the record it covers; `None` where that does not read.
    pub catalog: Option<(Catalog, Sequence)>,
    /// The run files of the ledger that count.
    pub ledger_runs: Vec<u64>,
    /// Everything up to this record is in the files; `None` where that does not read.
    pub covered: Option<Sequence>,
    /// Up to which record each bucket is in its segments, and how many points read there.
    pub buckets: BTreeMap<u32, (Sequence, u64)>,
    /// What does not read, for people.
    pub damages: Vec<String>,
}

/// Reads the catalog, the mark, and every block of every bucket.
///
/// # Errors
/// The disk's, for people.
pub fn survey(disk: &dyn Disk, data_dir: &Path) -> Result<Survey, String> {
    let mut found = Survey::default();
    let catalog = files::read_catalog(disk, data_dir);
    let manifests = match catalog {
        Ok((snapshot, covered)) => {
            found.catalog = Some((snapshot.catalog, covered));
            found.ledger_runs = snapshot.ledger_runs;
            snapshot.manifests
        }
        Err(error) => {
            found.damages.push(error);
            Vec::new()
        }
    };
    match files::read_mark(disk, data_dir) {
        Ok(covered) => found.covered = Some(covered),
        Err(error) => found.damages.push(error),
    }
    let dir = files::buckets_dir(data_dir);
    let names = list_existing(disk, &dir);
    let names = names.map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut ordinals: Vec<u32> = names.iter().filter_map(BucketDir::ordinal).collect();
    ordinals.extend(manifests.iter().filter(|ordinal| found.exists(**ordinal)));
    ordinals.sort_unstable();
    ordinals.dedup();
    // Read from the log where something is missing, and once.
    let mut deleted: Option<BTreeSet<u32>> = None;
    for ordinal in ordinals {
        let dir = BucketDir::of(data_dir, ordinal);
        match dir.read_manifest(disk) {
            Ok(Some(manifest)) => found.add_bucket(disk, &dir, ordinal, &manifest),
            // Never written by a checkpoint, unless the catalog says that it was.
            Ok(None) if manifests.contains(&ordinal) && found.exists(ordinal) => {
                let deleted = deleted.get_or_insert_with(|| found.deleted_in_log(disk, data_dir));
                if !deleted.contains(&ordinal) {
                    let path = dir.manifest_path();
                    found.damages.push(format!("{} is missing", path.display()));
                }
            }
            Ok(None) => {}
            Err(error) => found.damages.push(error),
        }
    }
    Ok(found)
}

impl Survey {
    /// Buckets whose deletion only the log has.
    fn deleted_in_log(&self, disk: &dyn Disk, data_dir: &Path) -> BTreeSet<u32> {
        let catalog = self.catalog.as_ref();
        catalog.map_or_else(BTreeSet::new, |(catalog, covered)| {
            files::deleted_in_log(disk, data_dir, catalog, *covered)
        })
    }

    fn exists(&self, ordinal: u32) -> bool {
        let catalog = self.catalog.as_ref();
        catalog.is_some_and(|(catalog, _)| catalog.bucket_by_ordinal(ordinal).is_some())
    }

    fn add_bucket(&mut self, disk: &dyn Disk, dir: &BucketDir, ordinal: u32, manifest: &BucketManifest) {
        let mut points = 0;
        for id in &manifest.segments {
            match read_segment(disk, dir, ordinal, *id, &mut self.damages) {
                Ok(rows) => points += rows,
                Err(error) => self.damages.push(error),
            }
        }
        for id in &manifest.answers {
            let path = dir.answers_path(*id);
            match disk.map(&path).map(AnswersFile::open) {
                Ok(Some(_)) => {}
                Ok(None) => self.damages.push(format!("{} is damaged", path.display())),
                Err(error) => self.damages.push(format!("{}: {error}", path.display())),
            }
        }
        self.buckets.insert(ordinal, (manifest.covered, points));
    }
}

/// Reads a segment; answers the points that read.
fn read_segment(
    disk: &dyn Disk,
    dir: &BucketDir,
    ordinal: u32,
    id: u64,
    damages: &mut Vec<String>,
) -> Result<u64, String> {
    let path = dir.segment_path(id);
    let bytes = disk
        .map(&path)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let damaged = |error: engine::EngineError| format!("{}: {error}", path.display());
    let file = SegmentFile::open_of_bucket(id, ordinal, shared(bytes)).map_err(damaged)?;
    let mut points = 0;
    if let Some(part) = file.part(ordinal).map_err(damaged)? {
        for block in part.verify().map_err(damaged)? {
            match block.fault {
                Some(error) => damages.push(damaged(error)),
                None => points += u64::from(block.rows),
            }
        }
    }
    Ok(points)
}
