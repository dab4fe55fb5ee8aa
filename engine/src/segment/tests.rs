//! What is read of a footer long after the file was opened is checked again, and places in it have a bound.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::cache::Cache;
use crate::rows::RowsWriter;
use crate::{Checkpoint, Store};

/// A file whose bytes turn into others while it is open.
struct Turning {
    whole: Vec<u8>,
    damaged: Vec<u8>,
    turned: AtomicBool,
}

impl AsRef<[u8]> for Turning {
    fn as_ref(&self) -> &[u8] {
        match self.turned.load(Ordering::Relaxed) {
            false => &self.whole,
            true => &self.damaged,
        }
    }
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
    store.apply(&rows, 1).unwrap();
    store.begin_checkpoint().unwrap()
}

#[test]
fn damage_in_a_footer_since_the_file_was_opened_is_named() {
    let mut whole = Vec::new();
    checkpoint().write(&mut whole).unwrap();
    let footer = find_footer(&whole).unwrap();
    for byte in footer {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[byte] ^= 1 << bit;
            let file = Arc::new(Turning {
                whole: whole.clone(),
                damaged,
                turned: AtomicBool::new(false),
            });
            let home: SharedBytes = Arc::clone(&file) as SharedBytes;
            let entries = open_segment(1, &home).unwrap();
            assert_eq!(entries.len(), 3);
            file.turned.store(true, Ordering::Relaxed);
            let cache = Cache::new(1 << 20);
            let damage = entries.iter().filter_map(|(_, entry)| entry.block(&cache).err());
            let damage: Vec<EngineError> = damage.collect();
            assert!(
                damage
                    .iter()
                    .all(|error| matches!(error, EngineError::Corrupt { .. }))
            );
            // The count before the entries is not read again.
            let expected = usize::from(byte > find_footer(&whole).unwrap().start);
            assert_eq!(damage.len(), expected, "byte {byte}, bit {bit}: {damage:?}");
        }
    }
}

#[test]
fn what_is_cached_of_a_footer_needs_it_no_more() {
    let mut whole = Vec::new();
    checkpoint().write(&mut whole).unwrap();
    let footer = find_footer(&whole).unwrap();
    let mut damaged = whole.clone();
    damaged[footer].fill(0xff);
    let file = Arc::new(Turning {
        whole,
        damaged,
        turned: AtomicBool::new(false),
    });
    let home: SharedBytes = Arc::clone(&file) as SharedBytes;
    let (_, entry) = open_segment(1, &home).unwrap().remove(0);
    let cache = Cache::new(1 << 20);
    entry.block(&cache).unwrap();
    file.turned.store(true, Ordering::Relaxed);
    assert_eq!(entry.block(&cache).unwrap().summary.rows, entry.rows);
    assert!(entry.block_uncached().is_err());
    assert!(entry.block(&Cache::new(1 << 20)).is_err());
}

/// The same segment opened again is another one to the cache: its number may be that of a file that is gone.
#[test]
fn two_openings_of_one_number_share_nothing() {
    let mut bytes = Vec::new();
    checkpoint().write(&mut bytes).unwrap();
    let home: SharedBytes = Arc::new(bytes);
    let open = || open_segment(1, &home).unwrap().remove(0).1;
    let (one, other) = (open(), open());
    assert_eq!(one.id(), one.clone().id());
    assert_ne!(one.id(), other.id());
}

/// Places in a footer have 32 bits: what is longer is neither written nor read.
#[test]
fn a_footer_has_less_than_four_gibibytes() {
    let most = u64::from(u32::MAX);
    check_footer_len(most).unwrap();
    let error = check_footer_len(most + 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    let trailer_start = 1 << 40;
    assert_eq!(
        footer_start(trailer_start, most),
        Ok(trailer_start - most as usize)
    );
    assert!(footer_start(trailer_start, most + 1).is_err());
    assert!(footer_start(100, 93).is_err(), "nor one longer than the file");
}
