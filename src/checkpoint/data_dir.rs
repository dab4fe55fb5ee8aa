//! A data directory that is checked, repaired or converted. Errors are messages for the operator. Damaged files are kept
//! under names that are never removed automatically.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Bytes, Disk};
use wal::{CheckReport, OpenError, Replay, Sequence};

use super::format_1;
use super::layout::{Layout, at, message};
use super::manifest::Manifest;
use crate::bucket::{CarriedDir, CarriedFile};
use crate::sealed_file::{FileWriter, Listing, SealedDir, SealedFiles};

/// Suffix of the name under which a damaged file is kept.
const ASIDE_SUFFIX: &str = ".damaged";
const COPY_BYTES: usize = 1 << 20;

/// A data directory on a disk.
pub struct DataDir {
    pub disk: Arc<dyn Disk>,
    pub layout: Layout,
}

impl DataDir {
    pub fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    pub fn path(&self) -> &Path {
        &self.layout.data_dir
    }

    pub fn manifest_path(&self) -> PathBuf {
        Manifest::path(self.path())
    }

    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), String> {
        manifest.write(self.disk(), self.path()).map_err(message)
    }

    /// A file that exists only in format 1, if there is one.
    pub fn file_of_format_1(&self) -> Result<Option<PathBuf>, String> {
        format_1::exists(self.disk(), self.path()).map_err(at(self.path()))
    }

    /// Whether there is a segment or a run file.
    pub fn has_sealed_files(&self) -> Result<bool, String> {
        self.layout.has_sealed_files(self.disk()).map_err(at(self.path()))
    }

    pub fn exists(&self, path: &Path) -> Result<bool, String> {
        self.disk.exists(path).map_err(at(path))
    }

    pub fn map(&self, path: &Path) -> Result<Arc<dyn Bytes>, String> {
        self.disk.map(path).map_err(at(path))
    }

    /// The files in a directory, for writing new ones, whose numbers are at least `next`.
    pub fn files(&self, dir: SealedDir, next: u64) -> Result<SealedFiles, String> {
        let path = dir.path().to_owned();
        SealedFiles::list(Arc::clone(&self.disk), dir, &[], next).map_err(at(&path))
    }

    pub fn list(&self, dir: &SealedDir) -> Result<Listing, String> {
        dir.list(self.disk()).map_err(at(dir.path()))
    }

    pub fn carried_dir(&self) -> CarriedDir {
        CarriedDir::of(self.path())
    }

    pub fn carried_files(&self) -> Result<Vec<CarriedFile>, String> {
        self.carried_dir().list(self.disk()).map_err(at(self.path()))
    }

    /// The length of a file in bytes; 0 if it cannot be read.
    pub fn length(&self, path: &Path) -> u64 {
        let length = self.disk.open_read(path).and_then(|file| file.len());
        length.unwrap_or(0)
    }

    pub fn check_log(&self) -> Result<CheckReport, String> {
        wal::check(self.disk(), &self.layout.log_dir()).map_err(message)
    }

    /// Passes the records of the log after this one to `each`.
    pub fn read_log<E: Display>(&self, after: Sequence, each: &mut Replay<'_, E>) -> Result<(), String> {
        let last = self.check_log()?.last_sequence;
        let read = wal::records(self.disk(), &self.layout.log_dir(), (after, last), each);
        read.map_err(|error| match error {
            OpenError::Log(error) => error.to_string(),
            OpenError::Replay { sequence, source } => format!("record {sequence}: {source}"),
        })
    }

    /// Copies a file to a name that is never removed automatically. Returns the name.
    pub fn keep_aside(&self, path: &Path) -> Result<PathBuf, String> {
        let bytes = self.map(path)?;
        let aside = self.free_name(path, (*bytes).as_ref())?;
        self.copy_to(&aside, (*bytes).as_ref()).map_err(at(&aside))?;
        Ok(aside)
    }

    /// Removes files of which copies are kept.
    pub fn remove_all(&self, paths: &[PathBuf]) -> Result<(), String> {
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
        let mut out = FileWriter::new(self.disk.create(path)?);
        bytes
            .chunks(COPY_BYTES)
            .try_for_each(|part| out.write_all(part))?;
        out.finish()?;
        path.parent().map_or(Ok(()), |dir| self.disk.sync_dir(dir))
    }
}
