//! Files as long as they are: memory, compression, repetitions, bodies that break off.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use super::{CSV, PARQUET, bucket, errors, post, source, values};
use crate::scene::{self, assert_faults};
use crate::support::given::Bucket;
use crate::support::waiting::until;

const DAY_S: i64 = 1_767_225_600;

/// A file of so many rows, one a second.
fn file(rows: i64) -> String {
    let mut file = String::from("time,a,state\n");
    for row in 0..rows {
        file.push_str(&format!("{},{}.5,\"on, {}\"\n", DAY_S + row, row, row % 3));
    }
    file
}

fn count(bucket: &Bucket) -> u64 {
    source(bucket, "file").map_or(0, |source| source["stats"]["totalDataPoints"].as_u64().unwrap())
}

#[test]
fn a_file_of_any_length_is_stored_whole() {
    let (_server, _, bucket) = bucket();
    let rows = 600_000;
    let file = file(rows);
    assert!(
        file.len() > 10_485_760,
        "longer than the bodies of all other routes"
    );
    let answer = post(&bucket, CSV, "&precision=s", file.as_bytes()).expect(201, "no size limit");
    assert_eq!(answer["insertedCount"], rows);
    assert_eq!(count(&bucket), rows as u64);
}

#[test]
fn compressed_files_are_imported() {
    let (_server, _, bucket) = bucket();
    let file = file(30_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(file.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::stream::encode_all(file.as_bytes(), 1).unwrap();
    let send = |coding: &str, body: &[u8]| {
        let path = format!(
            "/api/buckets/{}/import?source={coding}&precision=s&format=csv",
            bucket.id
        );
        let request = bucket.client.post(&path).key(&bucket.admin).bytes(body);
        request.header("Content-Encoding", coding).send()
    };
    assert_eq!(
        send("gzip", &gzip).expect(201, "I3: gzip")["insertedCount"],
        30_000
    );
    assert_eq!(
        send("zstd", &zstd).expect(201, "I3: zstd")["insertedCount"],
        30_000
    );
    for (coding, body) in [("gzip", &gzip), ("zstd", &zstd)] {
        let answer = send(coding, &body[..body.len() - 20]);
        assert_eq!(answer.status, 400, "a body that ends too early: {answer}");
        assert!(
            answer.text().contains("imported"),
            "says what was stored: {answer}"
        );
    }
    assert_eq!(send("snappy", &gzip).status, 415);
}

#[test]
fn a_file_that_breaks_off_and_is_sent_again_under_its_key_is_stored_once() {
    let (server, _, bucket) = bucket();
    // This source keeps duplicates: only the key prevents them.
    let schema = json!({"a": {"type": "number"}, "state": {"type": "string"}});
    bucket.source_with(&json!({"name": "file", "schema": schema}));
    let file = file(50_000);
    let path = format!(
        "/api/buckets/{}/import?source=file&precision=s&format=csv",
        bucket.id
    );
    let address = bucket.client.base();
    let address = address.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {}\r\nIdempotency-Key: one\r\nContent-Length: {}\r\n\r\n",
        bucket.admin,
        file.len()
    );
    connection.write_all(head.as_bytes()).unwrap();
    connection.write_all(&file.as_bytes()[..file.len() / 2]).unwrap();
    until("the first batches are stored", || {
        (count(&bucket) > 0).then_some(())
    });
    drop(connection);
    let send = |file: &str| {
        let request = bucket.client.post(&path).key(&bucket.admin).bytes(file);
        request.header("Idempotency-Key", "one").send()
    };
    let mut server = server;
    server.kill();
    server.launch();
    let answer = send(&file).expect(201, "the same file");
    assert_eq!(
        answer["insertedCount"], 50_000,
        "an idempotent replay repeats the first answer's numbers"
    );
    assert_eq!(count(&bucket), 50_000, "each row is stored once");
    assert_eq!(send(&file).expect(201, "again")["insertedCount"], 50_000);
    assert_eq!(count(&bucket), 50_000);
    let other = file.replace("0.5", "1.5");
    assert_eq!(send(&other).status, 409, "another file under the same key");
}

#[test]
fn an_organization_has_a_bounded_number_of_imports_in_progress() {
    let (_server, account, bucket) = bucket();
    let path = format!("/api/buckets/{}/import?source=file&format=csv", bucket.id);
    let address = bucket.client.base();
    let address = address.strip_prefix("http://").unwrap().to_owned();
    let begin = || {
        let mut connection = TcpStream::connect(&address).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {}\r\nContent-Length: 1000\r\n\r\ntime,a\n",
            bucket.admin
        );
        connection.write_all(head.as_bytes()).unwrap();
        connection
    };
    let refused = || post(&bucket, CSV, "", b"time,a\n2026-01-01T00:00:00Z,1\n");
    // A poll takes a place for a moment, in which one of these is refused: so one more begins after each poll that
    // found a place. When a poll finds none, these hold all of them.
    let mut held: Vec<TcpStream> = Vec::new();
    until("one more is refused", || {
        let is_refused = refused().status == 503;
        if !is_refused {
            held.push(begin());
        }
        is_refused.then_some(())
    });
    assert!(refused().header("Retry-After").is_some());
    let other = crate::support::given::Account::sign_up(&account.client);
    let other = other.bucket_with(&json!({"name": "other", "retentionDays": scene::RETENTION_DAYS_MAX}));
    post(&other, CSV, "", b"time,a\n2026-01-01T00:00:00Z,1\n").expect(201, "others are served");
    drop(held);
    until("their places are free again", || {
        (refused().status == 201).then_some(())
    });
}

#[test]
fn parquet_is_read_with_its_types_and_other_files_are_refused() {
    let (_server, _, bucket) = bucket();
    let spec = |name: &str, kind| columnar::ColumnSpec {
        name: name.to_owned(),
        kind,
        is_nullable: true,
        is_distinct: false,
    };
    let specs = [
        spec("when", columnar::Kind::Timestamp),
        spec("level", columnar::Kind::Number),
        spec("open", columnar::Kind::Boolean),
        spec("host", columnar::Kind::Text),
        spec("state", columnar::Kind::Text),
    ];
    let mut table = columnar::TableWriter::new(columnar::Format::Parquet, &specs).unwrap();
    for row in 0..9_000_i64 {
        let columns = table.columns();
        columns[0].push_timestamp(DAY_S * 1_000_000_000 + row);
        match row % 2 {
            0 => columns[1].push_number(row as f64 / 8.0),
            _ => columns[1].push_number(f64::NAN),
        }
        columns[2].push_boolean(row % 3 == 0);
        columns[3].push_text(if row % 5 == 0 { "a" } else { "b" });
        columns[4].push_null();
        table.add_rows(1).unwrap();
    }
    table.finish().unwrap();
    let file = table.take_bytes();
    let answer = post(&bucket, PARQUET, "&time=when&dimensions=host", &file).expect(201, "M1: parquet");
    assert_eq!(answer["insertedCount"], 9_000);
    let found = values(&bucket);
    assert_eq!(found[0], json!({"level": 0, "open": true}));
    assert_eq!(found[1], json!({"open": false}), "M3: Parquet NaN is null");
    assert_eq!(source(&bucket, "file").unwrap()["stats"]["seriesCount"], 2);
    assert_faults(
        &post(&bucket, PARQUET, "&time=nope", &file),
        &["time"],
        "M1: unknown columns",
    );
    for bad in [&b"time,a\n1,2\n3,4\n"[..], &file[..file.len() - 1], b""] {
        assert_eq!(post(&bucket, PARQUET, "&time=when", bad).status, 400);
    }
    let mut damaged = file.clone();
    damaged[200..260].fill(0xff);
    let answer = post(&bucket, PARQUET, "&time=when", &damaged);
    assert_eq!(answer.status, 400, "a damaged file: {answer}");
    assert!(errors_of(&answer).is_empty());
}

fn errors_of(answer: &crate::support::client::Answer) -> Vec<(u64, Option<u64>, String)> {
    match answer.json().get("errors") {
        Some(_) => errors(answer),
        None => Vec::new(),
    }
}

#[test]
fn memory_does_not_grow_with_the_file() {
    let (server, _, bucket) = bucket();
    let path = format!(
        "/api/buckets/{}/import?source=file&precision=s&format=csv",
        bucket.id
    );
    let address = bucket.client.base();
    let address = address.strip_prefix("http://").unwrap().to_owned();
    let send = |rows: i64, line_of: &dyn Fn(i64) -> String| {
        let mut connection = TcpStream::connect(&address).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {}\r\nTransfer-Encoding: chunked\r\n\
             Connection: close\r\n\r\n",
            bucket.admin
        );
        connection.write_all(head.as_bytes()).unwrap();
        let mut piece = String::from("time,a\n");
        for row in 0..rows {
            piece.push_str(&line_of(row));
            if piece.len() > 60_000 || row == rows - 1 {
                write!(connection, "{:x}\r\n{piece}\r\n", piece.len()).unwrap();
                piece.clear();
            }
        }
        connection.write_all(b"0\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    };
    send(10_000, &|row| format!("{},1\n", DAY_S + row));
    let before = peak_bytes(server.pid());
    // Rows that are refused make no blocks, so that what the server keeps does not grow either.
    let answer = send(3_000_000, &|_| "2026-01-01T00:00:00Zx,123456\n".to_owned());
    assert!(answer.contains("\"failedCount\":3000000"), "{answer:.300}");
    let grown = peak_bytes(server.pid()).saturating_sub(before);
    assert!(
        grown < 64 << 20,
        "peak memory grew by {grown} bytes for a file of 87 MB"
    );
}

/// The most memory that a process has had.
fn peak_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kib: u64 = line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1_024
}
