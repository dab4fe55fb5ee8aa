//! Cuts what is damaged, so that a server starts on the rest. Every cut part is kept aside, and what is lost is said.
//! May be called again when it was interrupted: each step leaves a directory that the next call understands.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::verify::salvage_segment;
use wal::Sequence;
use wal::disk::Disk;

use super::buckets::{Fault, described, ordinals, read_answers, read_segment};
use super::ledger;
use super::overlay::Overlay;
use super::rebuild::{Rebuilt, rebuild};
use crate::bucket::{BucketDir, BucketFileError, Manifest, shared};
use crate::checked_file::CheckedFileError;
use crate::checkpoint::{BucketFault, Layout, OpenError, Snapshot, open};

/// Ending of the name under which a damaged file is kept.
const ASIDE_SUFFIX: &str = ".damaged";
/// Ending of the name under which the directory of a bucket is kept that no catalog knows any more.
const CUT_SUFFIX: &str = ".cut";
const COPY_BYTES: usize = 1 << 20;

/// Repairs what can be.
pub(super) fn repair(port: &Arc<dyn Disk>, layout: &Layout, out: &mut dyn Write) -> Result<(), String> {
    let disk = &**port;
    let mut say = |what: String| {
        let _ = writeln!(out, "repaired {what}");
    };
    repair_mark(disk, layout, &mut say)?;
    let Some(last) = repair_log(disk, layout, &mut say)? else {
        return Ok(());
    };
    let catalog = layout.catalog_path();
    if last == 0 && !disk.exists(&catalog).map_err(|error| said(&catalog, &error))? {
        // Nothing is left that knows the buckets: they wait for what is missing to be restored.
        return Ok(());
    }
    repair_catalog(disk, layout, last, &mut say)?;
    ledger::repair(disk, layout, &mut say)?;
    for ordinal in ordinals(disk, layout)? {
        let dir = BucketDir::of(&layout.data_dir, ordinal);
        match dir.read_manifest(disk) {
            Ok(Some(manifest)) => repair_bucket(disk, &dir, ordinal, &manifest, last, &mut say)?,
            Ok(None) => {}
            Err(
                BucketFileError::Manifest(CheckedFileError::Damaged(..))
                | BucketFileError::ManifestContent(..),
            ) => repair_manifest(port, layout, ordinal, last, &mut say)?,
            // The disk may be better tomorrow.
            Err(error) => return Err(error.to_string()),
        }
    }
    repair_relations(port, layout, last, &mut say)
}

/// What the files say of each other only recovery knows: it is tried until it has nothing more to say that can be
/// repaired. Each turn settles a bucket for good.
fn repair_relations(
    port: &Arc<dyn Disk>,
    layout: &Layout,
    last: Sequence,
    say: &mut dyn FnMut(String),
) -> Result<(), String> {
    loop {
        let untouched: Arc<dyn Disk> = Arc::new(Overlay(Arc::clone(port)));
        let opened = match open(&untouched, Arc::clone(&untouched), layout) {
            Err(OpenError::UnknownBucket(ordinal, _)) => {
                set_aside(&**port, layout, ordinal, say)?;
                continue;
            }
            Err(OpenError::BucketsMissing(dir)) => {
                port.create_dir_all(&dir).map_err(|error| said(&dir, &error))?;
                say(format!(
                    "{} is made anew, empty: the points in it are lost",
                    dir.display()
                ));
                continue;
            }
            Err(_) => return Ok(()),
            Ok(opened) => opened,
        };
        let without_manifest = |fault: &BucketFault| {
            matches!(
                fault,
                BucketFault::Files(BucketFileError::ManifestMissing(_) | BucketFileError::ManifestLost(..))
            )
        };
        let found = opened.set_apart.iter().find(|(_, fault)| without_manifest(fault));
        let Some((ordinal, _)) = found else {
            return Ok(());
        };
        repair_manifest(port, layout, *ordinal, last, say)?;
    }
}

/// Writes a manifest of what a bucket's directory holds.
fn repair_manifest(
    port: &Arc<dyn Disk>,
    layout: &Layout,
    ordinal: u32,
    last: Sequence,
    say: &mut dyn FnMut(String),
) -> Result<(), String> {
    let disk = &**port;
    let dir = BucketDir::of(&layout.data_dir, ordinal);
    let Rebuilt {
        manifest,
        left_out,
        points,
    } = rebuild(port, layout, &dir, ordinal)?;
    let path = dir.manifest_path();
    if disk.exists(&path).map_err(|error| said(&path, &error))? {
        keep_aside(disk, &path)?;
    }
    // What the manifest does not name is removed at the next start.
    for path in &left_out {
        keep_aside(disk, path)?;
    }
    dir.write_manifest(disk, &manifest)
        .map_err(|error| error.to_string())?;
    say(format!(
        "bucket {ordinal}: {} is made anew of the {} segments there are, with {points} points; points of segments that are missing are lost",
        path.display(),
        manifest.segments.len()
    ));
    for path in left_out {
        say(format!(
            "bucket {ordinal}: {} is kept aside: it does not read, or its points are in a later segment",
            path.display()
        ));
    }
    repair_bucket(disk, &dir, ordinal, &manifest, last, say)
}

/// Moves the files of a bucket that was created by a record cut off the log to a directory that nobody removes. The
/// manifest last: as long as it is there, an interrupted move is gone on with.
fn set_aside(
    disk: &dyn Disk,
    layout: &Layout,
    ordinal: u32,
    say: &mut dyn FnMut(String),
) -> Result<(), String> {
    let dir = BucketDir::of(&layout.data_dir, ordinal).path().to_owned();
    let mut aside = dir.as_os_str().to_owned();
    aside.push(CUT_SUFFIX);
    let aside = PathBuf::from(aside);
    let moved = || -> io::Result<()> {
        disk.create_dir_all(&aside)?;
        let mut names = disk.list(&dir)?;
        names.sort_by_key(|name| name == "manifest");
        for name in names {
            disk.rename(&dir.join(&name), &aside.join(&name))?;
        }
        disk.sync_dir(&aside)?;
        disk.remove_dir_all(&dir)?;
        disk.sync_dir(&layout.buckets_dir())
    };
    moved().map_err(|error| said(&aside, &error))?;
    say(format!(
        "bucket {ordinal}: the record that created it is lost, and with it all its points; its files are kept as {}",
        aside.display()
    ));
    Ok(())
}

/// The mark only saves reading: a whole log is replayed from its beginning with the same outcome.
fn repair_mark(disk: &dyn Disk, layout: &Layout, say: &mut dyn FnMut(String)) -> Result<(), String> {
    let path = layout.mark_path();
    let exists = disk.exists(&path).map_err(|error| said(&path, &error))?;
    if exists && layout.read_mark(disk).is_ok() {
        return Ok(());
    }
    let log = wal::check(disk, &layout.log_dir()).map_err(|error| error.to_string())?;
    // There is none before the first checkpoint, and a log from its beginning needs none.
    if let Some(first) = log.first_sequence.filter(|first| exists || *first > 1) {
        if exists {
            keep_aside(disk, &path)?;
        }
        layout
            .write_mark(disk, first - 1)
            .map_err(|error| error.to_string())?;
        say(format!(
            "{}: the log is replayed from record {first} on; nothing is lost by it",
            path.display()
        ));
    }
    Ok(())
}

/// Cuts the log at its first damage. Answers its last sequence, `None` where it cannot be repaired.
fn repair_log(
    disk: &dyn Disk,
    layout: &Layout,
    say: &mut dyn FnMut(String),
) -> Result<Option<Sequence>, String> {
    let dir = layout.log_dir();
    let Ok(mark) = layout.read_mark(disk) else {
        return Ok(None);
    };
    let found = wal::check(disk, &dir).map_err(|error| error.to_string())?;
    if found.first_sequence.is_some_and(|first| first > mark + 1) {
        // What is missing stands before all the rest: cut there, nothing would be left.
        return Ok(None);
    }
    if found.is_sound() && found.last_sequence >= mark {
        return Ok(Some(found.last_sequence));
    }
    disk.create_dir_all(&dir).map_err(|error| said(&dir, &error))?;
    let done = wal::repair(disk, &dir, mark).map_err(|error| error.to_string())?;
    let lost = match (done.lost_from, done.lost_to) {
        (Some(from), Some(to)) if to >= from => {
            format!("records from {from} on are lost, at least up to {to}")
        }
        (Some(from), _) => format!("records from {from} on are lost"),
        (None, _) => "nothing is lost".to_owned(),
    };
    let aside: Vec<String> = done
        .kept_aside
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    say(format!(
        "{}: it ends at record {} now; {lost}; cut parts are kept as {}",
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

/// New records get the sequences of those that are lost: nothing may say to cover them already.
fn repair_catalog(
    disk: &dyn Disk,
    layout: &Layout,
    last: Sequence,
    say: &mut dyn FnMut(String),
) -> Result<(), String> {
    let Ok(Snapshot {
        catalog,
        covered,
        manifests,
    }) = layout.read_catalog(disk)
    else {
        return Ok(());
    };
    if covered > last {
        let written = layout.write_catalog(disk, &catalog.freeze(), last, &manifests);
        written.map_err(|error| error.to_string())?;
        say(format!(
            "{}: it says to cover records up to {last} now, not {covered}",
            layout.catalog_path().display()
        ));
    }
    Ok(())
}

fn repair_bucket(
    disk: &dyn Disk,
    dir: &BucketDir,
    ordinal: u32,
    manifest: &Manifest,
    last: Sequence,
    say: &mut dyn FnMut(String),
) -> Result<(), String> {
    let mut repaired = manifest.clone();
    let mut damaged = Vec::new();
    let mut told = Vec::new();
    repaired.segments.clear();
    for id in &manifest.segments {
        let path = dir.segment_path(*id);
        match read_segment(disk, dir, *id) {
            Ok(_) => repaired.segments.push(*id),
            Err(Fault::Unread(message)) => {
                if disk.exists(&path).map_err(|error| said(&path, &error))? {
                    // The disk may be better tomorrow.
                    return Err(message);
                }
                told.push(format!(
                    "bucket {ordinal}: {} is missing, all its points are lost",
                    path.display()
                ));
            }
            Err(Fault::Whole(message)) => {
                told.push(format!(
                    "bucket {ordinal}: all points of a segment are lost: {message}"
                ));
                damaged.push(path);
            }
            Err(Fault::Blocks(blocks)) => {
                let lost = blocks.iter().filter(|block| block.fault.is_some());
                told.extend(
                    lost.map(|block| format!("bucket {ordinal}: lost {}", described(dir, *id, block))),
                );
                repaired
                    .segments
                    .push(salvage(disk, dir, &path, &mut repaired.next_file)?);
                damaged.push(path);
            }
        }
    }
    repaired.answers.clear();
    for id in &manifest.answers {
        let path = dir.answers_path(*id);
        match read_answers(disk, dir, *id) {
            Ok(()) => repaired.answers.push(*id),
            Err(message) => {
                told.push(format!(
                    "bucket {ordinal}: idempotency keys are forgotten, requests that use them again are stored again: {message}"
                ));
                if disk.exists(&path).map_err(|error| said(&path, &error))? {
                    damaged.push(path);
                }
            }
        }
    }
    if repaired.covered > last {
        told.push(format!(
            "bucket {ordinal}: it says to cover records up to {last} now, not {}",
            repaired.covered
        ));
        repaired.covered = last;
    }
    if repaired == *manifest {
        return Ok(());
    }
    // Kept under another name first: what the manifest does not name is removed at the next start.
    damaged
        .iter()
        .try_for_each(|path| keep_aside(disk, path).map(drop))?;
    dir.write_manifest(disk, &repaired)
        .map_err(|error| error.to_string())?;
    for path in &damaged {
        disk.remove(path).map_err(|error| said(path, &error))?;
    }
    told.into_iter().for_each(say);
    Ok(())
}

/// Writes the blocks that read to a segment of their own; answers its id.
fn salvage(disk: &dyn Disk, dir: &BucketDir, damaged: &Path, next_file: &mut u64) -> Result<u64, String> {
    // An interrupted repair may have left one of that name.
    while disk
        .exists(&dir.segment_path(*next_file))
        .map_err(|error| said(damaged, &error))?
    {
        *next_file += 1;
    }
    let id = *next_file;
    *next_file += 1;
    let path = dir.segment_path(id);
    let home = shared(disk.map(damaged).map_err(|error| said(damaged, &error))?);
    let mut bytes = Vec::new();
    salvage_segment(&home, &mut bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    write(disk, &path, &bytes)?;
    Ok(id)
}

/// Copies a file to a name that nobody removes; answers that name.
pub(super) fn keep_aside(disk: &dyn Disk, path: &Path) -> Result<PathBuf, String> {
    let mut name = path.as_os_str().to_owned();
    name.push(ASIDE_SUFFIX);
    let aside = PathBuf::from(name);
    match disk.remove(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(said(&aside, &error)),
        // None, or that of an interrupted repair.
        _ => {}
    }
    let bytes = disk.map(path).map_err(|error| said(path, &error))?;
    write(disk, &aside, (*bytes).as_ref())?;
    Ok(aside)
}

fn write(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), String> {
    let written = || -> io::Result<()> {
        let mut file = disk.create(path)?;
        for (index, part) in bytes.chunks(COPY_BYTES).enumerate() {
            file.write_all_at((index * COPY_BYTES) as u64, part)?;
        }
        file.sync_data()?;
        path.parent().map_or(Ok(()), |dir| disk.sync_dir(dir))
    };
    written().map_err(|error| said(path, &error))
}

pub(super) fn said(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
