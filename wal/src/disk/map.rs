//! The memory map of a sealed file. The only `unsafe` of this crate; called by [`super::StdDisk`].

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// Maps a file read-only.
///
/// # Safety of the map
///
/// `Mmap::map` is unsafe because another writer could change or truncate the file under the slice. Every
/// file reached through [`super::Disk::map`] is sealed: it was written whole and synced before it got its
/// name, is never written or truncated again by us (it is replaced by rename and removed by unlink, both of
/// which leave the mapped inode alone), and the data directory is locked against a second process. What
/// remains is a foreign program writing into the data directory, which no reader can defend against.
#[allow(
    unsafe_code,
    reason = "a memory map has no safe constructor; the proof stands above"
)]
pub(super) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the file is sealed, see above.
    unsafe { Mmap::map(file) }
}
