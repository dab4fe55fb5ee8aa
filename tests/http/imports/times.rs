//! M1: precision.

use serde_json::json;

use super::{CSV, NDJSON, bucket, errors, imported, post, rows_of};

#[test]
fn numbers_are_epochs_with_a_precision_and_refused_without() {
    let (_server, _, bucket) = bucket();
    for (index, (precision, time)) in [
        ("s", "1700000000.5"),
        ("ms", "1700000001000"),
        ("us", "1700000002000001"),
        ("ns", "1700000003000000001"),
        ("ns", "2023-11-14T22:13:24Z"),
    ]
    .into_iter()
    .enumerate()
    {
        imported(
            &bucket,
            &format!("&precision={precision}"),
            &format!("time,a\n{time},{index}\n"),
        );
    }
    let line = b"{\"time\":1700000005000000007,\"a\":5}\n";
    post(&bucket, NDJSON, "&precision=ns", line).expect(201, "M1: numbers are epochs");
    let times: Vec<_> = rows_of(&bucket, "file")
        .into_iter()
        .map(|(time, ..)| time)
        .collect();
    assert_eq!(
        times,
        [
            "2023-11-14T22:13:20.500Z",
            "2023-11-14T22:13:21Z",
            "2023-11-14T22:13:22.000001Z",
            "2023-11-14T22:13:23.000000001Z",
            "2023-11-14T22:13:24Z",
            "2023-11-14T22:13:25.000000007Z",
        ]
        .map(|time| json!(time))
    );
    let answer = post(&bucket, CSV, "", b"time,a\n1700000000,1\n");
    assert_eq!(answer.status, 400, "M1: without it only ISO 8601: {answer}");
    assert!(
        errors(&answer)[0].2.contains("precision"),
        "the error says what to do"
    );
    let answer = post(
        &bucket,
        CSV,
        "&precision=s",
        b"time,a\n1e300,1\n99999999999999,1\n",
    );
    assert_eq!(errors(&answer).len(), 2, "times out of range: {answer}");
}
