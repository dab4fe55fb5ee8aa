//! A set of series in the chunks of the ledger's entries. A posting is in one chunk, and is compared with that chunk of
//! the set alone.

use roaring::RoaringBitmap;

use super::entries::{CHUNK_BITS, chunk_of};

pub(super) struct Chunks<'a> {
    all: &'a RoaringBitmap,
    first: u16,
    /// From the first one on; made when they are first needed.
    chunks: Vec<Option<RoaringBitmap>>,
}

impl<'a> Chunks<'a> {
    pub(super) fn of(all: &'a RoaringBitmap) -> Self {
        let [first, last] = [all.min(), all.max()].map(|end| chunk_of(end.unwrap_or_default()));
        Chunks {
            all,
            first,
            chunks: vec![None; usize::from(last - first) + 1],
        }
    }

    /// A part of the set with the same intersection with a posting that has these ends.
    pub(super) fn around(&mut self, (least, greatest): (u32, u32)) -> &RoaringBitmap {
        let [first, last] = [least, greatest].map(chunk_of);
        let index = usize::from(first.wrapping_sub(self.first));
        match self.chunks.get_mut(index).filter(|_| first == last) {
            Some(chunk) => chunk.get_or_insert_with(|| {
                let start = u32::from(first) << CHUNK_BITS;
                let mut ordinals = RoaringBitmap::new();
                ordinals.insert_range(start..=start | ((1 << CHUNK_BITS) - 1));
                ordinals & self.all
            }),
            None => self.all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_posting_shares_with_the_set_is_in_the_part_around_it() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let base = [0, 1 << 30, u32::MAX - (5 << CHUNK_BITS)][rng.usize(0..3)];
            let mut set = |count: usize, chunks: u32| -> RoaringBitmap {
                let start = base + (rng.u32(0..3) << CHUNK_BITS);
                (0..rng.usize(0..count))
                    .map(|_| start + rng.u32(0..chunks << CHUNK_BITS))
                    .collect()
            };
            let all = set(1_000, 2);
            let mut chunks = Chunks::of(&all);
            for _ in 0..8 {
                for posting in [set(500, 1), set(500, 2), &all - set(100, 1)] {
                    let [least, greatest] = [posting.min(), posting.max()].map(Option::unwrap_or_default);
                    let around = chunks.around((least, greatest));
                    assert_eq!(&posting & around, &posting & &all);
                    let ends = |set: &RoaringBitmap| [set.min(), set.max()].map(|end| end.map(chunk_of));
                    let ([first, last], [least, greatest]) = (ends(&posting), ends(&all));
                    if first == last && least <= first && last <= greatest && !around.is_empty() {
                        assert_eq!(ends(around), [first, last], "one chunk");
                    }
                }
            }
        }
    }
}
