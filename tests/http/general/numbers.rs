//! Numbers: finite doubles are stored and returned unchanged.

use serde_json::json;

use crate::scene::{self, assert_faults, spellings};
use crate::support::client::Answer;
use crate::support::given::Bucket;

const SPELLED: &[&str] = &[
    "0",
    "-1",
    "5.0",
    "1e3",
    "1E3",
    "1e+3",
    "-12.50",
    "0.1",
    "1E-2",
    "20.15",
    "2.50",
    "100.00",
    "0.30000000000000004",
    "0.1234567890123456789",
    "123456789012345678",
    "9007199254740993",
    "18446744073709551616",
    "1e21",
    "1e22",
    "1e23",
    "1.7976931348623157e308",
    "-1.7976931348623157e308",
    "5e-324",
    "2.2250738585072014e-308",
    "1e-400",
    "4.35",
    "8.41",
    "0.000001",
    "1e-7",
    "12345678901234567890.12345",
    "999999999999999.9",
    "0.00000000000000000000000123",
];

/// Sends a point with this spelling of a number.
fn send(bucket: &Bucket, source: &str, number: &str) -> Answer {
    let body = format!(
        r#"{{"bucketId":"{}","dataSourceId":"{source}","timestamp":"2025-01-02","values":{{"level":{number}}}}}"#,
        bucket.id
    );
    bucket
        .client
        .post("/api/data")
        .key(&bucket.admin)
        .body(body)
        .send()
}

#[track_caller]
fn assert_same_number(answer: &str, sent: &str, where_: &str) {
    let printed = spellings(answer, "level");
    let [printed] = printed[..] else {
        panic!("one `level` is expected in {where_}: {answer}")
    };
    let (before, after) = (sent.parse::<f64>().unwrap(), printed.parse::<f64>().unwrap());
    assert!(
        before == after,
        "contract 1: numbers are IEEE doubles: {sent} came back as {printed} in {where_}"
    );
    let integral_with_point = after.fract() == 0.0 && printed.ends_with(".0");
    assert!(
        !integral_with_point,
        "contract 1: an integral value is printed without .0: {printed} in {where_}"
    );
}

#[test]
fn a_number_is_returned_as_the_same_double() {
    let (_server, _, bucket) = scene::bucket();
    for (number, name) in SPELLED.iter().zip(1..) {
        let source = bucket.source(&format!("gauge {name}"), &["level"]);
        let answer = send(&bucket, &source, number);
        answer.expect(201, &format!("contract 1: {number} is a finite double"));
        assert_same_number(&answer.text(), number, "the ingest answer");
        let rows = bucket.post_query(&json!({"filters": {"dataSourceIds": [source]}}));
        assert_same_number(&rows.text(), number, "a raw row");
        for aggregation in ["avg", "sum", "min", "max"] {
            let body = json!({
                "filters": {"dataSourceIds": [source]}, "aggregation": aggregation, "groupBy": "day",
            });
            let text = bucket.post_query(&body).text();
            let flat_and_in_values = spellings(&text, "level");
            assert_eq!(
                flat_and_in_values.len(),
                2,
                "contract 5: a grouped row carries every layout: {text}"
            );
            for printed in flat_and_in_values {
                let same = number.parse::<f64>() == printed.parse::<f64>();
                assert!(
                    same,
                    "contract 5: the {aggregation} of {number} alone is that number: {text}"
                );
                assert!(
                    !printed.ends_with(".0"),
                    "contract 1: an integral value is printed without .0: {text}"
                );
            }
        }
    }
}

/// Random bit patterns over the whole range of exponents, which a codec for decimals might alter.
#[test]
fn random_doubles_survive_ingestion_and_restart_bit_for_bit() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let numbers: Vec<f64> = (0..1000)
        .map(|nth| match nth % 3 {
            0 => f64::from_bits(random.u64(..)),
            1 => f64::from(random.i32(..)) / 100.0,
            _ => random.f64() * 1e6,
        })
        .filter(|number| number.is_finite())
        .collect();
    let entries: Vec<String> = numbers
        .iter()
        .zip(0..)
        .map(|(number, second): (_, i64)| {
            let at = crate::support::time::timestamp(crate::support::time::now_ns() + second * 1_000_000_000);
            let spelled = if number.abs() > 1e15 {
                format!("{number:e}")
            } else {
                format!("{number}")
            };
            format!(r#"{{"dataSourceId":"{source}","timestamp":"{at}","values":{{"level":{spelled}}}}}"#)
        })
        .collect();
    let body = format!(
        r#"{{"bucketId":"{}","dataPoints":[{}]}}"#,
        bucket.id,
        entries.join(",")
    );
    let answer = bucket
        .client
        .post("/api/data/batch")
        .key(&bucket.admin)
        .body(body)
        .send();
    answer.expect(201, "contract 1: every finite double is taken");

    let all = json!({"limit": 1000, "downsampling": false});
    let before = bucket.post_query(&all).text();
    server.kill();
    server.launch();
    for (text, when) in [(before, "before"), (bucket.post_query(&all).text(), "after")] {
        let printed = spellings(&text, "level");
        assert_eq!(
            printed.len(),
            numbers.len(),
            "every point is a row {when} a restart"
        );
        for (number, printed) in numbers.iter().zip(printed) {
            assert!(
                printed.parse::<f64>() == Ok(*number),
                "contract 1: {number:e} came back as {printed} {when} a restart (seed {seed})"
            );
        }
    }
}

#[test]
fn infinite_numbers_are_refused_at_their_path() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    for number in ["1e999", "-1e999", "1e309", "179769313486231580793e289"] {
        let answer = send(&bucket, &source, number);
        assert_faults(
            &answer,
            &["values/level"],
            &format!("contract 1: {number} is not a finite double"),
        );
        let body = format!(
            r#"{{"bucketId":"{0}","dataPoints":[{{"dataSourceId":"{1}","values":{{"level":{number}}}}},
               {{"dataSourceId":"{1}","values":{{"level":1}}}}]}}"#,
            bucket.id, source
        );
        let answer = bucket
            .client
            .post("/api/data/batch")
            .key(&bucket.admin)
            .body(body)
            .send();
        let answer = answer.expect(
            207,
            &format!("contract 4: an infinite number ({number}) is an entry error"),
        );
        assert_eq!(
            answer["errors"][0]["index"], 0,
            "contract 4: the entry at fault is named"
        );
    }
}

#[test]
fn numbers_that_are_not_json_are_refused() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    for number in [
        "NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "0x10",
        "01",
        "-01",
        ".5",
        "5.",
        "+1",
        "1e",
        "1_000",
        "--1",
        "-",
    ] {
        send(&bucket, &source, number).refused(400, &format!("contract 1: {number} is no number"));
        let body = format!(
            r#"{{"bucketId":"{}","dataPoints":[{{"dataSourceId":"{source}","values":{{"level":{number}}}}}]}}"#,
            bucket.id
        );
        let answer = bucket
            .client
            .post("/api/data/batch")
            .key(&bucket.admin)
            .body(body)
            .send();
        answer.refused(400, &format!("contract 1: malformed JSON ({number}) is 400"));
    }
    assert!(
        bucket.rows(&json!({})).is_empty(),
        "a refused number is not stored"
    );
}
