//! Finds names that occur twice, in time that does not grow with the square of their number.

/// Up to so many names are compared with each other; more are sorted.
const COMPARED_MAX: usize = 16;

/// A name that occurs twice, if one does. `names` may be sorted.
pub(crate) fn twice<'a>(names: &mut [&'a [u8]]) -> Option<&'a [u8]> {
    // Most agents send them sorted.
    if names.windows(2).all(|pair| pair[0] < pair[1]) {
        return None;
    }
    if names.len() > COMPARED_MAX {
        names.sort_unstable();
        return names
            .windows(2)
            .find(|pair| pair[0] == pair[1])
            .map(|pair| pair[0]);
    }
    (1..names.len()).find_map(|at| {
        let (before, name) = (&names[..at], names[at]);
        before.contains(&name).then_some(name)
    })
}

/// Whether `name` is one of the names that [`twice`] was called with.
pub(crate) fn contains(names: &[&[u8]], name: &[u8]) -> bool {
    match names.len() > COMPARED_MAX {
        true => names.binary_search(&name).is_ok(),
        false => names.contains(&name),
    }
}
