//! Puts the values of a dimension in the order of their bytes.

use std::mem::take;

/// Values with their numbers of series, in order, each once: numbers of the same value are added. Most values are told
/// apart by the eight bytes behind those that all of them begin with, without a look at the text.
pub(super) fn in_order(mut counted: Vec<(Box<str>, u64)>) -> Vec<(Box<str>, u64)> {
    let shared = shared_bytes(&counted);
    let key = |value: &str| {
        let mut bytes = [0; 8];
        let rest = &value.as_bytes()[shared..];
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        u64::from_be_bytes(bytes)
    };
    let keys = counted.iter().map(|(value, _)| key(value));
    let mut places: Vec<(u64, usize)> = keys.zip(0..).collect();
    places.sort_unstable_by(|(one, at), (other, other_at)| {
        let texts = || counted[*at].0.cmp(&counted[*other_at].0);
        one.cmp(other).then_with(texts)
    });
    let mut ordered: Vec<(Box<str>, u64)> = Vec::with_capacity(counted.len());
    for (_, place) in places {
        let (value, count) = take(&mut counted[place]);
        match ordered.last_mut() {
            Some((last, total)) if *last == value => *total += count,
            _ => ordered.push((value, count)),
        }
    }
    ordered
}

/// Number of bytes with which all values begin.
fn shared_bytes(counted: &[(Box<str>, u64)]) -> usize {
    let Some(((first, _), others)) = counted.split_first() else {
        return 0;
    };
    others.iter().fold(first.len(), |shared, (value, _)| {
        let pairs = first.as_bytes()[..shared].iter().zip(value.as_bytes());
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
