//! Parquet and Arrow have the rows and the types that the contract says.

use columnar::Format;
use columnar::read::{Table, Value as Cell, read};
use serde_json::{Value, json};

use super::{file, lines};
use crate::scene;
use crate::support::given::{Bucket, point};
use crate::support::time::{HOUR, MINUTE, SECOND, now_ns, timestamp};

const FORMATS: [(&str, Format); 2] = [("parquet", Format::Parquet), ("arrow", Format::Arrow)];

#[track_caller]
fn table(bucket: &Bucket, (name, format): (&str, Format), query: &Value) -> Table {
    read(format, file(bucket, name, query)).unwrap_or_else(|error| panic!("{name} does not read: {error}"))
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn types(table: &Table) -> Vec<(&str, &str)> {
    let columns = table.columns.iter();
    columns
        .map(|(name, kind)| (name.as_str(), kind.as_str()))
        .collect()
}

#[test]
fn points_have_their_types_and_a_field_of_several_types_is_spelled_as_json() {
    let (_server, _, bucket) = scene::bucket();
    let schema = |mixed: &str| {
        json!({
            "level": {"type": "number"}, "open": {"type": "boolean"}, "text": {"type": "string"}, "mixed": {"type": mixed},
        })
    };
    let kinds = ["number", "string", "boolean"];
    let sources = kinds.map(|kind| bucket.source_with(&json!({"name": kind, "schema": schema(kind)})));
    let at_ns = now_ns() / HOUR * HOUR - HOUR + 123_456_789;
    let mixed = [json!(1.5), json!("say \"x\""), json!(true)];
    let mut ids = Vec::new();
    for (nth, (source, mixed)) in sources.iter().zip(&mixed).enumerate() {
        let values = json!({"level": nth, "open": nth == 1, "text": "", "mixed": mixed});
        let mut point = point(source, at_ns + nth as i64, &values);
        point["metadata"] = json!({"nth": nth});
        let stored = bucket.single(&point).expect(201, "spec: a point");
        ids.push(stored["dataPoint"]["_id"].as_str().unwrap().to_owned());
    }
    bucket.single(&point(&sources[0], at_ns + 9, &json!({"level": 9})));
    for format in FORMATS {
        let found = table(&bucket, format, &json!({}));
        assert_eq!(
            types(&found),
            [
                ("timestamp", "Nanosecond UTC"),
                ("dataSourceId", "Utf8"),
                ("_id", "Utf8"),
                ("level", "Float64"),
                ("mixed", "Utf8"),
                ("open", "Boolean"),
                ("text", "Utf8"),
                ("metadata", "Utf8"),
            ],
            "small print L5: timestamp[ns, UTC], double, bool, utf8"
        );
        let spelled = ["1.5", "\"say \\\"x\\\"\"", "true"];
        for nth in 0..3 {
            assert_eq!(
                found.rows[nth],
                [
                    Cell::Timestamp(at_ns + nth as i64),
                    text(&sources[nth]),
                    text(&ids[nth]),
                    Cell::Number(nth as f64),
                    text(spelled[nth]),
                    Cell::Boolean(nth == 1),
                    text(""),
                    text(&format!("{{\"nth\":{nth}}}")),
                ],
                "small print L5"
            );
        }
        assert_eq!(
            found.rows[3][3..],
            [Cell::Number(9.0), Cell::Null, Cell::Null, Cell::Null, Cell::Null]
        );
        let one = table(
            &bucket,
            format,
            &json!({"filters": {"dataSourceIds": [sources[2]]}}),
        );
        assert_eq!(one.columns[4].1, "Boolean", "only selected sources count");
        let groups = json!({"aggregation": ["last", "count", "avg"], "groupBy": "hour", "mergeSources": true, "filters": {"fields": ["mixed", "open"]}});
        let found = table(&bucket, format, &groups);
        assert_eq!(
            types(&found),
            [
                ("timestamp", "Nanosecond UTC"),
                ("mixed.last", "Utf8"),
                ("mixed.count", "Float64"),
                ("mixed.avg", "Float64"),
                ("open.last", "Boolean"),
                ("open.count", "Float64"),
            ]
        );
        assert_eq!(found.rows[0][1..3], [text("true"), Cell::Number(3.0)]);
    }
}

#[test]
fn many_batches_have_all_rows_in_order() {
    let (_server, _, bucket) = scene::sealing_bucket();
    let sources = ["one", "other"].map(|name| bucket.source(name, &["nth", "level"]));
    let first_ns = now_ns() - 30_000 * SECOND;
    let points: Vec<Value> = (0..20_000)
        .map(|nth| {
            let mut values = json!({"nth": nth});
            if nth % 3 == 0 {
                values["level"] = json!(f64::from(nth) / 8.0);
            }
            point(
                &sources[nth as usize % 2],
                first_ns + i64::from(nth) * SECOND,
                &values,
            )
        })
        .collect();
    bucket.send(&points);
    for query in [
        json!({}),
        json!({"sort": "desc"}),
        json!({"aggregation": ["avg", "max"], "groupBy": "15s", "compare": {"offset": "1m"}}),
        json!({"expressions": [{"name": "sum", "expression": "nth + level"}]}),
    ] {
        let expected = lines(&bucket, &query);
        for format in FORMATS {
            let found = table(&bucket, format, &query);
            assert_eq!(found.rows.len(), expected.len(), "{query}");
            for (row, expected) in found.rows.iter().zip(&expected) {
                for ((name, _), cell) in found.columns.iter().zip(row) {
                    assert_cell(cell, expected, name, &query);
                }
            }
        }
    }
    for format in FORMATS {
        let nothing = json!({"filters": {"endTime": "2001-01-01T00:00:00Z"}});
        let found = table(&bucket, format, &nothing);
        assert!(
            found.rows.is_empty(),
            "small print L6: nothing to export: a schema"
        );
        assert_eq!(found.columns.len(), 6);
    }
}

/// Compares a cell with the same row of NDJSON.
#[track_caller]
fn assert_cell(cell: &Cell, row: &Value, name: &str, query: &Value) {
    let values = |name: &str| match name.strip_prefix("previous.") {
        Some(name) => ("previous", name.to_owned()),
        None => ("values", name.to_owned()),
    };
    let value = match name {
        "timestamp" | "dataSourceId" | "_id" | "metadata" => row[name].clone(),
        _ => {
            let (member, path) = values(name);
            let pointer = format!("/{member}/{}", path.replace('.', "/"));
            row.pointer(&pointer).cloned().unwrap_or(Value::Null)
        }
    };
    let is_same = match cell {
        Cell::Null => value.is_null(),
        Cell::Timestamp(ns) => value == timestamp(*ns),
        Cell::Number(number) => value.as_f64() == Some(*number),
        Cell::Boolean(boolean) => value == *boolean,
        Cell::Text(text) => value == **text,
    };
    assert!(is_same, "{name} is {cell}, not {value}: {query}");
}

#[test]
fn long_texts_end_batches_early() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["nth"]);
    let first_ns = now_ns() - HOUR + MINUTE;
    let points: Vec<Value> = (0..1_000)
        .map(|nth| {
            let mut point = point(&source, first_ns + nth * SECOND, &json!({"nth": nth}));
            point["metadata"] = json!({"text": format!("{nth} {}", "x".repeat(8_000))});
            point
        })
        .collect();
    for points in points.chunks(500) {
        bucket.send(points);
    }
    for format in FORMATS {
        let found = table(&bucket, format, &json!({}));
        assert_eq!(found.rows.len(), 1_000);
        for (nth, row) in found.rows.iter().enumerate() {
            let Cell::Text(metadata) = &row[4] else {
                panic!("no metadata: {row:?}");
            };
            assert!(
                metadata.starts_with(&format!("{{\"text\":\"{nth} xxx")),
                "{}",
                &metadata[..40]
            );
        }
    }
}
