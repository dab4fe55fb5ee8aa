//! Compares the scanner with `serde_json` and the standard library: the same texts are accepted, with bit-identical
//! values.

use engine::rows::NOT_DECIMAL;
use serde_json::Value;

use super::*;

/// Prints the seed, so that a failure can be repeated.
fn seeded(seed: u64) -> fastrand::Rng {
    println!("seed {seed:#x}");
    fastrand::Rng::with_seed(seed)
}

fn skip(body: &[u8]) -> Result<(), Malformed> {
    let mut scan = Scanner::new(body)?;
    scan.skip_value(0)?;
    scan.end()
}

/// The result of `serde_json`, except for numbers beyond the range of doubles: it refuses them, the scanner leaves them
/// to its caller.
fn well_formed(body: &[u8]) -> Option<bool> {
    match serde_json::from_slice::<Value>(body) {
        Ok(_) => Some(true),
        Err(error) if error.to_string().starts_with("number out of range") => None,
        Err(_) => Some(false),
    }
}

fn assert_agrees(body: &[u8]) {
    if let Some(expected) = well_formed(body) {
        let ours = skip(body);
        assert_eq!(
            ours.is_ok(),
            expected,
            "{:?}: {ours:?}",
            String::from_utf8_lossy(body)
        );
        assert!(
            ours.is_ok() || ours.is_err_and(|fault| fault.offset <= body.len() && !fault.message.is_empty())
        );
    }
}

const SAMPLES: &[&str] = &[
    r#"{"a":[1,2.5,-3e-7,{"b":null,"c":[true,false,"x\"y\\z\/\b\f\n\r\t\u00e9\ud83d\ude00"]}],"":{}}"#,
    " [ ] ",
    "\t{\r\n\"k\" : [ [ ] , { } , \"\" , 0 , -0 , -0.0 , 1E+2 , 1e-2 ] }\n",
    r#"["0123456789012345678901234567890123456789é\u0000€𝄞"]"#,
    "null",
    "-12.75",
    "\"\"",
];

#[test]
fn well_formedness_agrees_with_serde_json() {
    for body in SAMPLES {
        assert_eq!(well_formed(body.as_bytes()), Some(true), "{body}");
        assert_agrees(body.as_bytes());
        for end in 0..body.len() {
            assert_agrees(&body.as_bytes()[..end]);
        }
    }
    for body in [
        "",
        " ",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\":1,}",
        "{\"a\"}",
        "{a:1}",
        "{\"a\":}",
        "{1:2}",
        "[1]]",
        "[1}",
        "{]",
        "01",
        "-",
        "-01",
        "1.",
        ".5",
        "+1",
        "1e",
        "1e+",
        "0x10",
        "1_000",
        "NaN",
        "Infinity",
        "-Infinity",
        "tru",
        "truee",
        "nulls",
        "nul",
        "'a'",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\n\"",
        "\"\\ud800\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\n\"",
        "\"\u{1f}\"",
        "\"",
        "\"\\",
        "\"\\\"",
        "[\"a\"",
        "\u{feff}1",
        "\u{a0}1",
        "/*x*/1",
        "1 1",
        "[1,2",
        "{\"a\":1",
        "{\"a\":1,\"a\":2}",
        "\"\u{7f}\"",
        "\0",
        "1\0",
    ] {
        assert_agrees(body.as_bytes());
    }
    for byte in 0..=255 {
        assert_agrees(&[b'"', byte, b'"']);
        assert_agrees(&[b'"', b'\\', byte, b'"']);
        assert_agrees(&[b'[', byte, b']']);
        assert_agrees(&[b"\"01234567".as_slice(), &[byte], b"89abcdef\""].concat());
    }
}

#[test]
fn mutated_and_random_texts_parse_as_with_serde_json() {
    let mut random = seeded(0x15_0001);
    let alphabet = b"{}[]\",:\\u0123456789abdeflnrstE+-. \n\x80\xc3\xa9";
    for _ in 0..60_000 {
        let mut body = random
            .choice(SAMPLES)
            .map(|sample| sample.as_bytes().to_vec())
            .unwrap();
        for _ in 0..random.usize(1..4) {
            let place = random.usize(..=body.len());
            match random.u8(..4) {
                0 if place < body.len() => body[place] = *random.choice(alphabet).unwrap(),
                1 if place < body.len() => drop(body.remove(place)),
                2 => body.insert(place, random.u8(..)),
                _ => body.insert(place, *random.choice(alphabet).unwrap()),
            }
        }
        assert_agrees(&body);
        let soup: Vec<u8> = (0..random.usize(..12))
            .map(|_| *random.choice(alphabet).unwrap())
            .collect();
        assert_agrees(&soup);
    }
}

#[test]
fn depth_is_bounded_without_recursion() {
    let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    for depth in [1, 126, 127, 128, 129] {
        assert_eq!(
            skip(&nested(depth)).is_ok(),
            depth <= DEPTH_MAX as usize,
            "{depth}"
        );
        assert_agrees(&nested(depth));
    }
    assert_eq!(
        skip(&vec![b'['; 100_000]).unwrap_err().message,
        "nested too deeply"
    );
    let objects = "{\"a\":".repeat(100_000);
    assert_eq!(skip(objects.as_bytes()).unwrap_err().message, "nested too deeply");
    let alternating = |depth: usize| format!("{}1{}", "[{\"a\":".repeat(depth), "}]".repeat(depth));
    assert_eq!(skip(alternating(63).as_bytes()), Ok(()));
    assert!(skip(alternating(64).as_bytes()).is_err());
}

fn number(text: &str) -> Number {
    let mut scan = Scanner::new(text.as_bytes()).unwrap();
    let number = scan.number().unwrap_or_else(|fault| panic!("{text}: {fault}"));
    assert_eq!(scan.at(), text.len(), "{text}");
    number
}

/// The rule of `RowsWriter`, computed from the text.
fn decimals(text: &str) -> u8 {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_start_matches('0');
    let behind = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let minus_zero = digits.is_empty() && text.starts_with('-');
    let decimal = !text.contains(['e', 'E']) && digits.len() <= 15 && behind <= 22 && !minus_zero;
    if decimal { behind as u8 } else { NOT_DECIMAL }
}

fn assert_number(text: &str) {
    let ours = number(text);
    let nearest: f64 = text.parse().unwrap();
    assert_eq!(ours.value.to_bits(), nearest.to_bits(), "{text}");
    assert_eq!(ours.decimals, decimals(text), "{text}");
    assert_eq!(ours.is_infinite(), nearest.is_infinite(), "{text}");
    match serde_json::from_str::<Value>(text) {
        Ok(value) => assert_eq!(value.as_f64().unwrap().to_bits(), nearest.to_bits(), "{text}"),
        Err(_) => assert!(nearest.is_infinite(), "{text}"),
    }
}

#[test]
fn numbers_are_the_nearest_doubles_and_state_their_decimals() {
    for text in [
        "0",
        "-0",
        "0.0",
        "-0.0",
        "-0.000",
        "1",
        "-1",
        "20.15",
        "20.10",
        "3.1",
        "12345",
        "0.1",
        "0.000123",
        "1e5",
        "1E5",
        "1.5e-3",
        "0e5",
        "-0e5",
        "123456789012345",
        "999999999999999",
        "1000000000000000",
        "0.1000000000000000",
        "1234567890123456",
        "12345678901234567890",
        "9007199254740992",
        "9007199254740993",
        "9007199254740993.0",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999",
        "0.1234567890123456",
        "0.123456789012345",
        "123456789.012345",
        "1e22",
        "1e23",
        "0.0000000000000000000001",
        "0.00000000000000000000001",
        "0.0000000000000000000000000000001",
        "5e-324",
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1e-400",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "1e309",
        "-1e309",
        "1e999999999999999999999",
        "1e-999999999999999999999",
        "0e999999999999999999999",
        "2.2250738585072011e-308",
        "0.30000000000000004",
        "100000000000000000000000000000000000000000.5",
    ] {
        assert_number(text);
    }
    assert_number(&format!("1{}", "0".repeat(400)));
    assert_number(&format!("0.{}1", "0".repeat(400)));
    assert_number(&format!("0.{}", "123456789".repeat(100)));
}

#[test]
fn random_numbers_are_the_nearest_doubles() {
    let mut random = seeded(0x15_0002);
    for _ in 0..60_000 {
        let digits = |random: &mut fastrand::Rng, count: usize| -> String {
            (0..count).map(|_| char::from(b'0' + random.u8(..10))).collect()
        };
        let length = random.usize(1..22);
        let whole = digits(&mut random, length).trim_start_matches('0').to_owned();
        let sign = if random.bool() { "-" } else { "" };
        let mut text = format!("{sign}{}", if whole.is_empty() { "0" } else { &whole });
        if random.bool() {
            let length = random.usize(1..26);
            text.push('.');
            text.push_str(&digits(&mut random, length));
        }
        if random.u8(..4) == 0 {
            text.push_str(&format!("e{}", random.i32(-340..320)));
        }
        assert_number(&text);
        let any = f64::from_bits(random.u64(..));
        if any.is_finite() {
            assert_number(&format!("{any:e}"));
            assert_number(&format!("{any}"));
        }
    }
}

#[test]
fn strings_decode_as_with_serde_json() {
    let mut random = seeded(0x15_0003);
    let pieces = [
        "a",
        "0123456789",
        "é",
        "€",
        "𝄞",
        "\\n",
        "\\\\",
        "\\\"",
        "\\/",
        "\\u0041",
        "\\u00e9",
        "\\ud834\\udd1e",
        "\\uD834\\uDD1E",
        "\\u0000",
        "\u{7f}",
        "'",
        "{",
        "]",
        ",",
        ":",
    ];
    let mut buffer = String::new();
    for _ in 0..20_000 {
        let inner: String = (0..random.usize(..12))
            .map(|_| *random.choice(&pieces).unwrap())
            .collect();
        let text = format!("\"{inner}\"");
        let expected: String = serde_json::from_str(&text).unwrap();
        let mut scan = Scanner::new(text.as_bytes()).unwrap();
        let string = scan.string().unwrap();
        assert_eq!(string.get(&mut buffer), expected, "{text}");
        assert_eq!(string.plain().is_some(), !inner.contains('\\'), "{text}");
        assert_eq!(string.into_cow(), expected, "{text}");
        assert_eq!(scan.end(), Ok(()));
        let mut written = Vec::new();
        write_string(&expected, &mut written);
        assert_eq!(serde_json::from_slice::<String>(&written).unwrap(), expected);
    }
}

#[test]
fn numbers_are_written_shortest_and_integers_without_a_point() {
    let written = |value: f64| {
        let mut out = Vec::new();
        write_number(value, &mut out);
        String::from_utf8(out).unwrap()
    };
    for (value, text) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-17.0, "-17"),
        (20.15, "20.15"),
        (0.1 + 0.2, "0.30000000000000004"),
        (12_345.0, "12345"),
        (9_007_199_254_740_992.0, "9007199254740992"),
        (1e-7, "1e-7"),
        (1e22, "1e+22"),
        (-1e17, "-1e+17"),
    ] {
        assert_eq!(written(value), text);
    }
    let mut random = seeded(0x15_0004);
    for _ in 0..50_000 {
        let value = match random.u8(..3) {
            0 => f64::from_bits(random.u64(..)),
            1 => random.i64(..) as f64,
            _ => random.f64() * 1e6,
        };
        if value.is_finite() {
            let text = written(value);
            assert_eq!(number(&text).value.to_bits(), value.to_bits(), "{text}");
            assert!(!text.ends_with(".0"), "{text}");
        }
    }
}
