//! An error after the first byte is visible.

use std::fs;
use std::os::unix::fs::FileExt;

use serde_json::json;

use super::slow::{SlowExport, WIDE_BYTES, send_wide_points};
use super::{fields, post};
use crate::scene;
use crate::support::given::Account;

#[test]
fn an_error_after_the_first_byte_ends_the_connection_without_the_last_chunk() {
    const POINTS: i64 = 9_000;
    let mut server = scene::server();
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("plant");
    let source = bucket.source("gauge", &["nth"]);
    send_wide_points(&bucket, &source, POINTS);
    assert!(server.stop().success());
    let segments = scene::files(&server.data_dir().join("segments"));
    let [segment] = segments.as_slice() else {
        panic!("one segment: {segments:?}");
    };
    // In the texts of the last block.
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(segment)
        .unwrap();
    let at = file.metadata().unwrap().len() * 9 / 10;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    server.launch();
    let mut export = SlowExport::begin(&bucket, &json!({"format": "csv"}));
    assert_eq!(export.status(), 200, "the first rows are not damaged");
    let (csv, is_whole) = export.rest();
    assert!(
        !is_whole,
        "small print L7: an error after the first byte ends the connection without the last chunk"
    );
    assert!(csv.len() > WIDE_BYTES, "what could be read was sent");
    let end = csv.iter().rposition(|byte| *byte == b'\n').unwrap();
    let rows = fields(&csv[..=end]);
    assert!(rows.len() < POINTS as usize, "{} rows", rows.len());
    for (nth, row) in rows[1..].iter().enumerate() {
        assert_eq!(row[3], Some(nth.to_string()), "every row that was sent is right");
    }
    // Descending, the damage comes first.
    let refused = post(&bucket, &json!({"format": "csv", "sort": "desc"}));
    refused.refused(500, "an error before the first byte is an error as any other");
}
