//! A data directory into which files are restored. A marker exists from before the first file is written until all files
//! are complete and synced, so that a server finds all of them or refuses to start.

use std::io;

use disk::Disk;

use super::layout::Layout;

/// A restore under way. Dropping it leaves the directory as it is: marked.
pub(crate) struct Restoring<'a> {
    disk: &'a dyn Disk,
    layout: &'a Layout,
}

impl<'a> Restoring<'a> {
    /// Marks an empty directory.
    ///
    /// # Errors
    /// A disk error.
    pub(crate) fn begin(disk: &'a dyn Disk, layout: &'a Layout) -> io::Result<Self> {
        let restoring = Restoring { disk, layout };
        disk.create(&layout.restoring_path())?.sync_data()?;
        disk.sync_dir(&layout.data_dir)?;
        Ok(restoring)
    }

    /// Removes the marker. All files are complete and synced.
    ///
    /// # Errors
    /// A disk error. The files are complete nevertheless.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.disk.remove(&self.layout.restoring_path())?;
        self.disk.sync_dir(&self.layout.data_dir)
    }

    /// Removes the restored files and, once that is durable, the marker. While a file cannot be removed the marker
    /// stays, so that no server starts on a part of what was restored, and the next restore finds the directory
    /// occupied.
    pub(crate) fn discard(disk: &dyn Disk, layout: &Layout) {
        let removed = Layout::NAMES.iter().all(|name| {
            let path = layout.data_dir.join(name);
            // Each is a directory or a file. What matters is whether anything is left.
            let _ = disk.remove_dir_all(&path);
            let _ = disk.remove(&path);
            matches!(disk.exists(&path), Ok(false))
        });
        if removed && disk.sync_dir(&layout.data_dir).is_ok() {
            // The restore has failed already; that error is the one to report.
            let _ = disk.remove(&layout.restoring_path());
        }
    }
}
