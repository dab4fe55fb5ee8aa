//! A data directory of format 1 that no server has converted since.

use wal::Sequence;

use super::data_dir::DataDir;
use super::{Report, ledger, log};
use crate::checkpoint::format_1::{self, Survey};
use crate::journal::{Record, RecordError};

/// Reports on all of it, without trying a conversion.
pub(super) fn survey(dir: &DataDir, report: &mut Report<'_>) -> Result<(), String> {
    report.say("format: an older program wrote this directory; the next start of a server converts it");
    let found = format_1::survey(dir.disk(), dir.path())?;
    found.damages.iter().for_each(|damage| report.damage(damage));
    log::survey(dir, found.covered, report)?;
    if let Some((catalog, covered)) = &found.catalog {
        ledger::say_catalog(catalog, *covered, report);
        ledger::survey_runs(dir, &found.ledger_runs, report);
    }
    if report.damages == 0 {
        count(dir, found, report);
    }
    Ok(())
}

/// Adds the points in the log to those in the segments.
fn count(dir: &DataDir, found: Survey, report: &mut Report<'_>) {
    let (Some((mut catalog, catalog_covered)), Some(covered)) = (found.catalog, found.covered) else {
        return;
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
    if let Err(error) = log::read(dir, covered, &mut replay) {
        report.damage(error);
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
}
