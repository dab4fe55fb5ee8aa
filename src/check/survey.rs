//! Reports what a data directory holds and what is damaged. Changes nothing.

use std::sync::Arc;

use disk::Disk;

use super::overlay::Overlay;
use super::{Report, carried, format_1, ledger, leftovers, log, segments};
use crate::bucket::BucketState;
use crate::catalog::Catalog;
use crate::checkpoint::{DataDir, Manifest, NamedFile, OpenError, open};
use crate::ids::ObjectId;

/// Whether nothing was ever stored there.
pub(super) fn is_empty(dir: &DataDir) -> Result<bool, String> {
    let layout = &dir.layout;
    for path in [
        layout.log_dir(),
        dir.manifest_path(),
        layout.restoring_path(),
        layout.segments_dir().path().to_owned(),
        layout.runs_dir().path().to_owned(),
    ] {
        if dir.exists(&path)? {
            return Ok(false);
        }
    }
    Ok(dir.file_of_format_1()?.is_none())
}

/// Whether the directory is of format 1, without a manifest that replaces its files. Directories of buckets that could
/// not be converted stay when the rest is converted: then there are segments, but no snapshot of the catalog.
pub(super) fn is_format_1(dir: &DataDir) -> Result<bool, String> {
    if dir.file_of_format_1()?.is_none() || dir.exists(&dir.manifest_path())? {
        return Ok(false);
    }
    let segments = dir.list(&dir.layout.segments_dir())?.ids;
    Ok(segments.is_empty() || dir.exists(&dir.path().join("catalog.snapshot"))?)
}

/// Reports on the whole directory.
pub(super) fn survey(dir: &DataDir, report: &mut Report<'_>) -> Result<(), String> {
    let restoring = dir.layout.restoring_path();
    if dir.exists(&restoring)? {
        report.damage(OpenError::Restoring(restoring));
    }
    if is_format_1(dir)? {
        return format_1::survey(dir, report);
    }
    match Manifest::read(dir.disk(), dir.path()) {
        Ok(Some(manifest)) => survey_named(dir, &manifest, report)?,
        Ok(None) => {
            report.say("manifest: none yet, the log has everything");
            log::survey(dir, None, report)?;
            leftovers::survey(dir, &Manifest::default(), report)?;
        }
        Err(error) => {
            report.damage(OpenError::Manifest(error));
            return log::survey(dir, None, report);
        }
    }
    if report.damages == 0 {
        // Only recovery checks the files against each other, so run it and discard the result.
        recover(dir, report);
    }
    Ok(())
}

fn survey_named(dir: &DataDir, manifest: &Manifest, report: &mut Report<'_>) -> Result<(), String> {
    report.say(format_args!(
        "manifest: everything up to record {} is in {} segments and {} runs",
        manifest.covered,
        manifest.segments.len(),
        manifest.runs.len()
    ));
    let log_files = wal::files(dir.disk(), &dir.layout.log_dir()).unwrap_or_default();
    let log_bytes = log_files.iter().map(|path| dir.length(path)).sum();
    let (mut run_bytes, mut segment_bytes) = (0, 0);
    for (path, file) in manifest.files(&dir.layout) {
        match file {
            NamedFile::Run(_) => run_bytes += dir.length(&path),
            NamedFile::Segment(_) => segment_bytes += dir.length(&path),
            NamedFile::Carried(_) => {}
        }
    }
    report.progress.expect(log_bytes + run_bytes + segment_bytes);
    log::survey(dir, Some(manifest.covered), report)?;
    report.progress.advance(log_bytes);
    let catalog = ledger::survey(dir, manifest, report);
    report.progress.advance(run_bytes);
    segments::survey(dir, manifest, catalog.as_ref(), report);
    carried::survey(dir, manifest, report);
    leftovers::survey(dir, manifest, report)?;
    leftovers::survey_format_1(dir, report)
}

fn recover(dir: &DataDir, report: &mut Report<'_>) {
    let overlay: Arc<dyn Disk> = Arc::new(Overlay(Arc::clone(&dir.disk)));
    let opened = match open(&overlay, &dir.layout) {
        Ok(opened) => opened,
        Err(error) => return report.damage(error),
    };
    for (ordinal, fault) in &opened.set_apart {
        report.damage(format_args!("bucket {ordinal}: {fault}"));
    }
    let mut total = 0;
    for state in &opened.buckets {
        let Some(bucket) = opened.catalog.bucket_by_ordinal(state.ordinal) else {
            continue;
        };
        let points = points(&opened.catalog, state, bucket.id);
        total += points;
        report.say(format_args!(
            "bucket {} ({:?}): {points} points, those in the log included",
            state.ordinal, bucket.name
        ));
    }
    report.say(format_args!(
        "in all {total} points, {} of them in the log, including expired ones that were not removed yet",
        opened.recovered.points
    ));
}

fn points(catalog: &Catalog, state: &BucketState, bucket: ObjectId) -> u64 {
    let sources = catalog.sources_of(bucket);
    // Without a cutoff, no block is read for this.
    let stats = sources.map(|source| state.store.stats(source.ordinal, i64::MIN));
    stats.map(|stats| stats.map_or(0, |stats| stats.points)).sum()
}
