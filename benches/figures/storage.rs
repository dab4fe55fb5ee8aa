//! What a million points take on disk once sealed, and how fast they answer over HTTP afterwards.

use std::time::Instant;

use serde_json::json;

use crate::Outcome;
use crate::client::{Connection, drive};
use crate::points::{BATCH, SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, Server, bytes_below, data_root};
use crate::table::{Bar, Experiment, Figure, Measured, median, significant};

pub const DISK: Experiment = Experiment {
    figures: &[Figure {
        what: "disk, whole data directory after sealing, 1,000,000 points, rollups included",
        bar: Bar::AtMost(1.2),
        unit: "B a point",
    }],
    run: disk,
};

const POINTS: usize = 1_000_000;
const QUERIES: usize = 200;

fn disk() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let data_dir = dir.path().join("data");
    let server = Server::start(&data_dir, &[])?;
    let mut account = Account::sign_up(&server, "plant")?;
    let bucket = account.bucket("plant")?;
    let source = account.source(&bucket, "boiler")?;
    let mut series = Series::new(1, days_ago_ns(12)?, SECOND_NS);
    let requests = (0..POINTS / BATCH).map(|_| account.batch(&series.batch(&bucket, &source, BATCH))).collect();
    drive(server.address, &[requests])?;
    server.stop()?;
    let (bytes, allocated) = bytes_below(&data_dir)?;
    let (segments, _) = bytes_below(&data_dir.join("buckets"))?;

    let server = Server::start(&data_dir, &[])?;
    let mut connection = Connection::open(server.address)?;
    let query = account.query(&json!({"bucketId": bucket, "aggregation": "avg", "groupBy": "hour"}));
    let mut took_ms = Vec::new();
    for _ in 0..QUERIES {
        let started = Instant::now();
        connection.done(&query)?;
        took_ms.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let a_point = |bytes: u64| significant(bytes as f64 / POINTS as f64);
    let note = format!(
        "lengths of all files after SIGTERM; {} B in segments, {} B as allocated by the file system; the hourly \
         average of three fields over them takes {} ms over HTTP (median of {QUERIES})",
        a_point(segments),
        a_point(allocated),
        significant(median(&mut took_ms))
    );
    Ok(vec![Measured { value: bytes as f64 / POINTS as f64, note }])
}
