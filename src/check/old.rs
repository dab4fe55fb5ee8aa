//! A data directory of format 1 that no server has converted since.

use disk::Disk;
use wal::{Log, LogOptions, Sequence};

use std::sync::Arc;

use super::overlay::Overlay;
use super::{Report, ledger, log};
use crate::checkpoint::{Layout, format_1};
use crate::journal::{Record, RecordError};
use crate::ledger::LedgerDir;

/// Reports on all of it, without trying a conversion.
pub(super) fn survey(disk: &Arc<dyn Disk>, layout: &Layout, report: &mut Report<'_>) -> Result<(), String> {
    report.say("format: an older program wrote this directory; the next start of a server converts it");
    let found = format_1::survey(&**disk, &layout.data_dir)?;
    found.damages.iter().for_each(|damage| report.damage(damage));
    log::survey(&**disk, layout, found.covered, report)?;
    if let Some((catalog, covered)) = &found.catalog {
        let (organizations, buckets) = (catalog.organizations().len(), catalog.buckets().count());
        report.say(format_args!(
            "catalog: {organizations} organizations, {buckets} buckets, as of record {covered}"
        ));
        let dir = LedgerDir::of(&layout.data_dir);
        ledger::survey_runs(&**disk, &dir, &found.ledger_runs, report)?;
    }
    if report.damages == 0 {
        count(disk, layout, found, report)?;
    }
    Ok(())
}

/// Adds the points in the log to those in the segments.
fn count(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    found: format_1::Survey,
    report: &mut Report<'_>,
) -> Result<(), String> {
    let (Some((mut catalog, catalog_covered)), Some(covered)) = (found.catalog, found.covered) else {
        return Ok(());
    };
    let mut buckets = found.buckets;
    let mut in_log = 0;
    let mut replay = |sequence: Sequence, bytes: &[u8]| {
        match Record::decode(bytes)? {
            Record::Command(command) if sequence > catalog_covered => catalog.apply(&command),
            Record::Command(_) => {}
            Record::Ingest(ingest) => {
                let (covered, points) = buckets.entry(ingest.bucket).or_default();
                if sequence > *covered {
                    *points += u64::from(ingest.rows);
                    in_log += u64::from(ingest.rows);
                }
            }
        }
        Ok::<_, RecordError>(())
    };
    let untouched: Arc<dyn Disk> = Arc::new(Overlay(Arc::clone(disk)));
    let read = Log::open(
        untouched,
        &layout.log_dir(),
        LogOptions::default(),
        covered,
        &mut replay,
    );
    match read {
        Ok(_) => {}
        Err(wal::OpenError::Log(error)) => report.damage(error),
        Err(wal::OpenError::Replay { sequence, source }) => {
            report.damage(format_args!("record {sequence}: {source}"));
        }
    }
    let mut total = 0;
    for bucket in catalog.buckets() {
        let points = buckets.get(&bucket.ordinal).map_or(0, |(_, points)| *points);
        total += points;
        report.say(format_args!(
            "bucket {} ({:?}): {points} points, those in the log included",
            bucket.ordinal, bucket.name
        ));
    }
    report.say(format_args!(
        "in all {total} points, {in_log} of them in the log; including expired ones and those of deleted data sources that were not removed yet"
    ));
    Ok(())
}
