//! The dead parts of a segment file: blocks whose points were deleted or written anew, and that are not read any more.

use std::ops::Range;

/// Ranges of bytes of a segment file, ascending and apart. A block is dead if it begins within one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadRanges(Vec<Range<u64>>);

impl DeadRanges {
    /// Adds a range. Ranges that overlap or touch become one.
    pub fn add(&mut self, range: Range<u64>) {
        let from = self.0.partition_point(|it| it.end < range.start);
        let to = self.0.partition_point(|it| it.start <= range.end);
        let joined = self.0[from..to].iter().fold(range, |joined, it| {
            joined.start.min(it.start)..joined.end.max(it.end)
        });
        self.0.splice(from..to, [joined]);
    }

    /// Whether the block that begins at this offset is dead.
    pub fn contains(&self, offset: u64) -> bool {
        let after = self.0.partition_point(|it| it.end <= offset);
        self.0.get(after).is_some_and(|it| it.start <= offset)
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.0.iter()
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is dead.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Range<u64>> for DeadRanges {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut dead = Self::default();
        ranges.into_iter().for_each(|range| dead.add(range));
        dead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one_in_any_order() {
        let ranges = [10..20u64, 20..30, 40..50, 5..10, 33..40, 70..80];
        let expected: DeadRanges = [5..30, 33..50, 70..80].into_iter().collect();
        for rotated in 0..ranges.len() {
            let mut order = ranges.to_vec();
            order.rotate_left(rotated);
            let dead: DeadRanges = order.iter().cloned().collect();
            assert_eq!(dead, expected, "{order:?}");
            order.reverse();
            assert_eq!(order.into_iter().collect::<DeadRanges>(), expected);
        }
        let covered: DeadRanges = ranges.into_iter().chain(std::iter::once(0..100u64)).collect();
        assert_eq!(covered.iter().collect::<Vec<_>>(), [&(0..100)]);
    }

    #[test]
    fn an_offset_is_dead_from_the_start_of_a_range_to_its_end() {
        let dead: DeadRanges = [10..20u64, 40..50].into_iter().collect();
        let found: Vec<u64> = (0..60).filter(|offset| dead.contains(*offset)).collect();
        let expected: Vec<u64> = (10..20).chain(40..50).collect();
        assert_eq!(found, expected);
    }
}
