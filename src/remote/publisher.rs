//! Publishes checkpoints: uploads the files that no object has yet, then the root. One writer for each shard.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use disk::Disk;
use objects::{Bytes, Existing, ObjectError, ObjectStore};
use parking_lot::Mutex;

use super::epoch::{self, Epochs};
use super::error::RemoteError;
use super::held::object_bytes;
use super::kept::{KeptFiles, Note};
use super::names::{Epoch, FileName, Object, RootName, ShardNames};
use super::offer::{Offer, OfferedFile};
use super::root::{FileEntry, ROOT_BYTES_MAX, Root, ends, sha256};
use super::sweep::{Sweeper, is_kept};
use crate::checkpoint::{Layout, Manifest, PublishFigures};
use crate::clock::Clock;

/// What a publisher works on.
pub struct PublisherOptions {
    /// Where objects are stored.
    pub store: Arc<dyn ObjectStore>,
    /// The disk with the data directory.
    pub disk: Arc<dyn Disk>,
    /// The data directory.
    pub layout: Layout,
    pub clock: Arc<dyn Clock>,
    /// The shard whose data directory it is.
    pub shard: u16,
    /// Where the epoch comes from.
    pub epochs: Epochs,
    /// What the data directory was made of: its objects have the content of all files, also of those that are not in the
    /// directory.
    pub taken_over: Option<Root>,
}

/// A published checkpoint, and what it cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its name.
    pub root: RootName,
    /// Files that were uploaded.
    pub uploads: u64,
    /// Bytes of these and of the root.
    pub bytes: u64,
}

/// Names that this writer gives: its epoch, and the next numbers.
struct Numbers {
    epoch: Epoch,
    file: u64,
    root: u64,
}

/// Publishes the checkpoints of one data directory.
pub struct Publisher {
    options: PublisherOptions,
    names: ShardNames,
    /// `None` before the epoch is known.
    numbers: Option<Numbers>,
    kept: KeptFiles,
    sweeper: Sweeper,
    figures: Arc<PublishFigures>,
}

impl Publisher {
    /// Nothing is reached before the first checkpoint is published.
    pub fn new(mut options: PublisherOptions) -> Self {
        let mut kept = KeptFiles::default();
        if let Some(root) = options.taken_over.take() {
            kept.published(&root);
        }
        Publisher {
            names: ShardNames(options.shard),
            numbers: None,
            kept,
            sweeper: Sweeper::default(),
            figures: Arc::default(),
            options,
        }
    }

    /// What was published so far.
    pub fn figures(&self) -> Arc<PublishFigures> {
        Arc::clone(&self.figures)
    }

    /// Paths of files that need not be opened for an offer, because objects have them.
    pub(super) fn stored(&self) -> Arc<Mutex<BTreeSet<String>>> {
        self.kept.stored()
    }

    /// Opens what may have to be uploaded for a manifest.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub fn offer(&self, manifest: &Manifest) -> Result<Offer, RemoteError> {
        let stored = self.kept.stored();
        let stored = stored.lock();
        Offer::collect(&self.options.disk, &self.options.layout, manifest, &stored)
    }

    /// Publishes a checkpoint. Returns once its root is stored. `goes_on` is asked between uploads.
    ///
    /// # Errors
    /// See [`RemoteError`]. Then the root may have been stored nevertheless, if its answer was lost; a later attempt
    /// stores another one.
    pub fn publish(&mut self, offer: &Offer, goes_on: &dyn Fn() -> bool) -> Result<Published, RemoteError> {
        let done = self.attempt(offer, goes_on);
        match &done {
            Ok(published) => {
                let figures = &self.figures;
                figures.published.fetch_add(1, Ordering::Relaxed);
                figures.files.store(offer.files.len() as u64, Ordering::Relaxed);
                let covered = offer.manifest.newest_covered();
                figures.covered.store(covered, Ordering::Relaxed);
                let now_ns = self.options.clock.monotonic_ns();
                figures.published_at_ns.store(now_ns.max(1), Ordering::Relaxed);
                tracing::debug!(root = %published.root, covered, uploads = published.uploads, "checkpoint published");
            }
            Err(error) => {
                if error.is_taken() {
                    // Somebody else writes under this epoch.
                    self.numbers = None;
                }
                self.figures.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        done
    }

    fn attempt(&mut self, offer: &Offer, goes_on: &dyn Fn() -> bool) -> Result<Published, RemoteError> {
        self.begin()?;
        let (mut files, mut uploads, mut bytes) = (Vec::with_capacity(offer.files.len()), 0, 0);
        for file in &offer.files {
            let content = file.map.as_ref().map(|map| (**map).as_ref());
            if let Some(entry) = self.kept.find(&file.local, content) {
                let entry = entry.clone();
                // It was found by comparing, and need not be compared again.
                self.kept.add(entry.clone());
                files.push(entry);
                continue;
            }
            if !goes_on() {
                return Err(RemoteError::Stopped);
            }
            let entry = self.upload(offer, file)?;
            (uploads, bytes) = (uploads + 1, bytes + entry.bytes);
            files.push(entry.clone());
            self.kept.add(entry);
        }
        let Some(numbers) = &mut self.numbers else {
            return Err(RemoteError::Stopped);
        };
        let root = Root {
            at_ns: self.options.clock.now_ns(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            shard: self.names.0,
            epoch: numbers.epoch,
            number: numbers.root,
            manifest: offer.manifest.clone(),
            files,
        };
        let name = RootName {
            epoch: root.epoch,
            number: root.number,
        };
        // Also after a failure: the root may have been stored.
        numbers.root += 1;
        let encoded = root.encode()?;
        bytes += encoded.len() as u64;
        let content = Bytes::from(encoded);
        self.put(Object::Root(name), content.clone())?;
        self.kept.published(&root);
        self.sweeper.published(self.names, name, &root);
        let noted = Note::of(name, &content).write(&*self.options.disk, &self.options.layout);
        if let Err(error) = noted {
            tracing::warn!(%error, "what was published could not be noted; after a restart more is uploaded than needed");
        }
        Ok(Published {
            root: name,
            uploads,
            bytes,
        })
    }

    /// Finds the epoch, and what earlier processes uploaded of this directory.
    fn begin(&mut self) -> Result<(), RemoteError> {
        if self.numbers.is_some() {
            return Ok(());
        }
        let store = &*self.options.store;
        let roots = store.list(&self.names.roots())?;
        if let Some(note) = Note::read(&*self.options.disk, &self.options.layout)
            && is_kept(self.names, &roots, note.name())
        {
            let name = self.names.name(Object::Root(note.name()));
            match store.get(&name, ROOT_BYTES_MAX) {
                Ok(bytes) if note.is_of(&bytes) => {
                    self.kept
                        .add_earlier(Root::decode(&note.name().to_string(), &bytes)?);
                }
                Ok(_) | Err(ObjectError::NotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let epoch = match self.options.epochs {
            Epochs::Given(epoch) => epoch,
            Epochs::Taken => {
                let epochs = store.list(&self.names.epochs())?;
                let of_roots = epoch::highest(self.names, &roots);
                let highest = of_roots.max(epoch::highest(self.names, &epochs));
                epoch::take(store, self.names, highest, self.options.clock.now_ns())?
            }
        };
        self.numbers = Some(Numbers {
            epoch,
            file: 1,
            root: 1,
        });
        Ok(())
    }

    /// Uploads a file, after verifying it.
    fn upload(&mut self, offer: &Offer, file: &OfferedFile) -> Result<FileEntry, RemoteError> {
        let (Some(map), Some(numbers)) = (&file.map, &mut self.numbers) else {
            // Its object was deleted by somebody else after the offer was made. The next one has the file.
            let missing = std::io::ErrorKind::NotFound.into();
            return Err(RemoteError::Read(Offer::path(file).clone(), missing));
        };
        offer.verify(file)?;
        let object = Object::File(FileName {
            epoch: numbers.epoch,
            number: numbers.file,
            kind: file.kind,
        });
        // Also after a failure: the object may have been stored.
        numbers.file += 1;
        let content = object_bytes(Arc::clone(map));
        let entry = FileEntry {
            local: file.local.clone(),
            object: self.names.name(object),
            bytes: content.len() as u64,
            sha256: sha256(&content),
            ends: ends(&content),
        };
        self.put(object, content)?;
        Ok(entry)
    }

    fn put(&self, object: Object, content: Bytes) -> Result<(), RemoteError> {
        let (name, bytes) = (self.names.name(object), content.len() as u64);
        match (
            self.options.store.put(&name, content, Existing::Refuse),
            self.options.epochs,
        ) {
            (Err(ObjectError::Exists(name)), Epochs::Given(epoch)) => {
                return Err(RemoteError::EpochInUse(name, epoch));
            }
            (done, _) => done?,
        }
        self.figures.uploads.fetch_add(1, Ordering::Relaxed);
        self.figures.upload_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Deletes what no kept checkpoint needs, if that was not done within the last hour.
    ///
    /// # Errors
    /// The object store fails. What is left is deleted later.
    pub fn sweep_if_due(&mut self) -> Result<(), RemoteError> {
        let Some(numbers) = &self.numbers else {
            return Ok(());
        };
        let now_ns = self.options.clock.monotonic_ns();
        let (store, epoch) = (&*self.options.store, numbers.epoch);
        let Some(swept) = self.sweeper.run(store, self.names, epoch, now_ns)? else {
            return Ok(());
        };
        self.figures.deleted.fetch_add(swept.deleted, Ordering::Relaxed);
        let present = |entry: &FileEntry| swept.present.get(&entry.object) == Some(&entry.bytes);
        let missing = self.kept.forget(|entry| !present(entry));
        if missing > 0 {
            tracing::error!(
                missing,
                "objects of the last published checkpoint are gone from the object store; they are uploaded again with the next one"
            );
        }
        Ok(())
    }
}
