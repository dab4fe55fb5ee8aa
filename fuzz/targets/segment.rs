//! A segment file of arbitrary bytes, or of a valid file with changes whose checksums were corrected: opening, reading
//! and salvaging it do not panic, a salvaged file opens and is valid, and with wrong checksums nothing far beyond the
//! file's length is allocated.
//!
//! The first byte of an input has options: bit 0 corrects the checksums, the others choose the unit of grouped queries.

use std::sync::Arc;

use engine::query::{GroupQuery, group};
use engine::{SegmentFile, SeriesSnapshot, SharedBytes, Store, Unit, salvage};

use super::bytes::{number_at, set_u32};
use super::memory::bounded;
use super::rows_of::rows_of;

const MAGIC_BYTES: usize = 8;
const HEAD_BYTES: usize = 12;
const ROW_BYTES: usize = 40;
const TRAILER_BYTES: usize = 24;
/// A byte of a section may stand for many rows, which take 8 bytes each in every column and every copy.
const PER_BYTE: u64 = 64 << 10;

pub fn check(data: &[u8]) {
    let Some((flags, file)) = data.split_first() else {
        return;
    };
    let mut file = file.to_vec();
    let unit = Unit::ALL[usize::from(flags >> 1) % Unit::ALL.len()];
    if flags & 1 != 0 {
        correct_checksums(&mut file);
        // Lengths with a valid checksum are trusted: a dictionary of texts may take a gibibyte.
        read(file, unit);
    } else {
        bounded(file.len(), PER_BYTE, || read(file, unit));
    }
}

fn read(bytes: Vec<u8>, unit: Unit) {
    let home: SharedBytes = Arc::new(bytes);
    if let Ok(file) = SegmentFile::open(1, Arc::clone(&home)) {
        let buckets: Vec<u32> = file.parts().map(|part| part.bucket).collect();
        for bucket in buckets {
            read_part(&file, bucket, unit);
        }
    }
    for bucket in [0, 12] {
        if let Ok(file) = SegmentFile::open_of_bucket(1, bucket, Arc::clone(&home)) {
            read_part(&file, bucket, unit);
        }
    }
    let mut saved = Vec::new();
    let salvaged = salvage(&home, &mut saved, |_, _| true).unwrap();
    let file = SegmentFile::open(2, Arc::new(saved)).unwrap();
    assert_eq!(file.rows(), salvaged.rows);
    let buckets: Vec<u32> = file.parts().map(|part| part.bucket).collect();
    for bucket in buckets {
        let blocks = file.part(bucket).unwrap().unwrap().verify().unwrap();
        assert!(blocks.iter().all(|block| block.fault.is_none()), "{blocks:?}");
    }
}

fn read_part(file: &Arc<SegmentFile>, bucket: u32, unit: Unit) {
    let Ok(Some(part)) = file.part(bucket) else { return };
    let reports = part.verify();
    let _ = part.compare_checksums();
    let _ = part.whole_sequences();
    let _ = part.sequences();
    let mut sources: Vec<u32> = reports.iter().flatten().map(|report| report.source).collect();
    sources.sort_unstable();
    sources.dedup();
    let mut store = Store::new();
    store.add_segment(part);
    let series = sources
        .into_iter()
        .filter_map(|source| store.view().series(source));
    let snapshot: Vec<SeriesSnapshot> = series.collect();
    for series in &snapshot {
        let query = GroupQuery {
            range_ns: (-1_000_000_007, 3_600_000_000_001),
            step: unit.into(),
            fields: &[0, 1, 2, 3],
            metadata: None,
            stop: &|| false,
            values: &[],
        };
        let _ = group(series, &query);
    }
    let has_text = |text: Option<&str>| text.is_none_or(|text| !text.is_empty());
    let _ = rows_of(&snapshot, 100, Some(&has_text));
}

/// Corrects the checksums of blocks, entries and table for the present content (engine/FORMAT.md).
fn correct_checksums(file: &mut [u8]) {
    if file.len() < MAGIC_BYTES + TRAILER_BYTES {
        return;
    }
    let mut at = MAGIC_BYTES;
    while at + HEAD_BYTES < file.len() {
        let end = at + HEAD_BYTES + number_at::<4>(file, at + 8) as usize;
        let Some(block) = file.get_mut(at + HEAD_BYTES..end) else {
            break;
        };
        correct_block(block);
        at = end;
    }
    let trailer = file.len() - TRAILER_BYTES;
    let table = number_at::<8>(file, trailer) as usize;
    let Some(rows) = trailer.checked_sub(table) else {
        return;
    };
    for row in (table..table + rows / ROW_BYTES * ROW_BYTES).step_by(ROW_BYTES) {
        let (start, len) = (
            number_at::<8>(file, row + 24) as usize,
            number_at::<4>(file, row + 32) as usize,
        );
        if let Some(entries) = file.get(start..start.saturating_add(len)) {
            let checksum = crc32fast::hash(entries);
            set_u32(file, row + 36, checksum);
        }
    }
    let checksum = crc32fast::hash(&file[table..trailer]);
    set_u32(file, trailer + 12, checksum);
}

fn correct_block(block: &mut [u8]) {
    if block.len() < 8 {
        return;
    }
    let body = 8usize.saturating_add(number_at::<4>(block, 0) as usize);
    if body > block.len() {
        return;
    }
    let (mut at, mut section) = (9, body);
    let varint = |at: &mut usize, block: &[u8]| {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = *block[..body].get(*at)?;
            *at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value as usize);
            }
        }
        None
    };
    let rows_and_sections = (varint(&mut at, block), varint(&mut at, block));
    let (Some(_), Some(sections)) = rows_and_sections else {
        return;
    };
    for _ in 0..sections {
        at += 1;
        let (Some(_), Some(len)) = (varint(&mut at, block), varint(&mut at, block)) else {
            break;
        };
        let Some(content) = block.get(section..section.saturating_add(len)) else {
            break;
        };
        if at + 4 > body {
            break;
        }
        let checksum = crc32fast::hash(content);
        set_u32(block, at, checksum);
        at += 4;
        section += len;
    }
    let checksum = crc32fast::hash(&block[8..body]);
    set_u32(block, 4, checksum);
}
