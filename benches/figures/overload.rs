//! Overload: requests at twice the server's capacity for a minute. Server and clients have one core each, so that the
//! result does not depend on how they share a core.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::json;

use crate::Outcome;
use crate::ingest::Load;
use crate::open_loop::{Pace, Tally, run_load};
use crate::points::BATCH;
use crate::server::Server;
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

/// The rows of one kind of load: throughput, memory and recovery.
macro_rules! figures {
    ($load:literal) => {
        &[
            Figure {
                what: concat!(
                    $load,
                    ": throughput at twice the capacity for a minute, share of the peak"
                ),
                required: Requirement::AtLeast(90.0),
                unit: "%",
            },
            Figure {
                what: concat!($load, ": peak memory, share of the budget"),
                required: Requirement::AtMost(100.0),
                unit: "%",
            },
            Figure {
                what: concat!($load, ": recovery time to the earlier latency"),
                required: Requirement::AtMost(5.0),
                unit: "s",
            },
        ]
    };
}

pub const INGEST: Experiment = Experiment {
    figures: figures!("overload, ingest"),
    run: || {
        let mut load = start()?;
        let requests = load.requests_of_now(BATCH);
        measure(&load.server, &requests)
    },
};

pub const GZIP_INGEST: Experiment = Experiment {
    figures: figures!("overload, gzip ingest"),
    run: || {
        let mut load = start()?;
        let requests = load.gzip_requests_of_now(BATCH)?;
        measure(&load.server, &requests)
    },
};

pub const QUERIES: Experiment = Experiment {
    figures: figures!("overload, queries"),
    run: || {
        let mut load = start()?;
        load.drive(4, BATCH)?;
        load.server.settle()?;
        let page = json!({"bucketId": load.bucket, "limit": 10_000, "downsampling": false});
        measure(&load.server, &[load.account.query(&page)])
    },
};

/// Memory for points, bodies and mailboxes: small enough to be exceeded many times in a minute.
const MEMORY_BYTES_MAX: &str = "268435456";
const SERVER_CORE: usize = 0;
const CLIENT_CORE: usize = 1;
/// Closed-loop connections that measure the peak.
const PEAK_CLIENTS: usize = 64;
/// The greatest number of open-loop connections.
const CONNECTIONS_MAX: usize = 6_000;
/// One half of the peak is measured before the overload and one after it, as a shared machine's speed changes within
/// minutes. Both together are as long as the overload: a shorter peak would not include all of the sealing and merging
/// that its points cause.
const HALF_PEAK_SPAN: Duration = Duration::from_secs(OVERLOAD_SPAN.as_secs() / 2);
const WARM_UP_SPAN: Duration = Duration::from_millis(2_500);
const OVERLOAD_SPAN: Duration = Duration::from_secs(60);
const PROBE_SPAN: Duration = Duration::from_millis(500);
/// The server has recovered when its latency is within this factor of the earlier one.
const RECOVERED_FACTOR: f64 = 2.0;

fn start() -> Outcome<Load> {
    let core = SERVER_CORE.to_string();
    Load::start_under(
        &["taskset", "--cpu-list", &core],
        &[("storage.memory_bytes_max", MEMORY_BYTES_MAX)],
    )
}

fn measure(server: &Server, requests: &[Vec<u8>]) -> Outcome<Vec<Measured>> {
    thread::scope(|scope| {
        let load_thread = scope.spawn(|| {
            let mut core = CpuSet::new();
            core.set(CLIENT_CORE);
            sched_setaffinity(None, &core)?;
            overload(server, requests)
        });
        load_thread.join().map_err(|_| "the load thread panicked")?
    })
}

fn overload(server: &Server, requests: &[Vec<u8>]) -> Outcome<Vec<Measured>> {
    let address = server.address;
    // The first run only warms up.
    run_load(address, requests, Pace::Loop, WARM_UP_SPAN, PEAK_CLIENTS)?;
    server.settle()?;
    let base_bytes = server.anonymous_bytes()?;
    let before_rate = peak_rate(server, requests)?;
    // Half of the peak rate, before and after the overload.
    let usual = Pace::PerSecond(before_rate / 2.0);
    let mut before_ms = Vec::new();
    for _ in 0..8 {
        before_ms.push(run_load(address, requests, usual, PROBE_SPAN, PEAK_CLIENTS)?.p99_ms());
    }
    let before_ms = median(&mut before_ms);
    let (mut tally, highest_bytes) = watch_memory(server, || {
        run_load(
            address,
            requests,
            Pace::PerSecond(2.0 * before_rate),
            OVERLOAD_SPAN,
            CONNECTIONS_MAX,
        )
    })?;
    let ended = Instant::now();
    let again = loop {
        let mut probe = run_load(address, requests, usual, PROBE_SPAN, PEAK_CLIENTS)?;
        if probe.refused + probe.failed + probe.unsent == 0 && probe.p99_ms() <= RECOVERED_FACTOR * before_ms
        {
            break ended.elapsed().saturating_sub(PROBE_SPAN);
        }
        if ended.elapsed() > Duration::from_secs(60) {
            return Err(format!("still slower than {before_ms} ms a minute after the overload").into());
        }
    };
    let rates = [before_rate, peak_rate(server, requests)?];
    let rate = tally.accepted_ms.len() as f64 / OVERLOAD_SPAN.as_secs_f64();
    let budget_bytes = MEMORY_BYTES_MAX.parse::<f64>()?;
    Ok(vec![
        Measured {
            value: 100.0 * rate / (rates.iter().sum::<f64>() / 2.0),
            note: describe(&mut tally, rate, rates),
        },
        Measured {
            value: 100.0 * (highest_bytes - base_bytes) / budget_bytes,
            note: format!(
                "{} MiB above the {} MiB before the load, against storage.memory_bytes_max",
                significant((highest_bytes - base_bytes) / 1_048_576.0),
                significant(base_bytes / 1_048_576.0)
            ),
        },
        Measured {
            value: again.as_secs_f64(),
            note: format!(
                "until all requests at half of the peak rate are accepted, with a p99 of at most {RECOVERED_FACTOR} times the earlier {} ms",
                significant(before_ms)
            ),
        },
    ])
}

/// Requests a second of as many clients as keep the server busy, each of which sends its next one when the last is
/// answered.
fn peak_rate(server: &Server, requests: &[Vec<u8>]) -> Outcome<f64> {
    let peak = run_load(server.address, requests, Pace::Loop, HALF_PEAK_SPAN, PEAK_CLIENTS)?;
    server.settle()?;
    Ok(peak.accepted_ms.len() as f64 / HALF_PEAK_SPAN.as_secs_f64())
}

fn describe(tally: &mut Tally, rate: f64, [before, after]: [f64; 2]) -> String {
    format!(
        "the server on one core, the clients on the other; peak {} a second before and {} after ({PEAK_CLIENTS} clients, \
         {HALF_PEAK_SPAN:?} each), offered twice the former: {} a second accepted (p99 {} ms after they were due), {} \
         refused with 503, {} failed otherwise, {} never sent as all {CONNECTIONS_MAX} connections waited (at most {})",
        significant(before),
        significant(after),
        significant(rate),
        significant(tally.p99_ms()),
        tally.refused,
        tally.failed,
        tally.unsent,
        tally.waiting_max
    )
}

/// Runs `run`; returns its result with the server's peak memory meanwhile.
fn watch_memory<T>(server: &Server, run: impl FnOnce() -> Outcome<T>) -> Outcome<(T, f64)> {
    let done = &AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(move || -> Outcome<f64> {
            let mut highest = 0.0_f64;
            while !done.load(Ordering::Relaxed) {
                highest = highest.max(server.anonymous_bytes()?);
                thread::sleep(Duration::from_millis(100));
            }
            Ok(highest)
        });
        let ran = run();
        done.store(true, Ordering::Relaxed);
        let highest = watcher.join().map_err(|_| "the watcher panicked")??;
        Ok((ran?, highest))
    })
}
