//! Single flipped bits. Checksums locate them, and a repair corrects them before it discards anything. Segments are
//! excluded, because damage costs them one block at most.

use std::path::Path;

use disk::replace_file;
use wal::{Flip, flip_of_file};

use super::{Report, Say};
use crate::bucket::flip_of_carried;
use crate::checkpoint::{DataDir, at, flip_of_manifest, message};
use crate::ledger::flip_of_run;

/// Limit on bits corrected in one file. A file with more is damaged in another way.
const FLIPS_MAX: usize = 16;

/// Corrects flipped bits in the manifest, the log, runs of the ledger and carried records.
pub(super) fn correct(dir: &DataDir, say: &mut Say<'_>) -> Result<(), String> {
    let manifest = dir.manifest_path();
    if dir.exists(&manifest)? {
        correct_file(dir, &manifest, flip_of_manifest, say)?;
    }
    for path in wal::files(dir.disk(), &dir.layout.log_dir()).map_err(message)? {
        correct_file(dir, &path, |bytes| flip_of_log(&path, bytes), say)?;
    }
    let runs = dir.layout.runs_dir();
    for id in dir.list(&runs)?.ids {
        correct_file(dir, &runs.file_path(id), flip_of_run, say)?;
    }
    for file in dir.carried_files()? {
        correct_file(dir, &file.path, flip_of_carried, say)?;
    }
    Ok(())
}

/// Reports a flipped bit in a log file. Returns whether there is one.
pub(super) fn report(dir: &DataDir, path: &Path, report: &mut Report<'_>) -> Result<bool, String> {
    let bytes = dir.map(path)?;
    let flip = flip_of_log(path, (*bytes).as_ref());
    if let Some(flip) = flip {
        report.damage(format_args!(
            "log file {}: a bit of byte {} flipped, in a frame that may have been acknowledged",
            path.display(),
            flip.offset
        ));
    }
    Ok(flip.is_some())
}

fn flip_of_log(path: &Path, bytes: &[u8]) -> Option<Flip> {
    flip_of_file(path.file_name()?, bytes)
}

fn correct_file(
    dir: &DataDir,
    path: &Path,
    find: impl Fn(&[u8]) -> Option<Flip>,
    say: &mut Say<'_>,
) -> Result<(), String> {
    let found = dir.map(path)?;
    let mut next = find((*found).as_ref());
    if next.is_none() {
        return Ok(());
    }
    let (mut bytes, mut turned) = ((*found).as_ref().to_vec(), Vec::new());
    while turned.len() < FLIPS_MAX
        && let Some(flip) = next
    {
        flip.turn(&mut bytes);
        turned.push(flip.offset.to_string());
        next = find(&bytes);
    }
    let aside = dir.keep_aside(path)?;
    replace_file(dir.disk(), path, &bytes).map_err(at(path))?;
    say(format!(
        "{}: flipped bits, located by checksums, were turned back in the bytes at {}; nothing of them is lost; the \
         damaged file is kept as {}",
        path.display(),
        turned.join(", "),
        aside.display()
    ));
    Ok(())
}
