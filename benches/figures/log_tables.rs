//! The tables of a log store over time: their size while they fill and are emptied, and what a round of membership costs in
//! a small and in a large cluster.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use log_store::{InitOptions, LogStore, Postgres as Store, Replication, Shard, Timeouts};

use crate::Outcome;
use crate::postgres::Postgres;
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const LOG_TABLES: Experiment = Experiment {
    figures: &[
        Figure {
            what: "log store: size of the log's table and indexes after 10× as many checkpoints",
            required: Requirement::AtMost(1.1),
            unit: "× bytes",
        },
        Figure {
            what: "log store: a round of membership among 1000 nodes that have all renewed, more than among 10",
            required: Requirement::AtMost(5.0),
            unit: "ms",
        },
    ],
    run: log_tables,
};

const SHARDS: u16 = 64;
const SHARD: Shard = Shard(0);
const LEASE: Duration = Duration::from_secs(3);

/// Checkpoints after which the size is taken first, and what is appended before each: small rows, and ones that are stored
/// outside of the table.
const CYCLES: u64 = 30;
const SMALL: u64 = 2_000;
const LARGE: u64 = 100;

const ROUNDS: u64 = 200;
const NODES: [u64; 2] = [10, 1_000];

fn log_tables() -> Outcome<Vec<Measured>> {
    let servers = Postgres::start(0, &["fsync=on"]);
    let postgres = &servers[0];
    Ok(vec![growth(postgres)?, rounds(postgres)?])
}

fn cluster(postgres: &Postgres) -> Outcome<(String, Store)> {
    let database = postgres.database();
    let mut store = Store::new(&postgres.url(&database, postgres.port), Timeouts::default())?;
    let replication = Replication::Storage;
    store.init(SHARDS, InitOptions { replication })?;
    Ok((database, store))
}

fn growth(postgres: &Postgres) -> Outcome<Measured> {
    let (database, mut store) = cluster(postgres)?;
    let node = store.join("here", LEASE)?;
    let claimed = store.claim(SHARD, node)?.ok_or("the shard has another owner")?;
    let mut last = 0;
    let mut run = |cycles: u64| -> Outcome<f64> {
        let mut largest = 0.0_f64;
        for _ in 0..cycles {
            for (rows, bytes) in [(SMALL, 200), (LARGE, 8_000)] {
                let insert = format!(
                    "INSERT INTO tidewatch.log SELECT 0, n, n, {}, 0, decode(repeat('ab', {bytes}), 'hex') \
                     FROM generate_series({}, {}) AS n",
                    claimed.epoch,
                    last + 1,
                    last + rows
                );
                postgres.sql(&database, &insert);
                last += rows;
            }
            store.trim(SHARD, claimed.epoch, last, None)?;
            while store.sweep(SHARD)? {}
            let size = postgres.sql(&database, "SELECT pg_total_relation_size('tidewatch.log')");
            largest = largest.max(size.parse()?);
        }
        Ok(largest)
    };
    let few = run(CYCLES)?;
    let many = run(9 * CYCLES)?;
    Ok(Measured {
        value: many / few,
        note: format!(
            "{} MiB at most in the first {CYCLES} checkpoints, {} MiB in the {} after them; each deletes {SMALL} rows of 200 bytes and {LARGE} of 8000",
            significant(few / 1_048_576.0),
            significant(many / 1_048_576.0),
            9 * CYCLES
        ),
    })
}

/// Passes connections on, and counts the bytes of both directions.
struct Counter {
    port: u16,
    bytes: Arc<AtomicU64>,
}

impl Counter {
    fn start(to: u16) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let bytes: Arc<AtomicU64> = Arc::default();
        let counted = Arc::clone(&bytes);
        // The threads end with the process.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A connection that cannot be passed on ends, which its client reports.
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else {
                    continue;
                };
                let (Ok(from_client), Ok(from_server)) = (client.try_clone(), server.try_clone()) else {
                    continue;
                };
                for (from, to) in [(from_client, server), (from_server, client)] {
                    // Without this, it would wait for acknowledgements of its own parts.
                    if to.set_nodelay(true).is_err() {
                        return;
                    }
                    let counted = Arc::clone(&counted);
                    thread::spawn(move || pass(from, to, &counted));
                }
            }
        });
        Ok(Counter { port, bytes })
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, counted: &AtomicU64) {
    let mut buffer = [0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        counted.fetch_add(length as u64, Ordering::Relaxed);
        if to.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}

fn rounds(postgres: &Postgres) -> Outcome<Measured> {
    let counter = Counter::start(postgres.port)?;
    let mut measured = Vec::new();
    for nodes in NODES {
        let (database, mut direct) = cluster(postgres)?;
        let me = direct.join("here", LEASE)?;
        let others = format!(
            "INSERT INTO tidewatch.node SELECT n, '10.0.0.' || n || ':7946', 0, false, 3000, now() \
             FROM generate_series(1, {}) AS n",
            nodes - 1
        );
        postgres.sql(&database, &others);
        let url = postgres.url(&database, counter.port);
        let mut store = Store::new(&url, Timeouts::of_membership(LEASE))?;
        store.round(me, 1, false)?;
        let (mut times, mut bytes) = (Vec::new(), 0);
        for round in 0..ROUNDS {
            let renew = format!("UPDATE tidewatch.node SET beat = {round} WHERE address <> 'here'");
            postgres.sql(&database, &renew);
            let before = counter.bytes.load(Ordering::Relaxed);
            let began = Instant::now();
            let seen = store.round(me, round + 2, false)?;
            times.push(began.elapsed().as_secs_f64() * 1e3);
            bytes += counter.bytes.load(Ordering::Relaxed) - before;
            if seen.nodes.len() as u64 != nodes || !seen.renewed {
                return Err("a round has not shown every node".into());
            }
        }
        measured.push((median(&mut times), bytes / ROUNDS));
    }
    let [(few_ms, few_bytes), (many_ms, many_bytes)] = measured[..] else {
        return Err("BUG: two sizes were measured".into());
    };
    Ok(Measured {
        value: many_ms - few_ms,
        note: format!(
            "{} ms and {few_bytes} bytes with {} nodes, {} ms and {many_bytes} bytes with {}; medians of {ROUNDS} rounds, {SHARDS} shards, one host, a commit each, fsync on",
            significant(few_ms),
            NODES[0],
            significant(many_ms),
            NODES[1]
        ),
    })
}
