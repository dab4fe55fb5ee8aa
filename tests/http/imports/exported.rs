//! What was exported, imported, is the same.

use serde_json::{Value, json};

use super::{CSV, NDJSON, PARQUET, bucket, post};
use crate::scene::call;
use crate::support::given::{Bucket, point};
use crate::support::time::{SECOND, now_ns};

/// Points of a source with all types, metadata, and fields with the names of columns.
fn given(bucket: &Bucket) -> String {
    let schema = json!({
        "level": {"type": "number"}, "open": {"type": "boolean"}, "state": {"type": "string"},
        "timestamp": {"type": "number"}, "metadata": {"type": "string"}, "values.x": {"type": "number"},
    });
    let id = bucket.source_with(&json!({"name": "given", "schema": schema, "dimensions": ["host"]}));
    let at_ns = now_ns() - 3_600 * SECOND;
    let points: Vec<Value> = (0..900)
        .map(|row| {
            let mut values = json!({"level": f64::from(row) / 7.0, "open": row % 2 == 0});
            match row % 3 {
                0 => values["state"] = json!("say \"x\",\n\u{e9}"),
                1 => values["state"] = json!(""),
                _ => values["timestamp"] = json!(row),
            }
            if row % 50 == 0 {
                values["metadata"] = json!("a text");
                values["values.x"] = json!(-0.0);
            }
            let mut point = point(&id, at_ns + i64::from(row) * SECOND + 7, &values);
            if row % 4 != 0 {
                point["metadata"] = json!({"host": format!("h{}", row % 5), "nested": {"a": [1, "}"]}});
            }
            point
        })
        .collect();
    bucket.send(&points);
    id
}

fn rows(bucket: &Bucket, id: &str) -> Vec<Value> {
    let mut rows = bucket.rows(&json!({"dataSourceIds": [id]}));
    for row in &mut rows {
        let row = row.as_object_mut().unwrap();
        row.remove("_id");
        row.remove("dataSourceId");
    }
    rows
}

#[test]
fn points_of_a_source_are_the_same_in_another_by_way_of_each_format() {
    let (_server, account, bucket) = bucket();
    let id = given(&bucket);
    let expected = rows(&bucket, &id);
    assert_eq!(expected.len(), 900);
    for (format, media_type) in [("csv", CSV), ("ndjson", NDJSON), ("parquet", PARQUET)] {
        let export = json!({"bucketId": bucket.id, "format": format, "filters": {"dataSourceIds": [id]}});
        let file = call(&bucket.client, &bucket.admin, "POST", "/api/data/export", &export);
        assert_eq!(file.status, 200);
        // Into a source that is created, and into one with the same schema.
        let other = account.bucket(format);
        let answer = post(&other, media_type, "", &file.body);
        assert_eq!(answer.status, 201, "{format}: {answer}");
        let created = super::source(&other, "file").unwrap();
        let found = rows(&other, created["_id"].as_str().unwrap());
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "{format}: row {index}");
        }
        assert_eq!(found.len(), expected.len());
        assert_eq!(
            created["stats"]["seriesCount"], 6,
            "{format}: hosts are dimensions again"
        );
    }
}

#[test]
fn points_of_several_sources_are_not_mixed_up() {
    let (_server, _, bucket) = bucket();
    let at_ns = now_ns() - 3_600 * SECOND;
    for name in ["one", "two"] {
        let id = bucket.source(name, &["a"]);
        bucket.send(&[point(&id, at_ns, &json!({"a": 1}))]);
    }
    for (format, media_type) in [("csv", CSV), ("ndjson", NDJSON)] {
        let export = json!({"bucketId": bucket.id, "format": format});
        let file = call(&bucket.client, &bucket.admin, "POST", "/api/data/export", &export);
        let answer = post(&bucket, media_type, "", &file.body);
        assert_eq!(answer.status, 207, "{answer}");
        assert!(
            super::errors(&answer)[0]
                .2
                .contains("export the points of one source"),
            "{answer}"
        );
    }
}

/// Regression: rows with both were refused, and `{}` before a dimension became a text that is no JSON.
#[test]
fn columns_that_are_dimensions_join_the_metadata_of_an_export() {
    let (_server, _, bucket) = bucket();
    let rows = [
        ("1", "", "x", json!({"room": "x"})),
        ("2", r#"{"a":1}"#, "x", json!({"a": 1, "room": "x"})),
        ("3", "{}", "x", json!({"room": "x"})),
        ("4", r#"{"a":1}"#, "", json!({"a": 1})),
        // The column counts.
        ("5", r#"{"room":"old"}"#, "x", json!({"room": "x"})),
    ];
    for (columns, name) in [("metadata,room", "before"), ("room,metadata", "behind")] {
        let mut file = format!("timestamp,dataSourceId,_id,n,{columns}\n");
        for (second, metadata, room, _) in &rows {
            let metadata = format!("\"{}\"", metadata.replace('"', "\"\""));
            let metadata = if metadata == "\"\"" { "" } else { &metadata };
            let (one, other) = match name {
                "before" => (metadata, *room),
                _ => (*room, metadata),
            };
            file.push_str(&format!("2023-11-14T22:13:2{second}Z,,,{second},{one},{other}\n"));
        }
        let parameters = format!("&source={name}&dimensions=room");
        let answer = super::post(&bucket, CSV, &parameters, file.as_bytes());
        assert_eq!(answer.status, 201, "small print M4: {answer}");
        let found = super::rows_of(&bucket, name).into_iter();
        let found: Vec<Value> = found.map(|(_, _, metadata)| metadata).collect();
        let expected: Vec<&Value> = rows.iter().map(|(.., expected)| expected).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{columns}");
    }
}
