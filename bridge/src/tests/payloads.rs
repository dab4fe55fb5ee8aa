//! Payloads.

use std::collections::BTreeMap;

use crate::payload::{FIELDS_MAX, FieldValue, PAYLOAD_BYTES_MAX, PayloadError, Reading, read};

fn reading(timestamp_ns: Option<i64>, fields: &[(&str, FieldValue)]) -> Reading {
    let mut found = BTreeMap::new();
    for (name, value) in fields {
        let value = match value {
            FieldValue::Number(number) => FieldValue::Number(*number),
            FieldValue::Boolean(boolean) => FieldValue::Boolean(*boolean),
            FieldValue::Text(text) => FieldValue::Text(text.clone()),
        };
        found.insert((*name).to_owned(), value);
    }
    Reading {
        timestamp_ns,
        fields: found,
    }
}

#[test]
fn a_plain_number_true_or_false_is_the_field_value() {
    for (payload, value) in [
        ("21.5", FieldValue::Number(21.5)),
        (" -3e2\n", FieldValue::Number(-300.0)),
        (
            "18446744073709551615",
            FieldValue::Number(18_446_744_073_709_551_615.0),
        ),
        ("true", FieldValue::Boolean(true)),
        ("false", FieldValue::Boolean(false)),
    ] {
        assert_eq!(
            read(payload.as_bytes()),
            Ok(reading(None, &[("value", value)])),
            "{payload}"
        );
    }
}

#[test]
fn members_of_an_object_are_fields_and_timestamp_is_the_time() {
    let payload =
        br#"{"timestamp":"1970-01-01T00:00:01.5Z","temperature":21.5,"on":true,"mode":"auto","x":null}"#;
    let expected = reading(
        Some(1_500_000_000),
        &[
            ("temperature", FieldValue::Number(21.5)),
            ("on", FieldValue::Boolean(true)),
            ("mode", FieldValue::Text("auto".to_owned())),
        ],
    );
    assert_eq!(read(payload), Ok(expected));
    let without = reading(None, &[("a", FieldValue::Number(1.0))]);
    assert_eq!(read(br#"{"timestamp":null,"a":1}"#), Ok(without));
}

#[test]
fn objects_inside_are_fields_with_dots_and_arrays_are_left_out() {
    let payload = br#"{"motor":{"rpm":900,"coil":{"t":70}},"history":[1,2],"timestamp":"2026-01-31"}"#;
    let expected = reading(
        Some(1_769_817_600_000_000_000),
        &[
            ("motor.rpm", FieldValue::Number(900.0)),
            ("motor.coil.t", FieldValue::Number(70.0)),
        ],
    );
    assert_eq!(read(payload), Ok(expected));
    // Only the message's own timestamp is its time.
    let inner = reading(None, &[("a.timestamp", FieldValue::Text("then".to_owned()))]);
    assert_eq!(read(br#"{"a":{"timestamp":"then"}}"#), Ok(inner));
}

#[test]
fn everything_else_is_unreadable() {
    use PayloadError::{NoFields, NoReading, Timestamp};
    for (payload, fault) in [
        ("null", NoReading),
        ("\"21.5\"", NoReading),
        ("[1]", NoReading),
        ("{}", NoFields),
        (r#"{"a":null,"b":[1],"c":{}}"#, NoFields),
        (r#"{"timestamp":"2026-01-31T00:00:00Z"}"#, NoFields),
        (r#"{"timestamp":1700000000,"a":1}"#, Timestamp),
        (r#"{"timestamp":"yesterday","a":1}"#, Timestamp),
        (r#"{"a.b":1,"a":{"b":2}}"#, PayloadError::Twice("a.b".to_owned())),
    ] {
        assert_eq!(read(payload.as_bytes()), Err(fault), "{payload}");
    }
    let deep = "{\"a\":".repeat(1_000) + "1" + &"}".repeat(1_000);
    for payload in [
        "",
        "21,5",
        "on",
        "NaN",
        "1e999",
        "{\"a\":1",
        "{\"a\":1}{",
        "\u{feff}1",
        &deep,
    ] {
        let fault = read(payload.as_bytes());
        assert!(
            matches!(fault, Err(PayloadError::NotJson(_))),
            "{payload:?}: {fault:?}"
        );
    }
    assert!(matches!(read(b"\xff\xfe"), Err(PayloadError::NotJson(_))));
}

#[test]
fn sizes_are_bounded() {
    let fields = |count: usize| {
        let members: Vec<String> = (0..count)
            .map(|number| format!("\"f{number}\":{number}"))
            .collect();
        format!("{{{}}}", members.join(","))
    };
    assert_eq!(
        read(fields(FIELDS_MAX).as_bytes()).unwrap().fields.len(),
        FIELDS_MAX
    );
    assert_eq!(
        read(fields(FIELDS_MAX + 1).as_bytes()),
        Err(PayloadError::TooManyFields)
    );
    let text = |length: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(length - 8));
    assert!(read(text(PAYLOAD_BYTES_MAX).as_bytes()).is_ok());
    let larger = PAYLOAD_BYTES_MAX + 1;
    assert_eq!(read(text(larger).as_bytes()), Err(PayloadError::TooLarge(larger)));
}
