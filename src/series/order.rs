//! Puts the values of a dimension in the order of their bytes.

use std::mem::take;

/// Values with their numbers of series, in order, each once: numbers of the same value are added.
pub(super) fn in_order(mut counted: Vec<(Box<str>, u64)>) -> Vec<(Box<str>, u64)> {
    let mut ordered: Vec<(Box<str>, u64)> = Vec::with_capacity(counted.len());
    for place in places_in_order(&counted, |(value, _)| value) {
        let (value, count) = take(&mut counted[place]);
        match ordered.last_mut() {
            Some((last, total)) if *last == value => *total += count,
            _ => ordered.push((value, count)),
        }
    }
    ordered
}

/// The places of texts, in the order of their bytes. Most texts are told apart by the eight bytes behind those that all of
/// them begin with, without a look at the text.
pub fn places_in_order<T>(values: &[T], text: impl Fn(&T) -> &str) -> Vec<usize> {
    let shared = shared_bytes(values.iter().map(&text));
    let key = |value: &T| {
        let mut bytes = [0; 8];
        let rest = &text(value).as_bytes()[shared..];
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        u64::from_be_bytes(bytes)
    };
    let mut places: Vec<(u64, usize)> = values.iter().map(key).zip(0..).collect();
    places.sort_unstable_by(|(one, at), (other, other_at)| {
        let texts = || text(&values[*at]).cmp(text(&values[*other_at]));
        one.cmp(other).then_with(texts)
    });
    places.into_iter().map(|(_, place)| place).collect()
}

/// Number of bytes with which all texts begin.
fn shared_bytes<'t>(mut texts: impl Iterator<Item = &'t str>) -> usize {
    let Some(first) = texts.next() else {
        return 0;
    };
    texts.fold(first.len(), |shared, text| {
        let pairs = first.as_bytes()[..shared].iter().zip(text.as_bytes());
        pairs.take_while(|(one, other)| one == other).count()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::seed;
    use super::*;

    /// Texts in an arbitrary order, with prefixes of all lengths, one of another, and each several times.
    #[test]
    fn values_are_in_the_order_of_their_bytes() {
        let mut random = fastrand::Rng::with_seed(seed());
        let ends = [
            "",
            "\0",
            "a",
            "a\0",
            "a\0b",
            "ab",
            "b",
            "ä",
            "\u{10ffff}",
            "1234567",
            "12345678",
            "123456789",
        ];
        for prefix in ["", "a", "host_0", "fifteen-letters", "sixteen-letters-", "ä"] {
            let mut counted = Vec::new();
            let mut expected: BTreeMap<Box<str>, u64> = BTreeMap::new();
            for _ in 0..100 {
                let (start, end) = (random.choice(ends).unwrap(), random.choice(ends).unwrap());
                let (value, count): (Box<str>, u64) =
                    (format!("{prefix}{start}{end}").into(), random.u64(1..9));
                *expected.entry(value.clone()).or_default() += count;
                counted.push((value, count));
            }
            assert_eq!(
                in_order(counted),
                expected.into_iter().collect::<Vec<_>>(),
                "{prefix:?}"
            );
        }
        assert_eq!(in_order(Vec::new()), []);
    }
}
