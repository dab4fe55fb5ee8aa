//! Timestamps: accepted spellings, their returned form, and refused ones.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, column};

/// Sent timestamps and their returned form.
const TAKEN: &[(&str, &str)] = &[
    ("2025-01-02T03:04:05Z", "2025-01-02T03:04:05Z"),
    ("2025-01-02T03:04:05.0Z", "2025-01-02T03:04:05Z"),
    ("2025-01-02T03:04:05.000000000Z", "2025-01-02T03:04:05Z"),
    ("2025-01-02T03:04:05.1Z", "2025-01-02T03:04:05.100Z"),
    ("2025-01-02T03:04:05.12Z", "2025-01-02T03:04:05.120Z"),
    ("2025-01-02T03:04:05.123Z", "2025-01-02T03:04:05.123Z"),
    ("2025-01-02T03:04:05.123000Z", "2025-01-02T03:04:05.123Z"),
    ("2025-01-02T03:04:05.1234Z", "2025-01-02T03:04:05.123400Z"),
    ("2025-01-02T03:04:05.123456Z", "2025-01-02T03:04:05.123456Z"),
    ("2025-01-02T03:04:05.1234567Z", "2025-01-02T03:04:05.123456700Z"),
    ("2025-01-02T03:04:05.123456789Z", "2025-01-02T03:04:05.123456789Z"),
    ("2025-01-02T03:04:05.000000001Z", "2025-01-02T03:04:05.000000001Z"),
    ("2025-01-02T03:04:05.999999999Z", "2025-01-02T03:04:05.999999999Z"),
    ("2025-01-02T03:04:05+02:00", "2025-01-02T01:04:05Z"),
    ("2025-01-02T03:04:05.5-05:30", "2025-01-02T08:34:05.500Z"),
    ("2025-01-02T03:04:05+0200", "2025-01-02T01:04:05Z"),
    ("2025-01-02T03:04:05-0530", "2025-01-02T08:34:05Z"),
    ("2025-01-02T03:04:05+02", "2025-01-02T01:04:05Z"),
    ("2025-01-02T03:04:05+00:00", "2025-01-02T03:04:05Z"),
    ("2025-01-01T00:30:00+01:00", "2024-12-31T23:30:00Z"),
    ("2025-01-02T03:04:05", "2025-01-02T03:04:05Z"),
    ("2025-01-02T03:04:05.25", "2025-01-02T03:04:05.250Z"),
    ("2025-01-02t03:04:05z", "2025-01-02T03:04:05Z"),
    ("2025-01-02T03:04Z", "2025-01-02T03:04:00Z"),
    ("2025-01-02T03:04", "2025-01-02T03:04:00Z"),
    ("2025-01-02T03:04+02:00", "2025-01-02T01:04:00Z"),
    ("2025-01-02", "2025-01-02T00:00:00Z"),
    ("2024-02-29", "2024-02-29T00:00:00Z"),
    ("2000-02-29T23:59:59Z", "2000-02-29T23:59:59Z"),
    ("1969-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.999999999Z"),
    ("1678-01-01T00:00:00Z", "1678-01-01T00:00:00Z"),
    ("1677-12-31T23:30:00-01:00", "1678-01-01T00:30:00Z"),
    ("2261-12-31T23:59:59.999999999Z", "2261-12-31T23:59:59.999999999Z"),
    ("2262-01-01T00:30:00+01:00", "2261-12-31T23:30:00Z"),
];

const REFUSED: &[&str] = &[
    "",
    "now",
    "1735787045",
    "2025-01-02 03:04:05",
    "2025-01-02T03:04:05 Z",
    " 2025-01-02T03:04:05Z",
    "2025-01-02T03:04:05Z ",
    "2025-01-02T24:00:00Z",
    "2025-01-02T23:59:60Z",
    "2025-01-02T23:60:00Z",
    "2025-01-02T25:00:00Z",
    "2025-00-02T03:04:05Z",
    "2025-13-02T03:04:05Z",
    "2025-01-00T03:04:05Z",
    "2025-02-29T03:04:05Z",
    "2100-02-29",
    "2025-04-31",
    "2025-1-2",
    "25-01-02",
    "12025-01-02T03:04:05Z",
    "+2025-01-02T03:04:05Z",
    "-2025-01-02T03:04:05Z",
    "20250102",
    "20250102T030405Z",
    "2025-01-02T0304Z",
    "2025-01-02T03Z",
    "2025-01-02T03",
    "2025-01-02T",
    "2025-01-02Z",
    "2025-01",
    "2025-W01-4",
    "2025-002",
    "2025-01-02T03:04:05,5Z",
    "2025-01-02T03:04.5Z",
    "2025-01-02T03:04:05.1234567890Z",
    "2025-01-02T03:04:05.12a4Z",
    "2025-01-02T03:04:05ZZ",
    "2025-01-02T03:04:05Z[UTC]",
    "2025-01-02T03:04:05 +02:00",
    "2025-01-02T03:04:05+",
    "2025-01-02T03:04:05+2",
    "2025-01-02T03:04:05+02:",
    "2025-01-02T03:04:05+02:0",
    "2025-01-02T03:04:05+24:00",
    "2025-01-02T03:04:05+02:60",
    "2025-01-02T03:04:05+aa:00",
    "2025/01/02",
    "01/02/2025",
    "Thu, 02 Jan 2025 03:04:05 GMT",
    "２０２５-01-02",
    "1677-12-31T23:59:59.999999999Z",
    "1678-01-01T00:30:00+01:00",
    "2262-01-01T00:00:00Z",
    "2261-12-31T23:30:00-01:00",
    "0000-01-01",
    "9999-12-31",
];

#[test]
fn every_accepted_form_is_normalized_and_selects_its_instant() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    for (sent, printed) in TAKEN {
        let point = json!({"dataSourceId": source, "timestamp": sent, "values": {"level": 1}});
        let answer = bucket
            .single(&point)
            .expect(201, &format!("contract 1: `{sent}` is a timestamp"));
        assert_eq!(
            answer["dataPoint"]["timestamp"], *printed,
            "contract 1: timestamps out, of `{sent}`"
        );
    }
    for (sent, printed) in TAKEN {
        let from = bucket.rows(&json!({"startTime": sent}));
        assert_eq!(
            from[0]["timestamp"], *printed,
            "contract 5: startTime `{sent}` is inclusive"
        );
        let until = bucket.rows(&json!({"endTime": sent}));
        assert_eq!(
            until[until.len() - 1]["timestamp"],
            *printed,
            "contract 5: endTime `{sent}` is inclusive"
        );
    }
    let rows = bucket.rows(&json!({}));
    let mut printed: Vec<Value> = TAKEN.iter().map(|(_, printed)| json!(printed)).collect();
    let mut found = column(&rows, "/timestamp");
    printed.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    found.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    assert_eq!(found, printed, "contract 1: nothing of the fraction is lost");
}

#[test]
fn other_forms_are_refused_wherever_a_timestamp_is_read() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let texts = REFUSED.iter().map(|text| json!(text));
    let others = [
        json!(1_735_787_045),
        json!(1_735_787_045_000_i64),
        json!(true),
        json!({}),
        json!(["2025-01-02"]),
    ];
    for sent in texts.chain(others) {
        let why = format!("contract 1: {sent} is no timestamp");
        let point = json!({"dataSourceId": source, "timestamp": sent, "values": {"level": 1}});
        assert_faults(&bucket.single(&point), &["timestamp"], &why);
        let batch = bucket.batch(&[point]).refused(400, &why);
        assert_eq!(
            batch["errors"][0]["index"], 0,
            "contract 4: all entries failed, {why}: {batch}"
        );
        assert_faults(
            &bucket.post_query(&json!({"filters": {"startTime": sent}})),
            &["filters/startTime"],
            &why,
        );
        assert_faults(
            &bucket.post_query(&json!({"filters": {"endTime": sent}})),
            &["filters/endTime"],
            &why,
        );
    }
    assert!(
        bucket.rows(&json!({})).is_empty(),
        "a refused point is not stored"
    );
}

#[test]
fn a_point_without_timestamp_gets_the_current_time() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let before = crate::support::time::now_ns();
    let single = json!({"dataSourceId": source, "values": {"level": 1}});
    let answer = bucket
        .single(&single)
        .expect(201, "spec: `timestamp` is optional");
    scene::assert_timestamp(&answer["dataPoint"]["timestamp"], "timestamp");
    bucket
        .batch(&[single])
        .expect(201, "spec: `timestamp` of an entry is optional");
    let after = crate::support::time::now_ns();
    let range = json!({
        "startTime": crate::support::time::timestamp(before),
        "endTime": crate::support::time::timestamp(after),
    });
    assert_eq!(
        bucket.rows(&range).len(),
        2,
        "spec: `timestamp` defaults to the current time"
    );
}

#[test]
fn every_time_in_an_answer_has_the_canonical_form() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let point = bucket
        .single(&json!({"dataSourceId": source, "values": {"level": 1}}))
        .json();
    scene::assert_timestamp(&point["dataPoint"]["createdAt"], "dataPoint.createdAt");
    let shown = bucket.call("GET", "", &Value::Null).json();
    let listed = bucket.call("GET", "/sources", &Value::Null).json();
    let key = bucket
        .call("POST", "/keys", &json!({"name": "reader", "type": "read"}))
        .json();
    for (of, value) in [
        ("bucket", &shown["bucket"]),
        ("dataSource", &array(&listed, "/dataSources")[0]),
    ] {
        scene::assert_timestamp(&value["createdAt"], &format!("{of}.createdAt"));
        scene::assert_timestamp(&value["updatedAt"], &format!("{of}.updatedAt"));
    }
    scene::assert_timestamp(&key["apiKey"]["createdAt"], "apiKey.createdAt");
    let login = json!({"email": account.email, "password": crate::support::given::PASSWORD});
    let session = account.client.post("/api/auth/login").json(&login).send().json();
    scene::assert_timestamp(&session["expiresAt"], "expiresAt");
}
