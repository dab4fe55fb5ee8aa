//! Cuts what is damaged, so that a server starts on the rest. Every cut part is kept aside, and what is lost is said.
//! May be called again when it was interrupted: what takes the place of a damaged file is written and named by the
//! manifest before that file is removed, so that each step leaves a directory that the next call understands.

use std::io::Write;
use std::sync::Arc;

use wal::disk::Disk;

use super::aside::{exists, keep_aside, said};
use super::rebuild::rebuild;
use super::survey::is_format_1;
use super::{carried, flips, ledger, log, mend};
use crate::checked_file::CheckedFileError;
use crate::checkpoint::{Damage, Layout, Manifest, ManifestError, convert};

/// Repairs what can be.
pub(super) fn repair(disk: &Arc<dyn Disk>, layout: &Layout, out: &mut dyn Write) -> Result<(), String> {
    let mut say = |what: String| {
        let _ = writeln!(out, "repaired {what}");
    };
    if exists(&**disk, &layout.restoring_path())? {
        // Nothing in the directory may be relied upon.
        return Ok(());
    }
    flips::turn_back(&**disk, layout, &mut say)?;
    let Some(manifest) = settle(disk, layout, &mut say)? else {
        return Ok(());
    };
    let Some(mut manifest) = manifest else {
        // The log has everything.
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

/// The manifest in force, made anew where it has to be, with all that an older program wrote converted; the inner `None`
/// where there is none and need not be, the outer where it cannot be made.
fn settle(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    say: &mut dyn FnMut(String),
) -> Result<Option<Option<Manifest>>, String> {
    if is_format_1(&**disk, layout)? && !convert_old(disk, layout, say)? {
        return Ok(None);
    }
    let manifest = match Manifest::read(&**disk, &layout.data_dir) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => match settle_missing(disk, layout, say)? {
            Some(Some(manifest)) => manifest,
            settled => return Ok(settled),
        },
        Err(ManifestError::File(CheckedFileError::Damaged(..)) | ManifestError::Content(..)) => {
            match settle_damaged(disk, layout, say)? {
                Some(Some(manifest)) => manifest,
                settled => return Ok(settled),
            }
        }
        // The disk may be better tomorrow, and a newer program knows what it wrote.
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

/// Converts what an older program wrote; answers whether that was possible.
fn convert_old(disk: &Arc<dyn Disk>, layout: &Layout, say: &mut dyn FnMut(String)) -> Result<bool, String> {
    match convert(disk, &layout.data_dir, Damage::Salvage(say)) {
        Ok(_) => {
            say("format: what an older program wrote is converted".to_owned());
            Ok(true)
        }
        Err(error) => {
            say(format!("nothing of what an older program wrote: {error}"));
            Ok(false)
        }
    }
}

/// Before the first checkpoint there is no manifest, and the log has everything.
fn settle_missing(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    say: &mut dyn FnMut(String),
) -> Result<Option<Option<Manifest>>, String> {
    let sealed = layout.has_sealed_files(&**disk);
    let sealed = sealed.map_err(|error| said(&layout.data_dir, &error))?;
    if !sealed || log_has_everything(&**disk, layout)? {
        return Ok(Some(None));
    }
    Ok(make_anew(disk, layout, say)?.map(Some))
}

fn settle_damaged(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    say: &mut dyn FnMut(String),
) -> Result<Option<Option<Manifest>>, String> {
    if !log_has_everything(&**disk, layout)? {
        return Ok(make_anew(disk, layout, say)?.map(Some));
    }
    let path = Manifest::path(&layout.data_dir);
    let aside = keep_aside(&**disk, &path)?;
    let removed = disk.remove(&path).and_then(|()| disk.sync_dir(&layout.data_dir));
    removed.map_err(|error| said(&path, &error))?;
    say(format!(
        "{}: the log reaches back to the first record, a start replays it; nothing is lost; {} is what was there",
        path.display(),
        aside.display()
    ));
    Ok(Some(None))
}

/// Whether the log is whole from the first record on. What was cut off it once may be in segments alone; and without a
/// manifest, what could not be converted would be taken for all there is.
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

/// A manifest of the files there are, the log being cut at its first damage before.
fn make_anew(
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
