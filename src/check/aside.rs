//! Keeps damaged files under names that are never removed automatically.

use std::io;
use std::path::{Path, PathBuf};

use disk::Disk;

/// Suffix of the name under which a damaged file is kept.
const ASIDE_SUFFIX: &str = ".damaged";
const COPY_BYTES: usize = 1 << 20;

/// Copies a file to such a name. Returns the name.
pub(super) fn keep_aside(disk: &dyn Disk, path: &Path) -> Result<PathBuf, String> {
    let bytes = disk.map(path).map_err(|error| disk_error(path, &error))?;
    let aside = free_name(disk, path, (*bytes).as_ref())?;
    write(disk, &aside, (*bytes).as_ref())?;
    Ok(aside)
}

/// Finds an unused name. The incomplete copy of an interrupted repair is replaced.
fn free_name(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<PathBuf, String> {
    let mut number = 1u64;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(ASIDE_SUFFIX);
        if number > 1 {
            name.push(format!(".{number}"));
        }
        let aside = PathBuf::from(name);
        let held = match disk.map(&aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(aside),
            held => held.map_err(|error| disk_error(&aside, &error))?,
        };
        if bytes.starts_with((*held).as_ref()) {
            disk.remove(&aside).map_err(|error| disk_error(&aside, &error))?;
            return Ok(aside);
        }
        number += 1;
    }
}

/// Removes files of which copies are kept.
pub(super) fn remove_all(disk: &dyn Disk, paths: &[PathBuf]) -> Result<(), String> {
    let mut paths = paths.iter();
    paths.try_for_each(|path| disk.remove(path).map_err(|error| disk_error(path, &error)))
}

pub(super) fn exists(disk: &dyn Disk, path: &Path) -> Result<bool, String> {
    disk.exists(path).map_err(|error| disk_error(path, &error))
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
    written().map_err(|error| disk_error(path, &error))
}

pub(super) fn disk_error(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
