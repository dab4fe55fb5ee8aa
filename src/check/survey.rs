//! What a data directory holds, and where it is not what was written. Alters nothing.

use std::sync::Arc;

use wal::Sequence;
use wal::disk::Disk;

use super::overlay::Overlay;
use super::{Report, buckets, ledger};
use crate::catalog::Catalog;
use crate::checkpoint::{Layout, Snapshot, open};

/// Whether nothing was ever stored there.
pub(super) fn is_empty(disk: &dyn Disk, layout: &Layout) -> Result<bool, String> {
    for path in [
        layout.log_dir(),
        layout.catalog_path(),
        layout.mark_path(),
        layout.buckets_dir(),
        layout.restoring_path(),
    ] {
        if disk
            .exists(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reports on all of it; answers how many damages there are.
pub(super) fn survey(disk: &Arc<dyn Disk>, layout: &Layout, report: &mut Report<'_>) -> Result<u64, String> {
    let mark_path = layout.mark_path();
    let mark_exists = disk
        .exists(&mark_path)
        .map_err(|error| format!("{}: {error}", mark_path.display()))?;
    let mark = match layout.read_mark(&**disk) {
        Ok(mark) => {
            report.say(format_args!(
                "checkpoint: everything up to record {mark} is in segments and snapshot"
            ));
            Some(mark)
        }
        Err(error) => {
            report.damage(error);
            None
        }
    };
    let catalog = match layout.read_catalog(&**disk) {
        Ok(Snapshot { catalog, covered, .. }) => {
            let (organizations, buckets) = (catalog.organizations().len(), catalog.buckets().count());
            report.say(format_args!(
                "catalog: {organizations} organizations, {buckets} buckets, as of record {covered}"
            ));
            Some(catalog)
        }
        Err(error) => {
            report.damage(error);
            None
        }
    };
    survey_log(&**disk, layout, mark, mark_exists, report)?;
    buckets::survey(&**disk, layout, catalog.as_ref(), report)?;
    if let Some(catalog) = &catalog {
        ledger::survey(&**disk, layout, catalog, report)?;
    }
    if report.damages == 0 {
        // What the files say of each other only recovery knows: it is tried, and nothing is kept of it.
        recover(disk, layout, report);
    }
    Ok(report.damages)
}

fn survey_log(
    disk: &dyn Disk,
    layout: &Layout,
    mark: Option<Sequence>,
    mark_exists: bool,
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
    if let Some(tail) = &found.torn_tail {
        report.say(format_args!(
            "log: {} ends in {} bytes of a frame that was never acknowledged, from offset {}; the start cuts them off",
            tail.path.display(),
            tail.bytes,
            tail.offset
        ));
    }
    for name in &found.ignored {
        report.say(format_args!(
            "log: {} is no log file and left alone",
            dir.join(name).display()
        ));
    }
    found.damages.iter().for_each(|damage| report.damage(damage));
    // Nothing more to say of a log that is damaged anyway, or whose mark is.
    let Some(mark) = mark.filter(|_| found.is_sound()) else {
        return Ok(());
    };
    if first > mark + 1 && !mark_exists {
        report.damage(format_args!(
            "{} is missing though the log begins with record {first}; restore it, or have it made anew by --repair",
            layout.mark_path().display()
        ));
    } else if first > mark + 1 {
        report.damage(format_args!(
            "log: records {} to {} are missing from {}; restore the files that held them",
            mark + 1,
            first - 1,
            dir.display()
        ));
    } else if found.last_sequence < mark {
        report.damage(format_args!(
            "log: {} ends at record {} although the checkpoint covers records up to {mark}",
            dir.display(),
            found.last_sequence
        ));
    }
    Ok(())
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
    for (state, _) in &opened.buckets {
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
        "in all {total} points, {} of them in the log; expired ones that are still there count",
        opened.recovered.points
    ));
}

fn points(catalog: &Catalog, state: &crate::bucket::BucketState, bucket: crate::ids::ObjectId) -> u64 {
    let sources = catalog.sources_of(bucket);
    // Without a cutoff no block is read for it.
    let stats = sources.map(|source| state.store.stats(source.ordinal, i64::MIN));
    stats.map(|stats| stats.map_or(0, |stats| stats.points)).sum()
}
