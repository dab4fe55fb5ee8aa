//! Which files of the data directory have which objects: what was uploaded by this process, and what the last root of
//! the directory names. The directory keeps the name and the checksum of that root in the file `published`, so that
//! nothing is uploaded again after a restart or a restore.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use disk::Disk;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::error::RemoteError;
use super::names::RootName;
use super::root::{FileEntry, Root, ends, sha256};
use crate::catalog::Bytes;
use crate::checked_file;
use crate::checkpoint::Layout;

const MAGIC: &[u8; 8] = b"TWPUBL01";

/// The content of `published`: the root of a checkpoint of this directory. Its checksum says that the root at that name
/// is the one that was meant, whatever the URL is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    epoch: u64,
    number: u64,
    sha256: Bytes<32>,
}

fn note_path(layout: &Layout) -> PathBuf {
    layout.data_dir.join("published")
}

impl Note {
    /// The note about a root with these bytes.
    pub(super) fn of(name: RootName, bytes: &[u8]) -> Self {
        Note {
            epoch: name.epoch,
            number: name.number,
            sha256: sha256(bytes),
        }
    }

    /// Reads the note; returns `None` if there is none that reads. It only saves uploads.
    pub(super) fn read(disk: &dyn Disk, layout: &Layout) -> Option<Self> {
        match checked_file::read(disk, &note_path(layout), MAGIC) {
            Ok(content) => rmp_serde::from_slice(&content?).ok(),
            Err(error) => {
                tracing::warn!(%error, "it is not known what was published of this directory; all files are uploaded again");
                None
            }
        }
    }

    /// Replaces the note.
    ///
    /// # Errors
    /// A disk error.
    pub(super) fn write(&self, disk: &dyn Disk, layout: &Layout) -> Result<(), RemoteError> {
        let content = rmp_serde::to_vec_named(self)?;
        Ok(checked_file::write(disk, &note_path(layout), MAGIC, &content)?)
    }

    pub(super) fn name(&self) -> RootName {
        RootName {
            epoch: self.epoch,
            number: self.number,
        }
    }

    /// Whether these are the bytes of the root.
    pub(super) fn is_of(&self, bytes: &[u8]) -> bool {
        self.sha256 == sha256(bytes)
    }
}

/// The files that have objects, by path within the data directory.
#[derive(Default)]
pub(super) struct KeptFiles {
    /// For certain: uploaded by this process, or compared.
    certain: BTreeMap<String, FileEntry>,
    /// Named by the last root of an earlier process. A file of that name may have other content now.
    earlier: BTreeMap<String, FileEntry>,
    /// The paths of those of `certain` that the last root names, for who makes offers.
    stored: Arc<Mutex<BTreeSet<String>>>,
}

impl KeptFiles {
    /// Paths of files that need not be opened for an offer.
    pub(super) fn stored(&self) -> Arc<Mutex<BTreeSet<String>>> {
        Arc::clone(&self.stored)
    }

    /// Adds what the last root of an earlier process names.
    pub(super) fn add_earlier(&mut self, root: Root) {
        let files = root.files.into_iter();
        self.earlier = files.map(|file| (file.local.clone(), file)).collect();
    }

    /// The object with the content of a file, if there is one. `bytes` is the content; `None` if the path is of
    /// [`KeptFiles::stored`].
    pub(super) fn find(&self, local: &str, bytes: Option<&[u8]>) -> Option<&FileEntry> {
        let Some(bytes) = bytes else {
            return self.certain.get(local);
        };
        let entries = [self.certain.get(local), self.earlier.get(local)];
        let is_same = |entry: &&FileEntry| entry.bytes == bytes.len() as u64 && entry.ends == ends(bytes);
        entries.into_iter().flatten().find(is_same)
    }

    /// A file was uploaded.
    pub(super) fn add(&mut self, entry: FileEntry) {
        self.certain.insert(entry.local.clone(), entry);
    }

    /// A root was stored: other files are gone from the directory.
    pub(super) fn published(&mut self, root: &Root) {
        let of_root = root.files.iter();
        self.certain = of_root.map(|file| (file.local.clone(), file.clone())).collect();
        self.earlier.clear();
        // Carried files may be replaced under the same name, so they are compared each time.
        let stays = |local: &&String| !local.starts_with("carried/");
        *self.stored.lock() = self.certain.keys().filter(stays).cloned().collect();
    }

    /// Forgets the files whose objects are `missing`, so that they are uploaded again.
    pub(super) fn forget(&mut self, is_missing: impl Fn(&FileEntry) -> bool) -> u64 {
        let before = self.certain.len();
        let stored = &mut self.stored.lock();
        self.certain.retain(|local, entry| {
            let missing = is_missing(entry);
            if missing {
                stored.remove(local);
            }
            !missing
        });
        (before - self.certain.len()) as u64
    }
}
