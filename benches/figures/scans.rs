//! Reads concurrent with ingest: acknowledgements at a fixed rate during full scans of the same bucket.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::Outcome;
use crate::client::Connection;
use crate::concurrent::{ROUND, ROUNDS, slowdown};
use crate::ingest::Load;
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const SCANS: Experiment = Experiment {
    figures: &[Figure {
        what: "ingest p99 during eight full raw scans of the bucket, against without",
        required: Requirement::AtMost(2.0),
        unit: "× p99",
    }],
    run: scans,
};

const SCANNERS: usize = 8;

fn scans() -> Outcome<Vec<Measured>> {
    let mut load = Load::start(&[])?;
    load.drive(8, 1_000)?;
    load.server.settle()?;
    let pages = AtomicU64::new(0);
    let (value, note) = slowdown(&mut load, SCANNERS, &|load, stop| scan(load, stop, &pages))?;
    let rate = pages.into_inner() as f64 / (ROUND.as_secs_f64() * ROUNDS as f64);
    let note = format!(
        "{note}; {SCANNERS} clients read pages of 10,000 rows in a loop ({} pages a second)",
        significant(rate)
    );
    Ok(vec![Measured { value, note }])
}

/// Scans the whole bucket in a loop.
fn scan(load: &Load, stop: &AtomicBool, pages: &AtomicU64) -> Outcome<()> {
    let mut connection = Connection::open(load.server.address)?;
    let mut cursor: Option<String> = None;
    while !stop.load(Ordering::Relaxed) {
        let mut body = json!({"bucketId": load.bucket, "limit": 10_000, "downsampling": false});
        if let Some(cursor) = cursor.take() {
            body["cursor"] = Value::from(cursor);
        }
        let answer = connection.send_ok(&load.account.query(&body))?;
        cursor = next_cursor(answer);
        pages.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// The cursor at the end of a page, found without parsing the page.
fn next_cursor(page: &[u8]) -> Option<String> {
    let end = std::str::from_utf8(&page[page.len().saturating_sub(400)..]).ok()?;
    let (_, cursor) = end.rsplit_once(r#""nextCursor":""#)?;
    Some(cursor.split_once('"')?.0.to_owned())
}
