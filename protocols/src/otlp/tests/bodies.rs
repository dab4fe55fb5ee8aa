//! Bodies that cannot be read or are too large, and answers.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use prost::Message as _;

use super::{gauge, read, request, text};
use crate::otlp::{Encoding, NESTING_MAX, PartialSuccess, message, parse, status, success};
use crate::recorder::Recorder;
use crate::{METADATA_TOTAL_BYTES_MAX, Malformed, Unreadable};

#[test]
fn a_resource_cannot_make_a_body_grow_without_a_bound() {
    let length = 16_000;
    let count = METADATA_TOTAL_BYTES_MAX / length + 2;
    let points: Vec<_> = (0..count)
        .map(|number| {
            format!(
                r#"{{"timeUnixNano":"1","asInt":"1","attributes":[{}]}}"#,
                text("a", &number.to_string())
            )
        })
        .collect();
    struct Count(usize, usize);
    impl crate::Sink for Count {
        fn series(&mut self, _: &str, metadata: &str) {
            self.0 += metadata.len();
        }
        fn point(&mut self, _: crate::Sample, _: i64, _: &[crate::Field<'_>]) {}
        fn stale(&mut self, _: crate::Sample, _: i64) {}
        fn not_stored(&mut self, _: crate::Sample) {}
        fn refuse(&mut self, _: u32, samples: u32, reason: crate::Refusal<'_>) {
            assert_eq!(reason, crate::Refusal::MetadataTotal);
            self.1 += samples as usize;
        }
        fn family(&mut self, _: &str, _: crate::Family<'_>) {}
    }
    let json = request(&text("host.name", &"x".repeat(length)), &gauge(&points.join(",")));
    let (mut sink, mut buffer) = (Count(0, 0), Vec::new());
    parse(
        message(json.as_bytes(), Encoding::Json, &mut buffer).unwrap(),
        &mut sink,
    )
    .unwrap();
    assert!(
        sink.0 <= METADATA_TOTAL_BYTES_MAX && sink.1 > 0,
        "{} {}",
        sink.0,
        sink.1
    );
}

#[test]
fn values_nested_too_deep_make_the_body_unreadable() {
    let nested = |depth: usize| {
        let value = (0..depth).fold(r#"{"intValue":1}"#.to_owned(), |inner, _| {
            format!(r#"{{"arrayValue":{{"values":[{inner}]}}}}"#)
        });
        request(
            "",
            &gauge(&format!(
                r#"{{"timeUnixNano":"1","asInt":"1","attributes":[{{"key":"a","value":{value}}}]}}"#
            )),
        )
    };
    assert!(read(&nested(NESTING_MAX)).unwrap().events[0].contains("[[1]]"));
    assert!(matches!(
        read(&nested(NESTING_MAX + 1)),
        Err(Unreadable::Protobuf(Malformed::Nesting))
    ));
    assert!(matches!(read(&nested(10_000)), Err(Unreadable::Json(_))));
}

#[test]
fn json_that_is_no_request_is_unreadable() {
    let point = |members: &str| request("", &gauge(&format!("{{{members}}}")));
    for json in [
        String::new(),
        "[]".to_owned(),
        "{".to_owned(),
        "{} {}".to_owned(),
        r#"{"resourceMetrics":{}}"#.to_owned(),
        r#"{"resourceMetrics":[1]}"#.to_owned(),
        r#"{"resourceMetrics":[null]}"#.to_owned(),
        point(r#""timeUnixNano":"x""#),
        point(r#""timeUnixNano":1.5"#),
        point(r#""timeUnixNano":true"#),
        point(r#""timeUnixNano":"18446744073709551616""#),
        point(r#""asDouble":"inf""#),
        point(r#""asDouble":"1e999""#),
        point(r#""asDouble":1e999"#),
        point(r#""asInt":{}"#),
        point(r#""attributes":[[]]"#),
    ] {
        let read = read(&json);
        match json.contains("[null]") {
            // As an element that is left out.
            true => assert!(read.unwrap().events.is_empty()),
            false => assert!(matches!(read, Err(Unreadable::Json(_))), "{json}"),
        }
    }
}

#[test]
fn json_has_unknown_members_nulls_and_numbers_of_any_spelling() {
    let json = request(
        "",
        &gauge(
            r#"{"unknown":[{"x":1}],"asDouble":null,"timeUnixNano":1e3,"as_int":7,"asInt":"12","flags":0.0,"exemplars":[{"asInt":"1"}]}"#,
        ),
    );
    assert_eq!(read(&json).unwrap().events[0], "0 g 1000 value=12");
    for empty in [
        "{}",
        r#"{"resourceMetrics":[]}"#,
        r#"{"resourceMetrics":null}"#,
        r#"{"other":1}"#,
    ] {
        assert!(read(empty).unwrap().events.is_empty(), "{empty}");
    }
}

#[test]
fn text_that_is_not_utf_8_makes_the_body_unreadable() {
    let json = request(
        "",
        &gauge(&format!(
            r#"{{"timeUnixNano":"1","asInt":"1","attributes":[{}]}}"#,
            text("a", "XX")
        )),
    );
    let mut buffer = Vec::new();
    message(json.as_bytes(), Encoding::Json, &mut buffer).unwrap();
    let at = buffer.windows(2).position(|bytes| bytes == b"XX").unwrap();
    buffer[at] = 0xff;
    let read = parse(&buffer, &mut Recorder::default());
    assert!(matches!(read, Err(Unreadable::Protobuf(Malformed::NotUtf8))));
}

#[test]
fn the_answer_says_what_was_refused_in_the_encoding_of_the_request() {
    let partial = PartialSuccess {
        rejected_data_points: 300,
        error_message: "g: it has \"no\" timeUnixNano",
    };
    let decoded =
        ExportMetricsServiceResponse::decode(&success(Encoding::Protobuf, Some(partial))[..]).unwrap();
    let decoded = decoded.partial_success.unwrap();
    assert_eq!(decoded.rejected_data_points, 300);
    assert_eq!(decoded.error_message, partial.error_message);
    let json: serde_json::Value = serde_json::from_slice(&success(Encoding::Json, Some(partial))).unwrap();
    assert_eq!(
        json,
        serde_json::json!({"partialSuccess": {"rejectedDataPoints": "300", "errorMessage": partial.error_message}})
    );
    assert_eq!(success(Encoding::Protobuf, None), b"");
    assert_eq!(success(Encoding::Json, None), b"{}");
}

#[test]
fn errors_are_a_status_in_the_encoding_of_the_request() {
    #[derive(Clone, PartialEq, prost::Message)]
    struct Status {
        #[prost(int32, tag = "1")]
        code: i32,
        #[prost(string, tag = "2")]
        message: String,
    }
    assert_eq!(
        Status::decode(&status(Encoding::Protobuf, "no")[..])
            .unwrap()
            .message,
        "no"
    );
    assert_eq!(status(Encoding::Json, "no"), br#"{"message":"no"}"#);
}
