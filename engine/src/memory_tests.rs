//! Memory of the store: counted exactly, and bounded for all kinds of rows.

use std::collections::BTreeMap;

use crate::block::BLOCK_TEXT_BYTES;
use crate::column::Values;
use crate::query::{ScanQuery, Selection, scan};
use crate::rows::RowsWriter;
use crate::saved::{begin_merge, checkpoint, part, write_merge};
use crate::series::Series;
use crate::{BLOCK_ROWS_MAX, Store};

const TEXT_BYTES: usize = 10_000;

/// Applies rows from sequence `first`, a nanosecond apart, each with a different text.
fn apply_texts(store: &mut Store, source: u32, first: u64, rows: u64) {
    let mut writer = RowsWriter::new();
    for row in first..first + rows {
        writer.begin(source);
        writer.number(0, row as f64, 0);
        writer.metadata(&format!("{row:0TEXT_BYTES$}"));
        writer.commit(row as i64);
    }
    let mut bytes = Vec::new();
    writer.encode(&mut bytes);
    store.apply(&bytes, first, &[]).unwrap();
}

fn seal(store: &mut Store) {
    for seal in store.take_seals() {
        store.finish_seal(seal.run());
    }
}

/// Metadata of all rows, in order.
fn metadata(store: &Store) -> Vec<String> {
    let snapshot = [store.view().series(0).unwrap()];
    let selection = Selection::new(&snapshot[0], None);
    let query = ScanQuery {
        range_ns: (i64::MIN, i64::MAX),
        descending: false,
        after: None,
        skip: 0,
        limit: 1 << 20,
        metadata: None,
        stop: &|| false,
    };
    let page = scan(&[selection], &query).unwrap();
    let text = |(run, row): &(u32, u32)| {
        let columns = &page.runs[*run as usize].columns;
        let metadata = columns.metadata.as_ref().unwrap();
        match &metadata.values {
            Values::Texts(texts) => texts.get(*row as usize).to_string(),
            other => panic!("metadata are texts: {other:?}"),
        }
    };
    page.rows.iter().map(text).collect()
}

/// Regression: texts were not counted. Rows with ten kilobytes of metadata each counted as 25 bytes, so that the memory
/// was unbounded.
#[test]
fn texts_count_until_they_are_saved_or_deleted() {
    let mut store = Store::new();
    apply_texts(&mut store, 0, 0, 500);
    apply_texts(&mut store, 1, 0, 100);
    let texts = 600 * TEXT_BYTES as u64;
    let (rows, bytes) = store.unsaved();
    assert_eq!(rows, 600);
    assert!((texts..texts * 11 / 10).contains(&bytes), "{bytes}");
    store.remove_source(1);
    let (_, bytes) = store.unsaved();
    assert!(bytes < texts, "what is deleted counts no more: {bytes}");
    checkpoint(&mut store, 1);
    assert_eq!(store.unsaved(), (0, 0), "nor what is saved");
}

#[test]
fn large_texts_fill_a_block_before_its_rows_do() {
    let rows_max = BLOCK_TEXT_BYTES / TEXT_BYTES + 1;
    let mut store = Store::new();
    let rows = 4 * rows_max as u64 + 100;
    for first in (0..rows).step_by(100) {
        apply_texts(&mut store, 0, first, (rows - first).min(100));
    }
    let (_, before) = store.unsaved();
    seal(&mut store);
    let (_, sealed) = store.unsaved();
    assert!(
        sealed < before / 3,
        "most of it is sealed before a checkpoint: {sealed} of {before}"
    );
    let expected: Vec<String> = (0..rows).map(|row| format!("{row:0TEXT_BYTES$}")).collect();
    assert_eq!(metadata(&store), expected, "and reads as before");
    let mut files = BTreeMap::from([(1, checkpoint(&mut store, 1))]);
    let blocks = part(1, &files[&1]).verify().unwrap();
    assert!(
        blocks.iter().all(|block| block.rows as usize <= rows_max + 100),
        "{blocks:?}"
    );
    for id in 2..=4 {
        apply_texts(&mut store, 0, rows * id / 2, 100);
        files.insert(id, checkpoint(&mut store, id));
    }
    assert!(metadata(&store).starts_with(&expected), "also from a segment");
    // Small enough to be merged, and overlapping, so that their blocks are rewritten.
    let merge = begin_merge(&mut store, &files).unwrap();
    let merged = part(5, &write_merge(&merge)).verify().unwrap();
    assert!(
        merged.iter().all(|block| block.rows as usize <= rows_max + 100),
        "{merged:?}"
    );
}

/// A text shared by all rows is stored once in memory: it must not make blocks small.
#[test]
fn repeated_texts_do_not_count_towards_a_full_block() {
    let mut store = Store::new();
    let mut writer = RowsWriter::new();
    for row in 0..BLOCK_ROWS_MAX {
        writer.begin(0);
        writer.number(0, 1.0, 0);
        writer.metadata(&"x".repeat(TEXT_BYTES));
        writer.commit(row as i64);
    }
    let mut bytes = Vec::new();
    writer.encode(&mut bytes);
    store.apply(&bytes, 1, &[]).unwrap();
    let (_, bytes) = store.unsaved();
    assert!(bytes < 1 << 20, "{bytes}");
    let blocks = part(1, &checkpoint(&mut store, 1)).verify().unwrap();
    assert_eq!(blocks.len(), 1, "{blocks:?}");
}

/// After any sequence of operations, the running count equals the memory of rows and blocks.
#[test]
fn the_count_equals_the_memory_held() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut store = Store::new();
    let mut sequence = 1;
    let mut seals = Vec::new();
    let mut view = None;
    for step in 0..400 {
        // Rows are copied for a reader that holds them.
        view = random.bool().then(|| store.view()).or(view);
        if random.u8(..4) == 0 {
            view = None;
        }
        match random.u8(..10) {
            0..6 => {
                let mut writer = RowsWriter::new();
                // Few rows of a series in a request stay together at first.
                let rows = match random.bool() {
                    true => random.u64(1..6),
                    false => random.u64(1..1_500),
                };
                for row in 0..rows {
                    writer.begin(random.u32(..3));
                    writer.number(random.u16(..3), random.f64(), 17);
                    if random.bool() {
                        writer.string(3, &random.u8(..20).to_string());
                    }
                    if random.u8(..20) == 0 {
                        writer.metadata(&"m".repeat(random.usize(..5_000)));
                    }
                    writer.commit(random.i64(..10) + (step * 1_500 + row as i64));
                }
                let mut bytes = Vec::new();
                writer.encode(&mut bytes);
                store.apply(&bytes, sequence, &[]).unwrap();
                sequence += rows;
                seals.extend(store.take_seals());
            }
            6..8 => seals.drain(..).for_each(|seal| store.finish_seal(seal.run())),
            8 => {
                store.remove_source(random.u32(..3));
            }
            _ => {
                seals.clear();
                if random.bool() {
                    // One that fails.
                    store.begin_checkpoint();
                } else if store.unsaved().0 > 0 {
                    checkpoint(&mut store, 1_000 + step as u64);
                }
            }
        }
        let held: usize = store.all_series().map(Series::unsaved_bytes).sum();
        let (_, counted) = store.unsaved();
        assert_eq!(counted, held as u64, "step {step}");
    }
    drop(view);
}

/// A file copied over another has rows twice. Regression: two runs waited for each other's equal row forever, and
/// blocked a query thread.
#[test]
fn a_scan_ends_even_with_rows_doubled_by_damage() {
    let mut store = Store::new();
    apply_texts(&mut store, 0, 0, 50);
    let home = checkpoint(&mut store, 1);
    store.add_segment(part(2, &home));
    assert_eq!(metadata(&store).len(), 100);
}
