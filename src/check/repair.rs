//! Removes damaged parts, so that a server starts on the rest. A copy of every removed part is kept, and losses are
//! reported. A repair that was interrupted can be repeated: the replacement of a damaged file is written and named by
//! the manifest before that file is removed, so each step leaves a directory that the next run understands.

use std::io::Write;
use std::sync::Arc;

use disk::Disk;

use super::aside::{disk_error, exists, keep_aside};
use super::rebuild::rebuild;
use super::survey::is_format_1;
use super::{carried, flips, ledger, log, mend};
use crate::checked_file::CheckedFileError;
use crate::checkpoint::{Damage, Layout, Manifest, ManifestError, convert};

/// Repairs what can be repaired.
pub(super) fn repair(disk: &Arc<dyn Disk>, layout: &Layout, out: &mut dyn Write) -> Result<(), String> {
    let mut say = |what: String| {
        let _ = writeln!(out, "repaired {what}");
    };
    if exists(&**disk, &layout.restoring_path())? {
        // An unfinished restore: nothing in the directory may be relied upon.
        return Ok(());
    }
    flips::turn_back(&**disk, layout, &mut say)?;
    let Some(manifest) = manifest_in_force(disk, layout, &mut say)? else {
        return Ok(());
    };
    let Some(mut manifest) = manifest else {
        // The log has all records.
        log::repair(&**disk, layout, 0, &mut say)?;
        return Ok(());
    };
    let Some(last) = log::repair(&**disk, layout, manifest.covered, &mut say)? else {
        return Ok(());
    };
    log::lower(&**disk, layout, &mut manifest, last, &mut say)?;
    if ledger::repair(disk, layout, &mut manifest, &mut say)? {
        mend::repair(disk, layout, &mut manifest, &mut say)?;
        carried::repair(&**disk, layout, &mut manifest, &mut say)?;
    }
    Ok(())
}

/// The manifest in force, rebuilt if necessary, after converting all data of older programs. The inner option is `None`
/// if there is no manifest and none is needed, the outer one if it cannot be rebuilt.
fn manifest_in_force(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    say: &mut dyn FnMut(String),
) -> Result<Option<Option<Manifest>>, String> {
    if is_format_1(&**disk, layout)? && !convert_old(disk, layout, say)? {
        return Ok(None);
    }
    let manifest = match Manifest::read(&**disk, &layout.data_dir) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => match without_manifest(disk, layout, say)? {
            Some(Some(manifest)) => manifest,
            other => return Ok(other),
        },
        Err(ManifestError::File(CheckedFileError::Damaged(..)) | ManifestError::Content(..)) => {
            match with_damaged_manifest(disk, layout, say)? {
                Some(Some(manifest)) => manifest,
                other => return Ok(other),
            }
        }
        // A disk error may be temporary, and a newer program can read what it wrote.
        Err(error) => return Err(error.to_string()),
    };
    if manifest.unconverted.is_empty() {
        return Ok(Some(Some(manifest)));
    }
    if !convert_old(disk, layout, say)? {
        return Ok(None);
    }
    let manifest = Manifest::read(&**disk, &layout.data_dir);
    manifest.map(Some).map_err(|error| error.to_string())
}

/// Converts data of an older program. Returns whether that was possible.
fn convert_old(disk: &Arc<dyn Disk>, layout: &Layout, say: &mut dyn FnMut(String)) -> Result<bool, String> {
    match convert(disk, &layout.data_dir, Damage::Salvage(say)) {
        Ok(_) => {
            say("format: data of an older program was converted".to_owned());
            Ok(true)
        }
        Err(error) => {
            say(format!("nothing of what an older program wrote: {error}"));
            Ok(false)
        }
    }
}

/// Handles a missing manifest. Before the first checkpoint there is none, and the log has all records.
fn without_manifest(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    say: &mut dyn FnMut(String),
) -> Result<Option<Option<Manifest>>, String> {
    let sealed = layout.has_sealed_files(&**disk);
    let sealed = sealed.map_err(|error| disk_error(&layout.data_dir, &error))?;
    if !sealed || log_has_everything(&**disk, layout)? {
        return Ok(Some(None));
    }
    Ok(rebuild_after_log(disk, layout, say)?.map(Some))
}

fn with_damaged_manifest(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    say: &mut dyn FnMut(String),
) -> Result<Option<Option<Manifest>>, String> {
    if !log_has_everything(&**disk, layout)? {
        return Ok(rebuild_after_log(disk, layout, say)?.map(Some));
    }
    let path = Manifest::path(&layout.data_dir);
    let aside = keep_aside(&**disk, &path)?;
    let removed = disk.remove(&path).and_then(|()| disk.sync_dir(&layout.data_dir));
    removed.map_err(|error| disk_error(&path, &error))?;
    say(format!(
        "{}: removed, because the log is complete from the first record on and a start replays it; nothing is lost; the damaged file is kept as {}",
        path.display(),
        aside.display()
    ));
    Ok(Some(None))
}

/// Whether the log is complete from the first record on. Records that were once cut off may exist only in segments; and
/// without a manifest, unconverted data would be taken for all there is.
fn log_has_everything(disk: &dyn Disk, layout: &Layout) -> Result<bool, String> {
    let old = layout.file_of_format_1(disk).map_err(|error| error.to_string())?;
    if old.is_some() {
        return Ok(false);
    }
    let found = wal::check(disk, &layout.log_dir()).map_err(|error| error.to_string())?;
    let was_cut = found
        .ignored
        .iter()
        .any(|name| name.to_string_lossy().contains(".cut"));
    Ok(found.is_sound() && found.first_sequence == Some(1) && !was_cut)
}

/// Rebuilds the manifest from the existing files, after truncating the log at its first damage.
fn rebuild_after_log(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    say: &mut dyn FnMut(String),
) -> Result<Option<Manifest>, String> {
    let before = log::begins_behind(&**disk, layout)?;
    match log::repair(&**disk, layout, before, say)? {
        Some(_) => rebuild(disk, layout, before, say),
        None => Ok(None),
    }
}
