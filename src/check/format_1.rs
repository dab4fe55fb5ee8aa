//! A data directory of format 1 that no server has converted since.

use std::collections::{BTreeMap, BTreeSet};

use wal::Sequence;

use super::{Report, ledger, log};
use crate::catalog::{Catalog, Snapshot};
use crate::checkpoint::format_1::{self, BucketDir, BucketManifest};
use crate::checkpoint::{DataDir, at};
use crate::journal::{Record, RecordError};

/// For each bucket, the record up to which its segments are complete, and the number of readable points in them.
type Points = BTreeMap<u32, (Sequence, u64)>;

/// Reports on all of it, without trying a conversion.
pub(super) fn survey(dir: &DataDir, report: &mut Report<'_>) -> Result<(), String> {
    report.say("format: an older program wrote this directory; the next start of a server converts it");
    let present = format_1::ordinals(dir)?;
    let catalog = report.sound(format_1::read_catalog(dir));
    let covered = report.sound(format_1::read_mark(dir));
    let points = survey_buckets(dir, present, catalog.as_ref(), report);
    log::survey(dir, covered, report)?;
    if let Some((snapshot, covered)) = &catalog {
        ledger::say_catalog(&snapshot.catalog, *covered, report);
        ledger::survey_runs(dir, &snapshot.ledger_runs, report);
    }
    if report.damages == 0
        && let (Some((snapshot, catalog_covered)), Some(covered)) = (catalog, covered)
    {
        count(dir, (snapshot.catalog, catalog_covered), covered, points, report);
    }
    Ok(())
}

/// Reads every block of every bucket. The catalog, if it reads, tells which buckets must have a manifest.
fn survey_buckets(
    dir: &DataDir,
    mut ordinals: BTreeSet<u32>,
    catalog: Option<&(Snapshot, Sequence)>,
    report: &mut Report<'_>,
) -> Points {
    let must: BTreeSet<u32> = catalog.map_or_else(BTreeSet::new, |(snapshot, _)| {
        let exists = |ordinal: &u32| snapshot.catalog.bucket_by_ordinal(*ordinal).is_some();
        snapshot.manifests.iter().copied().filter(exists).collect()
    });
    ordinals.extend(&must);
    // Read from the log at most once, and only if something is missing.
    let mut deleted: Option<BTreeSet<u32>> = None;
    let mut points = Points::new();
    for ordinal in ordinals {
        let old = BucketDir::of(dir, ordinal);
        match report.sound(old.read_manifest()) {
            Some(Some(manifest)) => {
                let readable = survey_bucket(&old, ordinal, &manifest, report);
                points.insert(ordinal, (manifest.covered, readable));
            }
            // Skip a bucket that no checkpoint has written, unless the catalog says otherwise.
            Some(None) if must.contains(&ordinal) => {
                let deleted = deleted.get_or_insert_with(|| {
                    catalog.map_or_else(BTreeSet::new, |(snapshot, covered)| {
                        format_1::deleted_in_log(dir, &snapshot.catalog, *covered)
                    })
                });
                if !deleted.contains(&ordinal) {
                    report.damage(format_args!("{} is missing", old.manifest_path().display()));
                }
            }
            _ => {}
        }
    }
    points
}

/// Reads the files of a bucket; returns the number of readable points.
fn survey_bucket(
    old: &BucketDir<'_>,
    ordinal: u32,
    manifest: &BucketManifest,
    report: &mut Report<'_>,
) -> u64 {
    let mut points = 0;
    for id in &manifest.segments {
        let segment = survey_segment(old, ordinal, *id, report);
        points += report.sound(segment).unwrap_or(0);
    }
    for id in &manifest.answers {
        report.sound(old.open_answers(*id));
    }
    points
}

fn survey_segment(
    old: &BucketDir<'_>,
    ordinal: u32,
    id: u64,
    report: &mut Report<'_>,
) -> Result<u64, String> {
    let path = old.segments().file_path(id);
    let mut points = 0;
    if let Some(part) = old.open_segment(id)?.part(ordinal).map_err(at(&path))? {
        for block in part.verify().map_err(at(&path))? {
            match block.fault {
                Some(error) => report.damage(at(&path)(error)),
                None => points += u64::from(block.rows),
            }
        }
    }
    Ok(points)
}

/// Adds the points in the log to those in the segments.
fn count(
    dir: &DataDir,
    (mut catalog, catalog_covered): (Catalog, Sequence),
    covered: Sequence,
    mut buckets: Points,
    report: &mut Report<'_>,
) {
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
    report.sound(dir.read_log(covered, &mut replay));
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
