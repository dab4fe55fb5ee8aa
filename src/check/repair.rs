//! Removes damaged parts, so that a server starts on the rest. A copy of every removed part is kept, and losses are
//! reported. A repair that was interrupted can be repeated: the replacement of a damaged file is written and named by
//! the manifest before that file is removed, so each step leaves a directory that the next run understands.

use std::path::PathBuf;

use super::rebuild::rebuild;
use super::survey::is_format_1;
use super::{Say, carried, flips, ledger, log, segments};
use crate::checked_file::CheckedFileError;
use crate::checkpoint::{Damage, DataDir, Manifest, ManifestError, at, convert, message};

/// The manifest that a repair works with.
enum InForce {
    Manifest(Manifest),
    /// There is none and none is needed: the log has all records.
    LogOnly,
    /// It is lost and cannot be rebuilt.
    Lost,
}

/// Repairs what can be repaired.
pub(super) fn repair(dir: &DataDir, say: &mut Say<'_>) -> Result<(), String> {
    if dir.exists(&dir.layout.restoring_path())? {
        // An unfinished restore: nothing in the directory may be relied upon.
        return Ok(());
    }
    flips::correct(dir, say)?;
    let mut manifest = match manifest_in_force(dir, say)? {
        InForce::Manifest(manifest) => manifest,
        InForce::LogOnly => return log::repair(dir, 0, say).map(drop),
        InForce::Lost => return Ok(()),
    };
    let Some(last) = log::repair(dir, manifest.covered, say)? else {
        return Ok(());
    };
    log::lower(dir, &mut manifest, last, say)?;
    if ledger::repair(dir, &mut manifest, say)? {
        segments::repair(dir, &mut manifest, say)?;
        carried::repair(dir, &mut manifest, say)?;
    }
    Ok(())
}

/// The manifest in force, rebuilt if necessary, after converting all data of older programs.
fn manifest_in_force(dir: &DataDir, say: &mut Say<'_>) -> Result<InForce, String> {
    if is_format_1(dir)? && !convert_old(dir, say)? {
        return Ok(InForce::Lost);
    }
    let found = match Manifest::read(dir.disk(), dir.path()) {
        Ok(Some(manifest)) => InForce::Manifest(manifest),
        // Before the first checkpoint there is no manifest, and the log has all records.
        Ok(None) if !dir.has_sealed_files()? || log_has_everything(dir)? => InForce::LogOnly,
        Err(ManifestError::File(CheckedFileError::Damaged(..)) | ManifestError::Content(..))
            if log_has_everything(dir)? =>
        {
            remove_manifest(dir, say)?;
            InForce::LogOnly
        }
        Ok(None) | Err(ManifestError::File(CheckedFileError::Damaged(..)) | ManifestError::Content(..)) => {
            rebuild_after_log(dir, say)?.map_or(InForce::Lost, InForce::Manifest)
        }
        // A disk error may be temporary, and a newer program can read what it wrote.
        Err(error) => return Err(error.to_string()),
    };
    match found {
        InForce::Manifest(manifest) if !manifest.unconverted.is_empty() => {
            if !convert_old(dir, say)? {
                return Ok(InForce::Lost);
            }
            let read = Manifest::read(dir.disk(), dir.path()).map_err(message)?;
            Ok(read.map_or(InForce::LogOnly, InForce::Manifest))
        }
        found => Ok(found),
    }
}

/// Converts data of an older program. Returns whether that was possible.
fn convert_old(dir: &DataDir, say: &mut Say<'_>) -> Result<bool, String> {
    match convert(&dir.disk, dir.path(), Damage::Salvage(say)) {
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

/// Removes a damaged manifest that is not needed.
fn remove_manifest(dir: &DataDir, say: &mut Say<'_>) -> Result<(), String> {
    let path = dir.manifest_path();
    let aside = dir.keep_aside(&path)?;
    let removed = dir
        .disk
        .remove(&path)
        .and_then(|()| dir.disk.sync_dir(dir.path()));
    removed.map_err(at(&path))?;
    say(format!(
        "{}: removed, because the log is complete from the first record on and a start replays it; nothing is lost; the damaged file is kept as {}",
        path.display(),
        aside.display()
    ));
    Ok(())
}

/// Whether the log is complete from the first record on. Records that were once cut off may exist only in segments; and
/// without a manifest, unconverted data would be taken for all there is.
fn log_has_everything(dir: &DataDir) -> Result<bool, String> {
    if dir.file_of_format_1()?.is_some() {
        return Ok(false);
    }
    let found = dir.check_log()?;
    let was_cut = found
        .ignored
        .iter()
        .any(|name| name.to_string_lossy().contains(".cut"));
    Ok(found.is_sound() && found.first_sequence == Some(1) && !was_cut)
}

/// Rebuilds the manifest from the existing files, after truncating the log at its first damage.
fn rebuild_after_log(dir: &DataDir, say: &mut Say<'_>) -> Result<Option<Manifest>, String> {
    let before = log::begins_behind(dir)?;
    match log::repair(dir, before, say)? {
        Some(_) => rebuild(dir, before, say),
        None => Ok(None),
    }
}

/// Puts a repaired manifest in force, whose files replace the damaged ones.
pub(super) fn replace(
    dir: &DataDir,
    repaired: &Manifest,
    damaged: &[PathBuf],
    mut messages: Vec<String>,
    say: &mut Say<'_>,
) -> Result<(), String> {
    // First keep a copy: the next start removes files that the manifest does not name.
    for path in damaged {
        let aside = dir.keep_aside(path)?;
        messages.push(format!("a damaged file is kept as {}", aside.display()));
    }
    dir.write_manifest(repaired)?;
    messages.into_iter().for_each(say);
    dir.remove_all(damaged)
}
