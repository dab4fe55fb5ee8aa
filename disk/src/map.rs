//! The memory map of an immutable file. Used by [`super::StdDisk`].

use std::fs::File;
use std::io;

use memmap2::Mmap;

use super::fault::Guarded;

/// A mapped file. Pages that the disk cannot read appear as zeros.
#[derive(Debug)]
pub(super) struct Map {
    /// Declared first: must be dropped before the map.
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
/// `Mmap::map` is unsafe because another writer could change or truncate the file under the slice. Every file opened
/// through [`super::Disk::map`] is immutable: it was written completely and synced before it got its name, and we never
/// write or truncate it again (it is replaced by rename and removed by unlink, both of which leave the mapped inode
/// alone). The data directory is locked against a second process. What remains is another program that writes into the
/// data directory, against which no reader can protect itself. A page that the disk can no longer read turns into zeros
/// (see `fault.rs`): whatever is read from such a file is verified against a checksum each time, and every offset in it
/// is bounds-checked.
#[allow(
    unsafe_code,
    reason = "a memory map has no safe constructor; the proof stands above"
)]
pub(super) fn map(file: &File) -> io::Result<Map> {
    // SAFETY: the file is immutable, see above.
    let map = unsafe { Mmap::map(file) }?;
    Ok(Map {
        _guarded: Guarded::new(&map),
        map,
    })
}
