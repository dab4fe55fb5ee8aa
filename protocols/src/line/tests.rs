//! Behaviour of the parser of lines, sentence by sentence of the contract.

use super::{Dialect, FIELDS_MAX, Precision, parse};
use crate::METADATA_BYTES_MAX;
use crate::recorder::Recorder;

const NOW_NS: i64 = 42;

fn record(body: impl AsRef<[u8]>) -> Recorder {
    let mut recorder = Recorder::default();
    parse(body.as_ref(), Precision::Nanoseconds, NOW_NS, &mut recorder);
    recorder
}

#[track_caller]
fn check(body: &str, events: &[&str]) {
    assert_eq!(record(body).events, events, "{body}");
}

/// A single line that is refused, and why.
#[track_caller]
fn check_refused(line: impl AsRef<[u8]>, reason: &str) {
    let events = record(&line).events;
    let shown = String::from_utf8_lossy(line.as_ref());
    assert_eq!(events.len(), 1, "{shown}: {events:?}");
    assert!(
        events[0].starts_with("1 refused: ") && events[0].contains(reason),
        "{shown}: {events:?}"
    );
}

#[track_caller]
fn check_value(value: &str, shown: &str) {
    check(&format!("m v={value}"), &[&format!("1 m 42 v={shown}")]);
}

#[test]
fn measurement_tags_fields_and_timestamp_become_a_point() {
    check(
        "cpu,host=a,core=0 usage=0.5,busy=true,note=\"x y\" 1700000000000000000",
        &[r#"1 cpu{"host":"a","core":"0"} 1700000000000000000 usage=0.5 busy=true note="x y""#],
    );
    check("cpu usage=1", &["1 cpu 42 usage=1"]);
}

#[test]
fn lines_count_from_one_with_blank_lines_comments_and_lines_inside_of_strings() {
    check(
        "# comment\n\n  \nm v=1 1\nm s=\"a\nb\nc\" 2\nbad\n#x\nm v=3 3",
        &[
            "4 m 1 v=1",
            "5 m 2 s=\"a\\nb\\nc\"",
            "8 refused: it has no fields; write a space and `name=value` behind the measurement and tags",
            "10 m 3 v=3",
        ],
    );
    assert_eq!(super::entry_name(8), "line 8");
}

#[test]
fn a_refused_entry_of_several_lines_is_named_by_its_first_and_counts_all() {
    check(
        "m a=zz,b=\"x\ninside,of=string v=1\n\" 1\nm v=2 2",
        &[
            "1 refused: `zz` is not a value: write a finite number, a 64-bit integer with `i` or `u`, `true`, `false`, \
             or a string in double quotes",
            "4 m 2 v=2",
        ],
    );
}

#[test]
fn a_string_without_an_end_spoils_only_its_own_line() {
    check(
        "m a=\"x 1\nm v=2 2\nm v=3 3",
        &[
            "1 refused: the string of the field `a` has no closing quote",
            "2 m 2 v=2",
            "3 m 3 v=3",
        ],
    );
}

#[test]
fn quotes_in_tags_have_no_meaning() {
    check(
        "m,a=\"x v=1 1\nm v=zz,w=2\nm,a=\"x v=\n",
        &[
            r#"1 m{"a":"\"x"} 1 v=1"#,
            "2 refused: `zz` is not a value: write a finite number, a 64-bit integer with `i` or `u`, `true`, `false`, \
             or a string in double quotes",
            "3 refused: the field `v` has no value",
        ],
    );
}

#[test]
fn integers_become_doubles() {
    check_value("1i", "1");
    check_value("-9223372036854775808i", "-9223372036854776000");
    check_value("1u", "1");
    check_value("18446744073709551615u", "18446744073709552000");
}

#[test]
fn floats_have_every_decimal_spelling() {
    for (value, shown) in [
        ("1", "1"),
        ("-1.5", "-1.5"),
        ("+1.5", "1.5"),
        ("1.", "1"),
        (".5", "0.5"),
        ("1e3", "1000"),
        ("1E-3", "0.001"),
        ("-0", "-0"),
        ("123456789.123456789", "123456789.12345679"),
    ] {
        check_value(value, shown);
    }
}

#[test]
fn booleans_have_the_spellings_of_influxdb() {
    for value in ["t", "T", "true", "True", "TRUE"] {
        check_value(value, "true");
    }
    for value in ["f", "F", "false", "False", "FALSE"] {
        check_value(value, "false");
    }
}

#[test]
fn integers_out_of_64_bits_are_bad_lines() {
    for value in [
        "9223372036854775808i",
        "-9223372036854775809i",
        "18446744073709551616u",
        "-1u",
    ] {
        check_refused(format!("m v={value}"), "is not a value");
    }
}

#[test]
fn nan_infinity_overflow_and_hexadecimal_are_bad_lines() {
    for value in [
        "NaN", "nan", "inf", "Inf", "+Inf", "-inf", "Infinity", "infinity", "1e999", "-1e999", "0x1f",
        "0x1fi", "1.5i", "1e3i", "i", "u", "e", ".", "-", "--1", "1_000", "tru", "yes", "'x'", "\\\"x",
    ] {
        check_refused(format!("m v={value}"), "is not a value");
    }
}

#[test]
fn an_empty_tag_value_or_name_is_a_bad_line() {
    check_refused("m,a= v=1", "the tag `a` has no value");
    check_refused("m,a v=1", "the tag `a` has no value");
    check_refused("m,=x v=1", "empty name");
    check_refused("m, v=1", "empty name");
    check_refused("m,a=1,,b=2 v=1", "empty name");
    check_refused("m,a=b=c v=1", "the value of the tag `a` has an `=`");
}

#[test]
fn a_line_without_measurement_fields_or_values_is_bad() {
    check_refused(",a=b v=1", "the measurement is empty");
    check_refused("m", "no fields");
    check_refused("m,a=b", "no fields");
    check_refused("m ", "no fields");
    check_refused("m v", "the field `v` has no value");
    check_refused("m v=", "the field `v` has no value");
    check_refused("m v=,w=1", "the field `v` has no value");
    check_refused("m =1", "empty name");
    check_refused("m v=1,", "empty name");
    check_refused("m v=1,,w=2", "empty name");
}

#[test]
fn a_tag_or_field_that_occurs_twice_is_a_bad_line() {
    check_refused("m,a=1,b=2,a=3 v=1", "`a` occurs twice");
    check_refused("m v=1,w=2,v=3", "`v` occurs twice");
    let many: Vec<_> = (0..40).map(|number| format!("t{number}=1")).collect();
    check_refused(format!("m,{},t17=2 v=1", many.join(",")), "`t17` occurs twice");
    check_refused(format!("m {},t17=2", many.join(",")), "`t17` occurs twice");
}

#[test]
fn a_backslash_escapes_comma_equals_and_space() {
    check(
        r"m\,x\ y\=z,t\ a\,b\=c=v\ a\,b\=c f\ a\,b\=c=1 7",
        &[r#"1 m,x y=z{"t a,b=c":"v a,b=c"} 7 f a,b=c=1"#],
    );
}

#[test]
fn any_other_backslash_is_itself() {
    check_refused(r"m,t=C:\dir\ f=1 7", "has an `=`");
    check(
        r"m\n,t\\x=C:\dir\x f\y=1 7",
        &[r#"1 m\n{"t\\\\x":"C:\\dir\\x"} 7 f\y=1"#],
    );
    check(r"m\\ x v=1 7", &[r"1 m\ x 7 v=1"]);
}

#[test]
fn in_strings_a_backslash_escapes_quote_and_backslash() {
    check(
        r#"m s="a\"b\\c\nd\,e",t="" 7"#,
        &[r#"1 m 7 s="a\"b\\c\\nd\\,e" t="""#],
    );
    check_refused(r#"m s="a\""#, "no closing quote");
    check_refused(r#"m s="a"b"#, "must follow the string of the field `s`");
}

#[test]
fn lines_without_a_timestamp_have_one_now() {
    check("m v=1\nm v=2", &["1 m 42 v=1", "2 m 42 v=2"]);
}

#[test]
fn precisions_have_the_names_of_their_route() {
    let units = [
        ("", 1, true),
        ("ns", 1, true),
        ("us", 1_000, true),
        ("ms", 1_000_000, true),
        ("s", 1_000_000_000, true),
        ("n", 1, false),
        ("u", 1_000, false),
        ("m", 60_000_000_000, false),
        ("h", 3_600_000_000_000, false),
    ];
    for (name, unit_ns, both) in units {
        let unit = |dialect| Precision::parse(name, dialect).map(Precision::unit_ns);
        assert_eq!(unit(Dialect::V1), Some(unit_ns), "{name}");
        assert_eq!(unit(Dialect::V2), both.then_some(unit_ns), "{name}");
    }
    for name in ["µs", "S", "NS", "d", " s", "rfc3339"] {
        assert_eq!(Precision::parse(name, Dialect::V1), None, "{name}");
    }
    let mut recorder = Recorder::default();
    parse(b"m v=1 2", Precision::Hours, NOW_NS, &mut recorder);
    assert_eq!(recorder.events, ["1 m 7200000000000 v=1"]);
}

#[test]
fn timestamps_outside_of_1678_to_2261_are_bad_lines() {
    check("m v=1 -9214560000000000000", &["1 m -9214560000000000000 v=1"]);
    check("m v=1 9214646399999999999", &["1 m 9214646399999999999 v=1"]);
    for timestamp in ["-9214560000000000001", "9214646400000000000"] {
        check_refused(format!("m v=1 {timestamp}"), "outside of the years 1678 to 2261");
    }
    let mut recorder = Recorder::default();
    parse(b"m v=1 9214646400", Precision::Seconds, NOW_NS, &mut recorder);
    parse(
        b"m v=1 9223372036854775807",
        Precision::Seconds,
        NOW_NS,
        &mut recorder,
    );
    assert!(
        recorder.events.iter().all(|event| event.contains("1678")),
        "{:?}",
        recorder.events
    );
}

#[test]
fn a_timestamp_that_is_no_integer_is_a_bad_line() {
    for timestamp in [
        "1.5",
        "1e3",
        "2026-01-01T00:00:00Z",
        "99999999999999999999",
        "1i",
        "x",
    ] {
        check_refused(format!("m v=1 {timestamp}"), "is not a 64-bit integer");
    }
    check_refused("m v=1 1 2", "text stands behind the timestamp");
    check_refused("m v=1 w=2", "the timestamp `w=2` is not");
}

#[test]
fn two_lines_of_one_series_and_instant_are_both_handed_over() {
    check(
        "m a=1 7\nm b=2 7\nm a=3 7",
        &["1 m 7 a=1", "2 m 7 b=2", "3 m 7 a=3"],
    );
}

#[test]
fn nothing_is_read_of_empty_bodies_and_comments() {
    for body in ["", "\n", "\r\n", "  \n\t\n", "#", "# m v=1\n", "\r"] {
        check(body, &[]);
    }
}

#[test]
fn crlf_ends_lines() {
    check(
        "m v=1\r\nm v=2 7\r\nm s=\"x\r\ny\"\r\n\r\nm v=true\r",
        &[
            "1 m 42 v=1",
            "2 m 7 v=2",
            "3 m 42 s=\"x\\r\\ny\"",
            "6 m 42 v=true",
        ],
    );
    check_refused("m v=1\r 7", "is not a value");
}

#[test]
fn blanks_before_between_and_behind_the_parts_are_skipped() {
    check("  m   v=1   7  \n\tm v=2 \n", &["1 m 7 v=1", "2 m 42 v=2"]);
}

#[test]
fn a_line_that_is_not_utf_8_spoils_only_itself() {
    for bad in [
        &b"m\xff v=1 1"[..],
        b"m,t\xff=a v=1 1",
        b"m,t=a\xff v=1 1",
        b"m v\xff=1 1",
        b"m v=\"\xff\" 1",
        b"m v=\xff 1",
        b"m v=1 \xff",
    ] {
        let mut body = b"m v=1 1\n".to_vec();
        body.extend_from_slice(bad);
        body.extend_from_slice(b"\n# \xff\nm v=2 2");
        let events = record(&body).events;
        assert_eq!(events.len(), 3, "{events:?}");
        assert!(events[1].starts_with("2 refused: "), "{events:?}");
        assert_eq!(events[2], "4 m 2 v=2");
    }
    check(
        "größe,ort=Köln wért=\"日本\" 1",
        &[r#"1 größe{"ort":"Köln"} 1 wért="日本""#],
    );
}

#[test]
fn a_series_that_repeats_is_not_named_again() {
    let recorder =
        record("m,a=1 v=1 1\nm,a=1 v=2 2\nbad\nm,a=1 v=3 3\nm,a=12 v=4 4\nm,a=12 v=x\nm,a=12 v=5 5");
    assert_eq!(
        recorder
            .events
            .iter()
            .filter(|event| !event.contains("refused"))
            .collect::<Vec<_>>(),
        [
            r#"1 m{"a":"1"} 1 v=1"#,
            r#"2 m{"a":"1"} 2 v=2"#,
            r#"4 m{"a":"1"} 3 v=3"#,
            r#"5 m{"a":"12"} 4 v=4"#,
            r#"7 m{"a":"12"} 5 v=5"#,
        ]
    );
    assert_eq!(
        recorder.announced, 3,
        "again after a line whose key could not be read"
    );
}

#[test]
fn control_characters_of_tags_are_escaped_in_metadata() {
    check(
        "m,a=x\ty\u{1}\"\\z v=1",
        &[r#"1 m{"a":"x\ty\u0001\"\\z"} 42 v=1"#],
    );
}

#[test]
fn tags_longer_than_metadata_may_be_are_a_bad_line() {
    let longest = METADATA_BYTES_MAX - r#"{"t":""}"#.len();
    let line = |length: usize| format!("m,t={} v=1", "x".repeat(length));
    assert!(record(line(longest)).events[0].ends_with(" 42 v=1"));
    check_refused(line(longest + 1), "longer than 16384 bytes");
}

#[test]
fn more_fields_than_a_schema_has_are_a_bad_line() {
    let line = |count: usize| {
        let fields: Vec<_> = (0..count).map(|number| format!("f{number}=1")).collect();
        format!("m {}", fields.join(","))
    };
    assert!(record(line(FIELDS_MAX)).events[0].ends_with("f255=1"));
    check_refused(line(FIELDS_MAX + 1), "more than 256 fields");
}

#[test]
fn what_was_sent_is_cut_in_a_refusal() {
    let events = record(format!("m v={}", "ä".repeat(1_000))).events;
    assert!(
        events[0].contains(&format!("`{}…`", "ä".repeat(50))),
        "{events:?}"
    );
    let events = record("m v=a\u{1b}[31m").events;
    assert!(events[0].contains(r"`a\u{1b}[31m`"), "{events:?}");
}
