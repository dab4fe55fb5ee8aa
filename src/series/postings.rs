//! Postings: the series that have a name or value, as the entries of the ledger keep them.

use roaring::RoaringBitmap;

use super::labels::take_text;

/// Series that have one name or value.
pub(super) struct Posting<'p> {
    pub(super) name: &'p str,
    pub(super) value: &'p str,
    pub(super) series: PostedSeries,
}

/// The ordinals of a posting. A value that tells series apart, such as the name of a host, mostly has one series, of which
/// no bitmap is made.
pub(super) enum PostedSeries {
    One(u32),
    Any(RoaringBitmap),
}

impl PostedSeries {
    /// Takes them from the beginning of `rest`.
    fn take(rest: &mut &[u8]) -> Option<Self> {
        if let Some((ordinal, behind)) = split_one(rest) {
            *rest = behind;
            return Some(PostedSeries::One(ordinal));
        }
        RoaringBitmap::deserialize_from(rest).ok().map(PostedSeries::Any)
    }

    pub(super) fn into_bitmap(self) -> RoaringBitmap {
        match self {
            PostedSeries::One(ordinal) => RoaringBitmap::from_iter([ordinal]),
            PostedSeries::Any(series) => series,
        }
    }

    /// Adds them to `found`.
    pub(super) fn add_to(self, found: &mut RoaringBitmap) {
        match self {
            PostedSeries::One(ordinal) => _ = found.insert(ordinal),
            PostedSeries::Any(series) => *found |= series,
        }
    }

    /// Their number among these.
    pub(super) fn count_among(&self, among: &RoaringBitmap) -> u64 {
        match self {
            PostedSeries::One(ordinal) => u64::from(among.contains(*ordinal)),
            PostedSeries::Any(series) => series.intersection_len(among),
        }
    }

    /// Whether one of them is among these.
    pub(super) fn any_among(&self, among: &RoaringBitmap) -> bool {
        match self {
            PostedSeries::One(ordinal) => among.contains(*ordinal),
            PostedSeries::Any(series) => !series.is_disjoint(among),
        }
    }

    /// Adds those that are among these to `found`.
    pub(super) fn add_among(&self, among: &RoaringBitmap, found: &mut RoaringBitmap) {
        match self {
            PostedSeries::One(ordinal) if among.contains(*ordinal) => _ = found.insert(*ordinal),
            PostedSeries::One(_) => {}
            PostedSeries::Any(series) => *found |= series & among,
        }
    }

    /// Passes those that are among these on, in order.
    pub(super) fn try_for_each_among<E>(
        &self,
        among: &RoaringBitmap,
        mut pass: impl FnMut(u32) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            PostedSeries::One(ordinal) if among.contains(*ordinal) => pass(*ordinal),
            PostedSeries::One(_) => Ok(()),
            PostedSeries::Any(series) => (series & among).into_iter().try_for_each(pass),
        }
    }

    /// The least and the greatest.
    pub(super) fn ends(&self) -> (u32, u32) {
        match self {
            PostedSeries::One(ordinal) => (*ordinal, *ordinal),
            PostedSeries::Any(series) => (series.min().unwrap_or_default(), series.max().unwrap_or_default()),
        }
    }
}

/// The ordinal of a serialized bitmap that has no other, and what follows the bitmap. Source: the specification of the
/// Roaring format: a cookie, one container, its upper 16 bits, its cardinality minus one, its offset, and one value.
fn split_one(bytes: &[u8]) -> Option<(u32, &[u8])> {
    match bytes {
        [
            0x3a,
            0x30,
            0,
            0,
            1,
            0,
            0,
            0,
            a,
            b,
            0,
            0,
            16,
            0,
            0,
            0,
            c,
            d,
            rest @ ..,
        ] => Some((u32::from_le_bytes([*c, *d, *a, *b]), rest)),
        _ => None,
    }
}

/// The postings of an entry: names and values of one hash share it. `None` stands for one that cannot be decoded, and is
/// the last.
pub(super) fn postings(bytes: &[u8]) -> impl Iterator<Item = Option<Posting<'_>>> {
    let mut rest = bytes;
    let mut next = move || {
        let (name, value) = (take_text(&mut rest)?, take_text(&mut rest)?);
        let series = PostedSeries::take(&mut rest)?;
        Some((Posting { name, value, series }, rest.is_empty()))
    };
    let mut is_done = bytes.is_empty();
    std::iter::from_fn(move || {
        if is_done {
            return None;
        }
        let posting = next();
        is_done = posting.as_ref().is_none_or(|(_, is_last)| *is_last);
        Some(posting.map(|(posting, _)| posting))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::seed;
    use super::*;

    #[test]
    fn a_bitmap_of_one_series_is_read_as_the_library_reads_it() {
        let mut random = fastrand::Rng::with_seed(seed());
        let mut ones = 0;
        for round in 0..2_000 {
            let around = [0, 1 << 16, random.u32(..), u32::MAX - 9][round % 4];
            let mut series: RoaringBitmap = (0..random.usize(0..4))
                .map(|_| around.wrapping_add(random.u32(0..9)))
                .collect();
            series.optimize();
            let mut bytes = Vec::new();
            series.serialize_into(&mut bytes).unwrap();
            bytes.extend([1, 2, 3]);
            let mut rest = &bytes[..];
            let read = PostedSeries::take(&mut rest).unwrap();
            assert_eq!(rest, [1, 2, 3], "{series:?}");
            assert_eq!(
                matches!(read, PostedSeries::One(_)),
                series.len() == 1,
                "{series:?}"
            );
            ones += usize::from(series.len() == 1);
            let among: RoaringBitmap = (0..9).map(|offset| around.wrapping_add(offset * 2)).collect();
            let both = &series & &among;
            assert_eq!(read.count_among(&among), both.len());
            assert_eq!(read.any_among(&among), !both.is_empty());
            let mut found = RoaringBitmap::from_iter([7]);
            read.add_among(&among, &mut found);
            assert_eq!(found, &both | RoaringBitmap::from_iter([7]));
            let mut passed = Vec::new();
            let _ = read.try_for_each_among(&among, |ordinal| {
                passed.push(ordinal);
                Ok::<_, ()>(())
            });
            assert_eq!(passed, both.iter().collect::<Vec<_>>());
            let ends = [series.min(), series.max()].map(Option::unwrap_or_default);
            assert_eq!(read.ends(), (ends[0], ends[1]));
            let mut added = RoaringBitmap::from_iter([7]);
            PostedSeries::take(&mut &bytes[..]).unwrap().add_to(&mut added);
            assert_eq!(added, &series | RoaringBitmap::from_iter([7]));
            assert_eq!(read.into_bitmap(), series);
        }
        assert!(ones > 100, "{ones}");
    }
}
