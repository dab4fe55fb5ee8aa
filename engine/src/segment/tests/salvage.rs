//! Salvage of damaged files: all rows are recovered if only their descriptions are damaged, and the lost ones are
//! reported.

use super::super::salvage::{Lost, LostBlock, Salvaged, salvage};
use super::*;

/// Rows of each block.
const ROWS: u64 = 100;

fn salvaged(bytes: &[u8]) -> (Salvaged, Vec<u8>) {
    let (home, mut out): (SharedBytes, _) = (Arc::new(bytes.to_vec()), Vec::new());
    let salvaged = salvage(&home, &mut out, |_, _| true).unwrap();
    (salvaged, out)
}

/// Heads and ranges of the blocks of an undamaged file.
fn blocks(bytes: &[u8]) -> Vec<(LostBlock, std::ops::Range<usize>)> {
    let file = opened(bytes.to_vec()).unwrap();
    let mut blocks = Vec::new();
    for bucket in BUCKETS {
        for (source, entry) in &file.part(bucket).unwrap().unwrap().blocks {
            let block = entry.block_uncached().unwrap();
            let lost = LostBlock {
                bucket,
                source: *source,
                rows: Some((entry.rows, entry.first_ns, entry.last_ns)),
            };
            blocks.push((lost, block.place()));
        }
    }
    blocks
}

#[test]
fn an_undamaged_file_is_copied_unchanged() {
    let whole = of_three();
    let (salvaged, out) = salvaged(&whole);
    assert!(out == whole);
    assert_eq!((salvaged.rows, salvaged.lost), (9 * ROWS, Vec::new()));
}

#[test]
fn excluded_buckets_are_omitted() {
    let whole: SharedBytes = Arc::new(of_three());
    let mut out = Vec::new();
    let salvaged = salvage(&whole, &mut out, |bucket, _| bucket != BUCKET).unwrap();
    assert_eq!(salvaged.rows, 6 * ROWS);
    let parts: Vec<u32> = opened(out).unwrap().parts().map(|part| part.bucket).collect();
    assert_eq!(parts, [BUCKETS[0], BUCKETS[2]]);
}

/// Every single bit: damage to footer, table, trailer, magic or heads loses nothing; damage to a block loses at most
/// its rows and is reported.
#[test]
fn a_flipped_bit_loses_at_most_its_block() {
    let whole = of_three();
    let blocks = blocks(&whole);
    for byte in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[byte] ^= 1 << bit;
            let (salvaged, out) = salvaged(&damaged);
            let at = format!("byte {byte}, bit {bit}: {:?}", salvaged.lost);
            match blocks.iter().find(|(_, place)| place.contains(&byte)) {
                Some((block, place)) if !salvaged.lost.is_empty() => {
                    let lost = Lost {
                        offset: place.start as u64,
                        bytes: place.len() as u64,
                        block: Some(*block),
                    };
                    assert_eq!(salvaged.lost, [lost], "{at}");
                    assert_eq!(salvaged.rows, 8 * ROWS, "{at}");
                }
                Some(_) => assert_eq!(salvaged.rows, 9 * ROWS, "{at}"),
                None => {
                    assert!(salvaged.lost.is_empty(), "{at}");
                    assert!(out == whole, "{at}");
                }
            }
            let file = opened(out).unwrap();
            assert_eq!(file.rows(), salvaged.rows, "{at}");
        }
    }
}

/// A truncated file keeps the blocks before the cut; the loss is always reported.
#[test]
fn a_truncated_file_keeps_the_blocks_before_the_cut() {
    let whole = of_three();
    let blocks = blocks(&whole);
    let footer = opened(whole.clone()).unwrap().table.footer();
    for len in 0..whole.len() {
        let (salvaged, out) = salvaged(&whole[..len]);
        let kept = blocks.iter().filter(|(_, place)| place.end <= len).count();
        assert_eq!(salvaged.rows, kept as u64 * ROWS, "cut at {len}");
        // After the first entry, the presence of all blocks is known.
        let first_entry_ends = footer.start + 80;
        assert!(!salvaged.lost.is_empty() || len > footer.start, "cut at {len}");
        assert!(salvaged.lost.is_empty() || len < first_entry_ends, "cut at {len}");
        if kept > 0 {
            assert_eq!(opened(out).unwrap().rows(), salvaged.rows);
        }
    }
}

/// Two damages: a block, and the footer, which would locate the next block.
#[test]
fn blocks_after_a_damaged_one_are_found_without_a_footer() {
    let whole = of_three();
    let blocks = blocks(&whole);
    for (number, (block, place)) in blocks.iter().enumerate() {
        // The directory, so that its length is unreliable; and the length in the head.
        for byte in [place.start, place.start + 10, place.start - 4] {
            let mut damaged = whole.clone();
            damaged[byte] ^= 4;
            let last = damaged.len() - 1;
            damaged[last] ^= 1;
            let (salvaged, _) = salvaged(&damaged);
            let at = format!("block {number}, byte {byte}: {:?}", salvaged.lost);
            if byte < place.start {
                assert_eq!((salvaged.rows, salvaged.lost.len()), (9 * ROWS, 0), "{at}");
                continue;
            }
            assert_eq!((salvaged.rows, salvaged.lost.len()), (8 * ROWS, 1), "{at}");
            let named = salvaged.lost[0].block.expect(&at);
            assert_eq!((named.bucket, named.source), (block.bucket, block.source), "{at}");
        }
    }
}
