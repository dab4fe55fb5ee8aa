//! A manifest to be published, and those of its files that may have to be uploaded, kept open: a checkpoint or a merge
//! may remove them meanwhile.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use disk::{Bytes, Disk};

use super::error::RemoteError;
use super::names::Kind;
use crate::backup::Pins;
use crate::check;
use crate::checkpoint::{Layout, Manifest, NamedFile};

/// A manifest, and its files.
pub struct Offer {
    pub(super) manifest: Manifest,
    pub(super) files: Vec<OfferedFile>,
    pins: Pins,
    layout: Layout,
}

/// A file that the manifest names.
pub(super) struct OfferedFile {
    /// Path within the data directory, with `/`.
    pub(super) local: String,
    pub(super) kind: Kind,
    path: PathBuf,
    named: NamedFile,
    /// `None` if an object has its content for certain.
    pub(super) map: Option<Arc<dyn Bytes>>,
}

impl Offer {
    /// Opens the files that the manifest names, except for those that are `stored`.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub fn collect(
        disk: &Arc<dyn Disk>,
        layout: &Layout,
        manifest: &Manifest,
        stored: &BTreeSet<String>,
    ) -> Result<Self, RemoteError> {
        let pins = Pins::new(Arc::clone(disk));
        let mut files = Vec::new();
        for (path, named) in manifest.files(layout) {
            let local = path.strip_prefix(&layout.data_dir).unwrap_or(&path);
            let local = local.to_string_lossy().into_owned();
            let kind = match &named {
                NamedFile::Segment(_) => Kind::Segment,
                NamedFile::Run(_) => Kind::Run,
                NamedFile::Carried(_) => Kind::Carried,
            };
            let map = match stored.contains(&local) {
                true => None,
                false => {
                    let failed = |error| RemoteError::Read(path.clone(), error);
                    pins.pin_sealed(&path).map_err(failed)?;
                    Some(pins.map(&path).map_err(failed)?)
                }
            };
            files.push(OfferedFile {
                local,
                kind,
                path,
                named,
                map,
            });
        }
        Ok(Offer {
            manifest: manifest.clone(),
            files,
            pins,
            layout: layout.clone(),
        })
    }

    /// Checks the checksums within a file that is kept open. A copy of a damaged file would take the place of the good
    /// ones.
    ///
    /// # Errors
    /// The file is damaged.
    pub(super) fn verify(&self, file: &OfferedFile) -> Result<(), RemoteError> {
        let damages = check::damages(&self.pins, &self.layout, &file.named);
        let damages = damages.map_err(|error| RemoteError::DamagedFiles(vec![error]))?;
        match damages.is_empty() {
            true => Ok(()),
            false => Err(RemoteError::DamagedFiles(damages)),
        }
    }

    /// The path of a file.
    pub(super) fn path(file: &OfferedFile) -> &PathBuf {
        &file.path
    }
}
