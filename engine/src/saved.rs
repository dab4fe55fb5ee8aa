//! Helpers for this crate's tests: save a store to segment files of one bucket, and open them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::rows::RowsWriter;
use crate::{
    Cache, Merge, MergeError, SegmentFile, SegmentPart, SegmentUse, SegmentWriter, SharedBytes, Store,
    choose_merge,
};

/// The bucket of these files.
pub(crate) const BUCKET: u32 = 5;

/// Opens a file as the segment with this id.
pub(crate) fn part(id: u64, home: &SharedBytes) -> SegmentPart {
    let file = SegmentFile::open(id, Arc::clone(home)).unwrap();
    file.part(BUCKET).unwrap().unwrap()
}

/// Writes the store's unsaved data to a segment and adds the segment to the store.
pub(crate) fn checkpoint(store: &mut Store, id: u64) -> SharedBytes {
    let checkpoint = store.begin_checkpoint().unwrap();
    let bytes = SegmentWriter::of_bucket(BUCKET, |segment| checkpoint.write(segment));
    let home: SharedBytes = Arc::new(bytes.unwrap());
    store.finish_checkpoint(checkpoint, Some(part(id, &home)), i64::MIN);
    home
}

/// The segments of source 0, each with a block of so many rows; the value of each row is its time.
pub(crate) fn segments(blocks: u64, rows: u64) -> Vec<SharedBytes> {
    let mut store = Store::new();
    let segment = |block: u64| {
        let mut writer = RowsWriter::new();
        for row in block * rows..(block + 1) * rows {
            writer.begin(0);
            writer.number(0, row as f64, 0);
            writer.commit(row as i64);
        }
        let mut bytes = Vec::new();
        writer.encode(&mut bytes);
        store.apply(&bytes, block * rows, &[]).unwrap();
        checkpoint(&mut store, block + 1)
    };
    (0..blocks).map(segment).collect()
}

/// A store with these segments and this cache.
pub(crate) fn store_of(segments: &[SharedBytes], cache: Cache) -> Store {
    let mut store = Store::with_cache(cache);
    for (id, home) in (1..).zip(segments) {
        store.add_segment(part(id, home));
    }
    store
}

/// Begins the merge that is due for these files, if any.
pub(crate) fn begin_merge(store: &mut Store, files: &BTreeMap<u64, SharedBytes>) -> Option<Merge> {
    let uses = store.live_segments().into_iter().map(|(id, live_rows)| {
        let file = SegmentFile::open(id, Arc::clone(&files[&id])).unwrap();
        SegmentUse {
            id,
            bytes: file.bytes(),
            footer_bytes: file.footer_bytes(),
            rows: file.parts().map(|part| part.rows).sum(),
            live_rows,
        }
    });
    let chosen = choose_merge(&uses.collect::<Vec<_>>())?;
    store.begin_merge(&chosen)
}

/// Writes the segment of a merge, without a cutoff.
pub(crate) fn write_merge(merge: &Merge) -> SharedBytes {
    let write = |segment: &mut SegmentWriter<'_>| merge.write(segment, i64::MIN, &[]);
    let bytes: Result<Vec<u8>, MergeError> = SegmentWriter::of_bucket(BUCKET, write);
    Arc::new(bytes.unwrap())
}
