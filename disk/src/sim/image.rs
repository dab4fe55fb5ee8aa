//! The contents of a simulated disk, how operations change them, and what a crash leaves. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Crash, Keep};

/// Bytes that a disk writes atomically, unless the crash tears sectors.
const SECTOR_BYTES: usize = 512;

pub(super) type FileId = u64;

/// Names and the files that they refer to. Files outlive their names, like open files do.
#[derive(Debug, Clone, Default)]
pub(super) struct Image {
    names: BTreeMap<PathBuf, FileId>,
    dirs: BTreeSet<PathBuf>,
    files: BTreeMap<FileId, Vec<u8>>,
}

/// One modification that is not synced yet.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { id: FileId, offset: u64, bytes: Vec<u8> },
    Truncate { id: FileId, len: u64 },
    Create { path: PathBuf, id: FileId },
    Rename { from: PathBuf, to: PathBuf, id: FileId },
    Remove { path: PathBuf },
}

impl Change {
    /// The file whose sync makes this change durable, if any.
    pub(super) fn file(&self) -> Option<FileId> {
        match self {
            Change::Write { id, .. } | Change::Truncate { id, .. } => Some(*id),
            Change::Create { .. } | Change::Rename { .. } | Change::Remove { .. } => None,
        }
    }

    /// The name that this change affects: a sync of its directory makes the change durable.
    pub(super) fn name(&self) -> Option<&Path> {
        match self {
            Change::Create { path, .. } | Change::Rename { to: path, .. } | Change::Remove { path } => {
                Some(path)
            }
            Change::Write { .. } | Change::Truncate { .. } => None,
        }
    }

    /// The path, if this change removes it from the directory.
    pub(super) fn removed_in(&self, dir: &Path) -> Option<PathBuf> {
        match self {
            Change::Remove { path } if super::parent(path) == dir => Some(path.clone()),
            _ => None,
        }
    }
}

impl Image {
    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { id, offset, bytes } => self.write(*id, *offset as usize, bytes),
            Change::Truncate { id, len } => self.files.entry(*id).or_default().resize(*len as usize, 0),
            Change::Create { path, id } => {
                self.names.insert(path.clone(), *id);
            }
            Change::Rename { from, to, id } => {
                if self.names.get(from) == Some(id) {
                    self.names.remove(from);
                }
                self.names.insert(to.clone(), *id);
            }
            Change::Remove { path } => {
                self.names.remove(path);
                self.dirs.remove(path);
            }
        }
    }

    fn write(&mut self, id: FileId, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        self.grow(id, end);
        self.files.entry(id).or_default()[offset..end].copy_from_slice(bytes);
    }

    fn grow(&mut self, id: FileId, len: usize) {
        let file = self.files.entry(id).or_default();
        if file.len() < len {
            file.resize(len, 0);
        }
    }

    pub(super) fn put(&mut self, path: &Path, id: FileId, bytes: &[u8]) {
        self.names.insert(path.to_owned(), id);
        self.files.insert(id, bytes.to_vec());
    }

    pub(super) fn make_dir(&mut self, dir: &Path) {
        self.dirs.extend(dir.ancestors().map(Path::to_owned));
    }

    pub(super) fn id(&self, path: &Path) -> Option<FileId> {
        self.names.get(path).copied()
    }

    pub(super) fn bytes(&self, id: FileId) -> &[u8] {
        self.files.get(&id).map_or(&[], Vec::as_slice)
    }

    pub(super) fn file_mut(&mut self, path: &Path) -> Option<&mut Vec<u8>> {
        let id = self.id(path)?;
        Some(self.files.entry(id).or_default())
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        self.names.contains_key(path) || self.is_dir(path)
    }

    pub(super) fn is_dir(&self, path: &Path) -> bool {
        // The working directory and the root always exist.
        path == Path::new(".") || path == Path::new("/") || self.dirs.contains(path)
    }

    pub(super) fn list(&self, dir: &Path) -> Vec<OsString> {
        let inside = self
            .names
            .keys()
            .chain(&self.dirs)
            .filter(|path| path.parent() == Some(dir));
        let mut names: Vec<OsString> = inside
            .filter_map(|path| path.file_name())
            .map(ToOwned::to_owned)
            .collect();
        names.sort_unstable();
        names
    }

    /// Everything below a directory, deepest first.
    pub(super) fn below(&self, dir: &Path) -> Vec<PathBuf> {
        let inside = self
            .names
            .keys()
            .chain(&self.dirs)
            .filter(|path| path.starts_with(dir) && *path != dir);
        let mut paths: Vec<PathBuf> = inside.cloned().collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
        paths
    }

    pub(super) fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.names
            .iter()
            .map(|(path, id)| (path.clone(), self.bytes(*id).to_vec()))
            .collect()
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.names.values().map(|id| self.bytes(*id).len() as u64).sum()
    }

    /// The highest file number in use.
    pub(super) fn next_file(&self) -> FileId {
        self.names
            .values()
            .chain(self.files.keys())
            .max()
            .copied()
            .unwrap_or(0)
    }
}

/// The image that is found after a power loss.
pub(super) fn crashed(durable: &Image, pending: &[Change], crash: Crash, random: &mut Random) -> Image {
    let mut image = durable.clone();
    match crash.keep {
        Keep::None => {}
        Keep::All => pending.iter().for_each(|change| image.apply(change)),
        Keep::Prefix => {
            let kept = random.below(pending.len() + 1);
            pending[..kept].iter().for_each(|change| image.apply(change));
            if let Some(Change::Write { id, offset, bytes }) = pending.get(kept) {
                let offset = *offset as usize;
                let mut end = random.below(bytes.len() + 1);
                if !crash.torn {
                    let sector_end = (offset + end) / SECTOR_BYTES * SECTOR_BYTES;
                    end = sector_end.saturating_sub(offset);
                }
                image.write(*id, offset, &bytes[..end]);
            }
        }
        Keep::RandomSubset => {
            for change in pending {
                match change {
                    Change::Write { id, offset, bytes } => {
                        write_some(&mut image, *id, *offset as usize, bytes, crash, random);
                    }
                    _ if random.coin() => image.apply(change),
                    _ => {}
                }
            }
        }
    }
    // Only files that have a name can be found again.
    let named: BTreeSet<FileId> = image.names.values().copied().collect();
    image.files.retain(|id, _| named.contains(id));
    image
}

fn write_some(image: &mut Image, id: FileId, offset: usize, bytes: &[u8], crash: Crash, random: &mut Random) {
    if random.coin() {
        image.grow(id, offset + bytes.len());
    }
    let mut start = 0;
    while start < bytes.len() {
        let sector_end = ((offset + start) / SECTOR_BYTES + 1) * SECTOR_BYTES - offset;
        let mut end = sector_end.min(bytes.len());
        let next = end;
        if crash.torn && random.coin() {
            end = start + random.below(end - start + 1);
        }
        if random.coin() {
            image.write(id, offset + start, &bytes[start..end]);
        }
        start = next;
    }
}

/// SplitMix64: good enough for tests, and the same on every machine.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(super) fn fork(&mut self) -> Random {
        Random(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
