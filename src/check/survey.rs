//! Reports what a data directory holds and what is damaged. Changes nothing.

use std::sync::Arc;

use disk::Disk;

use super::aside::{disk_error, exists};
use super::overlay::Overlay;
use super::{Report, carried, ledger, leftovers, log, old, segments};
use crate::bucket::BucketState;
use crate::catalog::Catalog;
use crate::checkpoint::{Layout, Manifest, OpenError, SegmentsDir, open};
use crate::ids::ObjectId;
use crate::ledger::LedgerDir;

/// Whether nothing was ever stored there.
pub(super) fn is_empty(disk: &dyn Disk, layout: &Layout) -> Result<bool, String> {
    let mut paths = vec![
        layout.log_dir(),
        Manifest::path(&layout.data_dir),
        layout.restoring_path(),
    ];
    paths.push(SegmentsDir::of(&layout.data_dir).path().to_owned());
    paths.push(LedgerDir::of(&layout.data_dir).path().to_owned());
    for path in paths {
        if exists(disk, &path)? {
            return Ok(false);
        }
    }
    let old = layout.file_of_format_1(disk).map_err(|error| error.to_string())?;
    Ok(old.is_none())
}

/// Whether the directory is of format 1, without a manifest that replaces its files. Directories of buckets that could
/// not be converted stay when the rest is converted: then there are segments, but no snapshot of the catalog.
pub(super) fn is_format_1(disk: &dyn Disk, layout: &Layout) -> Result<bool, String> {
    let old = layout.file_of_format_1(disk).map_err(|error| error.to_string())?;
    if old.is_none() || exists(disk, &Manifest::path(&layout.data_dir))? {
        return Ok(false);
    }
    let dir = SegmentsDir::of(&layout.data_dir);
    let listing = dir.list(disk).map_err(|error| disk_error(dir.path(), &error))?;
    let was_converted =
        !listing.segments.is_empty() && !exists(disk, &layout.data_dir.join("catalog.snapshot"))?;
    Ok(!was_converted)
}

/// Reports on the whole directory. Returns the number of damages.
pub(super) fn survey(disk: &Arc<dyn Disk>, layout: &Layout, report: &mut Report<'_>) -> Result<u64, String> {
    if exists(&**disk, &layout.restoring_path())? {
        report.damage(OpenError::Restoring(layout.restoring_path()));
    }
    if is_format_1(&**disk, layout)? {
        old::survey(disk, layout, report)?;
        return Ok(report.damages);
    }
    let manifest = match Manifest::read(&**disk, &layout.data_dir) {
        Ok(manifest) => manifest,
        Err(error) => {
            report.damage(OpenError::Manifest(error));
            log::survey(&**disk, layout, None, report)?;
            return Ok(report.damages);
        }
    };
    match manifest {
        Some(manifest) => survey_named(disk, layout, &manifest, report)?,
        None => {
            report.say("manifest: none yet, the log has everything");
            log::survey(&**disk, layout, None, report)?;
            leftovers::survey(&**disk, layout, &Manifest::default(), report)?;
        }
    }
    if report.damages == 0 {
        // Only recovery checks the files against each other, so run it and discard the result.
        recover(disk, layout, report);
    }
    Ok(report.damages)
}

fn survey_named(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    manifest: &Manifest,
    report: &mut Report<'_>,
) -> Result<(), String> {
    report.say(format_args!(
        "manifest: everything up to record {} is in {} segments and {} runs",
        manifest.covered,
        manifest.segments.len(),
        manifest.runs.len()
    ));
    log::survey(&**disk, layout, Some(manifest.covered), report)?;
    let catalog = ledger::survey(disk, layout, manifest, report)?;
    segments::survey(&**disk, layout, manifest, catalog.as_ref(), report);
    carried::survey(&**disk, layout, manifest, report);
    leftovers::survey(&**disk, layout, manifest, report)?;
    leftovers::survey_format_1(&**disk, layout, report)
}

fn recover(disk: &Arc<dyn Disk>, layout: &Layout, report: &mut Report<'_>) {
    let overlay: Arc<dyn Disk> = Arc::new(Overlay(Arc::clone(disk)));
    let opened = match open(&overlay, Arc::clone(&overlay), layout) {
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
