//! Gauges and sums, attributes, refusals and what is known of sources.

use super::{check, check_refused, events, gauge, read, request, text};
use crate::METADATA_BYTES_MAX;
use crate::otlp::{Encoding, entry_names, message, parse};
use crate::recorder::Recorder;

#[test]
fn gauges_and_sums_have_the_field_value() {
    check(
        &format!(
            "{},{}",
            gauge(
                r#"{"timeUnixNano":"1000","asDouble":0.5},{"timeUnixNano":1001,"asInt":"-7"},{"timeUnixNano":"2","asInt":9}"#
            ),
            r#"{"name":"s","sum":{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[{"timeUnixNano":"5","asDouble":"1e3"}]}}"#
        ),
        &[
            "0 g 1000 value=0.5",
            "0 g 1001 value=-7",
            "0 g 2 value=9",
            "1 s 5 value=1000",
        ],
    );
}

#[test]
fn delta_sums_are_stored_as_they_come() {
    check(
        r#"{"name":"s","sum":{"aggregationTemporality":1,"isMonotonic":true,"dataPoints":[{"timeUnixNano":"5","startTimeUnixNano":"4","asInt":"3"},{"timeUnixNano":"6","startTimeUnixNano":"5","asInt":"3"}]}}"#,
        &["0 s 5 value=3", "0 s 6 value=3"],
    );
}

#[test]
fn attributes_keep_their_json_type_in_metadata() {
    let attributes = r#"
        {"key":"text","value":{"stringValue":"a\"b"}}, {"key":"yes","value":{"boolValue":true}},
        {"key":"big","value":{"intValue":"9223372036854775807"}}, {"key":"small","value":{"intValue":-1}},
        {"key":"ratio","value":{"doubleValue":2.50}}, {"key":"whole","value":{"doubleValue":3.0}},
        {"key":"nan","value":{"doubleValue":"NaN"}}, {"key":"bytes","value":{"bytesValue":"aGk="}},
        {"key":"none","value":{}}, {"key":"null","value":null},
        {"key":"list","value":{"arrayValue":{"values":[{"intValue":"1"},{"stringValue":"x"},{"arrayValue":{}}]}}},
        {"key":"map","value":{"kvlistValue":{"values":[{"key":"k","value":{"boolValue":false}},{"key":"l","value":{}}]}}}"#;
    check(
        &gauge(&format!(
            r#"{{"timeUnixNano":"1","asInt":"1","attributes":[{attributes}]}}"#
        )),
        &[concat!(
            r#"0 g{"text":"a\"b","yes":true,"big":9223372036854775807,"small":-1,"ratio":2.5,"whole":3,"nan":"NaN","#,
            r#""bytes":"aGk=","none":null,"null":null,"list":[1,"x",[]],"map":{"k":false,"l":null}} 1 value=1"#
        )],
    );
}

#[test]
fn of_a_resource_only_service_host_name_and_k8s_are_kept() {
    let attributes = [
        text("service.name", "shop"),
        text("os.type", "linux"),
        text("host.name", "web"),
        text("host.id", "7"),
        text("k8s.pod.name", "p"),
        text("service", "x"),
        text("k8sx", "x"),
    ];
    let point = format!(
        r#"{{"timeUnixNano":"1","asInt":"1","attributes":[{}]}}"#,
        text("a", "1")
    );
    let events = read(&request(&attributes.join(","), &gauge(&point)))
        .unwrap()
        .events;
    assert_eq!(
        events[0],
        r#"0 g{"service.name":"shop","host.name":"web","k8s.pod.name":"p","a":"1"} 1 value=1"#
    );
}

#[test]
fn an_attribute_of_the_point_wins_over_one_of_the_resource() {
    let attributes = [
        text("service.name", "shop"),
        text("host.name", "web"),
        text("k8s.pod", "p"),
    ];
    let point = format!(
        r#"{{"timeUnixNano":"1","asInt":"1","attributes":[{},{}]}}"#,
        text("host.name", "own"),
        text("a", "1")
    );
    let own = read(&request(&attributes.join(","), &gauge(&point)))
        .unwrap()
        .events;
    assert_eq!(
        own[0],
        r#"0 g{"service.name":"shop","k8s.pod":"p","host.name":"own","a":"1"} 1 value=1"#
    );
}

#[test]
fn a_resource_behind_its_metrics_counts_as_well() {
    let json = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[{"asInt":1,"timeUnixNano":1}]},"name":"g"}]}],"resource":{"attributes":[{"value":{"stringValue":"shop"},"key":"service.name"}]}}]}"#;
    assert_eq!(
        read(json).unwrap().events[0],
        r#"0 g{"service.name":"shop"} 1 value=1"#
    );
}

#[test]
fn nan_infinities_and_points_without_recorded_value_are_neither_stored_nor_refused() {
    check(
        &gauge(
            r#"{"timeUnixNano":"1","asDouble":"NaN"},{"timeUnixNano":"1","asDouble":"Infinity"},
               {"timeUnixNano":"1","asDouble":"-Infinity"},{"timeUnixNano":"1","flags":1},
               {"timeUnixNano":"1","flags":1,"asInt":"4"},{"timeUnixNano":"1","flags":2,"asInt":"4"}"#,
        ),
        &[
            "0 not stored",
            "0 not stored",
            "0 not stored",
            "0 not stored",
            "0 not stored",
            "0 g 1 value=4",
        ],
    );
    check(
        r#"{"name":"h","histogram":{"dataPoints":[{"timeUnixNano":"1","flags":1,"count":"0"}]}},
           {"name":"e","exponentialHistogram":{"dataPoints":[{"timeUnixNano":"1","flags":1}]}},
           {"name":"s","summary":{"dataPoints":[{"timeUnixNano":"1","flags":1}]}}"#,
        &[
            "0 histogram not stored",
            "1 histogram not stored",
            "2 histogram not stored",
        ],
    );
}

#[test]
fn unit_and_description_belong_to_the_sources_and_the_fields_that_have_them() {
    let metric = |name: &str, data: &str| {
        format!(
            r#"{{"name":"{name}","description":"D","unit":"s","{data}":{{"isMonotonic":true,"aggregationTemporality":2,"dataPoints":[{{"timeUnixNano":"1","asInt":"1"}}]}}}}"#
        )
    };
    let metrics =
        ["gauge", "sum", "histogram", "exponentialHistogram", "summary"].map(|kind| metric(kind, kind));
    let families: Vec<_> = read(&request("", &metrics.join(",")))
        .unwrap()
        .events
        .into_iter()
        .filter(|event| event.starts_with("family"))
        .collect();
    assert_eq!(
        families,
        [
            r#"family gauge help="D" unit="s"["value"] gauge"#,
            r#"family sum help="D" unit="s"["value"] counter"#,
            r#"family histogram help="D" unit="s"["sum", "min", "max"] histogram"#,
            r#"family histogram.bucket help="D" unit=""[] histogram"#,
            r#"family exponentialHistogram help="D" unit="s"["sum", "min", "max"] histogram"#,
            r#"family summary help="D" unit="s"["sum"] summary"#,
            r#"family summary.quantile help="D" unit="s"["value"] summary"#,
        ]
    );
}

#[test]
fn refused_points_are_counted_one_by_one_and_named_by_their_metric() {
    let json = request(
        "",
        &format!(
            "{},{},{}",
            r#"{"name":" ","gauge":{"dataPoints":[{"timeUnixNano":"1","asInt":"1"},{"timeUnixNano":"2","asInt":"2"}]}}"#,
            gauge(
                r#"{"asInt":"1"},{"timeUnixNano":"1"},{"timeUnixNano":"9223372036854775808","asInt":"1"},{"timeUnixNano":"9214646400000000000","asInt":"1"}"#
            ),
            r#"{"name":"empty"},{"name":"last","gauge":{"dataPoints":[{"timeUnixNano":"1","asInt":"1"}]}}"#
        ),
    );
    let recorder = read(&json).unwrap();
    assert_eq!(
        recorder.events[..7],
        [
            "0 refused: it has no metric name",
            "0 refused: it has no metric name",
            "1 refused: it has no timeUnixNano",
            "1 refused: it has neither asDouble nor asInt",
            "1 refused: the timestamp is outside of the years 1678 to 2261",
            "1 refused: the timestamp is outside of the years 1678 to 2261",
            r#"family g help="" unit=""["value"] gauge"#,
        ]
    );
    assert_eq!(recorder.events[7], "3 last 1 value=1");
    assert_eq!(recorder.samples, 7);
    let mut buffer = Vec::new();
    let message = message(json.as_bytes(), Encoding::Json, &mut buffer).unwrap();
    assert_eq!(entry_names(message, &[0, 1, 3]).unwrap(), [" ", "g", "last"]);
}

#[test]
fn an_attribute_without_or_twice_of_a_name_is_refused() {
    let point = |attributes: &[String]| {
        gauge(&format!(
            r#"{{"timeUnixNano":"1","asInt":"1","attributes":[{}]}}"#,
            attributes.join(",")
        ))
    };
    check_refused(&point(&[text("", "x")]), "empty name");
    check_refused(
        &point(&[text("a", "x"), text("b", "x"), text("a", "y")]),
        "`a` occurs twice",
    );
    let json = request(
        &[text("host.name", "a"), text("host.name", "b")].join(","),
        &point(&[]),
    );
    assert_eq!(
        read(&json).unwrap().events[0],
        "0 refused: `host.name` occurs twice"
    );
}

#[test]
fn metadata_that_repeats_is_not_built_nor_named_again() {
    let point = |value: &str| {
        format!(
            r#"{{"timeUnixNano":"1","asInt":"1","attributes":[{}]}}"#,
            text("a", value)
        )
    };
    let metrics = format!(
        r#"{},{{"name":"other","gauge":{{"dataPoints":[{}]}}}}"#,
        gauge(&[point("1"), point("1"), point("2"), point("2")].join(",")),
        point("2")
    );
    let recorder = read(&request("", &metrics)).unwrap();
    assert_eq!(recorder.announced, 3);
    assert_eq!(recorder.events[1], r#"0 g{"a":"1"} 1 value=1"#);
    assert_eq!(recorder.events[3], r#"0 g{"a":"2"} 1 value=1"#);
    assert_eq!(recorder.events[5], r#"1 other{"a":"2"} 1 value=1"#);
}

#[test]
fn another_resource_has_other_metadata() {
    let resource = |name: &str| {
        format!(
            r#"{{"resource":{{"attributes":[{}]}},"scopeMetrics":[{{"metrics":[{}]}}]}}"#,
            text("service.name", name),
            gauge(r#"{"timeUnixNano":"1","asInt":"1"}"#)
        )
    };
    let json = format!(r#"{{"resourceMetrics":[{},{}]}}"#, resource("a"), resource("b"));
    let events = read(&json).unwrap().events;
    assert_eq!(events[0], r#"0 g{"service.name":"a"} 1 value=1"#);
    assert_eq!(events[2], r#"1 g{"service.name":"b"} 1 value=1"#);
}

#[test]
fn attributes_longer_than_metadata_may_be_are_refused() {
    let longest = METADATA_BYTES_MAX - r#"{"a":""}"#.len();
    let point = |length: usize| {
        gauge(&format!(
            r#"{{"timeUnixNano":"1","asInt":"1","attributes":[{}]}}"#,
            text("a", &"x".repeat(length))
        ))
    };
    assert!(events(&point(longest))[0].ends_with(" value=1"));
    check_refused(&point(longest + 1), "longer than 16384 bytes");
    let json = request(
        &text("host.name", &"x".repeat(METADATA_BYTES_MAX)),
        &gauge(r#"{"timeUnixNano":"1","asInt":"1"}"#),
    );
    assert!(read(&json).unwrap().events[0].contains("longer than 16384 bytes"));
}

#[test]
fn a_series_is_recalled_by_its_metric_its_resource_and_its_attributes() {
    let point = |time: u32, attributes: &str| {
        format!(r#"{{"timeUnixNano":"{time}","asInt":"1","attributes":[{attributes}]}}"#)
    };
    let metric =
        |name: &str, points: &str| format!(r#"{{"name":"{name}","gauge":{{"dataPoints":[{points}]}}}}"#);
    let of_service = |service: &str, metrics: &str| request(&text("service.name", service), metrics);
    let mut sink = Recorder::remembering();
    let mut recalled = |body: &str| {
        let (before, mut buffer) = (sink.recalled, Vec::new());
        parse(
            message(body.as_bytes(), Encoding::Json, &mut buffer).unwrap(),
            &mut sink,
        )
        .unwrap();
        sink.events.retain(|event| !event.starts_with("family "));
        (sink.recalled - before, std::mem::take(&mut sink.events))
    };
    let both = [point(1, &text("a", "x")), point(2, &text("a", "y"))].join(",");
    let first = [
        r#"0 g{"service.name":"s","a":"x"} 1 value=1"#,
        r#"0 g{"service.name":"s","a":"y"} 2 value=1"#,
    ];
    let body = of_service("s", &metric("g", &both));
    assert_eq!(recalled(&body), (0, first.map(str::to_owned).to_vec()));
    assert_eq!(recalled(&body), (2, first.map(str::to_owned).to_vec()));
    // Points of one series behind each other ask once.
    let again = [point(3, &text("a", "x")), point(4, &text("a", "x"))].join(",");
    assert_eq!(recalled(&of_service("s", &metric("g", &again))).0, 1);
    for (other, event) in [
        (
            of_service("t", &metric("g", &point(1, &text("a", "x")))),
            r#"0 g{"service.name":"t","a":"x"} 1 value=1"#,
        ),
        (
            of_service("s", &metric("h", &point(1, &text("a", "x")))),
            r#"0 h{"service.name":"s","a":"x"} 1 value=1"#,
        ),
        (
            of_service("s", &metric("g", &point(1, &text("ax", "")))),
            r#"0 g{"service.name":"s","ax":""} 1 value=1"#,
        ),
        (
            of_service("s", &metric("g", &point(1, ""))),
            r#"0 g{"service.name":"s"} 1 value=1"#,
        ),
    ] {
        assert_eq!(recalled(&other), (0, vec![event.to_owned()]));
        assert_eq!(recalled(&other).0, 1);
    }
    // What is refused is refused again: it is not remembered.
    let twice = [text("service.name", "s"), text("service.name", "s")].join(",");
    for _ in 0..2 {
        let (count, events) = recalled(&request(&twice, &metric("g", &both)));
        assert_eq!((count, events.len()), (0, 2));
        assert!(events.iter().all(|event| event.contains("refused")), "{events:?}");
    }
}
