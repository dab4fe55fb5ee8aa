//! M1: parameters, and columns that are not there.

use serde_json::json;

use super::{CSV, NDJSON, bucket, imported, post, source, values};
use crate::scene::assert_faults;

const ROW: &str = "time,a\n2026-01-01T00:00:00Z,1\n";

#[test]
fn unknown_columns_are_400_before_anything_is_stored() {
    let (_server, _, bucket) = bucket();
    let rows = "2026-01-01T00:00:00Z,1\n".repeat(100_000);
    let file = format!("time,a\n{rows}");
    for (parameters, at) in [("&time=when", "time"), ("&dimensions=a,host", "dimensions")] {
        let answer = post(&bucket, CSV, parameters, file.as_bytes());
        assert_faults(&answer, &[at], "M1: unknown columns: 400");
    }
    let answer = post(
        &bucket,
        NDJSON,
        "&dimensions=host",
        b"{\"time\":\"2026-01-01T00:00:00Z\",\"a\":1}\n",
    );
    assert_faults(&answer, &["dimensions"], "M1: unknown columns: 400");
    let answer = post(&bucket, CSV, "", b"when,a\n2026-01-01T00:00:00Z,1\n");
    assert_faults(&answer, &["time"], "M1: else timestamp, else time");
    assert_eq!(source(&bucket, "file"), None, "nothing is stored");
    let schema = json!({"a": {"type": "number"}});
    bucket.source_with(&json!({"name": "file", "schema": schema, "schemaMode": "strict"}));
    let answer = post(&bucket, CSV, "", b"time,a,b\n2026-01-01T00:00:00Z,1,\n");
    assert_faults(&answer, &["b"], "a column that a strict source does not take");
    assert_eq!(values(&bucket), [] as [serde_json::Value; 0]);
}

#[test]
fn the_time_is_timestamp_else_time_else_the_column_that_is_named() {
    let (_server, _, bucket) = bucket();
    imported(&bucket, "", "time,timestamp\n1,2026-01-01T00:00:00Z\n");
    imported(&bucket, "&time=when", "time,when\n2,2026-01-01T00:00:01Z\n");
    assert_eq!(values(&bucket), [json!({"time": 1}), json!({"time": 2})]);
}

#[test]
fn the_format_is_the_parameter_or_the_type_of_the_content() {
    let (_server, _, bucket) = bucket();
    post(&bucket, "application/octet-stream", "&format=csv", ROW.as_bytes()).expect(201, "M1: format");
    post(&bucket, "text/csv; charset=utf-8", "", ROW.as_bytes()).expect(201, "M1: else by Content-Type");
    let line = b"{\"time\":\"2026-01-01T00:00:00Z\",\"a\":1}";
    post(&bucket, "text/csv", "&format=ndjson", line).expect(201, "M1: format comes first");
    let answer = post(&bucket, "application/octet-stream", "", ROW.as_bytes());
    assert_faults(&answer, &["format"], "M1: the format has to be known");
    let answer = post(&bucket, CSV, "&format=CSV", ROW.as_bytes());
    assert_faults(&answer, &["format"], "M1: one of csv, ndjson, parquet");
    let path = format!("/api/buckets/{}/import", bucket.id);
    let answer = bucket.client.post(&path).key(&bucket.admin).bytes(ROW).send();
    assert_faults(&answer, &["source"], "M1: source is required");
    let answer = post(&bucket, CSV, "&precision=m", ROW.as_bytes());
    assert_faults(&answer, &["precision"], "M1: ns, us, ms, s");
}

#[test]
fn the_source_is_named_by_its_name_or_id() {
    let (_server, _, bucket) = bucket();
    let id =
        bucket.source_with(&json!({"name": "pump", "schema": {"a": {"type": "number"}}, "type": "sensor"}));
    let send = |source: &str| {
        let path = format!("/api/buckets/{}/import?source={source}&format=csv", bucket.id);
        bucket.client.post(&path).key(&bucket.admin).bytes(ROW).send()
    };
    send(&id).expect(201, "M1: name or id");
    send("pump").expect(201, "M1: name or id");
    let rows = bucket.rows(&json!({"dataSourceIds": [id]}));
    assert_eq!(rows.len(), 2, "a source that keeps duplicates is used as it is");
    assert_eq!(
        send("0123456789abcdef01234567").status,
        404,
        "an id that no source has"
    );
    assert_faults(&send("%20"), &["source"], "I4: a name that is blank");
    assert_faults(
        &send(&"x".repeat(201)),
        &["source"],
        "I4: a name that is too long",
    );
}

#[test]
fn files_without_rows_store_nothing_and_files_without_a_header_are_refused() {
    let (_server, _, bucket) = bucket();
    for (media_type, file) in [(CSV, "time,a\n"), (NDJSON, ""), (NDJSON, "\n\n")] {
        let answer = post(&bucket, media_type, "", file.as_bytes()).expect(201, "no rows");
        assert_eq!(answer["insertedCount"], 0);
    }
    for file in ["", "time,a,a\n", "time,\n"] {
        let answer = post(&bucket, CSV, "", file.as_bytes());
        assert_eq!(answer.status, 400, "M3: header required, names unique: {answer}");
    }
    assert_eq!(source(&bucket, "file"), None);
}
