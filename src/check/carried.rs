//! Carried records of buckets that were set apart. A repair keeps the records of a damaged file that precede the
//! damage.

use std::path::PathBuf;

use disk::Disk;
use wal::Sequence;

use super::Report;
use super::aside::{disk_error, exists, keep_aside};
use crate::bucket::{CarriedDir, CarriedFile};
use crate::checkpoint::{Layout, Manifest};

/// The records of a file, and the fault after them.
pub(super) struct Records {
    pub(super) whole: Vec<(Sequence, Vec<u8>)>,
    pub(super) fault: Option<String>,
}

/// Reads a file up to its end or its first damage.
pub(super) fn read(disk: &dyn Disk, file: &CarriedFile) -> Records {
    let mut whole = Vec::new();
    let read = file.read(disk, |sequence, record| {
        whole.push((sequence, record.to_vec()));
        Ok(())
    });
    Records {
        whole,
        fault: read.err(),
    }
}

/// The last carried record; 0 if there is none.
pub(super) fn last(disk: &dyn Disk, layout: &Layout) -> Result<Sequence, String> {
    let files = CarriedDir::of(&layout.data_dir).list(disk);
    let files = files.map_err(|error| disk_error(&layout.data_dir, &error))?;
    let last = files
        .iter()
        .filter_map(|file| Some(read(disk, file).whole.last()?.0));
    Ok(last.max().unwrap_or(0))
}

/// Reports on the files that the manifest names.
pub(super) fn survey(disk: &dyn Disk, layout: &Layout, manifest: &Manifest, report: &mut Report<'_>) {
    let dir = CarriedDir::of(&layout.data_dir);
    for (bucket, first) in &manifest.carried {
        let file = dir.named(*bucket, *first);
        let Records { whole, fault } = read(disk, &file);
        if let Some(fault) = fault {
            report.damage(fault);
        }
        report.say(format_args!(
            "bucket {bucket}: it is set apart; {} records of it in {}",
            whole.len(),
            file.path.display()
        ));
    }
}

/// Truncates damaged files at their first damage.
pub(super) fn repair(
    disk: &dyn Disk,
    layout: &Layout,
    manifest: &mut Manifest,
    say: &mut dyn FnMut(String),
) -> Result<(), String> {
    let dir = CarriedDir::of(&layout.data_dir);
    let mut repaired = manifest.clone();
    repaired.carried.clear();
    let mut empty: Vec<PathBuf> = Vec::new();
    for (bucket, first) in &manifest.carried {
        let file = dir.named(*bucket, *first);
        let Records { whole, fault } = read(disk, &file);
        let Some(fault) = fault else {
            repaired.carried.push((*bucket, *first));
            continue;
        };
        if !exists(disk, &file.path)? {
            say(format!(
                "{} is missing, the points of bucket {bucket} in it are lost",
                file.path.display()
            ));
            continue;
        }
        let aside = keep_aside(disk, &file.path)?;
        let last = whole.last().map(|(sequence, _)| *sequence);
        if last.is_some() {
            // Replaces the damaged file under the same name.
            let written = || -> std::io::Result<()> {
                let mut writer = dir.writer(disk)?;
                for (sequence, record) in &whole {
                    writer.push(*bucket, *sequence, record)?;
                }
                writer.finish()
            };
            written().map_err(|error| disk_error(&file.path, &error))?;
            repaired.carried.push((*bucket, *first));
        } else {
            empty.push(file.path.clone());
        }
        say(format!(
            "{fault}; the points of bucket {bucket} in its records after {} are lost; the damaged file is kept as {}",
            last.map_or_else(|| "the beginning".to_owned(), |last| last.to_string()),
            aside.display()
        ));
    }
    if repaired != *manifest {
        let written = repaired.write(disk, &layout.data_dir);
        written.map_err(|error| error.to_string())?;
        *manifest = repaired;
    }
    super::aside::remove_all(disk, &empty)
}
