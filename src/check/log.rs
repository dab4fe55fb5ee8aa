//! The log: every record is read. A repair truncates it at its first damage; afterwards nothing may claim to cover the
//! records that were cut.

use std::fmt::Display;
use std::sync::Arc;

use disk::Disk;
use wal::{Log, LogOptions, OpenError, Replay, Sequence};

use super::aside::disk_error;
use super::overlay::Overlay;
use super::{Report, carried, flips};
use crate::checkpoint::{Layout, Manifest};

/// Reports on the log, which must include `covered`, or begin right after it.
pub(super) fn survey(
    disk: &dyn Disk,
    layout: &Layout,
    covered: Option<Sequence>,
    report: &mut Report<'_>,
) -> Result<(), String> {
    let dir = layout.log_dir();
    let found = wal::check(disk, &dir).map_err(|error| error.to_string())?;
    let first = found.first_sequence.unwrap_or(0);
    report.say(format_args!(
        "log: {} files, {} bytes, {} frames, {} records ({first} to {})",
        found.files.len(),
        found.bytes,
        found.frames,
        found.records,
        found.last_sequence
    ));
    if let Some(tail) = &found.torn_tail
        && !flips::report(disk, &tail.path, report)?
    {
        report.say(format_args!(
            "log: {} ends in {} bytes of a frame that was never acknowledged, from offset {}; the next start truncates them",
            tail.path.display(),
            tail.bytes,
            tail.offset
        ));
    }
    for name in &found.ignored {
        report.say(format_args!(
            "log: {} is not a log file and left as it is",
            dir.join(name).display()
        ));
    }
    found.damages.iter().for_each(|damage| report.damage(damage));
    // No further checks if the log is damaged anyway, or if it is unknown what is covered.
    let Some(covered) = covered.filter(|_| found.is_sound()) else {
        return Ok(());
    };
    if first > covered + 1 {
        report.damage(format_args!(
            "log: records {} to {} are missing from {}; restore the files that held them",
            covered + 1,
            first - 1,
            dir.display()
        ));
    } else if found.last_sequence < covered {
        report.damage(format_args!(
            "log: {} ends at record {} although the manifest covers records up to {covered}",
            dir.display(),
            found.last_sequence
        ));
    }
    Ok(())
}

/// The record before the first one of the log. If the log is empty, the last carried record, so that new records are
/// not taken for carried ones.
pub(super) fn begins_behind(disk: &dyn Disk, layout: &Layout) -> Result<Sequence, String> {
    let found = wal::check(disk, &layout.log_dir()).map_err(|error| error.to_string())?;
    match found.first_sequence {
        Some(first) => Ok(first.saturating_sub(1)),
        None => carried::last(disk, layout),
    }
}

/// Passes the records after `before` to `each`. Changes nothing.
pub(super) fn read<E: Display>(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    before: Sequence,
    each: &mut Replay<'_, E>,
) -> Result<(), String> {
    let untouched = Arc::new(Overlay(Arc::clone(disk)));
    let read = Log::open(untouched, &layout.log_dir(), LogOptions::default(), before, each);
    read.map(drop).map_err(|error| match error {
        OpenError::Log(error) => error.to_string(),
        OpenError::Replay { sequence, source } => format!("record {sequence}: {source}"),
    })
}

/// Truncates the log at its first damage. Returns its last sequence; `None` if it cannot be repaired.
pub(super) fn repair(
    disk: &dyn Disk,
    layout: &Layout,
    covered: Sequence,
    say: &mut dyn FnMut(String),
) -> Result<Option<Sequence>, String> {
    let dir = layout.log_dir();
    let found = wal::check(disk, &dir).map_err(|error| error.to_string())?;
    if found.first_sequence.is_some_and(|first| first > covered + 1) {
        // The missing records precede all others: truncating there would leave nothing.
        return Ok(None);
    }
    if found.is_sound() && found.last_sequence >= covered {
        return Ok(Some(found.last_sequence));
    }
    disk.create_dir_all(&dir)
        .map_err(|error| disk_error(&dir, &error))?;
    let done = wal::repair(disk, &dir, covered).map_err(|error| error.to_string())?;
    let lost = match (done.lost_from, done.lost_to) {
        (Some(from), Some(to)) if to >= from => {
            format!("records from {from} on are lost, at least up to {to}")
        }
        (Some(from), _) => format!("records from {from} on are lost"),
        (None, _) => "nothing is lost".to_owned(),
    };
    let aside = done.kept_aside.iter().map(|path| path.display().to_string());
    let aside: Vec<String> = aside.collect();
    say(format!(
        "{}: it now ends at record {}; {lost}; cut parts are kept as {}",
        dir.display(),
        done.last_sequence,
        if aside.is_empty() {
            "nothing".to_owned()
        } else {
            aside.join(", ")
        }
    ));
    Ok(Some(done.last_sequence))
}

/// New records reuse the sequences of the lost ones, so nothing may claim to cover them already.
pub(super) fn lower(
    disk: &dyn Disk,
    layout: &Layout,
    manifest: &mut Manifest,
    last: Sequence,
    say: &mut dyn FnMut(String),
) -> Result<(), String> {
    let before = manifest.clone();
    manifest.covered = manifest.covered.min(last);
    manifest.catalog_covered = manifest.catalog_covered.min(last);
    for mark in manifest.buckets.values_mut() {
        mark.covered = mark.covered.min(last);
    }
    if *manifest == before {
        return Ok(());
    }
    let written = manifest.write(disk, &layout.data_dir);
    written.map_err(|error| error.to_string())?;
    say(format!(
        "{}: it now covers records up to {last}, the end of the log",
        Manifest::path(&layout.data_dir).display()
    ));
    Ok(())
}
