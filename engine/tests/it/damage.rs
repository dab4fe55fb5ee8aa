//! Loss by damage to a segment file: damage to the table loses the file, damage to a bucket's entries loses that
//! bucket's part, damage to a block loses the block. Offsets are computed from the layout in FORMAT.md.

use std::ops::Range;
use std::sync::Arc;

use engine::rows::RowsWriter;
use engine::verify::BlockReport;
use engine::{EngineError, SegmentFile, SegmentWriter, SharedBytes, Store, salvage};

const BUCKETS: [u32; 3] = [2, 3, 900];
const SECOND: i64 = 1_000_000_000;
const MAGIC_BYTES: usize = 8;
const HEAD_BYTES: usize = 12;
const ROW_BYTES: usize = 40;
const TRAILER_BYTES: usize = 24;

/// Three buckets with two sources each, the first with rollups.
fn segment() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut segment = SegmentWriter::new(&mut bytes).unwrap();
    for bucket in BUCKETS {
        let mut rows = RowsWriter::new();
        for row in 0..70 {
            rows.begin(1);
            rows.number(0, f64::from(row * bucket), 0);
            rows.commit(i64::from(row) * SECOND);
        }
        rows.begin(2);
        rows.boolean(1, true);
        rows.metadata("{}");
        rows.commit(SECOND);
        let mut encoded = Vec::new();
        rows.encode(&mut encoded);
        let mut store = Store::new();
        store.apply(&encoded, 1, &[]).unwrap();
        segment.begin_bucket(bucket);
        store.begin_checkpoint().unwrap().write(&mut segment).unwrap();
    }
    segment.finish().unwrap();
    bytes
}

fn open(bytes: Vec<u8>) -> Result<Arc<SegmentFile>, EngineError> {
    SegmentFile::open(1, Arc::new(bytes))
}

fn read(file: &Arc<SegmentFile>, bucket: u32) -> Result<Vec<BlockReport>, EngineError> {
    file.part(bucket)?.unwrap().verify()
}

/// Offsets in a file: heads and blocks, the entries of each bucket, table and trailer.
struct Layout {
    blocks: Vec<Range<usize>>,
    entries: Vec<Range<usize>>,
}

fn layout(bytes: &[u8]) -> Layout {
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let trailer = bytes.len() - TRAILER_BYTES;
    let (table, count) = (u64_at(trailer), u32_at(trailer + 8));
    assert_eq!(table + count * ROW_BYTES, trailer);
    let entries: Vec<Range<usize>> = (table..trailer)
        .step_by(ROW_BYTES)
        .map(|row| u64_at(row + 24)..u64_at(row + 24) + u32_at(row + 32))
        .collect();
    let (mut blocks, mut at) = (Vec::new(), MAGIC_BYTES);
    while at < entries[0].start {
        let end = at + HEAD_BYTES + u32_at(at + 8);
        blocks.push(at..end);
        at = end;
    }
    assert_eq!(at, entries[0].start);
    assert!(entries.windows(2).all(|pair| pair[0].end == pair[1].start));
    assert_eq!(entries.last().unwrap().end, table);
    Layout { blocks, entries }
}

#[test]
fn every_flipped_bit_loses_no_more_than_necessary() {
    let whole = segment();
    let Layout { blocks, entries } = layout(&whole);
    assert_eq!((blocks.len(), entries.len()), (6, 3));
    let file = open(whole.clone()).unwrap();
    let before = BUCKETS.map(|bucket| read(&file, bucket).unwrap());
    assert!(before.iter().flatten().all(|block| block.fault.is_none()));
    for byte in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[byte] ^= 1 << bit;
            let what = format!("byte {byte} of {}, bit {bit}", whole.len());
            let file = match open(damaged) {
                Ok(file) => file,
                Err(error) => {
                    assert!(matches!(error, EngineError::Corrupt { .. }), "{what}: {error}");
                    let in_table = byte >= entries[2].end;
                    assert!(byte < MAGIC_BYTES || in_table, "{what}: {error}");
                    continue;
                }
            };
            assert!((MAGIC_BYTES..entries[2].end).contains(&byte), "{what}");
            let damaged_block = blocks.iter().position(|block| block.contains(&byte));
            let damaged_part = entries.iter().position(|entries| entries.contains(&byte));
            for (index, bucket) in BUCKETS.into_iter().enumerate() {
                let after = read(&file, bucket);
                if damaged_part == Some(index) {
                    assert!(matches!(after, Err(EngineError::Corrupt { .. })), "{what}");
                    continue;
                }
                let mut after = after.unwrap();
                for (number, block) in after.iter_mut().enumerate() {
                    let fault = block.fault.take();
                    let expected = damaged_block == Some(2 * index + number);
                    assert_eq!(fault.is_some(), expected, "{what}: {fault:?}");
                }
                assert_eq!(after, before[index], "{what}");
            }
        }
    }
}

#[test]
fn a_save_omits_damaged_blocks_but_not_damaged_heads() {
    let whole = segment();
    let blocks = layout(&whole).blocks;
    let salvaged = |byte: usize| {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1;
        let home: SharedBytes = Arc::new(damaged);
        let part = SegmentFile::open(1, Arc::clone(&home))
            .unwrap()
            .part(BUCKETS[1])
            .unwrap()
            .unwrap();
        let mut bytes = Vec::new();
        salvage(&home, &mut bytes, |bucket, _| bucket == BUCKETS[1]).unwrap();
        let file = open(bytes).unwrap();
        let blocks = read(&file, BUCKETS[1]).unwrap();
        assert!(blocks.iter().all(|block| block.fault.is_none()));
        let rows: u32 = blocks.iter().map(|block| block.rows).sum();
        let left = part.whole_sequences().unwrap();
        assert_eq!(
            left.iter().map(|(_, rows)| rows.len()).sum::<usize>(),
            rows as usize
        );
        rows
    };
    assert_eq!(salvaged(blocks[2].start), 71, "a head");
    assert_eq!(salvaged(blocks[2].start + HEAD_BYTES), 1, "a block");
    assert_eq!(salvaged(blocks[4].end - 1), 71, "a block of another bucket");
}

#[test]
fn a_truncated_file_is_refused() {
    let whole = segment();
    for len in 0..whole.len() {
        let error = open(whole[..len].to_vec()).err();
        assert!(matches!(error, Some(EngineError::Corrupt { .. })), "{len} bytes");
    }
    for more in [1, 8, TRAILER_BYTES, ROW_BYTES] {
        let mut longer = whole.clone();
        longer.resize(whole.len() + more, 0);
        assert!(open(longer).is_err(), "{more} bytes more");
    }
}

/// No change of the magic makes a file of the current version valid as one without a table, or the reverse.
#[test]
fn segment_versions_are_not_interchangeable() {
    let mut bytes = segment();
    assert!(SegmentFile::open_of_bucket(1, BUCKETS[0], Arc::new(bytes.clone())).is_err());
    for version in *b"12" {
        bytes[7] = version;
        assert!(open(bytes.clone()).is_err());
        assert!(SegmentFile::open_of_bucket(1, BUCKETS[0], Arc::new(bytes.clone())).is_err());
    }
}

#[test]
fn a_file_without_buckets_opens() {
    let mut bytes = Vec::new();
    let mut segment = SegmentWriter::new(&mut bytes).unwrap();
    segment.begin_bucket(1);
    assert!(segment.is_empty());
    assert_eq!(segment.finish().unwrap() as usize, MAGIC_BYTES + TRAILER_BYTES);
    let file = open(bytes.clone()).unwrap();
    assert_eq!(file.parts().count(), 0);
    assert_eq!(file.footer_bytes(), 0);
    assert!(file.part(1).unwrap().is_none());
    for byte in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[byte] ^= 1 << bit;
            assert!(open(damaged).is_err(), "byte {byte}, bit {bit}");
        }
    }
}
