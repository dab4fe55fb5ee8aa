//! From messages to lines.

use std::rc::Rc;

use crate::counts::{Counted, Counts};
use crate::reader::Reader;
use crate::topic::Pattern;

fn reader(topics: &[(&str, Option<&str>)]) -> (Reader, Rc<Counts>) {
    let counts = Rc::new(Counts::default());
    let patterns = topics
        .iter()
        .map(|(topic, source)| Pattern::parse(topic, *source).unwrap());
    (Reader::new(patterns.collect(), Rc::clone(&counts)), counts)
}

#[test]
fn the_first_pattern_that_takes_the_topic_reads_the_message() {
    let (reader, _) = reader(&[("plant/north/{source}", None), ("plant/{site}/+", Some("other"))]);
    assert_eq!(reader.filters(), ["plant/north/+", "plant/+/+"]);
    assert_eq!(
        reader.read("plant/north/a", b"1", false, 7).unwrap(),
        "a value=1.0 7"
    );
    assert_eq!(
        reader.read("plant/south/a", b"1", false, 8).unwrap(),
        "other,site=south value=1.0 8"
    );
}

#[test]
fn a_message_with_a_timestamp_keeps_it_and_others_get_distinct_times_of_arrival() {
    let (reader, _) = reader(&[("{source}", None)]);
    let own = br#"{"timestamp":"1970-01-01T00:00:00.000000003Z","a":1}"#;
    assert_eq!(reader.read("s", own, false, 50).unwrap(), "s a=1.0 3");
    assert_eq!(reader.read("s", own, true, 60).unwrap(), "s a=1.0 3");
    let times: Vec<String> = [100, 100, 40, 101, 200]
        .into_iter()
        .filter_map(|now_ns| reader.read("s", b"1", false, now_ns))
        .collect();
    let stamped: Vec<&str> = times.iter().filter_map(|line| line.rsplit(' ').next()).collect();
    // A clock that stands still or goes back does not make two messages one.
    assert_eq!(stamped, ["100", "101", "102", "103", "200"]);
}

#[test]
fn what_cannot_be_read_is_counted() {
    let (reader, counts) = reader(&[("plant/{source}", None)]);
    assert!(reader.read("plant/a", b"1", false, 1).is_some());
    for (topic, payload) in [
        ("other/a", "1"),
        ("plant/a", "on"),
        ("plant/", "1"),
        ("plant/a", "{}"),
    ] {
        assert_eq!(
            reader.read(topic, payload.as_bytes(), false, 1),
            None,
            "{topic} {payload}"
        );
    }
    // Retained, and of unknown age.
    assert_eq!(reader.read("plant/a", b"1", true, 1), None);
    let expected = Counted {
        received: 6,
        unreadable: 4,
        retained: 1,
        ..Counted::default()
    };
    assert_eq!(counts.now(), expected);
}
