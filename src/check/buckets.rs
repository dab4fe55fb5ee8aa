//! The buckets' directories: every block of every segment is read.

use std::path::{Path, PathBuf};

use engine::verify::{BlockReport, salvage_segment, verify_segment};
use wal::disk::{Disk, DiskFile};

use super::Findings;
use crate::bucket::{AnswersFile, BucketDir, Manifest, shared};
use crate::catalog::Catalog;
use crate::checkpoint::Layout;
use crate::timestamp::format_timestamp_ns;

/// Ending of the name under which a damaged file is kept.
const ASIDE_SUFFIX: &str = ".damaged";

pub(super) fn check(
    disk: &dyn Disk,
    layout: &Layout,
    catalog: Option<&Catalog>,
    repair: bool,
    findings: &mut Findings,
) -> Result<(), String> {
    let buckets_dir = layout.buckets_dir();
    if !disk
        .exists(&buckets_dir)
        .map_err(|error| said(&buckets_dir, &error))?
    {
        return Ok(());
    }
    let names = disk
        .list(&buckets_dir)
        .map_err(|error| said(&buckets_dir, &error))?;
    for ordinal in names.iter().filter_map(BucketDir::ordinal) {
        let dir = BucketDir::of(&layout.data_dir, ordinal);
        match dir.read_manifest(disk) {
            Ok(Some(manifest)) => check_bucket(disk, &dir, ordinal, manifest, catalog, repair, findings)?,
            Ok(None) => println!("bucket {ordinal}: no manifest; its points are in the log"),
            Err(error) => findings.damage(error),
        }
    }
    Ok(())
}

fn check_bucket(
    disk: &dyn Disk,
    dir: &BucketDir,
    ordinal: u32,
    manifest: Manifest,
    catalog: Option<&Catalog>,
    repair: bool,
    findings: &mut Findings,
) -> Result<(), String> {
    let mut kept = manifest.clone();
    let (mut blocks, mut points) = (0, 0u64);
    for id in &manifest.segments {
        let path = dir.segment_path(*id);
        let verified = disk
            .map(&path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| {
                let home = shared(bytes);
                verify_segment(&home).map_err(|error| error.to_string())
            });
        let reports = match verified {
            Ok(reports) => reports,
            Err(error) => {
                findings.damage(format!("{}: {error}", path.display()));
                if repair {
                    set_aside(disk, &path)?;
                    kept.segments.retain(|kept| kept != id);
                    findings.repaired(format!(
                        "bucket {ordinal}: all points of {} are lost",
                        path.display()
                    ));
                }
                continue;
            }
        };
        blocks += reports.len();
        points += reports
            .iter()
            .filter(|block| block.fault.is_none())
            .map(|block| u64::from(block.rows))
            .sum::<u64>();
        let lost: Vec<&BlockReport> = reports.iter().filter(|block| block.fault.is_some()).collect();
        if lost.is_empty() {
            continue;
        }
        for block in &lost {
            let fault = block.fault.as_ref().map_or_else(String::new, ToString::to_string);
            findings.damage(format!("{}: {}: {fault}", path.display(), described(block)));
        }
        if repair {
            let id_of_rest = kept.next_file;
            kept.next_file += 1;
            save_rest(disk, &path, &dir.segment_path(id_of_rest))?;
            kept.segments
                .iter_mut()
                .filter(|kept| *kept == id)
                .for_each(|kept| *kept = id_of_rest);
            for block in &lost {
                findings.repaired(format!("bucket {ordinal}: lost {}", described(block)));
            }
        }
    }
    for id in &manifest.answers {
        let path = dir.answers_path(*id);
        let opened = disk
            .map(&path)
            .ok()
            .and_then(|bytes| AnswersFile::open(*id, bytes));
        if opened.is_none() {
            findings.damage(format!("{} does not read", path.display()));
            if repair {
                set_aside(disk, &path)?;
                kept.answers.retain(|kept| kept != id);
                findings.repaired(format!(
                    "bucket {ordinal}: the idempotency keys of {} are lost",
                    path.display()
                ));
            }
        }
    }
    let name = catalog.and_then(|catalog| catalog.bucket_by_ordinal(ordinal));
    let name = name.map_or_else(
        || "not in the snapshot".to_owned(),
        |bucket| format!("{:?}", bucket.name),
    );
    println!(
        "bucket {ordinal} ({name}): {} segments, {blocks} blocks, {points} points, as of record {}",
        manifest.segments.len(),
        manifest.covered
    );
    if kept != manifest {
        dir.write_manifest(disk, &kept)
            .map_err(|error| error.to_string())?;
        let replaced = manifest.segments.iter().filter(|id| !kept.segments.contains(id));
        for id in replaced {
            let path = dir.segment_path(*id);
            if disk.exists(&path).map_err(|error| said(&path, &error))? {
                set_aside(disk, &path)?;
            }
        }
    }
    Ok(())
}

fn described(block: &BlockReport) -> String {
    format!(
        "{} points of source {} from {} to {}",
        block.rows,
        block.source,
        format_timestamp_ns(block.first_ns).as_str(),
        format_timestamp_ns(block.last_ns).as_str()
    )
}

fn said(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Renames a damaged file: its bytes may be worth something to somebody.
fn set_aside(disk: &dyn Disk, path: &Path) -> Result<(), String> {
    if !disk.exists(path).map_err(|error| said(path, &error))? {
        return Ok(());
    }
    let mut name = path.as_os_str().to_owned();
    name.push(ASIDE_SUFFIX);
    disk.rename(path, &PathBuf::from(name))
        .map_err(|error| said(path, &error))?;
    path.parent()
        .map_or(Ok(()), |dir| disk.sync_dir(dir))
        .map_err(|error| said(path, &error))
}

/// Writes the blocks that read to a file of their own.
fn save_rest(disk: &dyn Disk, damaged: &Path, rest: &Path) -> Result<(), String> {
    let write = || -> std::io::Result<()> {
        let home = shared(disk.map(damaged)?);
        let mut bytes = Vec::new();
        salvage_segment(&home, &mut bytes).map_err(std::io::Error::other)?;
        let mut file: Box<dyn DiskFile> = disk.create(rest)?;
        file.write_all_at(0, &bytes)?;
        file.sync_data()?;
        rest.parent().map_or(Ok(()), |dir| disk.sync_dir(dir))
    };
    write().map_err(|error| said(rest, &error))
}
