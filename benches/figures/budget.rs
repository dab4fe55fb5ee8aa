//! The cost of queries to others: memory of the server, and latency of another organization's queries.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::Outcome;
use crate::client::{Connection, request};
use crate::points::{SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const MEMORY: Experiment = Experiment {
    figures: &[Figure {
        what: "peak memory of grouped queries over 60,000 sparse points of 256 fields, share of a query's budget",
        required: Requirement::AtMost(100.0),
        unit: "%",
    }],
    run: memory,
};

pub const OTHER_ORGANIZATION: Experiment = Experiment {
    figures: &[Figure {
        what: "latency of a small query while another organization queues 1,000 scans, against without",
        required: Requirement::AtMost(10.0),
        unit: "× time",
    }],
    run: other_organization,
};

const BUDGET: usize = 128 << 20;
const WIDE_FIELDS: usize = 256;
const WIDE_POINTS: usize = 60_000;
const SCANNED_POINTS: usize = 500_000;
const SCANS: usize = 1_000;
const ROUNDS: usize = 51;

fn memory() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let server = Server::start(&dir.path().join("data"), &[])?;
    let mut account = Account::sign_up(&server, "wide")?;
    let bucket = account.bucket("plant")?;
    let mut connection = Connection::open(server.address)?;
    let schema: Map<String, Value> = (0..WIDE_FIELDS)
        .map(|field| (format!("field{field}"), json!({"type": "number"})))
        .collect();
    let path = format!("/api/buckets/{bucket}/sources");
    let body = json!({"name": "wide", "schema": schema});
    let answer = connection.json("POST", &path, &account.credential, &body)?;
    let source = answer
        .pointer("/dataSource/_id")
        .and_then(Value::as_str)
        .ok_or("no source id")?;
    // Half a minute apart, within the age limit of batches.
    let first_ns = days_ago_ns(25)?;
    for from in (0..WIDE_POINTS).step_by(1_000) {
        let entries = (from..from + 1_000).map(|point| {
            let at = tidewatch::timestamp::format_timestamp_ns(first_ns + 30 * SECOND_NS * point as i64);
            let field = format!("field{}", point % WIDE_FIELDS);
            json!({"dataSourceId": source, "timestamp": at.as_str(), "values": {field: point}})
        });
        let body = json!({"bucketId": bucket, "dataPoints": entries.collect::<Vec<_>>()});
        connection.send_ok(&account.batch(body.to_string().as_bytes()))?;
    }
    server.settle()?;
    let before = server.resident_bytes()?;
    for limit in [1, 100, 10_000] {
        for offset in [0, 10_000] {
            let body = json!({"bucketId": bucket, "aggregation": "avg", "groupBy": "minute",
                "limit": limit, "offset": offset});
            connection.send_ok(&account.query(&body))?;
        }
    }
    let grown = server.resident_bytes()? - before;
    let note = format!(
        "VmRSS grew by {} MB over six queries by minute, pages of 1 to 10,000 rows; the budget is {} MB",
        significant(grown / 1e6),
        significant(BUDGET as f64 / 1e6)
    );
    Ok(vec![Measured {
        value: grown.max(0.0) / BUDGET as f64 * 100.0,
        note,
    }])
}

fn other_organization() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    // Half of the queue's places are for one organization: enough for all scans.
    let places = (2 * SCANS).to_string();
    let server = Server::start(&dir.path().join("data"), &[("query.queue_max", &places)])?;
    let (small, small_bucket) = filled(&server, "small", 1_000)?;
    let (large, large_bucket) = filled(&server, "large", SCANNED_POINTS)?;
    server.settle()?;
    let page = small.query(&json!({"bucketId": small_bucket, "limit": 10}));
    let mut connection = Connection::open(server.address)?;
    let mut timed_ms = || -> Outcome<f64> {
        let mut took = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let began = Instant::now();
            connection.send_ok(&page)?;
            took.push(began.elapsed().as_secs_f64() * 1e3);
        }
        Ok(median(&mut took))
    };
    let alone = timed_ms()?;
    // No point has this metadata, so each scan reads all points.
    let scan = large.query(
        &json!({"bucketId": large_bucket, "filters": {"metadata": {"none": 1}},
        "downsampling": false}),
    );
    let stop = AtomicBool::new(false);
    let (concurrent, waiting) = thread::scope(|scope| {
        let scanners: Vec<_> = (0..SCANS)
            .map(|_| scope.spawn(|| scan_on(server.address, &scan, &stop)))
            .collect();
        let measured = queued(&server).and_then(|waiting| Ok((timed_ms()?, waiting)));
        stop.store(true, Ordering::Relaxed);
        // Queries that still wait end at their time limit or are answered.
        for scanner in scanners {
            scanner.join().map_err(|_| "a scanner panicked")??;
        }
        measured
    })?;
    let note = format!(
        "a page of 10 rows, median of {ROUNDS}: {} ms without scans, {} ms while {waiting} scans of {SCANNED_POINTS} points are queued",
        significant(alone),
        significant(concurrent)
    );
    Ok(vec![Measured {
        value: concurrent / alone,
        note,
    }])
}

/// An organization with a source of this many points.
fn filled(server: &Server, name: &str, points: usize) -> Outcome<(Account, String)> {
    let mut account = Account::sign_up(server, name)?;
    let bucket = account.bucket("plant")?;
    let source = account.source(&bucket, "source")?;
    let mut series = Series::new(1, days_ago_ns(20)?, SECOND_NS);
    let mut connection = Connection::open(server.address)?;
    for _ in 0..points / 1_000 {
        connection.send_ok(&account.batch(&series.batch(&bucket, &source, 1_000)))?;
    }
    Ok((account, bucket))
}

/// Sends the scan in a loop until `stop` is set; refusals are expected.
fn scan_on(address: SocketAddr, scan: &[u8], stop: &AtomicBool) -> Outcome<()> {
    let mut connection = Connection::open(address)?;
    while !stop.load(Ordering::Relaxed) {
        connection.send(scan)?;
    }
    Ok(())
}

/// Waits until most of the scans are queued; returns how many are.
fn queued(server: &Server) -> Outcome<u64> {
    let mut connection = Connection::open(server.address)?;
    let metrics = request("GET", "/metrics", "x-of: bench", b"");
    let began = Instant::now();
    loop {
        let text = String::from_utf8_lossy(connection.send_ok(&metrics)?).into_owned();
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("tidewatch_query_queue_length "))
            .ok_or("no length of the queue")?;
        let waiting = length.parse::<f64>()? as u64;
        if waiting >= SCANS as u64 * 9 / 10 {
            return Ok(waiting);
        }
        if began.elapsed() > Duration::from_secs(30) {
            return Err(format!("only {waiting} scans wait").into());
        }
        thread::sleep(Duration::from_millis(20));
    }
}
