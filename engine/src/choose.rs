//! Chooses the segments to merge.

use std::collections::BTreeMap;

/// Number of segments of similar size that are merged: usually, each byte is rewritten once per factor of four in size. Across
/// an edge of a class, the merged segment is at least 2.5 times as large as any of them.
pub(crate) const MERGE_SEGMENTS_MIN: usize = 4;
/// A segment is rewritten if less than one in this many of its rows is live: each byte is rewritten at most once per
/// byte reclaimed.
const LIVE_SHARE_MIN: u64 = 2;
/// Larger segments are not merged, unless they are mostly dead.
const MERGE_BYTES_MAX: u64 = 4 << 30;
/// Limit of a merge's total footer size: offsets in a footer have 32 bits.
const MERGE_FOOTER_BYTES_MAX: u64 = 2 << 30;
/// Smaller segments form one class: for them, the cost of a file exceeds that of its content.
const SMALL_BYTES: u64 = 64 << 10;
/// Four segments of different classes are merged if the largest is less than this many times as large as the smallest: a class
/// has edges, and neighbouring checkpoints may be on both sides of one for long.
const SIMILAR_FACTOR: u64 = 2;

/// A segment file and the fraction of it that is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentUse {
    /// Id of the segment.
    pub id: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Size of its footer in bytes.
    pub footer_bytes: u64,
    /// Number of rows in all its blocks.
    pub rows: u64,
    /// Number of rows in blocks that a bucket still uses.
    pub live_rows: u64,
}

/// Chooses segments to merge into one, if any. First, a single segment that is mostly dead, whatever its size: deleted
/// data must be removed, and its disk space returned. Otherwise, the smallest size class (powers of four) that has
/// enough segments, or else the four smallest neighbours in size within a factor of two. A segment without live rows is
/// never chosen: its file can be deleted without a merge.
pub fn choose_merge(segments: &[SegmentUse]) -> Option<Vec<u64>> {
    let in_use = || segments.iter().filter(|segment| segment.live_rows > 0);
    let mostly_dead = |segment: &&SegmentUse| segment.live_rows.saturating_mul(LIVE_SHARE_MIN) < segment.rows;
    if let Some(dead) = in_use().find(mostly_dead) {
        return Some(vec![dead.id]);
    }
    let mergeable = || in_use().filter(|segment| segment.bytes < MERGE_BYTES_MAX);
    let mut classes: BTreeMap<u32, Vec<&SegmentUse>> = BTreeMap::new();
    for segment in mergeable() {
        let class = segment.bytes.max(SMALL_BYTES).ilog2() / 2;
        classes.entry(class).or_default().push(segment);
    }
    let mut of_a_class = classes.into_values();
    of_a_class
        .find_map(enough)
        .or_else(|| of_similar_size(mergeable().collect()))
}

/// The smallest neighbours in size within a factor of two.
fn of_similar_size(mut segments: Vec<&SegmentUse>) -> Option<Vec<u64>> {
    segments.sort_by_key(|segment| segment.bytes);
    let is_similar = |window: &&[&SegmentUse]| {
        let (least, greatest) = (window[0].bytes, window[MERGE_SEGMENTS_MIN - 1].bytes);
        greatest < SIMILAR_FACTOR * least
    };
    let mut similar = segments.windows(MERGE_SEGMENTS_MIN).filter(is_similar);
    similar.find_map(|window| enough(window.to_vec()))
}

/// The first of these segments whose footers fit into one merged footer, if they are enough for a merge.
fn enough(segments: Vec<&SegmentUse>) -> Option<Vec<u64>> {
    let mut footer_bytes = 0u64;
    let fits = segments.into_iter().take_while(|segment| {
        footer_bytes = footer_bytes.saturating_add(segment.footer_bytes);
        footer_bytes <= MERGE_FOOTER_BYTES_MAX
    });
    let fits: Vec<u64> = fits.map(|segment| segment.id).collect();
    (fits.len() >= MERGE_SEGMENTS_MIN).then_some(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(id: u64, bytes: u64, live_rows: u64) -> SegmentUse {
        SegmentUse {
            id,
            bytes,
            footer_bytes: bytes / 100,
            rows: 100,
            live_rows,
        }
    }

    /// The segments of a server, which merges them as it makes checkpoints.
    #[derive(Default)]
    struct Server {
        segments: Vec<SegmentUse>,
        /// Bytes of checkpoints.
        total: u64,
        /// Bytes written, merges included.
        written: u64,
        next_id: u64,
    }

    impl Server {
        fn write(&mut self, bytes: u64) {
            self.segments.push(segment(self.next_id, bytes, 100));
            (self.next_id, self.written) = (self.next_id + 1, self.written + bytes);
        }

        fn checkpoint(&mut self, bytes: u64) {
            self.total += bytes;
            self.write(bytes);
            while let Some(chosen) = choose_merge(&self.segments) {
                let is_chosen = |segment: &mut SegmentUse| chosen.contains(&segment.id);
                let merged = self.segments.extract_if(.., is_chosen);
                let bytes = merged.map(|segment| segment.bytes).sum();
                self.write(bytes);
            }
        }
    }

    #[test]
    fn the_number_of_files_is_logarithmic_in_the_data() {
        let mut server = Server::default();
        for checkpoint in 1..=4_000u64 {
            server.checkpoint(1 << 20);
            let Server {
                segments,
                total,
                written,
                ..
            } = &server;
            assert_eq!(segments.iter().map(|it| it.bytes).sum::<u64>(), *total);
            let classes = u64::from(checkpoint.ilog2() / 2 + 1);
            let count = segments.len() as u64;
            assert!(count <= 3 * classes, "{checkpoint}: {count}");
            assert!(*written <= total * (classes + 1), "{checkpoint}: {written}");
        }
    }

    /// Sizes vary as those of checkpoints do.
    #[test]
    fn what_is_rewritten_is_logarithmic_in_the_data() {
        for seed in 0..20 {
            println!("seed {seed}");
            let mut random = fastrand::Rng::with_seed(seed);
            let mut server = Server::default();
            for _ in 0..2_000 {
                server.checkpoint(random.u64(800_000..1_600_000));
                assert!(server.segments.len() <= 16, "{}", server.segments.len());
            }
            let factor = server.written as f64 / server.total as f64;
            assert!(factor <= 6.5, "{factor}");
        }
    }

    #[test]
    fn similar_segments_on_both_sides_of_an_edge_are_merged() {
        let edge = 1 << 20;
        let sizes = [edge - 1, edge, edge + 500_000, 2 * edge - 3];
        let mut segments: Vec<_> = (0..)
            .zip(sizes)
            .map(|(id, bytes)| segment(id, bytes, 100))
            .collect();
        assert_eq!(choose_merge(&segments), Some(vec![0, 1, 2, 3]));
        segments[3].bytes += 1;
        assert_eq!(choose_merge(&segments), None);
    }

    #[test]
    fn mostly_dead_segments_are_merged_and_large_live_ones_are_not() {
        let large = 8 << 30;
        let mut segments: Vec<SegmentUse> = (0..5).map(|id| segment(id, large, 50)).collect();
        assert_eq!(choose_merge(&segments), None);
        segments[3].live_rows = 49;
        assert_eq!(choose_merge(&segments), Some(vec![3]));
    }

    #[test]
    fn segments_whose_footer_would_be_too_large_are_not_merged() {
        let mut segments: Vec<SegmentUse> = (0..4).map(|id| segment(id, 3 << 30, 100)).collect();
        assert!(choose_merge(&segments).is_some());
        segments.iter_mut().for_each(|it| it.footer_bytes = 1 << 30);
        assert_eq!(choose_merge(&segments), None);
        segments.iter_mut().for_each(|it| it.footer_bytes = 400 << 20);
        segments.extend([segment(4, 3 << 30, 100), segment(5, 3 << 30, 100)]);
        segments[4].footer_bytes = 400 << 20;
        segments[5].footer_bytes = 400 << 20;
        assert_eq!(
            choose_merge(&segments),
            Some(vec![0, 1, 2, 3, 4]),
            "as many as fit"
        );
    }

    /// Regression: it would be chosen again and again, because no bucket has anything to write of it.
    #[test]
    fn unused_segments_are_not_merged() {
        let mut segments: Vec<SegmentUse> = (0..4).map(|id| segment(id, 1, 100)).collect();
        segments[2].live_rows = 0;
        assert_eq!(choose_merge(&segments), None);
        segments[3].live_rows = u64::MAX;
        assert_eq!(choose_merge(&segments), None, "nor does a count overflow");
    }
}
