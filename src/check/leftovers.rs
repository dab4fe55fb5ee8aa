//! What is in a data directory besides that which counts: told, and left as it is.

use std::path::Path;

use wal::disk::Disk;

use super::Report;
use super::aside::said;
use crate::bucket::CarriedDir;
use crate::checkpoint::{Layout, Manifest, SegmentsDir};
use crate::ledger::LedgerDir;

/// Names in a data directory that mean something, besides those of what is kept there.
const MARKERS: [&str; 2] = ["LOCK", "RESTORING"];

/// Reports on files that the manifest does not name; the next start removes those of our own names.
pub(super) fn survey(
    disk: &dyn Disk,
    layout: &Layout,
    manifest: &Manifest,
    report: &mut Report<'_>,
) -> Result<(), String> {
    let segments = SegmentsDir::of(&layout.data_dir);
    let listing = segments
        .list(disk)
        .map_err(|error| said(segments.path(), &error))?;
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
        .map_err(|error| said(&layout.data_dir, &error))?;
    for file in files
        .iter()
        .filter(|file| !manifest.carried.contains(&(file.bucket, file.first)))
    {
        leftover(&file.path, report);
    }
    let names = disk
        .list(&layout.data_dir)
        .map_err(|error| said(&layout.data_dir, &error))?;
    for name in names
        .iter()
        .filter(|name| !Layout::NAMES.iter().chain(&MARKERS).any(|known| name == known))
    {
        stranger(&layout.data_dir.join(name), report);
    }
    Ok(())
}

/// Reports on what is left of an older program's files once they are converted.
pub(super) fn survey_format_1(
    disk: &dyn Disk,
    layout: &Layout,
    report: &mut Report<'_>,
) -> Result<(), String> {
    let found = layout.file_of_format_1(disk).map_err(|error| error.to_string())?;
    if let Some(path) = found {
        report.say(format_args!(
            "{} is what an older program wrote; what was converted of it goes at the next start",
            path.display()
        ));
    }
    Ok(())
}

fn leftover(path: &Path, report: &mut Report<'_>) {
    report.say(format_args!("{} is a leftover of a crash", path.display()));
}

fn stranger(path: &Path, report: &mut Report<'_>) {
    report.say(format_args!("{} is left alone", path.display()));
}
