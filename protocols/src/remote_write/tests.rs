//! Behaviour of the parser of remote write, sentence by sentence of the contract.

use prost::Message;

use super::{Version, decompress, entry_names, parse};
use crate::recorder::Recorder;
use crate::{METADATA_BYTES_MAX, Malformed, Unreadable};

#[path = "../../tests/it/prometheus.rs"]
mod prometheus;
use prometheus::{Count, Histogram, Sample, as_v2, v1, v2};

const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

fn read(message: &[u8], version: Version) -> Result<Recorder, Unreadable> {
    let mut recorder = Recorder::default();
    parse(message, version, &mut recorder).map(|()| recorder)
}

fn series(names: &[(&str, &str)], samples: &[(f64, i64)]) -> v1::TimeSeries {
    v1::TimeSeries {
        labels: names
            .iter()
            .map(|(name, value)| v1::Label {
                name: (*name).to_owned(),
                value: (*value).to_owned(),
            })
            .collect(),
        samples: samples
            .iter()
            .map(|&(value, timestamp)| Sample { value, timestamp })
            .collect(),
        ..v1::TimeSeries::default()
    }
}

fn request(timeseries: Vec<v1::TimeSeries>) -> v1::WriteRequest {
    v1::WriteRequest {
        timeseries,
        ..v1::WriteRequest::default()
    }
}

/// Both messages of these series are read into `events`, also by a sink that remembers the series.
#[track_caller]
fn check(timeseries: Vec<v1::TimeSeries>, events: &[&str]) {
    let request = request(timeseries);
    let message = request.encode_to_vec();
    let first = read(&message, Version::V1).unwrap();
    assert_eq!(first.events, events, "1.0");
    let mut remembering = Recorder::remembering();
    for _ in 0..2 {
        parse(&message, Version::V1, &mut remembering).unwrap();
        assert_eq!(std::mem::take(&mut remembering.events), events, "remembered");
    }
    assert!(remembering.recalled >= first.announced, "each that was named");
    let second = read(&as_v2(&request).encode_to_vec(), Version::V2).unwrap();
    assert_eq!(second.events, events, "2.0");
}

#[test]
fn the_name_is_the_source_and_other_labels_are_metadata_in_their_order() {
    check(
        vec![
            series(
                &[("__name__", "up"), ("job", "x"), ("instance", "a:1")],
                &[(1.0, 2), (0.5, 3)],
            ),
            series(&[("B", "\"q\\\n"), ("__name__", "größe")], &[(-1e300, -4)]),
            series(&[("__name__", "bare")], &[(0.0, 0)]),
        ],
        &[
            r#"0 up{"job":"x","instance":"a:1"} 2000000 value=1"#,
            r#"0 up{"job":"x","instance":"a:1"} 3000000 value=0.5"#,
            &format!(r#"1 größe{{"B":"\"q\\\n"}} -4000000 value=-1{}"#, "0".repeat(300)),
            "2 bare 0 value=0",
        ],
    );
}

#[test]
fn stale_markers_end_series_and_other_nan_and_infinities_are_not_stored() {
    check(
        vec![
            series(&[("__name__", "up")], &[(1.0, 1), (STALE, 2)]),
            series(
                &[("__name__", "none")],
                &[(f64::NAN, 1), (f64::INFINITY, 2), (f64::NEG_INFINITY, 3)],
            ),
            series(&[("__name__", "some")], &[(f64::NAN, 1), (7.0, 2)]),
        ],
        &[
            "0 up 1000000 value=1",
            "0 stale up 2000000",
            "1 not stored",
            "1 not stored",
            "1 not stored",
            "2 not stored",
            "2 some 2000000 value=7",
        ],
    );
}

#[test]
fn a_series_without_a_sample_to_store_is_not_named() {
    let message = request(vec![
        series(&[("__name__", "none")], &[(f64::NAN, 1)]),
        series(&[("__name__", "empty")], &[]),
    ]);
    assert_eq!(read(&message.encode_to_vec(), Version::V1).unwrap().announced, 0);
}

#[test]
fn bad_series_are_refused_with_all_their_samples_and_the_rest_goes_on() {
    let timeseries = vec![
        series(&[("job", "x")], &[(1.0, 1), (2.0, 2)]),
        series(&[("__name__", ""), ("job", "x")], &[(1.0, 1)]),
        series(&[("__name__", "up"), ("job", "x"), ("job", "y")], &[(1.0, 1)]),
        series(
            &[("__name__", "up"), ("job", "x"), ("__name__", "up")],
            &[(1.0, 1)],
        ),
        series(&[("", "x"), ("__name__", "up")], &[(1.0, 1)]),
        series(&[], &[]),
        series(&[("__name__", "up")], &[(9.0, 9)]),
    ];
    check(
        timeseries.clone(),
        &[
            "0 refused: it has no metric name",
            "1 refused: it has no metric name",
            "2 refused: `job` occurs twice",
            "3 refused: `__name__` occurs twice",
            "4 refused: a tag, label, attribute or field has an empty name",
            "5 refused: it has no metric name",
            "6 up 9000000 value=9",
        ],
    );
    let request = request(timeseries);
    assert_eq!(read(&request.encode_to_vec(), Version::V1).unwrap().samples, 7);

    let expected = [
        r#"{__name__="up", job="x", job="y"}"#,
        r#"{="x", __name__="up"}"#,
        "{}",
        r#"{__name__="up"}"#,
    ];
    let names = |message: &[u8], version| entry_names(message, version, &[2, 4, 5, 6]).unwrap();
    assert_eq!(names(&request.encode_to_vec(), Version::V1), expected);
    assert_eq!(names(&as_v2(&request).encode_to_vec(), Version::V2), expected);
}

#[test]
fn labels_out_of_order_are_compared_however_many_there_are() {
    let names: Vec<_> = (0..40).rev().map(|number| format!("l{number:02}")).collect();
    let mut pairs: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    pairs.push(("__name__", "up"));
    let message = request(vec![series(&pairs, &[(1.0, 1)])]).encode_to_vec();
    assert!(read(&message, Version::V1).unwrap().events[0].starts_with(r#"0 up{"l39":"1","#));
    pairs.push(("l17", "2"));
    check(
        vec![series(&pairs, &[(1.0, 1)])],
        &["0 refused: `l17` occurs twice"],
    );
}

#[test]
fn empty_label_values_are_left_out() {
    check(
        vec![series(&[("__name__", "up"), ("a", ""), ("b", "1")], &[(1.0, 1)])],
        &[r#"0 up{"b":"1"} 1000000 value=1"#],
    );
}

#[test]
fn a_series_is_shown_by_its_labels_cut_and_escaped() {
    let long = "ä".repeat(2_000);
    let request = request(vec![
        series(&[("__name__", "up"), ("a", "\"\\\n\u{7}'ö")], &[]),
        series(&[("__name__", &long)], &[]),
    ]);
    let names = entry_names(&request.encode_to_vec(), Version::V1, &[0, 1]).unwrap();
    assert_eq!(names[0], r#"{__name__="up", a="\"\\\n\u{7}'ö"}"#);
    assert!(
        names[1].starts_with("{__name__=\"ää") && names[1].ends_with("ä…}"),
        "{}",
        names[1]
    );
    assert!(names[1].len() <= super::SHOWN_BYTES_MAX + "…}".len());
}

#[test]
fn timestamps_outside_of_1678_to_2261_are_refused_one_by_one() {
    check(
        vec![series(
            &[("__name__", "up")],
            &[
                (1.0, 9_214_646_400_000),
                (2.0, 9_214_646_399_999),
                (3.0, -9_214_560_000_001),
                (4.0, i64::MAX),
            ],
        )],
        &[
            "0 refused: the timestamp is outside of the years 1678 to 2261",
            "0 up 9214646399999000000 value=2",
            "0 refused: the timestamp is outside of the years 1678 to 2261",
            "0 refused: the timestamp is outside of the years 1678 to 2261",
        ],
    );
}

#[test]
fn native_histograms_have_count_and_sum_and_stale_ones_are_not_stored() {
    let histogram = |count, sum, timestamp| Histogram {
        count: Some(count),
        sum,
        schema: -3,
        positive_deltas: vec![1, -1, 300],
        timestamp,
    };
    let mut series = series(&[("__name__", "latency")], &[]);
    series.histograms = vec![
        histogram(Count::Integer(7), 1.5, 1),
        histogram(Count::Float(2.5), -1.0, 2),
        histogram(Count::Integer(7), STALE, 3),
        histogram(Count::Integer(3), f64::NAN, 4),
        histogram(Count::Float(f64::INFINITY), 3.0, 5),
        histogram(Count::Float(f64::NAN), f64::NAN, 6),
    ];
    check(
        vec![series],
        &[
            "0 histogram latency 1000000 count=7 sum=1.5",
            "0 histogram latency 2000000 count=2.5 sum=-1",
            "0 histogram not stored",
            "0 histogram latency 4000000 count=3",
            "0 histogram latency 5000000 sum=3",
            "0 histogram not stored",
        ],
    );
}

#[test]
fn families_of_1_0_have_help_type_and_unit() {
    let mut request = request(vec![series(&[("__name__", "up")], &[(1.0, 1)])]);
    request.metadata = vec![v1::MetricMetadata {
        kind: 1,
        metric_family_name: "http_requests".to_owned(),
        help: "How many.".to_owned(),
        unit: "requests".to_owned(),
    }];
    assert_eq!(
        read(&request.encode_to_vec(), Version::V1).unwrap().events,
        [
            "0 up 1000000 value=1",
            r#"family http_requests help="How many." unit="requests"["value"] counter"#,
        ]
    );
}

#[test]
fn families_of_2_0_belong_to_their_series_and_are_told_once() {
    let mut message = as_v2(&request(vec![
        series(&[("__name__", "up"), ("job", "a")], &[(1.0, 1)]),
        series(&[("__name__", "up"), ("job", "b")], &[(2.0, 2)]),
        series(&[("__name__", "down")], &[(3.0, 3)]),
        series(&[("job", "b")], &[(4.0, 4)]),
    ]));
    message.symbols.extend(["Help".to_owned(), "seconds".to_owned()]);
    let help_ref = message.symbols.len() as u32 - 2;
    for series in &mut message.timeseries {
        series.metadata = Some(v2::Metadata {
            kind: 2,
            help_ref,
            unit_ref: help_ref + 1,
        });
    }
    assert_eq!(
        read(&message.encode_to_vec(), Version::V2).unwrap().events,
        [
            r#"0 up{"job":"a"} 1000000 value=1"#,
            r#"family up help="Help" unit="seconds"["value"] gauge"#,
            r#"1 up{"job":"b"} 2000000 value=2"#,
            "2 down 3000000 value=3",
            r#"family down help="Help" unit="seconds"["value"] gauge"#,
            "3 refused: it has no metric name",
        ]
    );
}

#[test]
fn references_beyond_the_symbols_make_the_whole_unreadable() {
    let good = as_v2(&request(vec![series(&[("__name__", "up")], &[(1.0, 1)])]));
    let beyond = good.symbols.len() as u32;
    let read = |message: v2::Request| read(&message.encode_to_vec(), Version::V2).map(|_| ());
    let mut label = good.clone();
    label.timeseries[0].labels_refs.extend([1, beyond]);
    let mut help = good.clone();
    help.timeseries[0].metadata = Some(v2::Metadata {
        kind: 0,
        help_ref: beyond,
        unit_ref: 0,
    });
    // Also of a series that is refused.
    let mut refused = help.clone();
    refused.timeseries[0].labels_refs.clear();
    for message in [label, help, refused] {
        assert!(matches!(
            read(message),
            Err(Unreadable::Protobuf(Malformed::Symbol))
        ));
    }
    let mut odd = good;
    odd.timeseries[0].labels_refs.push(1);
    assert!(matches!(
        read(odd),
        Err(Unreadable::Protobuf(Malformed::OddLabels))
    ));
}

#[test]
fn symbols_may_follow_the_series_that_refer_to_them() {
    let message = as_v2(&request(vec![series(&[("__name__", "up")], &[(1.0, 1)])]));
    let symbols = v2::Request {
        symbols: message.symbols.clone(),
        timeseries: Vec::new(),
    };
    let series = v2::Request {
        symbols: Vec::new(),
        ..message
    };
    let body = [series.encode_to_vec(), symbols.encode_to_vec()].concat();
    assert_eq!(read(&body, Version::V2).unwrap().events, ["0 up 1000000 value=1"]);
}

#[test]
fn samples_may_stand_before_labels() {
    let names = series(&[("__name__", "up")], &[]).encode_to_vec();
    let samples = series(&[], &[(1.0, 1)]).encode_to_vec();
    let inner = [samples, names].concat();
    let body = [&[0x0a, inner.len() as u8][..], &inner].concat();
    assert_eq!(read(&body, Version::V1).unwrap().events, ["0 up 1000000 value=1"]);
}

#[test]
fn labels_behind_samples_are_no_part_of_what_is_remembered() {
    let name = series(&[("__name__", "up")], &[(1.0, 1)]).encode_to_vec();
    let mut remembering = Recorder::remembering();
    for job in ["a", "b"] {
        let job = series(&[("job", job)], &[]).encode_to_vec();
        let inner = [&name[..], &job].concat();
        let body = [&[0x0a, inner.len() as u8][..], &inner].concat();
        parse(&body, Version::V1, &mut remembering).unwrap();
    }
    assert_eq!(
        remembering.events,
        [
            r#"0 up{"job":"a"} 1000000 value=1"#,
            r#"0 up{"job":"b"} 1000000 value=1"#
        ]
    );
}

#[test]
fn text_that_is_not_utf_8_makes_the_whole_unreadable() {
    for (name, job) in [("XX", "x"), ("up", "XX")] {
        let message = request(vec![series(&[("__name__", name), ("job", job)], &[(1.0, 1)])]);
        let mut body = message.encode_to_vec();
        let at = body.windows(2).position(|bytes| bytes == b"XX").unwrap();
        body[at] = 0xff;
        assert!(matches!(read(&body, Version::V1), Err(Unreadable::Protobuf(_))));
    }
}

#[test]
fn another_message_is_unreadable_or_has_no_series() {
    let message = request(vec![series(&[("__name__", "up")], &[(1.0, 1)])]);
    assert!(
        read(&message.encode_to_vec(), Version::V2)
            .unwrap()
            .events
            .is_empty()
    );
    let series_as_number = [0x08, 1];
    assert!(read(&series_as_number, Version::V1).is_err());
    let truncated = &message.encode_to_vec()[..5];
    assert!(read(truncated, Version::V1).is_err());
}

/// Regression: labels behind the one that a series is refused for were not read. Its neighbours were stored, and the series
/// could not be named in the answer, which said that the body cannot be read.
#[test]
fn a_malformed_label_behind_a_refused_one_makes_the_whole_unreadable() {
    // A label without a name, then a label that is a number of 32 bits.
    let series = [0x0a, 0, 0x0d, 1, 2, 3, 4];
    let message = [&[0x0a, series.len() as u8][..], &series].concat();
    let read = read(&message, Version::V1);
    assert!(matches!(read, Err(Unreadable::Protobuf(Malformed::Type))));
}

#[test]
fn messages_are_told_by_their_names() {
    assert_eq!(Version::of_message("prometheus.WriteRequest"), Some(Version::V1));
    assert_eq!(
        Version::of_message("io.prometheus.write.v2.Request"),
        Some(Version::V2)
    );
    assert_eq!(Version::of_message("prometheus.Other"), None);
}

#[test]
fn labels_longer_than_metadata_may_be_are_refused() {
    let longest = METADATA_BYTES_MAX - r#"{"l":""}"#.len();
    let with = |length: usize| series(&[("__name__", "up"), ("l", &"x".repeat(length))], &[(1.0, 1)]);
    let message = request(vec![with(longest)]).encode_to_vec();
    assert!(read(&message, Version::V1).unwrap().events[0].ends_with("value=1"));
    let refused = "0 refused: its tags, labels or attributes are longer than 16384 bytes as JSON";
    check(vec![with(longest + 1)], &[refused]);
}

#[test]
fn references_cannot_make_a_body_grow_without_a_bound() {
    // Each series refers to the longest label with a few bytes, often enough to pass the total.
    let count = super::super::METADATA_TOTAL_BYTES_MAX / 16_000 + 2;
    let message = v2::Request {
        symbols: vec![
            "__name__".to_owned(),
            "up".to_owned(),
            "l".to_owned(),
            "x".repeat(16_000),
        ],
        timeseries: vec![
            v2::TimeSeries {
                labels_refs: vec![0, 1, 2, 3],
                ..v2::TimeSeries::default()
            };
            count
        ],
    };
    let events = read(&message.encode_to_vec(), Version::V2).unwrap().events;
    let last = events.last().unwrap();
    assert!(last.contains("send fewer series at once"), "{last}");
    assert!(events.len() < 60, "{}", events.len());
}

#[test]
fn a_snappy_block_is_decompressed_into_a_buffer_that_is_reused() {
    let mut buffer = Vec::new();
    for text in [&b"abc".repeat(100)[..], b"x"] {
        let body = snap::raw::Encoder::new().compress_vec(text).unwrap();
        assert_eq!(decompress(&body, 300, &mut buffer).unwrap(), text);
    }
}

#[test]
fn a_block_that_announces_more_than_the_limit_is_not_decompressed() {
    let body = snap::raw::Encoder::new().compress_vec(&[0; 301]).unwrap();
    let mut buffer = Vec::new();
    assert!(matches!(
        decompress(&body, 300, &mut buffer),
        Err(Unreadable::TooLarge { max: 300 })
    ));
    assert_eq!(buffer.capacity(), 0);
}

#[test]
fn a_block_too_short_for_what_it_announces_reserves_nothing() {
    let mut buffer = Vec::new();
    let announces_10_mb = [0x80, 0x80, 0x80, 0x05, 0];
    assert!(matches!(
        decompress(&announces_10_mb, 10_485_760, &mut buffer),
        Err(Unreadable::SnappyLength(10_485_760))
    ));
    assert_eq!(buffer.capacity(), 0);
    // The densest blocks there are do pass.
    let body = snap::raw::Encoder::new().compress_vec(&vec![0; 1 << 20]).unwrap();
    assert_eq!(decompress(&body, 1 << 20, &mut buffer).unwrap().len(), 1 << 20);
}

#[test]
fn what_is_no_snappy_block_is_unreadable() {
    let mut buffer = Vec::new();
    for body in [
        &b""[..],
        b"\xff\xff\xff\xff\xff\xff",
        b"\x05\xf0",
        b"\x01\x01\x01\x01",
    ] {
        assert!(
            matches!(decompress(body, 1_000, &mut buffer), Err(Unreadable::Snappy(_))),
            "{body:?}"
        );
    }
}
