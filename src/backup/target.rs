//! Writes a backup: a directory, or a tar archive that may be compressed. The manifest is written last; without it, a
//! backup is invalid.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, replace_file};
use tar::{Builder, Header};
use zstd::stream::write::Encoder;

use super::content::{Content, CopyError};
use super::error::BackupError;
use super::manifest::{DATA_PREFIX, FileEntry, MANIFEST_NAME, Manifest};
use super::pins::Pin;
use crate::clock::SECOND_NS;
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
    path: PathBuf,
    out: Out,
    files: Vec<FileEntry>,
}

enum Out {
    Directory {
        disk: Arc<dyn Disk>,
        /// Directories with files in them, to be synced.
        dirs: BTreeSet<PathBuf>,
        bytes: u64,
    },
    Archive {
        disk: Arc<dyn Disk>,
        archive: Box<Builder<Stream>>,
        modified_s: u64,
    },
}

enum Stream {
    Plain(FileWriter),
    Zstd(Encoder<'static, FileWriter>),
}

/// The zstd level. Segments are compressed already, so a higher level would save little.
const COMPRESSION_LEVEL: i32 = 1;

impl Target {
    /// Begins a backup at a path that the caller has reserved. A missing directory is created.
    pub(crate) fn begin(disk: &Arc<dyn Disk>, path: &Path, now_ns: i64) -> Result<Self, BackupError> {
        let failed = |error| BackupError::Write(path.to_owned(), error);
        let disk = Arc::clone(disk);
        let out = match Form::of(path) {
            Form::Directory => {
                disk.create_dir_all(path).map_err(failed)?;
                Out::Directory {
                    disk,
                    dirs: BTreeSet::new(),
                    bytes: 0,
                }
            }
            form => {
                let file = disk.create(path).map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => BackupError::Exists(path.to_owned()),
                    _ => failed(error),
                })?;
                let stream = Stream::new(FileWriter::new(file), form).map_err(failed)?;
                Out::Archive {
                    disk,
                    archive: Box::new(Builder::new(stream)),
                    modified_s: u64::try_from(now_ns / SECOND_NS).unwrap_or(0),
                }
            }
        };
        Ok(Self {
            path: path.to_owned(),
            out,
            files: Vec::new(),
        })
    }

    /// Adds a file of a data directory. `source` is the path that it is read from, for messages.
    pub(crate) fn add(&mut self, name: &str, pin: &Pin, source: &Path) -> Result<(), BackupError> {
        let mut reader = pin.reader();
        let mut content = Content::new(&mut reader);
        let path = self.path.join(DATA_PREFIX).join(name);
        let added = match &mut self.out {
            Out::Directory { disk, dirs, .. } => write_file(&**disk, &path, &mut content, dirs),
            Out::Archive {
                archive, modified_s, ..
            } => {
                let mut header = header(pin.bytes(), *modified_s);
                // The builder of the archive reads in small blocks.
                let name = format!("{DATA_PREFIX}{name}");
                let appended = archive.append_data(
                    &mut header,
                    name,
                    BufReader::with_capacity(256 << 10, &mut content),
                );
                appended.map_err(|error| content.blame(error))
            }
        };
        added.map_err(|error| match error {
            CopyError::Read(error) => BackupError::Read(source.to_owned(), error),
            CopyError::Write(error) => BackupError::Write(self.path.clone(), error),
        })?;
        let (bytes, sha256) = content.finish();
        if let Out::Directory { bytes: written, .. } = &mut self.out {
            *written += bytes;
        }
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
            Out::Directory { disk, dirs, bytes } => {
                finish_directory(&*disk, &self.path, &dirs, &encoded).map(|()| bytes + encoded.len() as u64)
            }
            Out::Archive {
                disk,
                archive,
                modified_s,
            } => finish_archive(&*disk, &self.path, *archive, &encoded, modified_s),
        };
        Ok((manifest, finished.map_err(failed)?))
    }
}

fn write_file(
    disk: &dyn Disk,
    path: &Path,
    content: &mut Content<'_>,
    dirs: &mut BTreeSet<PathBuf>,
) -> Result<(), CopyError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    if !dirs.contains(dir) {
        disk.create_dir_all(dir).map_err(CopyError::Write)?;
        dirs.insert(dir.to_owned());
    }
    let mut out = FileWriter::new(disk.create(path).map_err(CopyError::Write)?);
    content.copy_to(&mut out)?;
    out.finish().map(drop).map_err(CopyError::Write)
}

fn finish_directory(
    disk: &dyn Disk,
    path: &Path,
    dirs: &BTreeSet<PathBuf>,
    manifest: &[u8],
) -> io::Result<()> {
    dirs.iter().try_for_each(|dir| disk.sync_dir(dir))?;
    replace_file(disk, &path.join(MANIFEST_NAME), manifest)
}

fn finish_archive(
    disk: &dyn Disk,
    path: &Path,
    mut archive: Builder<Stream>,
    manifest: &[u8],
    modified_s: u64,
) -> io::Result<u64> {
    let mut header = header(manifest.len() as u64, modified_s);
    archive.append_data(&mut header, MANIFEST_NAME, manifest)?;
    let bytes = match archive.into_inner()? {
        Stream::Plain(out) => out.finish()?,
        Stream::Zstd(out) => out.finish()?.finish()?,
    };
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

impl Stream {
    fn new(out: FileWriter, form: Form) -> io::Result<Self> {
        if form != Form::ZstdTar {
            return Ok(Self::Plain(out));
        }
        let mut encoder = Encoder::new(out, COMPRESSION_LEVEL)?;
        encoder.include_checksum(true)?;
        Ok(Self::Zstd(encoder))
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Zstd(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Zstd(out) => out.flush(),
        }
    }
}
