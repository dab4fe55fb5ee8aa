//! The memory map of a sealed file. Called by [`super::StdDisk`].

use std::fs::File;
use std::io;

use memmap2::Mmap;

use super::fault::Guarded;

/// A mapped file. What the disk cannot read of it reads as zeros.
#[derive(Debug)]
pub(super) struct Map {
    /// Dropped before the map.
    _guarded: Guarded,
    map: Mmap,
}

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

/// Maps a file read-only.
///
/// # Safety of the map
///
/// `Mmap::map` is unsafe because another writer could change or truncate the file under the slice. Every
/// file reached through [`super::Disk::map`] is sealed: it was written whole and synced before it got its
/// name, is never written or truncated again by us (it is replaced by rename and removed by unlink, both of
/// which leave the mapped inode alone), and the data directory is locked against a second process. What
/// remains is a foreign program writing into the data directory, which no reader can defend against. A page that the
/// disk does not read any more, though it did before, turns into zeros (see `fault.rs`): what lies in a sealed file is
/// compared with a checksum each time it is read, and every place that it names is checked.
#[allow(
    unsafe_code,
    reason = "a memory map has no safe constructor; the proof stands above"
)]
pub(super) fn map(file: &File) -> io::Result<Map> {
    // SAFETY: the file is sealed, see above.
    let map = unsafe { Mmap::map(file) }?;
    Ok(Map {
        _guarded: Guarded::new(&map),
        map,
    })
}
