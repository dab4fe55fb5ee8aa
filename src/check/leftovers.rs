//! Reports files in a data directory that are not in use, and leaves them as they are.

use std::path::Path;

use disk::Disk;

use super::Report;
use super::aside::disk_error;
use crate::bucket::CarriedDir;
use crate::checkpoint::{Layout, Manifest, SegmentsDir};
use crate::ledger::LedgerDir;

/// Names in a data directory that have a meaning, besides those of its data.
const MARKERS: [&str; 2] = ["LOCK", "RESTORING"];

/// Reports files that the manifest does not name. The next start removes those whose names are ours.
pub(super) fn survey(
    disk: &dyn Disk,
    layout: &Layout,
    manifest: &Manifest,
    report: &mut Report<'_>,
) -> Result<(), String> {
    let segments = SegmentsDir::of(&layout.data_dir);
    let listing = segments
        .list(disk)
        .map_err(|error| disk_error(segments.path(), &error))?;
    for id in listing
        .segments
        .iter()
        .filter(|id| !manifest.segments.contains(id))
    {
        leftover(&segments.segment_path(*id), report);
    }
    listing
        .others
        .iter()
        .for_each(|name| stranger(&segments.path().join(name), report));
    let ledger = LedgerDir::of(&layout.data_dir);
    let listing = ledger.list(disk).map_err(|error| error.to_string())?;
    for id in listing.runs.iter().filter(|id| !manifest.runs.contains(id)) {
        leftover(&ledger.run_path(*id), report);
    }
    listing
        .others
        .iter()
        .for_each(|name| stranger(&ledger.path().join(name), report));
    let carried = CarriedDir::of(&layout.data_dir);
    let files = carried
        .list(disk)
        .map_err(|error| disk_error(&layout.data_dir, &error))?;
    for file in files
        .iter()
        .filter(|file| !manifest.carried.contains(&(file.bucket, file.first)))
    {
        leftover(&file.path, report);
    }
    let names = disk
        .list(&layout.data_dir)
        .map_err(|error| disk_error(&layout.data_dir, &error))?;
    for name in names
        .iter()
        .filter(|name| !Layout::NAMES.iter().chain(&MARKERS).any(|known| name == known))
    {
        stranger(&layout.data_dir.join(name), report);
    }
    Ok(())
}

/// Reports remaining files of format 1 after their conversion.
pub(super) fn survey_format_1(
    disk: &dyn Disk,
    layout: &Layout,
    report: &mut Report<'_>,
) -> Result<(), String> {
    let found = layout.file_of_format_1(disk).map_err(|error| error.to_string())?;
    if let Some(path) = found {
        report.say(format_args!(
            "{} is of an older program; the next start removes what was converted of it",
            path.display()
        ));
    }
    Ok(())
}

fn leftover(path: &Path, report: &mut Report<'_>) {
    report.say(format_args!("{} is a leftover of a crash", path.display()));
}

fn stranger(path: &Path, report: &mut Report<'_>) {
    report.say(format_args!("{} is unknown and left as it is", path.display()));
}
