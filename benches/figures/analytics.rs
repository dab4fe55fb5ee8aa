//! Analytics requests over HTTP: of one bucket, by its number of points, and of an organization with many sources.

use std::time::Instant;

use tempfile::TempDir;

use crate::Outcome;
use crate::client::{Connection, drive, request};
use crate::points::{BATCH, SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const BUCKET: Experiment = Experiment {
    figures: &[Figure {
        what: "bucket analytics, 10× more points in the same hours",
        required: Requirement::AtMost(1.3),
        unit: "× time",
    }],
    run: bucket,
};

pub const OVERVIEW: Experiment = Experiment {
    figures: &[Figure {
        what: "analytics overview of 25 buckets with 1,000 sources each",
        required: Requirement::AtMost(200.0),
        unit: "ms",
    }],
    run: overview,
};

const POINTS: usize = 1_000_000;
const DAYS: i64 = 12;
const ROUNDS: usize = 201;

const BUCKETS: usize = 25;
const SOURCES: usize = 1_000;
const POINTS_OF_A_SOURCE: usize = 40;
const OVERVIEWS: usize = 21;

fn get(account: &Account, path: &str) -> Vec<u8> {
    request("GET", path, &account.credential, b"")
}

fn timed_ms(connection: &mut Connection, request: &[u8]) -> Outcome<f64> {
    let started = Instant::now();
    connection.send_ok(request)?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

fn bucket() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let server = Server::start(dir.path(), &[("wal.sync", "never")])?;
    let mut account = Account::sign_up(&server, "plant")?;
    let mut requests = Vec::new();
    for (name, points, interval_ns) in [
        ("sparse", POINTS / 10, 10 * SECOND_NS),
        ("dense", POINTS, SECOND_NS),
    ] {
        let bucket = account.bucket(name)?;
        let source = account.source(&bucket, "machine")?;
        let mut series = Series::new(1, days_ago_ns(DAYS)?, interval_ns);
        let batches = (0..points / BATCH).map(|_| account.batch(&series.batch(&bucket, &source, BATCH)));
        drive(server.address, &[batches.collect()])?;
        let path = format!("/api/analytics/buckets/{bucket}?period=30d");
        requests.push(get(&account, &path));
    }
    // After this restart, all points are sealed and no earlier request has filled the cache.
    server.stop()?;
    let server = Server::start(dir.path(), &[])?;
    let mut connection = Connection::open(server.address)?;
    let first = [
        timed_ms(&mut connection, &requests[0])?,
        timed_ms(&mut connection, &requests[1])?,
    ];
    let (mut of_sparse, mut of_dense) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_sparse.push(timed_ms(&mut connection, &requests[0])?);
        of_dense.push(timed_ms(&mut connection, &requests[1])?);
    }
    let (sparse_ms, dense_ms) = (median(&mut of_sparse), median(&mut of_dense));
    let note = format!(
        "{} ms with {POINTS} points, {} ms with {}, over HTTP, three fields, 278 hours each, period 30d; medians of \
         {ROUNDS} alternating requests; the first requests after a restart took {} and {} ms",
        significant(dense_ms),
        significant(sparse_ms),
        POINTS / 10,
        significant(first[1]),
        significant(first[0]),
    );
    Ok(vec![Measured {
        value: dense_ms / sparse_ms,
        note,
    }])
}

/// Fills sources with one point an hour for two days, so that the last 24 hours begin within a block of each source.
fn filled() -> Outcome<(TempDir, Vec<u8>)> {
    let dir = data_root()?;
    let server = Server::start(dir.path(), &[("wal.sync", "never")])?;
    let mut account = Account::sign_up(&server, "plant")?;
    let mut clients = Vec::new();
    for bucket in 0..BUCKETS {
        let bucket = account.bucket(&format!("plant {bucket}"))?;
        let sources = account.sources(&bucket, SOURCES)?;
        let mut entries = Vec::new();
        for (seed, source) in sources.iter().enumerate() {
            let mut series = Series::new(seed as u64, days_ago_ns(2)?, 3_600 * SECOND_NS);
            entries.extend((0..POINTS_OF_A_SOURCE).map(|_| series.entry(source)));
        }
        let batches = entries.chunks(BATCH);
        clients.push(
            batches
                .map(|entries| account.batch(&Series::batch_of(&bucket, entries)))
                .collect(),
        );
    }
    drive(server.address, &clients)?;
    server.stop()?;
    let overview_request = get(&account, "/api/analytics/overview");
    Ok((dir, overview_request))
}

fn overview() -> Outcome<Vec<Measured>> {
    let (dir, overview_request) = filled()?;
    let server = Server::start(dir.path(), &[])?;
    let mut connection = Connection::open(server.address)?;
    let answer: serde_json::Value = serde_json::from_slice(connection.send_ok(&overview_request)?)?;
    let points = answer.pointer("/overview/totals/dataPoints");
    if points.and_then(serde_json::Value::as_u64) != Some((BUCKETS * SOURCES * POINTS_OF_A_SOURCE) as u64) {
        return Err(format!("points are missing: {answer}").into());
    }
    let before_s = server.cpu_seconds()?;
    let mut took_ms = (0..OVERVIEWS)
        .map(|_| timed_ms(&mut connection, &overview_request))
        .collect::<Outcome<Vec<_>>>()?;
    let cpu_ms = (server.cpu_seconds()? - before_s) * 1e3 / OVERVIEWS as f64;
    let note = format!(
        "median of {OVERVIEWS} over HTTP, {} ms of server CPU each; the last 24 hours begin within a block of each source",
        significant(cpu_ms)
    );
    Ok(vec![Measured {
        value: median(&mut took_ms),
        note,
    }])
}
