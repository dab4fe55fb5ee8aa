//! Exports in progress are few, and hold little memory whatever their size.

use serde_json::{Value, json};

use super::slow::{SlowExport, WIDE_BYTES, send_wide_points};
use super::{file, post};
use crate::scene;
use crate::security::process::resident_bytes_max;
use crate::support::given::{Account, point};
use crate::support::time::{HOUR, SECOND, now_ns, timestamp};
use crate::support::waiting::until;

/// More than sockets hold for a client that reads nothing.
const POINTS: i64 = 9_000;

#[test]
fn four_exports_at_once_and_the_place_of_a_client_that_hangs_up_is_free_again() {
    let (server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["nth"]);
    send_wide_points(&bucket, &source, POINTS);
    let body = json!({"format": "csv"});
    let mut exports: Vec<SlowExport> = (0..4).map(|_| SlowExport::begin(&bucket, &body)).collect();
    for export in &mut exports {
        assert_eq!(export.status(), 200, "small print L7: 4 exports at once");
    }
    let refused = post(&bucket, &body);
    refused.refused(
        503,
        "small print L7: at most 4 exports of an organization at once (503)",
    );
    assert!(
        refused.header("retry-after").is_some(),
        "contract 1: 503 with Retry-After"
    );
    assert_eq!(
        bucket.rows(&json!({})).len(),
        POINTS as usize,
        "queries are served meanwhile"
    );
    let other = Account::sign_up(&server.client).bucket("other");
    let gauge = other.source("gauge", &["nth"]);
    other.send(&[point(&gauge, now_ns() - HOUR, &json!({"nth": 1}))]);
    assert_eq!(
        post(&other, &body).status,
        200,
        "other organizations have places of their own"
    );

    drop(exports.pop());
    until("the place of a client that hung up is free", || {
        let mut again = SlowExport::begin(&bucket, &body);
        (again.status() == 200).then(|| exports.push(again))
    });
    for export in exports {
        let (csv, is_whole) = export.rest();
        assert!(
            is_whole && csv.len() > POINTS as usize * WIDE_BYTES,
            "the others have all rows"
        );
    }
    until("all places are free", || {
        (post(&bucket, &body).status == 200).then_some(())
    });
}

#[test]
fn memory_does_not_grow_with_the_file() {
    const MANY: i64 = 40_000;
    const FEW: i64 = MANY / 8;
    let mut server = scene::server();
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("plant");
    let source = bucket.source("gauge", &["nth"]);
    let first_ns = send_wide_points(&bucket, &source, MANY);
    // What was sent is in files then, and the memory that took is given back.
    assert!(server.stop().success());
    server.launch();
    let few = json!({"filters": {"endTime": timestamp(first_ns + (FEW - 1) * SECOND)}});
    let export = |query: &Value, rows: i64| {
        for format in ["csv", "ndjson", "parquet", "arrow"] {
            let bytes = file(&bucket, format, query).len();
            // Texts of letters and digits take six bits of each byte.
            assert!(
                bytes > rows as usize * WIDE_BYTES * 3 / 4,
                "{format} has {bytes} bytes"
            );
        }
    };
    export(&few, FEW);
    let before = resident_bytes_max(&server);
    export(&json!({}), MANY);
    // The files of the points are mapped: at most their size is resident besides.
    let mapped: u64 = scene::files(&server.data_dir().join("segments"))
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .sum();
    let grown = resident_bytes_max(&server).saturating_sub(before + mapped);
    assert!(
        grown < 24 << 20,
        "eight times the rows took {} MiB more, beside {} MiB of mapped files",
        grown >> 20,
        mapped >> 20
    );
}
