//! M2 to M4: what rows are, and how faults are told.

use serde_json::{Value, json};

use super::{CSV, NDJSON, bucket, errors, imported, post, rows_of, source, values};

#[test]
fn columns_become_time_fields_and_dimensions() {
    let (_server, _, bucket) = bucket();
    let answer = imported(
        &bucket,
        "&dimensions=line,hall",
        "time,line,temperature,hall,door,on\n\
         2026-01-01T00:00:00Z,A,21.5,3,open,true\n\
         2026-01-01T00:01:00Z,B,22,,\"say \"\"x\"\", y\",false\n",
    );
    assert_eq!(
        (&answer["insertedCount"], &answer["failedCount"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(
        rows_of(&bucket, "file"),
        [
            (
                json!("2026-01-01T00:00:00Z"),
                json!({"temperature": 21.5, "door": "open", "on": true}),
                json!({"line": "A", "hall": "3"})
            ),
            (
                json!("2026-01-01T00:01:00Z"),
                json!({"temperature": 22, "door": "say \"x\", y", "on": false}),
                json!({"line": "B"})
            ),
        ],
        "columns → time, fields, dimensions"
    );
    let created = source(&bucket, "file").unwrap();
    for (member, expected) in [
        ("dimensions", json!("all")),
        ("schemaMode", json!("extend")),
        ("duplicates", json!("skip")),
        ("type", json!("metric")),
    ] {
        assert_eq!(
            created[member], expected,
            "contract 13: a source that does not exist is created"
        );
    }
    assert_eq!(created["stats"]["seriesCount"], 2);
}

#[test]
fn types_are_those_of_the_schema_else_those_of_the_cells() {
    let (_server, _, bucket) = bucket();
    let schema = json!({"code": {"type": "string"}, "n": {"type": "number"}, "b": {"type": "boolean"}});
    bucket.source_with(&json!({"name": "file", "schema": schema, "schemaMode": "extend"}));
    let file = "time,code,n,b,new,text\n\
                2026-01-01T00:00:00Z,0012,1e3,true,-4.5,x1\n\
                2026-01-01T00:00:01Z,\"\",,,,true x\n\
                2026-01-01T00:00:02Z,a,n/a,false,1,y\n\
                2026-01-01T00:00:03Z,a,1,yes,1,y\n\
                2026-01-01T00:00:04Z,a,1,true,one,y\n";
    let answer = post(&bucket, CSV, "", file.as_bytes());
    assert_eq!(answer.status, 207, "M2: {answer}");
    assert_eq!(
        values(&bucket),
        [
            json!({"code": "0012", "n": 1000, "b": true, "new": -4.5, "text": "x1"}),
            json!({"code": "", "text": "true x"}),
        ],
        "M3: the source's schema; else true/false boolean, a number, else a string"
    );
    let found = errors(&answer);
    let places: Vec<_> = found.iter().map(|(index, line, _)| (*index, *line)).collect();
    assert_eq!(places, [(2, Some(4)), (3, Some(5)), (4, Some(6))]);
    for ((_, _, text), field) in found.iter().zip(["\"n\"", "\"b\"", "\"new\""]) {
        assert!(text.contains(field), "the error names the field: {text}");
    }
}

#[test]
fn a_row_with_a_fault_is_named_by_index_and_line_and_the_others_are_stored() {
    let (_server, _, bucket) = bucket();
    let file = "\u{feff}time,a,b\r\n\
                2026-01-01T00:00:00Z,1,2\r\n\
                \r\n\
                2026-01-01T00:00:01Z,1\r\n\
                2026-01-01T00:00:02Z,1,2,3\r\n\
                2026-01-01T00:00:03Z,,\r\n\
                ,1,2\r\n\
                yesterday,1,2\r\n\
                2026-01-01T00:00:06Z,\"x\ny\",2\r\n\
                2026-01-01T00:00:07Z,7,8";
    let answer = post(&bucket, CSV, "", file.as_bytes());
    assert_eq!(answer.status, 207, "M2: {answer}");
    let body = answer.json();
    assert_eq!(
        (&body["insertedCount"], &body["failedCount"]),
        (&json!(2), &json!(6))
    );
    let found = errors(&answer);
    let places: Vec<_> = found
        .iter()
        .map(|(index, line, _)| (*index, line.unwrap()))
        .collect();
    assert_eq!(
        places,
        [(1, 4), (2, 5), (3, 6), (4, 7), (5, 8), (6, 9)],
        "M2: index is the data row from 0, header and blank lines not counted; line the file's line from 1"
    );
    assert!(
        found[0].2.contains("2 cells"),
        "M3: too few cells: {}",
        found[0].2
    );
    assert!(
        found[1].2.contains("4 cells"),
        "M3: too many cells: {}",
        found[1].2
    );
    assert!(
        found[2].2.contains("no value"),
        "M4: a row without any field: {}",
        found[2].2
    );
    assert_eq!(
        values(&bucket),
        [json!({"a": 1, "b": 2}), json!({"a": 7, "b": 8})]
    );
}

#[test]
fn if_all_rows_fail_nothing_is_created() {
    let (_server, _, bucket) = bucket();
    let answer = post(&bucket, CSV, "", b"time,a\n2026-01-01T00:00:00Z,\nnever,1\n");
    assert_eq!(answer.status, 400, "M2: 400: {answer}");
    let body = answer.json();
    assert_eq!(
        (&body["insertedCount"], &body["failedCount"]),
        (&json!(0), &json!(2))
    );
    assert_eq!(errors(&answer).len(), 2);
    assert_eq!(source(&bucket, "file"), None, "I5: the source is not created");
}

#[test]
fn lines_of_ndjson_are_flat_objects() {
    let (_server, _, bucket) = bucket();
    let file = "{\"time\":\"2026-01-01T00:00:00Z\",\"a\":1.5,\"s\":\"x\",\"b\":true,\"none\":null,\"host\":\"h\"}\n\
                \n\
                {\"host\":7,\"a\":2,\"time\":\"2026-01-01T00:00:01Z\"}\n\
                {\"time\":\"2026-01-01T00:00:02Z\",\"a\":{\"b\":1}}\n\
                not json\n\
                {\"time\":\"2026-01-01T00:00:04Z\",\"a\":\"text\"}\n\
                {\"a\":1}\n";
    let answer = post(&bucket, NDJSON, "&dimensions=host", file.as_bytes());
    assert_eq!(answer.status, 207, "M2: {answer}");
    let rows: Vec<(Value, Value)> = rows_of(&bucket, "file")
        .into_iter()
        .map(|(_, values, metadata)| (values, metadata))
        .collect();
    assert_eq!(
        rows,
        [
            (json!({"a": 1.5, "s": "x", "b": true}), json!({"host": "h"})),
            (json!({"a": 2}), json!({"host": 7})),
        ],
        "M3: NDJSON is flat: members are columns"
    );
    let places: Vec<_> = errors(&answer)
        .iter()
        .map(|(index, line, _)| (*index, line.unwrap()))
        .collect();
    assert_eq!(places, [(2, 4), (3, 5), (4, 6), (5, 7)]);
}

#[test]
fn rows_that_are_there_already_are_counted() {
    let (_server, _, bucket) = bucket();
    let file = "time,a\n2026-01-01T00:00:00Z,1\n2026-01-01T00:00:01Z,2\n";
    imported(&bucket, "", file);
    let again = imported(&bucket, "", &format!("{file}2026-01-01T00:00:02Z,3\n"));
    assert_eq!(
        (&again["insertedCount"], &again["duplicateCount"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(values(&bucket).len(), 3);
    let answer = post(
        &bucket,
        CSV,
        "",
        b"time,a\n2026-01-01T00:00:00Z,1\n2026-01-01T00:00:09Z,x\n",
    );
    assert_eq!(
        answer.status, 207,
        "F4: duplicates and faults without any insertion: {answer}"
    );
}

#[test]
fn errors_are_bounded_and_their_number_is_exact() {
    let (_server, _, bucket) = bucket();
    let file = format!("time,a\n2026-01-01T00:00:00Z,1\n{}", "never,1\n".repeat(20_000));
    let answer = post(&bucket, CSV, "", file.as_bytes());
    assert_eq!(answer.status, 207, "M2");
    assert_eq!(answer.json()["failedCount"], 20_000, "M2: failedCount exact");
    let found = errors(&answer);
    assert_eq!(found.len(), 1_000, "M2: a bound on errors");
    assert_eq!((found[999].0, found[999].1), (1_000, Some(1_002)));
}

#[test]
fn points_older_than_the_retention_are_refused() {
    let (_server, account, _) = bucket();
    let bucket = account.bucket_with(&json!({"name": "short", "retentionDays": 30}));
    let file = format!(
        "time,a\n2020-01-01T00:00:00Z,1\n{},2\n",
        crate::support::time::timestamp(crate::support::time::now_ns() - 29 * 86_400_000_000_000)
    );
    let answer = post(&bucket, CSV, "", file.as_bytes());
    assert_eq!(answer.status, 207, "I: age: as far back as retention: {answer}");
    assert!(errors(&answer)[0].2.contains("30 days"));
}
