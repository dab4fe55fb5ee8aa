//! Single flipped bits. Checksums locate them, and a repair corrects them before it discards anything. Segments are
//! excluded, because damage costs them one block at most.

use std::path::Path;

use disk::{Disk, replace_file};
use wal::{Flip, flip_of_file};

use super::Report;
use super::aside::{disk_error, exists, keep_aside};
use crate::bucket::{CarriedDir, flip_of_carried};
use crate::checkpoint::{Layout, Manifest, flip_of_manifest};
use crate::ledger::{LedgerDir, flip_of_run};

/// Limit on bits corrected in one file. A file with more is damaged in another way.
const FLIPS_MAX: usize = 16;

/// Corrects flipped bits in the manifest, the log, runs of the ledger and carried records.
pub(super) fn turn_back(disk: &dyn Disk, layout: &Layout, say: &mut dyn FnMut(String)) -> Result<(), String> {
    let manifest = Manifest::path(&layout.data_dir);
    if exists(disk, &manifest)? {
        turn_back_in(disk, &manifest, flip_of_manifest, say)?;
    }
    for path in wal::files(disk, &layout.log_dir()).map_err(|error| error.to_string())? {
        turn_back_in(disk, &path, |bytes| flip_of_log(&path, bytes), say)?;
    }
    let ledger = LedgerDir::of(&layout.data_dir);
    for id in ledger.list(disk).map_err(|error| error.to_string())?.runs {
        turn_back_in(disk, &ledger.run_path(id), flip_of_run, say)?;
    }
    let carried = CarriedDir::of(&layout.data_dir).list(disk);
    for file in carried.map_err(|error| disk_error(&layout.data_dir, &error))? {
        turn_back_in(disk, &file.path, flip_of_carried, say)?;
    }
    Ok(())
}

/// Reports a flipped bit in a log file. Returns whether there is one.
pub(super) fn report(disk: &dyn Disk, path: &Path, report: &mut Report<'_>) -> Result<bool, String> {
    let bytes = disk.map(path).map_err(|error| disk_error(path, &error))?;
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

fn turn_back_in(
    disk: &dyn Disk,
    path: &Path,
    find: impl Fn(&[u8]) -> Option<Flip>,
    say: &mut dyn FnMut(String),
) -> Result<(), String> {
    let found = disk.map(path).map_err(|error| disk_error(path, &error))?;
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
    let aside = keep_aside(disk, path)?;
    replace_file(disk, path, &bytes).map_err(|error| disk_error(path, &error))?;
    say(format!(
        "{}: flipped bits, located by checksums, were turned back in the bytes at {}; nothing of them is lost; the \
         damaged file is kept as {}",
        path.display(),
        turned.join(", "),
        aside.display()
    ));
    Ok(())
}
