//! How long a dashboard's most usual question takes, and how long Prometheus takes for it on the same machine:
//! `sum by (instance) (rate(x[5m]))` over 1,000 series of 24 hours, scraped every 15 s, at steps of a minute.
//!
//! Prometheus is measured by HTTP on 127.0.0.1, its answer of about 1 MB included; this crate with the writing of that
//! answer.

#![expect(clippy::unwrap_used, reason = "a bench that cannot run says so by its panic")]

#[path = "../tests/it/remote_write.rs"]
mod remote_write;
#[path = "../tests/it/server.rs"]
mod server;

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use promql::{Labels, Limits, MemoryStorage, Options, Query, Samples, json};

const QUERY: &str = "sum by (instance) (rate(x[5m]))";
const START_MS: i64 = 1_699_999_200_000;
const LENGTH_MS: i64 = 24 * 3_600_000;
const SCRAPE_MS: i64 = 15_000;
const STEP_MS: i64 = 60_000;
const INSTANCES: u32 = 20;
const SERIES_OF_INSTANCE: u32 = 50;

/// How much of the samples one request of remote write carries.
const WRITE_MS: i64 = 30 * 60_000;

/// How often Prometheus is asked; the best time counts.
const ASKED: usize = 7;

fn series() -> MemoryStorage {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut storage = MemoryStorage::default();
    for instance in 0..INSTANCES {
        for path in 0..SERIES_OF_INSTANCE {
            let (instance, path) = (format!("host-{instance}:9100"), format!("/path/{path}"));
            let labels = Labels::from_pairs([("__name__", "x"), ("instance", &instance), ("path", &path)]);
            let mut total = 0.0;
            for time_ms in (0..LENGTH_MS).step_by(SCRAPE_MS as usize) {
                total += f64::from(rng.u32(0..100));
                storage.push(&labels, START_MS + time_ms, total);
            }
        }
    }
    storage
}

fn answer(storage: &MemoryStorage) -> Vec<u8> {
    let limits = Limits {
        memory_bytes_max: 256 << 20,
        is_interrupted: &|| false,
    };
    let query = Query::parse(QUERY, Options::default()).unwrap();
    let value = query
        .range(storage, START_MS, START_MS + LENGTH_MS, STEP_MS, limits)
        .unwrap();
    let mut body = Vec::new();
    json::write_success(&value, usize::MAX, &mut body);
    body
}

fn of_prometheus(storage: &MemoryStorage) -> Option<Duration> {
    let prometheus = server::Prometheus::start()?;
    println!("Prometheus {}", prometheus.version());
    for from_ms in (START_MS..START_MS + LENGTH_MS).step_by(WRITE_MS as usize) {
        let slices = storage.series().map(|(labels, samples)| {
            let from = samples.times.partition_point(|time| *time < from_ms);
            let to = samples.times.partition_point(|time| *time < from_ms + WRITE_MS);
            let samples = Samples {
                times: &samples.times[from..to],
                values: &samples.values[from..to],
            };
            (labels, samples)
        });
        prometheus.write(&remote_write::body(slices));
    }
    let (start, end) = (
        (START_MS / 1000).to_string(),
        ((START_MS + LENGTH_MS) / 1000).to_string(),
    );
    let params = [("query", QUERY), ("start", &start), ("end", &end), ("step", "60")];
    let asked = (0..ASKED).map(|_| {
        let begun = Instant::now();
        let answer = prometheus.ask("query_range", &params);
        assert_eq!(answer.status, 200, "{}", answer.body);
        begun.elapsed()
    });
    asked.min()
}

fn rate(criterion: &mut Criterion) {
    let storage = series();
    match of_prometheus(&storage) {
        Some(time) => println!("{QUERY}: {time:?}, the best of {ASKED}"),
        None => println!("prometheus: not measured"),
    }
    criterion.bench_function(QUERY, |bencher| bencher.iter(|| answer(&storage)));
}

criterion_group!(benches, rate);
criterion_main!(benches);
