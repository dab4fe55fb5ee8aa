//! The data directory that is checked. Errors are messages for the operator. Damaged files are kept under names that
//! are never removed automatically.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Bytes, Disk};
use wal::CheckReport;

use crate::bucket::{CarriedDir, CarriedFile};
use crate::checkpoint::{Layout, Manifest, at, message};
use crate::sealed_file::{Listing, SealedDir};

/// Suffix of the name under which a damaged file is kept.
const ASIDE_SUFFIX: &str = ".damaged";
const COPY_BYTES: usize = 1 << 20;

pub(super) struct DataDir {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) layout: Layout,
}

impl DataDir {
    pub(super) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    pub(super) fn path(&self) -> &Path {
        &self.layout.data_dir
    }

    pub(super) fn manifest_path(&self) -> PathBuf {
        Manifest::path(self.path())
    }

    pub(super) fn write_manifest(&self, manifest: &Manifest) -> Result<(), String> {
        manifest.write(self.disk(), self.path()).map_err(message)
    }

    /// A file that exists only in format 1, if there is one.
    pub(super) fn file_of_format_1(&self) -> Result<Option<PathBuf>, String> {
        self.layout.file_of_format_1(self.disk()).map_err(at(self.path()))
    }

    pub(super) fn exists(&self, path: &Path) -> Result<bool, String> {
        self.disk.exists(path).map_err(at(path))
    }

    pub(super) fn map(&self, path: &Path) -> Result<Arc<dyn Bytes>, String> {
        self.disk.map(path).map_err(at(path))
    }

    pub(super) fn list(&self, dir: &SealedDir) -> Result<Listing, String> {
        dir.list(self.disk()).map_err(at(dir.path()))
    }

    pub(super) fn carried_dir(&self) -> CarriedDir {
        CarriedDir::of(self.path())
    }

    pub(super) fn carried_files(&self) -> Result<Vec<CarriedFile>, String> {
        self.carried_dir().list(self.disk()).map_err(at(self.path()))
    }

    pub(super) fn check_log(&self) -> Result<CheckReport, String> {
        wal::check(self.disk(), &self.layout.log_dir()).map_err(message)
    }

    /// Copies a file to a name that is never removed automatically. Returns the name.
    pub(super) fn keep_aside(&self, path: &Path) -> Result<PathBuf, String> {
        let bytes = self.map(path)?;
        let aside = self.free_name(path, (*bytes).as_ref())?;
        self.copy_to(&aside, (*bytes).as_ref()).map_err(at(&aside))?;
        Ok(aside)
    }

    /// Removes files of which copies are kept.
    pub(super) fn remove_all(&self, paths: &[PathBuf]) -> Result<(), String> {
        let mut paths = paths.iter();
        paths.try_for_each(|path| self.disk.remove(path).map_err(at(path)))
    }

    /// Finds an unused name. The incomplete copy of an interrupted repair is replaced.
    fn free_name(&self, path: &Path, bytes: &[u8]) -> Result<PathBuf, String> {
        let mut number = 1u64;
        loop {
            let mut name = path.as_os_str().to_owned();
            name.push(ASIDE_SUFFIX);
            if number > 1 {
                name.push(format!(".{number}"));
            }
            let aside = PathBuf::from(name);
            let held = match self.disk.map(&aside) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(aside),
                held => held.map_err(at(&aside))?,
            };
            if bytes.starts_with((*held).as_ref()) {
                self.disk.remove(&aside).map_err(at(&aside))?;
                return Ok(aside);
            }
            number += 1;
        }
    }

    fn copy_to(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.disk.create(path)?;
        for (index, part) in bytes.chunks(COPY_BYTES).enumerate() {
            file.write_all_at((index * COPY_BYTES) as u64, part)?;
        }
        file.sync_data()?;
        path.parent().map_or(Ok(()), |dir| self.disk.sync_dir(dir))
    }
}
