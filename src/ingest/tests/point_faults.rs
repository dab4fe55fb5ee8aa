//! Every fault of a single point, at its path and combined with others.

use super::*;

fn shape(body: &str) -> Vec<String> {
    faults(parse_point(body.as_bytes()))
}

/// A valid point with one replaced member; `None` leaves the member out.
fn point(member: &str, text: Option<&str>) -> String {
    let good = [
        ("bucketId", format!("\"{BUCKET}\"")),
        ("dataSourceId", format!("\"{STRICT}\"")),
        ("timestamp", "\"2026-01-01T00:00:00Z\"".to_owned()),
        ("values", r#"{"t":1}"#.to_owned()),
        ("metadata", "{}".to_owned()),
    ];
    let members = good.iter().filter_map(|(name, value)| {
        let value = if *name == member { text? } else { value };
        Some(format!("\"{name}\":{value}"))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

#[test]
fn each_shape_fault_is_reported_at_its_member() {
    const FORM: &str = "must be an ISO 8601 date-time such as 2026-01-31T12:00:00Z";
    for (member, text, fault) in [
        ("bucketId", None, "is required"),
        ("bucketId", Some("7"), "must be a string, not a number"),
        ("bucketId", Some("null"), "must be a string, not null"),
        (
            "bucketId",
            Some("\"abc\""),
            "must be an id of 24 lowercase hex characters",
        ),
        (
            "bucketId",
            Some("\"0000000000000000000000B1\""),
            "must be an id of 24 lowercase hex characters",
        ),
        ("dataSourceId", None, "is required"),
        ("dataSourceId", Some("[1]"), "must be a string, not an array"),
        (
            "dataSourceId",
            Some("\"\""),
            "must be an id of 24 lowercase hex characters",
        ),
        (
            "timestamp",
            Some("1767225600000"),
            "must be an ISO 8601 string, not a number",
        ),
        ("timestamp", Some("\"yesterday\""), FORM),
        ("timestamp", Some("\"20260101T000000Z\""), FORM),
        (
            "timestamp",
            Some("\"2026-02-30\""),
            "must be a date, time of day and offset that exist; hours end at 23, seconds at 59",
        ),
        (
            "timestamp",
            Some("\"1500-01-01\""),
            "must lie within the years 1678 to 2261, in UTC",
        ),
        ("values", None, "is required"),
        ("values", Some("null"), "must be an object, not null"),
        ("values", Some("[]"), "must be an object, not an array"),
        (
            "values",
            Some("{}"),
            "must have at least one field that is not null",
        ),
        (
            "values.t",
            Some(r#"{"t":1e999}"#),
            "field \"t\" must be a finite number of double precision",
        ),
        (
            "values.zz",
            Some(r#"{"zz":-1e999}"#),
            "field \"zz\" must be a finite number of double precision",
        ),
        ("metadata", Some("[]"), "must be an object, not an array"),
        ("metadata", Some("\"x\""), "must be an object, not a string"),
    ] {
        let name = member.split('.').next().unwrap();
        assert_eq!(shape(&point(name, text)), [format!("{member}: {fault}")]);
    }
    for (member, text) in [
        ("timestamp", None),
        ("metadata", None),
        ("metadata", Some("null")),
        ("extra", Some("1")),
    ] {
        assert!(
            parse_point(point(member, text).as_bytes()).is_ok(),
            "{member} {text:?}"
        );
    }
}

#[test]
fn metadata_is_measured_as_sent() {
    let metadata = |bytes: usize| format!(r#"{{ "k":"{}"}}"#, "x".repeat(bytes - 9));
    assert!(parse_point(point("metadata", Some(&metadata(16_384))).as_bytes()).is_ok());
    assert_eq!(
        shape(&point("metadata", Some(&metadata(16_385)))),
        ["metadata: must be at most 16384 bytes as sent, not 16385"]
    );
}

#[test]
fn all_shape_faults_are_reported_together() {
    let faults = shape(r#"{"dataSourceId":1,"timestamp":2,"values":{"a":1e999,"b":-1e999},"metadata":3}"#);
    let places: Vec<_> = faults
        .iter()
        .map(|fault| fault.split(':').next().unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "bucketId",
            "dataSourceId",
            "timestamp",
            "values.a",
            "values.b",
            "metadata"
        ]
    );
    assert_eq!(
        shape(&point("values", Some(r#"{"t":null}"#)).replace("\"metadata\":{}", "\"metadata\":3")),
        [
            "metadata: must be an object, not a number",
            "values: must have at least one field that is not null"
        ]
    );
    for (body, kind) in [
        ("[]", "an array"),
        ("3", "a number"),
        ("null", "null"),
        (" \"{}\" ", "a string"),
    ] {
        assert_eq!(shape(body), [format!(": the body must be an object, not {kind}")]);
    }
    let many: Vec<String> = (0..2_000).map(|field| format!("\"f{field}\":1")).collect();
    let values = format!("{{{}}}", many.join(","));
    assert_eq!(
        shape(&point("values", Some(&values))),
        ["values: has over 1024 fields, a schema at most 256"]
    );
}

#[test]
fn invalid_json_is_malformed_at_any_place() {
    let deep = point("metadata", Some(&"[".repeat(100_000)));
    let skipped = format!(r#"{{"x":{}}}"#, "[".repeat(100_000));
    let in_values = point(
        "values",
        Some(&format!(r#"{{"t":{}}}"#, "{\"a\":".repeat(100_000))),
    );
    for body in [
        "",
        "{",
        "{}x",
        "{\"a\":01}",
        "{\"a\":\"\\ud800\"}",
        "nope",
        &deep,
        &skipped,
        &in_values,
    ] {
        let result = parse_point(body.as_bytes());
        assert!(is_malformed(&result), "{:.80}: {result:?}", body);
    }
    let message = parse_point(b"{\"\xff\":1}").unwrap_err().message;
    assert!(message.starts_with("malformed json at byte 2:"), "{message}");
}

#[test]
fn schema_faults_are_reported_together_and_nothing_is_written() {
    let sources = Sources::new();
    let mut rows = RowsWriter::new();
    let body = point(
        "values",
        Some(r#"{"t":"warm","zz":1,"on":0,"y":null,"state":{"a":1},"p":2}"#),
    )
    .replace("2026-01-01T00:00:00Z", "2025-12-01T23:59:59Z");
    let parsed = parse_point(body.as_bytes()).unwrap();
    let refused = parsed.write(
        sources.view(STRICT),
        NOW_NS,
        &mut rows,
        &mut SeriesOfRequest::default(),
    );
    let declared = r#"(declared: t, p, on, state, a":1,"t)"#;
    assert_eq!(
        faults(refused),
        [
            "timestamp: is too old: the oldest accepted now is 2025-12-02T00:00:00Z".to_owned(),
            "values.t: field \"t\" is declared number, not a string".to_owned(),
            format!("values.zz: field \"zz\" is not declared {declared}, but a number was sent"),
            "values.on: field \"on\" is declared boolean, not a number".to_owned(),
            "values.y: field \"y\" is not declared, but null was sent".to_owned(),
            "values.state: field \"state\" is declared string, not an object".to_owned(),
        ]
    );
    let mut refused = |values: &str| {
        let body = point("values", Some(values));
        let parsed = parse_point(body.as_bytes()).unwrap();
        faults(parsed.write(
            sources.view(STRICT),
            NOW_NS,
            &mut rows,
            &mut SeriesOfRequest::default(),
        ))
    };
    let none = "values: must have at least one field that is not null".to_owned();
    assert_eq!(refused(r#"{"t":null}"#), std::slice::from_ref(&none));
    assert_eq!(
        refused(r#"{"t":null,"zz":null}"#),
        [
            none,
            format!("values.zz: field \"zz\" is not declared {declared}, but null was sent")
        ]
    );
    assert_eq!(rows.rows(), 0);
}

#[test]
fn a_point_may_be_exactly_as_old_as_its_route_accepts() {
    let sources = Sources::new();
    let mut rows = RowsWriter::new();
    for (timestamp, accepted) in [
        ("2025-12-02T00:00:00Z", true),
        ("2025-12-01T23:59:59.999999999Z", false),
    ] {
        let body = point("timestamp", Some(&format!("\"{timestamp}\"")));
        let result = parse_point(body.as_bytes()).unwrap().write(
            sources.view(STRICT),
            NOW_NS,
            &mut rows,
            &mut SeriesOfRequest::default(),
        );
        assert_eq!(result.is_ok(), accepted, "{timestamp}");
    }
}

#[test]
fn a_field_that_cannot_be_added_is_refused() {
    let sources = Sources::new();
    let mut rows = RowsWriter::new();
    let long = "é".repeat(128);
    let too_long = "é".repeat(129);
    for (name, accepted) in [
        ("ok", true),
        (long.as_str(), true),
        (&too_long, false),
        ("", false),
        ("  ", false),
        (" ok", false),
        ("ok\u{3000}", false),
        ("a\\u0007", false),
    ] {
        let body = point("values", Some(&format!("{{\"{name}\":1}}")));
        let parsed = parse_point(body.as_bytes()).unwrap();
        match parsed.write(
            sources.view(EXTEND),
            NOW_NS,
            &mut rows,
            &mut SeriesOfRequest::default(),
        ) {
            Ok(new_fields) => assert!(accepted && new_fields[0].name == name),
            Err(error) => assert!(
                !accepted && error.details[0].message.contains("cannot be added"),
                "{error:?}"
            ),
        }
        let body = point("values", Some(&format!("{{\"{name}\":null,\"t\":1}}")));
        let written = parse_point(body.as_bytes()).unwrap().write(
            sources.view(EXTEND),
            NOW_NS,
            &mut rows,
            &mut SeriesOfRequest::default(),
        );
        assert!(
            written.is_ok_and(|new_fields| new_fields.is_empty()),
            "null for an undeclared field is simply absent"
        );
    }
}
