//! The order of texts in which numbers inside of them count as numbers: `a2` before `a10`.

use std::cmp::Ordering;

/// Compares piece by piece, where a piece is a run of digits or a run of anything else.
///
/// Of runs of digits that are the same number, the one with fewer zeros in front comes first.
pub(crate) fn compare(left: &str, right: &str) -> Ordering {
    let (mut lefts, mut rights) = (pieces(left), pieces(right));
    loop {
        let order = match (lefts.next(), rights.next()) {
            (None, None) => return left.cmp(right),
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(left), Some(right)) => compare_pieces(left, right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn compare_pieces(left: &str, right: &str) -> Ordering {
    let is_number = |piece: &str| piece.starts_with(|char: char| char.is_ascii_digit());
    if !(is_number(left) && is_number(right)) {
        return left.cmp(right);
    }
    let (left_digits, right_digits) = (left.trim_start_matches('0'), right.trim_start_matches('0'));
    let by_value = left_digits
        .len()
        .cmp(&right_digits.len())
        .then(left_digits.cmp(right_digits));
    by_value.then(left.len().cmp(&right.len()))
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let digits = rest.chars().next()?.is_ascii_digit();
        let end = rest
            .find(|char: char| char.is_ascii_digit() != digits)
            .unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_inside_of_texts_are_compared_as_numbers() {
        let mut texts = ["a10", "b1", "a2", "a", "10", "9", "a2b", ""];
        texts.sort_by(|left, right| compare(left, right));
        assert_eq!(texts, ["", "9", "10", "a", "a2", "a2b", "a10", "b1"]);
    }
}
