//! Reports files in a data directory that are not in use, and leaves them as they are.

use std::path::Path;

use super::Report;
use crate::checkpoint::{DataDir, Layout, Manifest, at};

/// Names in a data directory that have a meaning, besides those of its data.
const MARKERS: [&str; 2] = ["LOCK", "RESTORING"];

/// Reports files that the manifest does not name. The next start removes those whose names are ours.
pub(super) fn survey(dir: &DataDir, manifest: &Manifest, report: &mut Report<'_>) -> Result<(), String> {
    let named = manifest.files(&dir.layout);
    let leftover = |path: &Path, report: &mut Report<'_>| {
        if !named.contains_key(path) {
            report.say(format_args!("{} is a leftover of a crash", path.display()));
        }
    };
    for sealed in [dir.layout.segments_dir(), dir.layout.runs_dir()] {
        let listing = dir.list(&sealed)?;
        for id in listing.ids {
            leftover(&sealed.file_path(id), report);
        }
        for name in listing.others {
            unknown(&sealed.path().join(name), report);
        }
    }
    for file in dir.carried_files()? {
        leftover(&file.path, report);
    }
    for name in dir.disk.list(dir.path()).map_err(at(dir.path()))? {
        if !Layout::NAMES.iter().chain(&MARKERS).any(|known| name == *known) {
            unknown(&dir.path().join(name), report);
        }
    }
    Ok(())
}

/// Reports remaining files of format 1 after their conversion.
pub(super) fn survey_format_1(dir: &DataDir, report: &mut Report<'_>) -> Result<(), String> {
    if let Some(path) = dir.file_of_format_1()? {
        report.say(format_args!(
            "{} is of an older program; the next start removes what was converted of it",
            path.display()
        ));
    }
    Ok(())
}

fn unknown(path: &Path, report: &mut Report<'_>) {
    report.say(format_args!("{} is unknown and left as it is", path.display()));
}
