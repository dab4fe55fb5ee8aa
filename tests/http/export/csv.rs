//! The columns of an export, and how CSV spells values.

use serde_json::{Value, json};

use super::{EXPORT, file, post};
use crate::scene;
use crate::support::given::{Bucket, point};
use crate::support::time::{HOUR, SECOND, now_ns, timestamp};

#[track_caller]
fn csv(bucket: &Bucket, query: &Value) -> String {
    String::from_utf8(file(bucket, "csv", query)).unwrap()
}

#[track_caller]
fn header(bucket: &Bucket, query: &Value) -> String {
    csv(bucket, query).lines().next().unwrap().to_owned()
}

#[test]
fn values_are_spelled_as_rfc_4180_and_json_have_it() {
    let (_server, _, bucket) = scene::bucket();
    let schema = json!({
        "level": {"type": "number"}, "open": {"type": "boolean"}, "text": {"type": "string"}, "unused": {"type": "number"},
    });
    let source = bucket.source_with(&json!({"name": "gauge", "schema": schema}));
    let at_ns = now_ns() / HOUR * HOUR - HOUR;
    let sent = [
        (
            json!({"level": 21.0, "open": true, "text": "plain"}),
            Value::Null,
            "21,true,plain,,",
        ),
        (
            json!({"level": 0.1, "open": false, "text": ""}),
            Value::Null,
            "0.1,false,\"\",,",
        ),
        (json!({"level": -1.5e-7}), Value::Null, "-1.5e-7,,,,"),
        (json!({"level": 1e300}), Value::Null, "1e+300,,,,"),
        (
            json!({"text": "a \"b\", c"}),
            Value::Null,
            ",,\"a \"\"b\"\", c\",,",
        ),
        (
            json!({"text": "two\nlines, größer"}),
            Value::Null,
            ",,\"two\nlines, größer\",,",
        ),
        (
            json!({"level": 3}),
            json!({"a": "x,y", "n": 1}),
            "3,,,,\"{\"\"a\"\":\"\"x,y\"\",\"\"n\"\":1}\"",
        ),
    ];
    let mut expected = "timestamp,dataSourceId,_id,level,open,text,unused,metadata\n".to_owned();
    for (nth, (values, metadata, line)) in sent.iter().enumerate() {
        let at_ns = at_ns + nth as i64 * SECOND + 5_000_000;
        let mut point = point(&source, at_ns, values);
        if !metadata.is_null() {
            point["metadata"] = metadata.clone();
        }
        let stored = bucket.single(&point).expect(201, "spec: a point");
        let id = stored["dataPoint"]["_id"].as_str().unwrap();
        expected += &format!("{},{source},{id},{line}\n", timestamp(at_ns));
    }
    assert_eq!(
        csv(&bucket, &json!({})),
        expected,
        "small print L5: header line, LF, null = empty, empty string = \"\", numbers as in JSON"
    );
}

#[test]
fn columns_follow_fields_otherwise_the_names_in_order() {
    let (_server, _, bucket) = scene::bucket();
    let at_ns = now_ns() - HOUR;
    let sources = [["pump", "level"], ["alarm", "level"], ["timestamp", "_id"]].map(|names| {
        let source = bucket.source(&names.join(" "), &names);
        bucket.send(&[point(&source, at_ns, &json!({names[0]: 1, names[1]: 2}))]);
        source
    });
    for (query, columns) in [
        (json!({}), "values._id,alarm,level,pump,values.timestamp"),
        (json!({"filters": {"fields": ["pump", "alarm"]}}), "pump,alarm"),
        (
            json!({"filters": {"fields": ["timestamp", "pump"]}}),
            "values.timestamp,pump",
        ),
        (json!({"filters": {"dataSourceIds": [sources[1]]}}), "alarm,level"),
        (
            json!({"expressions": [{"name": "metadata", "expression": "level / pump"}, {"name": "a,b", "expression": "1 * level"}]}),
            "values._id,alarm,level,pump,values.timestamp,values.metadata,\"a,b\"",
        ),
    ] {
        assert_eq!(
            header(&bucket, &query),
            format!("timestamp,dataSourceId,_id,{columns},metadata"),
            "small print L4: {query}"
        );
    }
    for (query, columns) in [
        (
            json!({"aggregation": "avg", "groupBy": "hour"}),
            "timestamp,dataSourceId,_id,alarm,level,pump,values.timestamp",
        ),
        (
            json!({"aggregation": ["max", "p95"], "groupBy": "hour", "filters": {"fields": ["pump", "level"]}}),
            "timestamp,dataSourceId,pump.max,pump.p95,level.max,level.p95",
        ),
        (
            json!({"aggregation": "sum", "groupBy": "day", "mergeSources": true, "filters": {"fields": ["level"]}}),
            "timestamp,level",
        ),
        (
            json!({
                "aggregation": ["avg", "max"], "groupBy": "hour", "compare": {"offset": "7d"},
                "filters": {"fields": ["level"]}, "expressions": [{"name": "half", "expression": "level / 2"}],
            }),
            "timestamp,dataSourceId,level.avg,level.max,half.avg,half.max,previous.level.avg,previous.level.max,\
             previous.half.avg,previous.half.max",
        ),
    ] {
        assert_eq!(header(&bucket, &query), columns, "small print L4: {query}");
    }
}

#[test]
fn declared_fields_without_values_are_columns_and_nothing_is_a_header() {
    let (_server, _, bucket) = scene::bucket();
    let empty = "timestamp,dataSourceId,_id,metadata\n";
    assert_eq!(
        csv(&bucket, &json!({})),
        empty,
        "small print L6: a bucket without sources"
    );
    let schema = json!({"level": {"type": "number"}, "text": {"type": "string"}});
    bucket.source_with(&json!({"name": "gauge", "schema": schema}));
    let declared = "timestamp,dataSourceId,_id,level,text,metadata\n";
    assert_eq!(
        csv(&bucket, &json!({})),
        declared,
        "small print L4: declared fields without values"
    );
    let groups = json!({"aggregation": ["avg", "count"], "groupBy": "day"});
    assert_eq!(
        csv(&bucket, &groups),
        "timestamp,dataSourceId,level.avg,level.count,text.count\n",
        "an aggregation has columns of the fields that it covers"
    );
    assert_eq!(
        file(&bucket, "ndjson", &json!({})),
        b"",
        "small print L6: an empty body, 200"
    );
}

#[test]
fn answers_are_attachments_of_their_type() {
    let (_server, account, _) = scene::bucket();
    let bucket = account.bucket("Häfen \"Nord\"/1");
    bucket.source("gauge", &["level"]);
    let start = json!({"startTime": "2026-11-20T06:30:00Z"});
    for (format, media_type, extension) in [
        ("csv", "text/csv; charset=utf-8", "csv"),
        ("ndjson", "application/x-ndjson", "ndjson"),
        ("parquet", "application/vnd.apache.parquet", "parquet"),
        ("arrow", "application/vnd.apache.arrow.stream", "arrows"),
    ] {
        let answer = post(&bucket, &json!({"format": format, "filters": start}));
        assert_eq!(answer.status, 200, "{EXPORT}: {answer}");
        assert_eq!(answer.header("content-type"), Some(media_type), "small print L6");
        let name = format!("attachment; filename=\"H-fen-Nord-1-20261120T063000Z.{extension}\"");
        assert_eq!(
            answer.header("content-disposition"),
            Some(&*name),
            "small print L6"
        );
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    // Without a start, as far back as points are kept.
    let answer = post(&bucket, &json!({"format": "csv"}));
    let name = answer.header("content-disposition").unwrap();
    assert!(
        name.starts_with("attachment; filename=\"H-fen-Nord-1-20"),
        "{name}"
    );
}

#[test]
fn files_are_compressed_as_the_client_accepts_it() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let first_ns = now_ns() - HOUR;
    let points: Vec<Value> = (0..9_000)
        .map(|nth| point(&source, first_ns + nth, &json!({"level": nth})))
        .collect();
    bucket.send(&points);
    for format in ["csv", "ndjson", "parquet", "arrow"] {
        let plain = file(&bucket, format, &json!({}));
        for coding in ["gzip", "zstd"] {
            let body = json!({"bucketId": bucket.id, "format": format});
            let request = bucket.client.post("/api/data/export").key(&bucket.admin);
            let answer = request.header("Accept-Encoding", coding).json(&body).send();
            assert_eq!(
                answer.header("content-encoding"),
                Some(coding),
                "small print L6: gzip/zstd"
            );
            let decoded = match coding {
                "gzip" => {
                    let mut decoded = Vec::new();
                    let mut decoder = flate2::read::GzDecoder::new(answer.body.as_slice());
                    std::io::Read::read_to_end(&mut decoder, &mut decoded).unwrap();
                    decoded
                }
                _ => zstd::stream::decode_all(answer.body.as_slice()).unwrap(),
            };
            assert!(decoded == plain, "{format} by {coding} has other bytes");
        }
    }
}
