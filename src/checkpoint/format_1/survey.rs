//! Reads a whole data directory of format 1 for `tidewatch check`, without changing it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use disk::{Disk, list_existing};
use wal::Sequence;

use super::directory::{BucketDir, BucketManifest};
use super::files;
use crate::catalog::Catalog;
use crate::checkpoint::layout::at;

/// The result of a survey.
#[derive(Default)]
pub struct Survey {
    /// The catalog and the record that it covers; `None` if it does not read.
    pub catalog: Option<(Catalog, Sequence)>,
    /// The run files of the ledger in use.
    pub ledger_runs: Vec<u64>,
    /// Everything up to this record is in the files; `None` if the mark does not read.
    pub covered: Option<Sequence>,
    /// For each bucket, the record up to which its segments are complete, and the number of readable points in them.
    pub buckets: BTreeMap<u32, (Sequence, u64)>,
    /// Messages about damage, for the operator.
    pub damages: Vec<String>,
}

/// Reads the catalog, the mark, and every block of every bucket.
///
/// # Errors
/// A disk error, as a message for the operator.
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
    let names = list_existing(disk, &dir).map_err(at(&dir))?;
    let mut ordinals: Vec<u32> = names.iter().filter_map(BucketDir::ordinal).collect();
    ordinals.extend(manifests.iter().filter(|ordinal| found.exists(**ordinal)));
    ordinals.sort_unstable();
    ordinals.dedup();
    // Read from the log at most once, and only if something is missing.
    let mut deleted: Option<BTreeSet<u32>> = None;
    for ordinal in ordinals {
        let dir = BucketDir::of(data_dir, ordinal);
        match dir.read_manifest(disk) {
            Ok(Some(manifest)) => found.add_bucket(disk, &dir, ordinal, &manifest),
            // Skip a bucket that no checkpoint has written, unless the catalog says otherwise.
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
    /// Buckets that were deleted according to the log only.
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
            self.damages.extend(dir.open_answers(disk, *id).err());
        }
        self.buckets.insert(ordinal, (manifest.covered, points));
    }
}

/// Reads a segment; returns the number of readable points.
fn read_segment(
    disk: &dyn Disk,
    dir: &BucketDir,
    ordinal: u32,
    id: u64,
    damages: &mut Vec<String>,
) -> Result<u64, String> {
    let path = dir.segments().file_path(id);
    let mut points = 0;
    if let Some(part) = dir.open_segment(disk, id)?.part(ordinal).map_err(at(&path))? {
        for block in part.verify().map_err(at(&path))? {
            match block.fault {
                Some(error) => damages.push(at(&path)(error)),
                None => points += u64::from(block.rows),
            }
        }
    }
    Ok(points)
}
