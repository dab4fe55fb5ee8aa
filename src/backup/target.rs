//! Writes a backup: a directory, or a tar archive that may be compressed. The manifest is written last; without it, a
//! backup is invalid.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, replace_file};
use tar::{Builder, Header};
use zstd::stream::write::Encoder;

use super::content::{Content, FileReader};
use super::error::BackupError;
use super::manifest::{DATA_PREFIX, FileEntry, MANIFEST_NAME, Manifest};
use super::pins::Pin;
use crate::clock::SECOND_NS;
use crate::progress::Progress;
use crate::sealed_file::FileWriter;

/// The forms of a backup, determined by the extension of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Directory,
    Tar,
    ZstdTar,
}

impl Form {
    pub(super) fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".tar.zst") {
            Self::ZstdTar
        } else if name.ends_with(".tar") {
            Self::Tar
        } else {
            Self::Directory
        }
    }
}

/// A backup that is being written.
pub(crate) struct Target {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    out: Out,
    files: Vec<FileEntry>,
}

enum Out {
    /// Directories with files in them, to be synced.
    Directory(BTreeSet<PathBuf>),
    Archive {
        archive: Box<Builder<Box<dyn ArchiveWriter>>>,
        modified_s: u64,
    },
}

/// Writes an archive, compressed or not.
trait ArchiveWriter: Write {
    /// Writes what is buffered and syncs. Returns the file's length in bytes.
    fn finish(self: Box<Self>) -> io::Result<u64>;
}

impl ArchiveWriter for FileWriter {
    fn finish(self: Box<Self>) -> io::Result<u64> {
        FileWriter::finish(*self)
    }
}

impl ArchiveWriter for Encoder<'static, FileWriter> {
    fn finish(self: Box<Self>) -> io::Result<u64> {
        Encoder::finish(*self)?.finish()
    }
}

/// The zstd level. Segments are compressed already, so a higher level would save little.
const COMPRESSION_LEVEL: i32 = 1;

impl Target {
    /// Begins a backup at a path that the caller has reserved. A missing directory is created.
    pub(crate) fn begin(disk: &Arc<dyn Disk>, path: &Path, now_ns: i64) -> Result<Self, BackupError> {
        let failed = |error| BackupError::Write(path.to_owned(), error);
        let out = match Form::of(path) {
            Form::Directory => {
                disk.create_dir_all(path).map_err(failed)?;
                Out::Directory(BTreeSet::new())
            }
            form => {
                let file = disk.create(path).map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => BackupError::Exists(path.to_owned()),
                    _ => failed(error),
                })?;
                let writer = archive_writer(FileWriter::new(file), form).map_err(failed)?;
                Out::Archive {
                    archive: Box::new(Builder::new(writer)),
                    modified_s: u64::try_from(now_ns / SECOND_NS).unwrap_or(0),
                }
            }
        };
        Ok(Self {
            disk: Arc::clone(disk),
            path: path.to_owned(),
            out,
            files: Vec::new(),
        })
    }

    /// Adds a file of a data directory. `source` is the path that it is read from, for messages.
    pub(crate) fn add(
        &mut self,
        name: &str,
        pin: &Pin,
        source: &Path,
        progress: &dyn Progress,
    ) -> Result<(), BackupError> {
        let unread = |error| BackupError::Read(source.to_owned(), error);
        let mut reader = FileReader::new(pin, progress).map_err(unread)?;
        let mut content = Content::new(&mut reader);
        let added = match &mut self.out {
            Out::Directory(dirs) => {
                let path = self.path.join(DATA_PREFIX).join(name);
                write_file(&*self.disk, &path, &mut content, dirs)
            }
            Out::Archive { archive, modified_s } => {
                let mut header = header(pin.bytes, *modified_s);
                let name = format!("{DATA_PREFIX}{name}");
                // The builder of the archive reads in small blocks.
                let buffered = BufReader::with_capacity(256 << 10, &mut content);
                archive.append_data(&mut header, name, buffered)
            }
        };
        added.map_err(|error| content.error(error, source, &self.path))?;
        let (bytes, sha256) = content.finish();
        self.files.push(FileEntry {
            path: name.to_owned(),
            bytes,
            sha256,
        });
        Ok(())
    }

    /// Makes the added files durable, then writes their manifest. Returns the manifest, and the bytes written.
    pub(crate) fn finish(
        self,
        created_at: String,
        last_record: u64,
        damages: Vec<String>,
    ) -> Result<(Manifest, u64), BackupError> {
        let manifest = Manifest {
            created_at,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            last_record,
            files: self.files,
            damages,
        };
        let failed = |error| BackupError::Write(self.path.clone(), error);
        let encoded = manifest.encode().map_err(io::Error::other).map_err(failed)?;
        let finished = match self.out {
            Out::Directory(dirs) => {
                let mut dirs = dirs.iter();
                let synced = dirs.try_for_each(|dir| self.disk.sync_dir(dir));
                let path = self.path.join(MANIFEST_NAME);
                let written = synced.and_then(|()| replace_file(&*self.disk, &path, &encoded));
                written.map(|()| manifest.bytes() + encoded.len() as u64)
            }
            Out::Archive { archive, modified_s } => {
                finish_archive(&*self.disk, &self.path, *archive, &encoded, modified_s)
            }
        };
        Ok((manifest, finished.map_err(failed)?))
    }
}

/// Copies a file, and creates its directory unless it is one of `dirs`. The directories are not synced.
pub(super) fn write_file(
    disk: &dyn Disk,
    path: &Path,
    content: &mut Content<'_>,
    dirs: &mut BTreeSet<PathBuf>,
) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    if !dirs.contains(dir) {
        disk.create_dir_all(dir)?;
        dirs.insert(dir.to_owned());
    }
    let mut out = FileWriter::new(disk.create(path)?);
    content.copy_to(&mut out)?;
    out.finish().map(drop)
}

fn finish_archive(
    disk: &dyn Disk,
    path: &Path,
    mut archive: Builder<Box<dyn ArchiveWriter>>,
    manifest: &[u8],
    modified_s: u64,
) -> io::Result<u64> {
    let mut header = header(manifest.len() as u64, modified_s);
    archive.append_data(&mut header, MANIFEST_NAME, manifest)?;
    let bytes = archive.into_inner()?.finish()?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    disk.sync_dir(parent.unwrap_or(Path::new(".")))?;
    Ok(bytes)
}

fn header(bytes: u64, modified_s: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_mtime(modified_s);
    header
}

fn archive_writer(out: FileWriter, form: Form) -> io::Result<Box<dyn ArchiveWriter>> {
    if form != Form::ZstdTar {
        return Ok(Box::new(out));
    }
    let mut encoder = Encoder::new(out, COMPRESSION_LEVEL)?;
    encoder.include_checksum(true)?;
    Ok(Box::new(encoder))
}
