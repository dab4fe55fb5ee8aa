//! Metadata: kept and returned exactly as sent.

use serde_json::json;

use crate::scene::{self, assert_faults};
use crate::support::client::Answer;
use crate::support::given::Bucket;

/// Spellings that a JSON tree would change.
const SPELLED: &[&str] = &[
    r#"{"a":1.0}"#,
    r#"{"a":1.50,"b":1e2,"c":1E+2,"d":-0.0,"e":-0,"f":0.10}"#,
    r#"{"big":1e400,"huge":123456789012345678901234567890,"small":1e-999,"digits":0.1234567890123456789012345}"#,
    r#"{ "a" : 1 , "b" : [ 1 , 2 ] }"#,
    "{\n\t\"a\":\r\n 1}",
    r#"{"z":1,"a":2,"m":3}"#,
    r#"{"a":1,"a":2}"#,
    r#"{"a":"\u00e9\/\"\\\b\f\n\r\t","é":"é😀","\u0061":"\ud83d\ude00"}"#,
    r#"{"a":{"b":{"c":{"d":[[],{},[null,true,false,"",[[[1]]]]]}}}}"#,
    r#"{"":"","$where":"1","__proto__":{"x":1},"a.b":1}"#,
    r#"{"bucketId":"x","values":{"level":7},"timestamp":"no"}"#,
    "{}",
];

fn body(bucket: &Bucket, source: &str, metadata: &str) -> String {
    format!(
        r#"{{"bucketId":"{}","dataSourceId":"{source}","values":{{"level":1}},"metadata":{metadata}}}"#,
        bucket.id
    )
}

fn single(bucket: &Bucket, body: String) -> Answer {
    bucket
        .client
        .post("/api/data")
        .key(&bucket.admin)
        .body(body)
        .send()
}

#[track_caller]
fn assert_holds(answer: &Answer, metadata: &str, where_: &str) {
    let found = answer.text().contains(&format!("\"metadata\":{metadata}"));
    assert!(
        found,
        "contract 4: metadata is returned exactly as sent, {metadata} in {where_}: {answer}"
    );
}

#[test]
fn metadata_is_returned_byte_for_byte() {
    let (mut server, _, bucket) = scene::bucket();
    let mut sources = Vec::new();
    for (nth, metadata) in SPELLED.iter().enumerate() {
        let one = bucket.source(&format!("single {nth}"), &["level"]);
        let answer = single(&bucket, body(&bucket, &one, metadata));
        answer_is(&answer, 201);
        assert_holds(&answer, metadata, "the ingest answer");
        let many = bucket.source(&format!("batch {nth}"), &["level"]);
        let entry = format!(r#"{{"dataSourceId":"{many}","metadata":{metadata},"values":{{"level":1}}}}"#);
        let batch = format!(r#"{{"bucketId":"{}","dataPoints":[{entry},{entry}]}}"#, bucket.id);
        answer_is(
            &bucket
                .client
                .post("/api/data/batch")
                .key(&bucket.admin)
                .body(batch)
                .send(),
            201,
        );
        sources.push((metadata, [one, many]));
    }
    for when in ["at once", "after a kill", "after a stop"] {
        match when {
            "after a kill" => server.kill(),
            "after a stop" => _ = server.stop(),
            _ => {}
        }
        if when != "at once" {
            server.launch();
        }
        for (metadata, sources) in &sources {
            for source in sources {
                let answer = bucket
                    .post_query(&json!({"filters": {"dataSourceIds": [source]}, "downsampling": false}));
                assert_holds(&answer, metadata, &format!("a raw row {when}"));
            }
        }
    }
}

#[track_caller]
fn answer_is(answer: &Answer, status: u16) {
    assert_eq!(
        answer.status, status,
        "contract 4: metadata is an object of any JSON: {answer}"
    );
}

#[test]
fn metadata_has_at_most_16384_bytes_as_sent() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let text = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
    let blank = |bytes: usize| format!(r#"{{"a":1{}}}"#, " ".repeat(bytes - 7));
    let wide = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "é".repeat((bytes - 8) / 2));
    for of_size in [&text as &dyn Fn(usize) -> String, &blank, &wide] {
        let fits = of_size(16_384);
        assert_eq!(fits.len(), 16_384, "the test's own arithmetic");
        let answer = single(&bucket, body(&bucket, &source, &fits));
        answer_is(&answer, 201);
        assert_holds(&answer, &fits, "the ingest answer");
        let too_large = single(&bucket, body(&bucket, &source, &of_size(16_386)));
        assert_faults(
            &too_large,
            &["metadata"],
            "contract 4: metadata is at most 16,384 bytes",
        );
    }
    let one_more = single(&bucket, body(&bucket, &source, &text(16_385)));
    assert_faults(
        &one_more,
        &["metadata"],
        "contract 4: metadata is at most 16,384 bytes",
    );
    for wrong in ["[]", "[1]", "\"text\"", "5", "true"] {
        let answer = single(&bucket, body(&bucket, &source, wrong));
        assert_faults(&answer, &["metadata"], "contract 4: metadata is an object");
    }
    for malformed in [
        "{",
        "{'a':1}",
        "{\"a\":01}",
        "{\"a\":1,}",
        "{\"a\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":NaN}",
    ] {
        let answer = single(&bucket, body(&bucket, &source, malformed));
        answer.refused(
            400,
            &format!("contract 1: malformed JSON is 400, inside metadata too ({malformed})"),
        );
    }
}

/// Each point has its own metadata, whether or not texts are interned.
#[test]
fn every_point_has_its_own_metadata() {
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let now = crate::support::time::now_ns();
    let metadata = |nth: i64| match nth % 5 {
        0 => None,
        1 => Some(format!(r#"{{"sensor": "{}"}}"#, nth % 3)),
        _ => Some(format!(r#"{{"nth":{nth}.0}}"#)),
    };
    let entry = |nth: i64| {
        let at = crate::support::time::timestamp(now + nth);
        let metadata = metadata(nth)
            .map(|text| format!(r#","metadata":{text}"#))
            .unwrap_or_default();
        format!(r#"{{"dataSourceId":"{source}","timestamp":"{at}","values":{{"level":{nth}}}{metadata}}}"#)
    };
    let entries: Vec<String> = (0..900).map(entry).collect();
    let batch = format!(
        r#"{{"bucketId":"{}","dataPoints":[{}]}}"#,
        bucket.id,
        entries.join(",")
    );
    answer_is(
        &bucket
            .client
            .post("/api/data/batch")
            .key(&bucket.admin)
            .body(batch)
            .send(),
        201,
    );
    for restarted in [false, true] {
        if restarted {
            server.stop();
            server.launch();
        }
        let text = bucket
            .post_query(&json!({"limit": 1000, "downsampling": false}))
            .text();
        let mut rest = text.as_str();
        for nth in 0..900 {
            let Some(metadata) = metadata(nth) else { continue };
            let member = format!("\"metadata\":{metadata}");
            let at = rest
                .find(&member)
                .unwrap_or_else(|| panic!("contract 4: {member} of point {nth} is missing or misplaced"));
            rest = &rest[at + member.len()..];
        }
        let with = (0..900).filter(|nth| metadata(*nth).is_some()).count();
        // One more for the answer's own `metadata`.
        assert_eq!(
            text.matches("\"metadata\":").count(),
            with + 1,
            "contract 5: rows leave out metadata when there was none"
        );
    }
}
