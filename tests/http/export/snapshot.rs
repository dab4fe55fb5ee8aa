//! An export shows one moment, however long its client takes.

use std::collections::BTreeSet;

use serde_json::json;

use super::fields;
use super::slow::{SlowExport, send_wide_points};
use crate::scene::{self, call};
use crate::support::given::point;
use crate::support::time::{SECOND, timestamp};
use crate::support::waiting::until;

/// More than sockets hold for a client that reads nothing.
const POINTS: i64 = 9_000;

#[test]
fn later_points_are_not_in_it_and_points_deleted_later_are() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["nth"]);
    let first_ns = send_wide_points(&bucket, &source, POINTS);
    for sort in ["asc", "desc"] {
        let rows = bucket.rows(&json!({}));
        let expected: Vec<String> = rows.iter().map(|row| row["values"]["nth"].to_string()).collect();
        let mut export = SlowExport::begin(&bucket, &json!({"format": "csv", "sort": sort}));
        assert_eq!(export.status(), 200, "the export has begun");
        // At its end, whatever the order.
        for at_ns in [first_ns - SECOND, first_ns + (POINTS + 1) * SECOND] {
            bucket.send(&[point(&source, at_ns, &json!({"nth": -1}))]);
        }
        let deleted = json!({
            "bucketId": bucket.id,
            "filters": {"startTime": timestamp(first_ns), "endTime": timestamp(first_ns + POINTS * SECOND)},
        });
        let deleted = call(
            &bucket.client,
            &bucket.admin,
            "POST",
            "/api/data/delete",
            &deleted,
        );
        deleted.expect(200, "contract 11: a deletion");
        let (csv, is_whole) = export.rest();
        assert!(is_whole, "small print L8: the export goes on");
        let csv = fields(&csv);
        let mut found: Vec<String> = csv[1..].iter().map(|row| row[3].clone().unwrap()).collect();
        if sort == "desc" {
            found.reverse();
        }
        assert_eq!(found.len(), expected.len(), "small print L8 ({sort})");
        assert!(
            found == expected,
            "small print L8: points acknowledged after the export began are not in it, points deleted after it began are \
             ({sort})"
        );
        if sort == "asc" {
            send_wide_points(&bucket, &source, POINTS);
        }
    }
}

#[test]
fn files_that_are_merged_meanwhile_are_read_to_the_end() {
    let (server, _, bucket) = scene::sealing_bucket();
    let source = bucket.source("gauge", &["nth"]);
    send_wide_points(&bucket, &source, POINTS);
    let segments = server.data_dir().join("segments");
    until("points are in segments", || {
        (!scene::files(&segments).is_empty()).then_some(())
    });
    let before: BTreeSet<_> = scene::files(&segments).into_iter().collect();
    let mut export = SlowExport::begin(&bucket, &json!({"format": "csv"}));
    assert_eq!(export.status(), 200, "the export has begun");
    until("a file that the export began with is merged away", || {
        send_wide_points(&bucket, &source, 1_000);
        let now: BTreeSet<_> = scene::files(&segments).into_iter().collect();
        (!before.is_subset(&now)).then_some(())
    });
    let (csv, is_whole) = export.rest();
    assert!(is_whole, "small print L8: one snapshot");
    let csv = fields(&csv);
    assert_eq!(
        csv.len() as i64 - 1,
        POINTS,
        "all rows of the beginning, and no others"
    );
    for (nth, row) in csv[1..].iter().enumerate() {
        assert_eq!(row[3], Some(nth.to_string()));
    }
}
