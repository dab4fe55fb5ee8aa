//! Restart with many buckets and many series.

use std::time::Instant;

use crate::Outcome;
use crate::client::drive;
use crate::fleet::{Bucket, Fleet};
use crate::ingest::CLIENTS;
use crate::metrics::{Metrics, SEGMENTS};
use crate::points::{SECOND_NS, Series, days_ago_ns};
use crate::server::{Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, quantile, significant};

pub const MANY_SERIES: Experiment = Experiment {
    figures: &[
        // Clients retry for about as long while a server is restarted for an upgrade.
        Figure {
            what: "time to ready after a restart, 10,000 buckets and 1,000,000 series",
            required: Requirement::AtMost(2.0),
            unit: "s",
        },
        Figure {
            what: "memory per series after a restart, 10,000 buckets and 1,000,000 series",
            required: Requirement::Shown,
            unit: "B",
        },
    ],
    run: many_series,
};

const BUCKETS: usize = 10_000;
const SOURCES: usize = 100;
const RESTARTS: usize = 5;
const PARTS: [&str; 3] = ["catalog", "footers", "replay"];

fn many_series() -> Outcome<Vec<Measured>> {
    let began = Instant::now();
    let dir = data_root()?;
    let data_dir = dir.path().join("data");
    // The cost of creating the series is not part of the measurement.
    let server = Server::start(&data_dir, &[("wal.sync", "never")])?;
    let mut fleet = Fleet::sign_up(&server)?;
    fleet.create(&server, BUCKETS, SOURCES)?;
    let created_s = began.elapsed().as_secs_f64();
    send_points(&server, &fleet)?;
    drop(fleet);
    server.stop()?;
    let filled_s = began.elapsed().as_secs_f64();
    let (mut ready_s, mut cpu_s, mut memory) = (Vec::new(), Vec::new(), 0.0);
    let mut parts_s = [const { Vec::new() }; PARTS.len()];
    let mut segments = 0.0;
    for _ in 0..RESTARTS {
        let server = Server::start(&data_dir, &[])?;
        ready_s.push(server.ready_after.as_secs_f64());
        cpu_s.push(server.cpu_seconds()?);
        let metrics = Metrics::of(&server)?;
        for (part, parts_s) in PARTS.iter().zip(&mut parts_s) {
            parts_s.push(metrics.get(&format!("tidewatch_recovery_seconds{{part=\"{part}\"}}"))?);
        }
        segments = metrics.get(SEGMENTS)?;
        server.settle()?;
        memory = server.anonymous_bytes()?;
        server.kill()?;
    }
    let of_parts: Vec<String> = PARTS
        .iter()
        .zip(&mut parts_s)
        .map(|(part, parts_s)| format!("{part} {} s", significant(median(parts_s))))
        .collect();
    let [least, most] = [0.0, 1.0].map(|share| significant(quantile(&mut ready_s, share)));
    let note = format!(
        "median of {RESTARTS} ({least} to {most}), from the start of the process, after a stop by SIGTERM; {} s of CPU; of this time: {}; the \
         rest starts actors and the API; {segments} segments; {SOURCES} sources a bucket, one point each; created in {} \
         s, filled after {} s, all in {} s",
        significant(median(&mut cpu_s)),
        of_parts.join(", "),
        significant(created_s),
        significant(filled_s),
        significant(began.elapsed().as_secs_f64())
    );
    let series = (BUCKETS * SOURCES) as f64;
    Ok(vec![
        Measured {
            value: median(&mut ready_s),
            note,
        },
        Measured {
            value: memory / series,
            note: format!("RssAnon {} MB, all sealed", significant(memory / 1e6)),
        },
    ])
}

/// Sends one point to each series.
fn send_points(server: &Server, fleet: &Fleet) -> Outcome<()> {
    let first_ns = days_ago_ns(20)?;
    let request = |bucket: &Bucket| {
        let mut series = Series::new(1, first_ns, SECOND_NS);
        let entries: Vec<_> = bucket.sources.iter().map(|source| series.entry(source)).collect();
        fleet.accounts[bucket.account].batch(&Series::batch_of(&bucket.id, &entries))
    };
    let of_client = |buckets: &[Bucket]| buckets.iter().map(request).collect();
    let each = fleet.buckets.len().div_ceil(CLIENTS);
    let clients: Vec<Vec<Vec<u8>>> = fleet.buckets.chunks(each).map(of_client).collect();
    drive(server.address, &clients).map(drop)
}
