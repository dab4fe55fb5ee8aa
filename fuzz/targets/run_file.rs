//! A run file of arbitrary bytes, or of a valid file with changes whose checksums were corrected: opening, verifying
//! and salvaging it neither panic nor allocate far beyond its length, and salvaged entries are valid.
//!
//! The first byte of an input has options: bit 0 corrects the checksums.

use std::path::Path;
use std::sync::Arc;

use tidewatch::ledger::{Run, flip_of_run, salvage, verify, without_header};

use super::bytes::{number_at, set_u32};
use super::memory::bounded;

const HEADER_BYTES: usize = 16;
const FOOTER_BYTES: usize = 56;
const BLOCK_ENTRIES: u64 = 128;
const BLOCK_ROW_BYTES: usize = 20;
const ENTRY_BYTES: usize = 40;

pub fn check(data: &[u8]) {
    let Some((flags, file)) = data.split_first() else {
        return;
    };
    let mut file = file.to_vec();
    if flags & 1 != 0 {
        correct_checksums(&mut file);
    }
    // Damages and lost entries are listed with some hundred bytes each, for an entry of 40 bytes.
    bounded(file.len(), 64, || read(&file));
}

fn read(file: &[u8]) {
    let path = Path::new("ledger/000000000001.run");
    if let Some(flip) = flip_of_run(file) {
        let mut turned = file.to_vec();
        flip.turn(&mut turned);
        assert_ne!(flip_of_run(&turned), Some(flip));
    }
    let Ok(run) = Run::open(1, path, Arc::new(file.to_vec())) else {
        without_header(1, path, file);
        return;
    };
    let mut sound = Vec::new();
    let report = verify(&run, |item| {
        sound.push((item.key, item.again, item.payload.to_vec()))
    });
    let mut saved = Vec::new();
    let salvaged = salvage(&run, &mut saved);
    assert_eq!(report.is_ok(), salvaged.is_ok());
    let Ok(report) = report else { return };
    assert_eq!(report.sound, sound.len() as u64);
    let run = Run::open(2, path, Arc::new(saved)).unwrap();
    let mut again = Vec::new();
    let report = verify(&run, |item| {
        again.push((item.key, item.again, item.payload.to_vec()))
    })
    .unwrap();
    assert!(report.damages.is_empty() && report.lost.is_empty());
    assert_eq!(again, sound);
}

/// Corrects the checksums of payloads, blocks, tables and footer for the present content (src/ledger/FORMAT.md).
fn correct_checksums(file: &mut [u8]) {
    if file.len() < HEADER_BYTES + FOOTER_BYTES {
        return;
    }
    let footer = file.len() - FOOTER_BYTES;
    let (entries, tables) = (
        number_at::<8>(file, footer),
        number_at::<8>(file, footer + 40) as usize,
    );
    for block in 0..entries.div_ceil(BLOCK_ENTRIES) {
        let row = tables.saturating_add(block as usize * BLOCK_ROW_BYTES);
        if row.saturating_add(BLOCK_ROW_BYTES) > footer {
            break;
        }
        let start = number_at::<8>(file, row) as usize;
        let count = (entries - block * BLOCK_ENTRIES).min(BLOCK_ENTRIES) as usize;
        let end = start.saturating_add(count * ENTRY_BYTES);
        if end > footer {
            continue;
        }
        for entry in (start..end).step_by(ENTRY_BYTES) {
            let (offset, len) = (
                number_at::<8>(file, entry + 20) as usize,
                number_at::<4>(file, entry + 28) as usize,
            );
            if let Some(payload) = file.get(offset..offset.saturating_add(len)) {
                let checksum = crc32fast::hash(payload);
                set_u32(file, entry + 32, checksum);
            }
        }
        let checksum = crc32fast::hash(&file[start..end]);
        set_u32(file, row + 16, checksum);
    }
    if let Some(tables) = file.get(tables..footer) {
        let checksum = crc32fast::hash(tables);
        set_u32(file, footer + 48, checksum);
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&file[..HEADER_BYTES]);
    hasher.update(&file[footer..footer + FOOTER_BYTES - 4]);
    let checksum = hasher.finalize();
    set_u32(file, footer + FOOTER_BYTES - 4, checksum);
}
