//! The log: every record is read. A repair truncates it at its first damage; afterwards nothing may claim to cover the
//! records that were cut.

use std::fmt::Display;

use wal::{Replay, Sequence};

use super::{Report, Say, carried, flips};
use crate::checkpoint::{DataDir, Manifest, at, message};

/// Reports on the log, which must include `covered`, or begin right after it.
pub(super) fn survey(
    dir: &DataDir,
    covered: Option<Sequence>,
    report: &mut Report<'_>,
) -> Result<(), String> {
    let log_dir = dir.layout.log_dir();
    let found = dir.check_log()?;
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
        && !flips::report(dir, &tail.path, report)?
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
            log_dir.join(name).display()
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
            log_dir.display()
        ));
    } else if found.last_sequence < covered {
        report.damage(format_args!(
            "log: {} ends at record {} although the manifest covers records up to {covered}",
            log_dir.display(),
            found.last_sequence
        ));
    }
    Ok(())
}

/// The record before the first one of the log. If the log is empty, the last carried record, so that new records are
/// not taken for carried ones.
pub(super) fn begins_behind(dir: &DataDir) -> Result<Sequence, String> {
    match dir.check_log()?.first_sequence {
        Some(first) => Ok(first.saturating_sub(1)),
        None => carried::last(dir),
    }
}

/// Passes the carried records that read, and then the records of the log after `before`, to `each`.
pub(super) fn read<E: Display>(
    dir: &DataDir,
    before: Sequence,
    each: &mut Replay<'_, E>,
) -> Result<(), String> {
    for file in dir.carried_files()? {
        for (sequence, bytes) in carried::read(dir.disk(), &file).0 {
            each(sequence, &bytes).map_err(|error| format!("record {sequence}: {error}"))?;
        }
    }
    dir.read_log(before, each)
}

/// Truncates the log at its first damage. Returns its last sequence; `None` if it cannot be repaired.
pub(super) fn repair(
    dir: &DataDir,
    covered: Sequence,
    say: &mut Say<'_>,
) -> Result<Option<Sequence>, String> {
    let found = dir.check_log()?;
    if found.first_sequence.is_some_and(|first| first > covered + 1) {
        // The missing records precede all others: truncating there would leave nothing.
        return Ok(None);
    }
    if found.is_sound() && found.last_sequence >= covered {
        return Ok(Some(found.last_sequence));
    }
    let log_dir = dir.layout.log_dir();
    dir.disk.create_dir_all(&log_dir).map_err(at(&log_dir))?;
    let done = wal::repair(dir.disk(), &log_dir, covered).map_err(message)?;
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
        log_dir.display(),
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
    dir: &DataDir,
    manifest: &mut Manifest,
    last: Sequence,
    say: &mut Say<'_>,
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
    dir.write_manifest(manifest)?;
    say(format!(
        "{}: it now covers records up to {last}, the end of the log",
        dir.manifest_path().display()
    ));
    Ok(())
}
