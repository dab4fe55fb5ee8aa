//! Ingest over HTTP: CPU cost of a point and of a request, and the effect of durability on throughput.

use std::time::Duration;

use tempfile::TempDir;

use crate::Outcome;
use crate::client::{drive, request};
use crate::points::{BATCH, SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, NAME, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const BATCHES: Experiment = Experiment {
    figures: &[
        Figure {
            what: "server CPU per ingested point, durable, batches of 1,000",
            required: Requirement::AtMost(0.7),
            unit: "µs",
        },
        Figure {
            what: "ingest throughput, durable against wal.sync=never, 64 clients, batches of 1,000",
            required: Requirement::AtLeast(85.0),
            unit: "%",
        },
    ],
    run: || measure(BATCH, 12, "point"),
};

pub const SINGLES: Experiment = Experiment {
    figures: &[
        Figure {
            what: "server CPU per single-point request, 64 connections, durable",
            required: Requirement::AtMost(20.0),
            unit: "µs",
        },
        Figure {
            what: "ingest throughput, durable against wal.sync=never, 64 clients, single points",
            required: Requirement::AtLeast(85.0),
            unit: "%",
        },
    ],
    run: || measure(1, 500, "request"),
};

pub const CLIENTS: usize = 64;
/// The first round only warms up.
const ROUNDS: usize = 6;
/// Below the default, so that checkpoints occur within the measured time.
pub const CHECKPOINT_BYTES: &str = "8388608";

/// A server with one bucket and one source for each client.
pub struct Load {
    pub server: Server,
    pub account: Account,
    pub bucket: String,
    sources: Vec<(String, Series)>,
    dir: TempDir,
}

impl Load {
    pub fn start(settings: &[(&str, &str)]) -> Outcome<Self> {
        Self::start_under(&[], settings)
    }

    /// Starts the server under a tool, as [`Server::start_under`] does.
    pub fn start_under(tool: &[&str], settings: &[(&str, &str)]) -> Outcome<Self> {
        let dir = data_root()?;
        let server = Server::start_under(tool, &dir.path().join("data"), settings)?;
        let mut account = Account::sign_up(&server, NAME)?;
        let bucket = account.bucket("plant")?;
        let first_ns = days_ago_ns(20)?;
        let sources = account.sources(&bucket, CLIENTS)?.into_iter().enumerate();
        let sources = sources
            .map(|(seed, id)| (id, Series::new(seed as u64, first_ns, SECOND_NS)))
            .collect();
        Ok(Load {
            server,
            account,
            bucket,
            sources,
            dir,
        })
    }

    /// Kills the server; returns its data directory.
    pub fn crash(self) -> Outcome<TempDir> {
        self.server.kill()?;
        Ok(self.dir)
    }

    /// The next requests of each client.
    pub fn requests(&mut self, each: usize, points: usize) -> Vec<Vec<Vec<u8>>> {
        let (account, bucket) = (&self.account, &self.bucket);
        let of_client = |(source, series): &mut (String, Series)| {
            let request = |_| match points {
                1 => account.single(&series.single(bucket, source)),
                _ => account.batch(&series.batch(bucket, source, points)),
            };
            (0..each).map(request).collect()
        };
        self.sources.iter_mut().map(of_client).collect()
    }

    /// One request for each client that can be sent repeatedly.
    pub fn requests_of_now(&mut self, points: usize) -> Vec<Vec<u8>> {
        let (account, bucket) = (&self.account, &self.bucket);
        let of_client = |(source, series): &mut (String, Series)| {
            account.batch(&series.batch_of_now(bucket, source, points))
        };
        self.sources.iter_mut().map(of_client).collect()
    }

    /// The same requests compressed by gzip, as most agents send them.
    pub fn gzip_requests_of_now(&mut self, points: usize) -> Outcome<Vec<Vec<u8>>> {
        let (account, bucket) = (&self.account, &self.bucket);
        let of_client = |(source, series): &mut (String, Series)| {
            account.gzip_batch(&series.batch_of_now(bucket, source, points))
        };
        self.sources.iter_mut().map(of_client).collect()
    }

    pub fn drive(&mut self, each: usize, points: usize) -> Outcome<Duration> {
        let requests = self.requests(each, points);
        drive(self.server.address, &requests)
    }
}

fn measure(points: usize, each: usize, unit: &str) -> Outcome<Vec<Measured>> {
    let checkpoints = ("storage.checkpoint_bytes", CHECKPOINT_BYTES);
    let mut durable = Load::start(&[checkpoints])?;
    let mut relaxed = Load::start(&[checkpoints, ("wal.sync", "never")])?;
    let units = (CLIENTS * each * points) as f64;
    let (mut used_before, mut ratios, mut rates) = (0.0, Vec::new(), [Vec::new(), Vec::new()]);
    for round in 0..ROUNDS {
        if round == 1 {
            durable.server.settle()?;
            used_before = durable.server.cpu_seconds()?;
        }
        // The order alternates, so that a machine that becomes slower favours neither.
        let durable_first = round % 2 == 0;
        let mut took = [Duration::ZERO; 2];
        for turn in [durable_first, !durable_first] {
            let load = if turn { &mut durable } else { &mut relaxed };
            took[usize::from(!turn)] = load.drive(each, points)?;
            load.server.settle()?;
        }
        if round > 0 {
            let [durable_s, relaxed_s] = took.map(|took| took.as_secs_f64());
            ratios.push(100.0 * relaxed_s / durable_s);
            rates[0].push(units / durable_s);
            rates[1].push(units / relaxed_s);
        }
    }
    let used = durable.server.cpu_seconds()? - used_before;
    let counted = units * (ROUNDS - 1) as f64;
    let transport_us = transport_us(&durable.server)?;
    let [durable_rate, relaxed_rate] = rates.map(|mut rates| median(&mut rates));
    let cpu_note = format!(
        "{CLIENTS} connections, one bucket, {CLIENTS} sources; {used:.2} s for {counted} {unit}s, rollups, sealing and \
         checkpoints (every {CHECKPOINT_BYTES} B of log) included; a GET /health took {} µs of CPU",
        significant(transport_us)
    );
    let throughput_note = format!(
        "{} against {} thousand {unit}s a second on cores shared with the client, median of {} alternating rounds",
        significant(durable_rate / 1e3),
        significant(relaxed_rate / 1e3),
        ROUNDS - 1
    );
    Ok(vec![
        Measured {
            value: used * 1e6 / counted,
            note: cpu_note,
        },
        Measured {
            value: median(&mut ratios),
            note: throughput_note,
        },
    ])
}

/// CPU time of a request without work, over as many connections: the cost of transport alone.
fn transport_us(server: &Server) -> Outcome<f64> {
    let request = request("GET", "/health", "x-of: bench", b"");
    let clients = vec![vec![request; 500]; CLIENTS];
    let before = server.cpu_seconds()?;
    drive(server.address, &clients)?;
    Ok((server.cpu_seconds()? - before) * 1e6 / (500 * CLIENTS) as f64)
}
