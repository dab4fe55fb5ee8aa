//! Reads a backup of any form and verifies every byte with the manifest.

use std::collections::BTreeMap;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::Disk;
use tar::Archive;
use zstd::stream::read::Decoder;

use super::content::{Content, FileReader};
use super::error::BackupError;
use super::manifest::{DATA_PREFIX, MANIFEST_NAME, Manifest, is_of_data_dir};
use crate::progress::Progress;

/// A manifest of this size would list millions of files. A longer one is damaged.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;
/// The magic of the zstd format.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
const READ_BYTES: usize = 256 << 10;

/// Receives each file of a backup, by its path within the data directory, and reads it completely.
pub(super) type Sink<'a> = dyn FnMut(&str, &mut Content<'_>) -> Result<(), BackupError> + 'a;

/// Passes each file to the sink, then verifies them with the manifest. Until this returns, the data passed to the sink
/// must not be relied upon.
pub(super) fn read(
    disk: &Arc<dyn Disk>,
    path: &Path,
    progress: &dyn Progress,
    sink: &mut Sink<'_>,
) -> Result<Manifest, BackupError> {
    let mut read = BackupReader {
        backup: path,
        progress,
        files: BTreeMap::new(),
        faults: Vec::new(),
    };
    // Detect the form by content, so that a renamed backup still reads.
    let manifest = match disk.list(path) {
        Ok(_) => read.directory(disk, sink)?,
        Err(_) => read.archive(disk, sink)?,
    };
    read.verify(&manifest)?;
    Ok(manifest)
}

/// What has been read so far.
struct BackupReader<'a> {
    backup: &'a Path,
    progress: &'a dyn Progress,
    /// Length and checksum.
    files: BTreeMap<String, (u64, String)>,
    faults: Vec<String>,
}

impl BackupReader<'_> {
    fn take(&mut self, name: &str, from: &mut dyn Read, sink: &mut Sink<'_>) -> Result<(), BackupError> {
        if !is_of_data_dir(name) {
            self.faults
                .push(format!("{name:?} is not a file name of a data directory"));
            return Ok(());
        }
        let mut content = Content::new(from);
        sink(name, &mut content)?;
        if self.files.insert(name.to_owned(), content.finish()).is_some() {
            self.faults.push(format!("{name} occurs twice"));
        }
        Ok(())
    }

    fn directory(&mut self, disk: &Arc<dyn Disk>, sink: &mut Sink<'_>) -> Result<Manifest, BackupError> {
        let path = self.backup.join(MANIFEST_NAME);
        let bytes = disk.read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => BackupError::Unfinished(self.backup.to_owned()),
            _ => BackupError::Read(path, error),
        })?;
        let manifest = Manifest::decode(self.backup, &bytes)?;
        self.progress.expect(manifest.bytes());
        for file in &manifest.files {
            let path = path_of(self.backup, &file.path);
            let unread = |error| BackupError::Read(path.clone(), error);
            let opened = match disk.open_read(&path) {
                // Reported as missing after all files were read.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened.map_err(unread)?,
            };
            let mut reader = FileReader::new(&*opened, self.progress).map_err(unread)?;
            self.take(&file.path, &mut reader, sink)?;
        }
        Ok(manifest)
    }

    /// Reads an archive, whose last file is the manifest.
    fn archive(&mut self, disk: &Arc<dyn Disk>, sink: &mut Sink<'_>) -> Result<Manifest, BackupError> {
        let backup = self.backup.to_owned();
        let opened = disk.open_read(&backup);
        let file = opened.map_err(|error| BackupError::Read(backup.clone(), error))?;
        let failed = |error| of_archive(&backup, error);
        let mut magic = [0; ZSTD_MAGIC.len()];
        // A file that is too short for the magic is not an archive either.
        let compressed = file.read_exact_at(0, &mut magic).is_ok() && magic == ZSTD_MAGIC;
        self.progress.expect(file.len().map_err(failed)?);
        let reader = FileReader::new(&*file, self.progress).map_err(failed)?;
        let plain = BufReader::with_capacity(READ_BYTES, reader);
        let stream: Box<dyn Read> = if compressed {
            Box::new(Decoder::with_buffer(plain).map_err(failed)?)
        } else {
            Box::new(plain)
        };
        let mut archive = Archive::new(stream);
        let mut manifest = None;
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            if name == MANIFEST_NAME {
                let mut bytes = Vec::new();
                let read = entry.by_ref().take(MANIFEST_BYTES_MAX).read_to_end(&mut bytes);
                read.map_err(failed)?;
                manifest = Some(Manifest::decode(&backup, &bytes)?);
            } else if entry.header().entry_type().is_file()
                && let Some(name) = name.strip_prefix(DATA_PREFIX)
            {
                self.take(name, &mut entry, sink).map_err(|error| match error {
                    BackupError::Read(_, error) => failed(error),
                    error => error,
                })?;
            } else {
                self.faults.push(format!("{name:?} does not belong to a backup"));
            }
        }
        // Read to the end, which has the checksum of the compressed data.
        io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(failed)?;
        manifest.ok_or(BackupError::Unfinished(backup))
    }

    fn verify(mut self, manifest: &Manifest) -> Result<(), BackupError> {
        for file in &manifest.files {
            let fault = match self.files.remove(&file.path) {
                None => "is missing".to_owned(),
                Some((bytes, _)) if bytes != file.bytes => {
                    format!("has {bytes} bytes instead of {}", file.bytes)
                }
                Some((_, sha256)) if sha256 != file.sha256 => "is not what was written".to_owned(),
                Some(_) => continue,
            };
            self.faults.push(format!("{} {fault}", file.path));
        }
        let unlisted = self.files.into_keys();
        self.faults
            .extend(unlisted.map(|name| format!("{name} is not in the manifest")));
        if self.faults.is_empty() {
            return Ok(());
        }
        Err(BackupError::Faults(self.backup.to_owned(), self.faults))
    }
}

/// An error that is not one of the operating system is a fault of the bytes: they are truncated, or not an archive.
fn of_archive(backup: &Path, error: io::Error) -> BackupError {
    if error.raw_os_error().is_some() {
        return BackupError::Read(backup.to_owned(), error);
    }
    let fault = format!("reading failed before the manifest, its last file: {error}");
    BackupError::Faults(backup.to_owned(), vec![fault])
}

/// The path of a backup's file, for messages.
pub(super) fn path_of(backup: &Path, name: &str) -> PathBuf {
    backup.join(DATA_PREFIX).join(name)
}
