//! Disk usage of a million sealed points, and the latency of queries over them.

use std::time::Instant;

use serde_json::json;

use crate::Outcome;
use crate::client::{Connection, drive, request};
use crate::points::{BATCH, SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, Server, bytes_below, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const DISK: Experiment = Experiment {
    figures: &[
        Figure {
            what: "disk usage of the data directory, 1,000,000 sealed points with rollups",
            required: Requirement::AtMost(1.2),
            unit: "B/point",
        },
        Figure {
            what: "grouped query with 10× more points in the range, same rows in the answer, over HTTP",
            required: Requirement::AtMost(1.3),
            unit: "× time",
        },
        Figure {
            what: "query of the last 1,000 points of three fields, over HTTP",
            required: Requirement::AtMost(0.4),
            unit: "ms",
        },
    ],
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
    let dense = account.source(&bucket, "every second")?;
    fill(&server, &account, &bucket, &dense, POINTS, SECOND_NS)?;
    server.stop()?;
    let (bytes, allocated) = bytes_below(&data_dir)?;
    let (segments, _) = bytes_below(&data_dir.join("segments"))?;

    let server = Server::start(&data_dir, &[])?;
    let mut account = account.on(&server)?;
    let sparse = account.source(&bucket, "every ten seconds")?;
    fill(&server, &account, &bucket, &sparse, POINTS / 10, 10 * SECOND_NS)?;
    server.stop()?;
    let server = Server::start(&data_dir, &[])?;
    let mut connection = Connection::open(server.address)?;
    let queries = [&dense, &sparse].map(|source| {
        account.query(
            &json!({"bucketId": bucket, "filters": {"dataSourceIds": [source]}, "aggregation": "avg",
            "groupBy": "hour"}),
        )
    });
    let mut took_ms = [Vec::new(), Vec::new()];
    for _ in 0..QUERIES {
        for (query, took_ms) in queries.iter().zip(&mut took_ms) {
            let started = Instant::now();
            connection.send_ok(query)?;
            took_ms.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    let [dense_ms, sparse_ms] = took_ms.map(|mut took_ms| median(&mut took_ms));
    let a_point = |bytes: u64| significant(bytes as f64 / POINTS as f64);
    let size_note = format!(
        "lengths of all files after SIGTERM; {} B in segments, {} B as allocated by the file system",
        a_point(segments),
        a_point(allocated)
    );
    let time_note = format!(
        "hourly average of three fields over the same 11.6 days: {} ms for {POINTS} points, {} ms for a tenth of \
         them, medians of {QUERIES} alternating queries",
        significant(dense_ms),
        significant(sparse_ms)
    );
    Ok(vec![
        Measured {
            value: bytes as f64 / POINTS as f64,
            note: size_note,
        },
        Measured {
            value: dense_ms / sparse_ms,
            note: time_note,
        },
        last(&server, &account, &bucket, &dense)?,
    ])
}

/// The newest raw rows of a source.
fn last(server: &Server, account: &Account, bucket: &str, source: &str) -> Outcome<Measured> {
    let mut connection = Connection::open(server.address)?;
    let query = account.query(
        &json!({"bucketId": bucket, "filters": {"dataSourceIds": [source]}, "limit": 1_000,
        "sort": "desc", "downsampling": false}),
    );
    let health = request("GET", "/health", &account.credential, b"");
    let (mut took_ms, mut bare_ms, mut bytes) = (Vec::new(), Vec::new(), 0);
    let before = server.cpu_seconds()?;
    for _ in 0..QUERIES {
        for (request, took_ms) in [(&query, &mut took_ms), (&health, &mut bare_ms)] {
            let started = Instant::now();
            bytes = connection.send_ok(request)?.len().max(bytes);
            took_ms.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    let note = format!(
        "median of {QUERIES}, {} KB each, with {} µs of server CPU; alternating with GET /health, which took {} ms",
        significant(bytes as f64 / 1e3),
        significant((server.cpu_seconds()? - before) * 1e6 / QUERIES as f64),
        significant(median(&mut bare_ms))
    );
    Ok(Measured {
        value: median(&mut took_ms),
        note,
    })
}

/// Sends the points of a source in order, one batch after another.
fn fill(
    server: &Server,
    account: &Account,
    bucket: &str,
    source: &str,
    points: usize,
    interval_ns: i64,
) -> Outcome<()> {
    let mut series = Series::new(1, days_ago_ns(12)?, interval_ns);
    let requests = (0..points / BATCH)
        .map(|_| account.batch(&series.batch(bucket, source, BATCH)))
        .collect();
    drive(server.address, &[requests]).map(drop)
}
