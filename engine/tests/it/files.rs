//! Numbered segment files, as a server has them on its disk.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use engine::{SegmentFile, SegmentUse, SegmentWriter, SharedBytes, choose_merge};

#[derive(Default)]
pub struct Files {
    files: BTreeMap<u64, SharedBytes>,
    last: u64,
}

impl Files {
    /// Writes a file under the next number and opens it.
    pub fn write<E: From<io::Error> + Debug>(
        &mut self,
        write: impl FnOnce(&mut SegmentWriter<'_>) -> Result<(), E>,
    ) -> Arc<SegmentFile> {
        let mut bytes = Vec::new();
        let mut segment = SegmentWriter::new(&mut bytes).unwrap();
        write(&mut segment).unwrap();
        let length = segment.finish().unwrap();
        assert_eq!(length, bytes.len() as u64);
        self.last += 1;
        self.files.insert(self.last, Arc::new(bytes));
        self.open(self.last)
    }

    fn open(&self, id: u64) -> Arc<SegmentFile> {
        SegmentFile::open(id, Arc::clone(&self.files[&id])).unwrap()
    }

    /// Opens all files again.
    pub fn open_all(&self) -> Vec<Arc<SegmentFile>> {
        self.files.keys().map(|id| self.open(*id)).collect()
    }

    pub fn all(&self) -> Vec<u64> {
        self.files.keys().copied().collect()
    }

    /// The files of the merge that is due; `live_rows` has the rows in use by file.
    pub fn choose_merge(&self, live_rows: &BTreeMap<u64, u64>) -> Option<Vec<u64>> {
        let uses = self.open_all().into_iter().map(|file| SegmentUse {
            id: file.id(),
            bytes: file.bytes(),
            footer_bytes: file.footer_bytes(),
            rows: file.parts().map(|part| part.rows).sum(),
            live_rows: live_rows.get(&file.id()).copied().unwrap_or_default(),
        });
        choose_merge(&uses.collect::<Vec<_>>())
    }

    /// Removes files that no store uses; returns their number. All used files must exist.
    pub fn remove_unused(&mut self, live_rows: &BTreeMap<u64, u64>) -> usize {
        let before = self.files.len();
        self.files.retain(|id, _| live_rows.contains_key(id));
        let used: Vec<u64> = live_rows.keys().copied().collect();
        assert_eq!(self.all(), used, "files are those in use");
        before - self.files.len()
    }
}
