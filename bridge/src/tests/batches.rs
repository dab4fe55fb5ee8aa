//! Batches.

use crate::batch::{Batch, Bounds, Entry};

const BOUNDS: Bounds = Bounds {
    messages: 3,
    bytes: 10,
};

fn entry(line: Option<&str>, ticket: u32) -> Entry<u32> {
    Entry {
        line: line.map(str::to_owned),
        ticket,
    }
}

fn batch(lines: &[Option<&str>]) -> Batch<u32> {
    let mut batch = Batch::new();
    for (number, line) in (0..).zip(lines) {
        batch.push(entry(*line, number));
    }
    batch
}

#[test]
fn messages_and_bytes_are_bounded_but_an_empty_batch_takes_any_line() {
    let long = entry(Some("a line of more than ten bytes"), 0);
    assert!(batch(&[]).has_room_for(&long, BOUNDS));
    assert!(!batch(&[None]).has_room_for(&long, BOUNDS));
    // Nine bytes with their line breaks.
    let nine = batch(&[Some("1234567"), Some("")]);
    assert!(nine.has_room_for(&entry(Some(""), 0), BOUNDS));
    assert!(!nine.has_room_for(&entry(Some("1"), 0), BOUNDS));
    assert!(!nine.is_full(BOUNDS));
    assert!(batch(&[Some("123456789")]).is_full(BOUNDS));
    let three = batch(&[None, None, None]);
    assert!(three.is_full(BOUNDS));
    assert!(!three.has_room_for(&entry(None, 0), BOUNDS));
}

#[test]
fn the_body_has_the_lines_in_order_and_tickets_come_back_in_order_of_arrival() {
    let batch = batch(&[Some("a"), None, Some("b"), None]);
    assert_eq!(batch.body(), "a\nb\n");
    assert_eq!((batch.len(), batch.points()), (4, 2));
    assert_eq!(batch.into_tickets().collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(self::batch(&[None]).body(), "");
}

#[test]
fn a_refused_line_is_found_by_its_number_though_texts_have_line_breaks() {
    let batch = batch(&[Some("a"), Some("b=\"1\n2\n3\""), None, Some("c")]);
    assert_eq!(batch.point_at(1), Some("a"));
    assert_eq!(batch.point_at(2), Some("b=\"1\n2\n3\""));
    assert_eq!(batch.point_at(5), Some("c"));
    for other in [0, 3, 4, 6] {
        assert_eq!(batch.point_at(other), None, "{other}");
    }
}

#[test]
fn a_batch_splits_until_single_lines_are_left() {
    let mut rest = batch(&[None, Some("a"), Some("b"), None, Some("c"), None]);
    let half = rest.split().unwrap();
    assert_eq!(half.body(), "a\n");
    assert_eq!(half.into_tickets().collect::<Vec<_>>(), [0, 1]);
    let half = rest.split().unwrap();
    assert_eq!(half.body(), "b\n");
    assert_eq!(half.into_tickets().collect::<Vec<_>>(), [2]);
    assert!(rest.split().is_none());
    assert_eq!(rest.body(), "c\n");
    assert_eq!(rest.into_tickets().collect::<Vec<_>>(), [3, 4, 5]);
}
