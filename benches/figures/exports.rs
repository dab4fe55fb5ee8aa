//! Exports: rows a second as CSV, and the memory that they take, by the number of points.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Outcome;
use crate::client::{Connection, request};
use crate::points::{BATCH, SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const EXPORTS: Experiment = Experiment {
    figures: &[
        Figure {
            what: "CSV export of 10,000,000 points of a source, rows a second",
            required: Requirement::AtLeast(2_000_000.0),
            unit: "rows/s",
        },
        Figure {
            what: "CSV export of 10,000,000 points of 100 sources at the same times, rows a second",
            required: Requirement::Shown,
            unit: "rows/s",
        },
        Figure {
            what: "CSV export of 10,000,000 points against 1,000,000, rows a second",
            required: Requirement::AtLeast(0.8),
            unit: "×",
        },
        Figure {
            what: "memory that exports of 10,000,000 points add, largest of all formats",
            required: Requirement::AtMost(64.0),
            unit: "MiB",
        },
    ],
    run: exports,
};

const FEW: usize = 1_000_000;
const MANY: usize = 10_000_000;
const SOURCES: usize = 100;
const ROUNDS: usize = 3;
/// So that the points of one source are within the age that batches may have.
const INTERVAL_NS: i64 = SECOND_NS / 10;
const FORMATS: [&str; 4] = ["csv", "ndjson", "parquet", "arrow"];
/// How often the server's memory is read.
const PERIOD: Duration = Duration::from_millis(5);

/// What an export was.
struct Exported {
    seconds: f64,
    bytes: usize,
    /// LF in the body, which are the rows of CSV and a header.
    lines: usize,
}

fn exports() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let data_dir = dir.path().join("data");
    let server = Server::start(&data_dir, &[])?;
    let mut account = Account::sign_up(&server, "plant")?;
    let buckets = ["few", "many", "sources"].map(|name| account.bucket(name));
    let [few, many, sources] = buckets;
    let (few, many, sources) = (few?, many?, sources?);
    fill(&server, &mut account, &few, 1, FEW)?;
    fill(&server, &mut account, &many, 1, MANY)?;
    fill(&server, &mut account, &sources, SOURCES, MANY)?;
    server.stop()?;
    // Everything is in files then.
    let server = Server::start(&data_dir, &[])?;
    let account = account.on(&server)?;
    server.settle()?;
    let export = |bucket: &str, format: &str| {
        let body = json!({"bucketId": bucket, "format": format}).to_string();
        let request = request("POST", "/api/data/export", &account.credential, body.as_bytes());
        export(server.address, &request)
    };
    let rate = |bucket: &str, rows: usize| -> Outcome<(f64, String)> {
        let (mut rates, mut bytes) = (Vec::new(), 0);
        let cpu = server.cpu_seconds()?;
        for _ in 0..ROUNDS {
            let exported = export(bucket, "csv")?;
            if exported.lines != rows + 1 {
                return Err(format!("{} lines instead of {}", exported.lines, rows + 1).into());
            }
            rates.push(rows as f64 / exported.seconds);
            bytes = exported.bytes;
        }
        let cpu = server.cpu_seconds()? - cpu;
        let note = format!(
            "median of {ROUNDS}; {} rows per second of the server's CPU time, {} B a row",
            significant((ROUNDS * rows) as f64 / cpu),
            significant(bytes as f64 / rows as f64)
        );
        Ok((median(&mut rates), note))
    };
    let of_few = rate(&few, FEW)?;
    let of_many = rate(&many, MANY)?;
    let of_sources = rate(&sources, MANY)?;
    let before = server.anonymous_bytes()?;
    let (mut grown, mut notes) = (0.0_f64, Vec::new());
    for format in FORMATS {
        let (most, exported) = watch(&server, || export(&sources, format))?;
        let added = (most - before) / f64::from(1 << 20);
        grown = grown.max(added);
        notes.push(format!(
            "{format} {} MiB, {} rows/s, {} B a row",
            significant(added),
            significant(MANY as f64 / exported.seconds),
            significant(exported.bytes as f64 / MANY as f64)
        ));
    }
    let measured = |value: f64, note: String| Measured { value, note };
    Ok(vec![
        measured(of_many.0, of_many.1),
        measured(of_sources.0, of_sources.1),
        measured(
            of_many.0 / of_few.0,
            format!("{} rows/s with {FEW} points; {}", significant(of_few.0), of_few.1),
        ),
        measured(
            grown,
            format!("RssAnon, of {SOURCES} sources; {}", notes.join("; ")),
        ),
    ])
}

/// Sends points of sources, which have them at the same times.
fn fill(server: &Server, account: &mut Account, bucket: &str, sources: usize, points: usize) -> Outcome<()> {
    let mut connection = Connection::open(server.address)?;
    let first_ns = days_ago_ns(14)?;
    let ids = account.sources(bucket, sources)?;
    let mut series: Vec<Series> = (0..sources)
        .map(|nth| Series::new(nth as u64, first_ns, INTERVAL_NS * sources as i64))
        .collect();
    for _ in 0..points / BATCH / sources {
        for (source, series) in ids.iter().zip(&mut series) {
            connection.send_ok(&account.batch(&series.batch(bucket, source, BATCH)))?;
        }
    }
    server.settle()
}

/// Runs something; returns the most memory that the server had meanwhile.
fn watch<R>(server: &Server, run: impl FnOnce() -> Outcome<R>) -> Outcome<(f64, R)> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut most = 0.0_f64;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(server.anonymous_bytes()?);
                thread::sleep(PERIOD);
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(most)
        });
        let ran = run();
        is_over.store(true, Ordering::Relaxed);
        let most = watching.join().map_err(|_| "the watch panicked")??;
        Ok((most, ran?))
    })
}

/// Takes an export as fast as it comes, and keeps nothing of it.
fn export(address: SocketAddr, request: &[u8]) -> Outcome<Exported> {
    const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";
    let mut stream = TcpStream::connect(address)?;
    let began = Instant::now();
    stream.write_all(request)?;
    let mut part = vec![0; 1 << 18];
    let (mut end, mut bytes, mut lines) = (Vec::new(), 0, 0);
    let mut is_body = false;
    while !end.ends_with(LAST_CHUNK) {
        let read = stream.read(&mut part)?;
        if read == 0 {
            return Err("the export ended without its last chunk".into());
        }
        let mut part = &part[..read];
        end.extend_from_slice(&part[part.len().saturating_sub(LAST_CHUNK.len())..]);
        if !is_body {
            if !part.starts_with(b"HTTP/1.1 200") {
                return Err(String::from_utf8_lossy(part).into());
            }
            let head = part.windows(4).position(|found| found == b"\r\n\r\n");
            part = &part[head.ok_or("a head in one part")? + 4..];
            is_body = true;
        }
        bytes += part.len();
        // Those of the chunks' frames follow a CR.
        let of_frames = part.windows(2).filter(|pair| pair == b"\r\n").count();
        lines += part.iter().filter(|byte| **byte == b'\n').count() - of_frames;
        let keep = end.len().saturating_sub(LAST_CHUNK.len());
        end.drain(..keep);
    }
    Ok(Exported {
        seconds: began.elapsed().as_secs_f64(),
        bytes,
        lines,
    })
}
