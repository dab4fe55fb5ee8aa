//! Parts of a footer that are read long after opening are checked again, offsets are bounded, and damage without a
//! checksum mismatch is only an error.

mod salvage;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::table::{FOOTER_BYTES_MAX, HEAD_BYTES, ROW_BYTES, TRAILER_BYTES, old_footer_start};
use super::writer::check_footer_len;
use super::*;
use crate::block::BlockReader;
use crate::bytes::put_varint;
use crate::cache::Cache;
use crate::rows::RowsWriter;
use crate::saved::BUCKET;
use crate::{Checkpoint, Store};

const BUCKETS: [u32; 3] = [3, BUCKET, 1 << 31];

/// A file whose content changes while it is open.
struct ChangingFile {
    whole: Vec<u8>,
    damaged: Vec<u8>,
    turned: AtomicBool,
}

impl AsRef<[u8]> for ChangingFile {
    fn as_ref(&self) -> &[u8] {
        match self.turned.load(Ordering::Relaxed) {
            false => &self.whole,
            true => &self.damaged,
        }
    }
}

fn changing_file(whole: &[u8], damaged: Vec<u8>) -> Arc<ChangingFile> {
    Arc::new(ChangingFile {
        whole: whole.to_vec(),
        damaged,
        turned: AtomicBool::new(false),
    })
}

fn open(home: &Arc<ChangingFile>) -> Arc<SegmentFile> {
    SegmentFile::open(1, Arc::clone(home) as SharedBytes).unwrap()
}

fn checkpoint() -> Checkpoint {
    let mut store = Store::new();
    let mut writer = RowsWriter::new();
    for row in 0..300 {
        writer.begin(row % 3);
        writer.number(0, f64::from(row) / 10.0, 1);
        writer.boolean(4, row % 2 == 0);
        writer.string(7, "text");
        writer.commit(i64::from(row));
    }
    let mut rows = Vec::new();
    writer.encode(&mut rows);
    store.apply(&rows, 1, &[]).unwrap();
    store.begin_checkpoint().unwrap()
}

/// One bucket with three blocks.
fn of_one() -> Vec<u8> {
    SegmentWriter::of_bucket(BUCKET, |segment| checkpoint().write(segment)).unwrap()
}

/// Three buckets with three blocks each.
fn of_three() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut segment = SegmentWriter::new(&mut bytes).unwrap();
    for bucket in BUCKETS {
        segment.begin_bucket(bucket);
        checkpoint().write(&mut segment).unwrap();
    }
    segment.finish().unwrap();
    bytes
}

fn opened(bytes: Vec<u8>) -> Result<Arc<SegmentFile>, EngineError> {
    SegmentFile::open(1, Arc::new(bytes))
}

#[test]
fn damage_to_a_footer_after_opening_is_reported() {
    let whole = of_one();
    let footer = opened(whole.clone()).unwrap().table.footer();
    for byte in footer {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[byte] ^= 1 << bit;
            let home = changing_file(&whole, damaged);
            let part = open(&home).part(BUCKET).unwrap().unwrap();
            assert_eq!(part.blocks.len(), 3);
            home.turned.store(true, Ordering::Relaxed);
            let cache = Cache::new(1 << 20);
            let damage = part
                .blocks
                .iter()
                .filter_map(|(_, entry)| entry.block(&cache).err());
            let damage: Vec<EngineError> = damage.collect();
            let names = |error: &EngineError| matches!(error, EngineError::Damaged(it) if it.segment == 1 && it.bucket == Some(BUCKET));
            assert!(damage.iter().all(names), "byte {byte}, bit {bit}: {damage:?}");
            assert_eq!(damage.len(), 1, "byte {byte}, bit {bit}: {damage:?}");
        }
    }
}

/// The row of a bucket is read together with its part: damage must not make the bucket look empty.
#[test]
fn damage_to_a_table_after_opening_hides_no_bucket() {
    let whole = of_three();
    let table_start = whole.len() - TRAILER_BYTES - 3 * ROW_BYTES;
    for byte in 0..3 * ROW_BYTES {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[table_start + byte] ^= 1 << bit;
            let home = changing_file(&whole, damaged);
            let file = open(&home);
            home.turned.store(true, Ordering::Relaxed);
            assert_eq!(file.parts().count(), 3);
            for (row, bucket) in BUCKETS.into_iter().enumerate() {
                let part = file.part(bucket);
                if row == byte / ROW_BYTES {
                    let error = part.err();
                    let named = matches!(error, Some(EngineError::Corrupt { .. }));
                    assert!(named, "byte {byte}, bit {bit}: {error:?}");
                } else {
                    assert_eq!(part.unwrap().unwrap().rows, 300);
                }
            }
        }
    }
}

#[test]
fn a_cached_block_is_read_without_the_footer() {
    let whole = of_one();
    let footer = opened(whole.clone()).unwrap().table.footer();
    let mut damaged = whole.clone();
    damaged[footer].fill(0xff);
    let home = changing_file(&whole, damaged);
    let (_, entry) = open(&home).part(BUCKET).unwrap().unwrap().blocks.remove(0);
    let cache = Cache::new(1 << 20);
    entry.block(&cache).unwrap();
    home.turned.store(true, Ordering::Relaxed);
    assert_eq!(entry.block(&cache).unwrap().summary.rows, entry.rows);
    assert!(entry.block_uncached().is_err());
    assert!(entry.block(&Cache::new(1 << 20)).is_err());
}

/// A reopened segment has other cache keys: its number may have been used by a removed file.
#[test]
fn two_openings_of_one_segment_share_no_cache_entries() {
    let home: SharedBytes = Arc::new(of_one());
    let open = || {
        let file = SegmentFile::open(1, Arc::clone(&home)).unwrap();
        file.part(BUCKET).unwrap().unwrap().blocks.remove(0).1
    };
    let (one, other) = (open(), open());
    assert_eq!(one.id(), one.clone().id());
    assert_ne!(one.id(), other.id());
}

/// Offsets in a footer have 32 bits: a longer footer is neither written nor read.
#[test]
fn a_footer_has_less_than_four_gibibytes() {
    let most = u64::from(u32::MAX);
    assert_eq!(most, FOOTER_BYTES_MAX);
    check_footer_len(most).unwrap();
    let error = check_footer_len(most + 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    let trailer_start = 1 << 40;
    assert_eq!(
        old_footer_start(trailer_start, most),
        Ok(trailer_start - most as usize)
    );
    assert!(old_footer_start(trailer_start, most + 1).is_err());
    assert!(old_footer_start(100, 93).is_err(), "nor one longer than the file");
}

/// However few of the last bytes are known, they lead to the start of the footer.
#[test]
fn the_last_bytes_say_where_the_footer_starts() {
    let bytes = of_three();
    let footer = opened(bytes.clone()).unwrap().table.footer();
    let mut unknown = 0;
    for start in 0..=bytes.len() - TRAILER_BYTES {
        match footer_start(&bytes[start..], bytes.len()).unwrap() {
            FooterStart::At(at) => assert_eq!(at, footer.start),
            FooterStart::Unknown(from) => {
                assert!(from < start, "more bytes are needed");
                let found = footer_start(&bytes[from..], bytes.len());
                assert_eq!(found, Ok(FooterStart::At(footer.start)));
                unknown += 1;
            }
        }
    }
    assert!(unknown > ROW_BYTES, "also without the whole table");
    assert!(footer_start(&bytes[bytes.len() - TRAILER_BYTES + 1..], bytes.len()).is_err());
    assert!(footer_start(&bytes[..bytes.len() - 1], bytes.len() - 1).is_err());
}

/// If the footer is lost, the heads identify all blocks: following them ends after the last block.
#[test]
fn every_block_is_found_from_the_block_heads_alone() {
    let bytes = of_three();
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let is_block = |at: usize| {
        let header = at + 8..at + 8 + number(at) as usize;
        bytes
            .get(header)
            .is_some_and(|header| crc32fast::hash(header) == number(at + 4))
    };
    let mut found = Vec::new();
    let mut at = MAGIC.len();
    while is_block(at + HEAD_BYTES) {
        let len = number(at + 8) as usize;
        found.push((number(at), number(at + 4), at + HEAD_BYTES..at + HEAD_BYTES + len));
        at += HEAD_BYTES + len;
    }
    let file = opened(bytes.clone()).unwrap();
    assert_eq!(at, file.table.footer().start);
    let mut expected = Vec::new();
    for bucket in BUCKETS {
        for (source, entry) in &file.part(bucket).unwrap().unwrap().blocks {
            let block = entry.block_uncached().unwrap();
            assert_eq!(BlockReader::new(&block).unwrap().columns().unwrap().rows(), 100);
            expected.push((bucket, *source, block.place()));
        }
    }
    assert_eq!(expected.len(), 9);
    assert_eq!(found, expected);
}

/// The parts of a file, its magic and its trailer add up to its length.
#[test]
fn the_bytes_of_all_parts_add_up_to_the_file() {
    let file = opened(of_three()).unwrap();
    let parts: Vec<SegmentRow> = file.parts().collect();
    let bytes: u64 = parts.iter().map(SegmentRow::bytes).sum();
    assert_eq!(bytes + (MAGIC.len() + TRAILER_BYTES) as u64, file.bytes());
    let buckets: Vec<u32> = parts.iter().map(|part| part.bucket).collect();
    assert_eq!(buckets, BUCKETS);
    assert!(parts.iter().all(|part| (part.blocks, part.rows) == (3, 300)));
    assert!(
        file.part(4).unwrap().is_none(),
        "a bucket between those of the file"
    );
}

/// The given file with this table, with valid checksums.
fn with_rows(bytes: &[u8], rows: &[SegmentRow]) -> Vec<u8> {
    let file = opened(bytes.to_vec()).unwrap();
    let table_start = file.table.footer().end;
    let mut table = Vec::new();
    rows.iter().for_each(|row| row.encode(&mut table));
    let checksum = crc32fast::hash(&table);
    let mut file = bytes[..table_start].to_vec();
    file.extend_from_slice(&table);
    file.extend_from_slice(&(table_start as u64).to_le_bytes());
    file.extend_from_slice(&(rows.len() as u32).to_le_bytes());
    file.extend_from_slice(&checksum.to_le_bytes());
    file.extend_from_slice(&bytes[bytes.len() - 8..]);
    file
}

/// Inconsistent tables with valid checksums are refused, or their parts are, without a panic or an allocation of the
/// claimed size.
#[test]
fn an_inconsistent_table_is_refused() {
    let bytes = of_three();
    let file = opened(bytes.clone()).unwrap();
    let rows: Vec<SegmentRow> = file.table.rows(Tail::new(&bytes, bytes.len())).collect();
    assert_eq!(with_rows(&bytes, &rows), bytes);
    let refused = |what: &str, change: &dyn Fn(&mut Vec<SegmentRow>)| {
        let mut rows = rows.clone();
        change(&mut rows);
        let error = opened(with_rows(&bytes, &rows)).err();
        assert!(matches!(error, Some(EngineError::Corrupt { .. })), "{what}");
    };
    refused("no rows", &|rows| rows.clear());
    refused("a row less", &|rows| rows.truncate(2));
    refused("another order", &|rows| rows.rotate_left(1));
    refused("a row twice", &|rows| rows[1] = rows[2].clone());
    refused("a bucket twice", &|rows| rows[1].bucket = rows[0].bucket);
    refused("out of order", &|rows| rows[1].bucket = u32::MAX);
    refused("no blocks", &|rows| rows[1].blocks = 0);
    refused("more blocks than entries", &|rows| rows[1].blocks = u32::MAX);
    refused("more rows than blocks", &|rows| rows[1].rows = u64::MAX);
    refused("fewer rows than blocks", &|rows| rows[1].rows = 2);
    refused("more bytes than there are", &|rows| {
        rows[1].block_bytes = u64::MAX
    });
    refused("blocks in the footer", &|rows| rows[1].block_bytes += 1);
    refused("a gap", &|rows| rows[1].entries.start += 1);
    refused("entries before the blocks", &|rows| rows[0].entries.start = 0);
    refused("entries beyond the file", &|rows| {
        rows[0].entries = usize::MAX - 1..usize::MAX
    });
    refused("entries in the table", &|rows| rows[2].entries.end += 1);

    let part_refused = |what: &str, change: &dyn Fn(&mut Vec<SegmentRow>)| {
        let mut rows = rows.clone();
        change(&mut rows);
        let file = opened(with_rows(&bytes, &rows)).unwrap();
        let error = file.part(BUCKET).err();
        assert!(matches!(error, Some(EngineError::Corrupt { .. })), "{what}");
        assert_eq!(file.part(BUCKETS[2]).unwrap().unwrap().rows, 300, "{what}");
    };
    part_refused("fewer blocks than entries", &|rows| rows[1].blocks = 2);
    part_refused("more blocks than entries", &|rows| rows[1].blocks = 4);
    part_refused("other rows", &|rows| rows[1].rows += 1);
    part_refused("bytes of a neighbour", &|rows| {
        rows[0].block_bytes -= 1;
        rows[1].block_bytes += 1;
    });
    part_refused("other entries", &|rows| rows[1].checksum ^= 1);
}

/// The blocks of a bucket out of order could not be found.
#[test]
fn buckets_out_of_order_are_not_written() {
    let checkpoint = checkpoint();
    for second in [0, BUCKET - 1, BUCKET] {
        let mut bytes = Vec::new();
        let mut segment = SegmentWriter::new(&mut bytes).unwrap();
        assert!(checkpoint.write(&mut segment).is_err(), "a bucket has to begin");
        segment.begin_bucket(BUCKET);
        assert!(segment.is_empty());
        checkpoint.write(&mut segment).unwrap();
        segment.begin_bucket(second);
        assert!(checkpoint.write(&mut segment).is_err());
        segment.begin_bucket(BUCKET + 1);
        checkpoint.write(&mut segment).unwrap();
    }
}

/// A file of version 2 with these bytes in its footer after the count, with valid checksums.
fn of_version_2(count: u64, entries: &[u8]) -> Result<Arc<SegmentFile>, EngineError> {
    let mut footer = Vec::new();
    put_varint(&mut footer, count);
    footer.extend_from_slice(entries);
    let mut bytes = b"TWSEGM02".to_vec();
    bytes.extend_from_slice(&footer);
    bytes.extend_from_slice(&(footer.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&footer).to_le_bytes());
    bytes.extend_from_slice(b"TWSEGEND");
    SegmentFile::open_of_bucket(1, BUCKET, Arc::new(bytes))
}

#[test]
fn an_inconsistent_older_footer_is_refused() {
    // A merge of only expired rows left such a file.
    let empty = of_version_2(0, &[]).unwrap();
    assert_eq!(empty.parts().count(), 0);
    assert!(empty.part(BUCKET).unwrap().is_none());
    // Source 1, a row of time 0 and sequence 7, no fields, no bytes at offset 8.
    let entry = [1, 1, 0, 0, 7, 0, 0, 8, 0];
    let file = of_version_2(1, &entry).unwrap();
    assert_eq!(file.parts().next().unwrap().rows, 1);
    assert_eq!(file.part(BUCKET).unwrap().unwrap().blocks.len(), 1);
    assert!(of_version_2(2, &entry).is_err(), "more blocks than entries");
    assert!(of_version_2(u64::MAX, &entry).is_err(), "more blocks than memory");
    let more = [&entry[..], &entry[..]].concat();
    assert!(of_version_2(1, &more).unwrap().part(BUCKET).is_err(), "fewer");
    let elsewhere = [1, 1, 0, 0, 7, 0, 0, 8, 100];
    let file = of_version_2(1, &elsewhere).unwrap();
    assert!(file.part(BUCKET).is_err(), "a block in the footer");
    // Regression: a last sequence beyond 64 bits overflowed to one below the first, and copying it panicked.
    let mut beyond = vec![1, 1, 0, 0];
    put_varint(&mut beyond, u64::MAX);
    beyond.extend_from_slice(&[1, 0, 8, 0]);
    assert!(of_version_2(1, &beyond).is_err());
}
