//! Restarts: time to ready by the amount of sealed data, and the speed of replay compared with ingest.

use std::path::Path;

use crate::Outcome;
use crate::client::drive;
use crate::ingest::{CLIENTS, Load};
use crate::points::{BATCH, SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const READY: Experiment = Experiment {
    figures: &[Figure {
        what: "time to ready after a restart, 10× more sealed data, same log tail",
        required: Requirement::AtMost(1.3),
        unit: "× time",
    }],
    run: ready,
};

pub const REPLAY: Experiment = Experiment {
    figures: &[Figure {
        what: "replay of the log at a restart, against live ingest",
        required: Requirement::AtLeast(3.0),
        unit: "× faster",
    }],
    run: replay,
};

const SOURCES: usize = 10;
const SEALED_BATCHES: usize = 30;
const TAIL_BATCHES: usize = 20;
const RESTARTS: usize = 9;
/// Prevents checkpoints: the log may reach the default length.
const NO_CHECKPOINT: (&str, &str) = ("storage.checkpoint_bytes", "268435456");

/// Creates a data directory with sealed points and a log tail of constant size.
fn fill(data_dir: &Path, sealed_batches: usize) -> Outcome<()> {
    let server = Server::start(data_dir, &[])?;
    let mut account = Account::sign_up(&server, "plant")?;
    let bucket = account.bucket("plant")?;
    let first_ns = days_ago_ns(20)?;
    let sources = account.sources(&bucket, SOURCES)?;
    let mut series: Vec<Series> = (0..SOURCES)
        .map(|seed| Series::new(seed as u64, first_ns, SECOND_NS))
        .collect();
    let mut requests = |each: usize| -> Vec<Vec<Vec<u8>>> {
        let of_client = |(series, source): (&mut Series, &String)| {
            (0..each)
                .map(|_| account.batch(&series.batch(&bucket, source, BATCH)))
                .collect()
        };
        series.iter_mut().zip(&sources).map(of_client).collect()
    };
    drive(server.address, &requests(sealed_batches))?;
    server.stop()?;
    let server = Server::start(data_dir, &[NO_CHECKPOINT])?;
    drive(server.address, &requests(TAIL_BATCHES))?;
    server.kill()
}

fn ready() -> Outcome<Vec<Measured>> {
    let (less, more) = (data_root()?, data_root()?);
    fill(less.path(), SEALED_BATCHES)?;
    fill(more.path(), 10 * SEALED_BATCHES)?;
    let (mut of_less, mut of_more) = (Vec::new(), Vec::new());
    for _ in 0..RESTARTS {
        for (dir, took_ms) in [(&less, &mut of_less), (&more, &mut of_more)] {
            let server = Server::start(dir.path(), &[NO_CHECKPOINT])?;
            took_ms.push(server.ready_after.as_secs_f64() * 1e3);
            server.kill()?;
        }
    }
    let (less_ms, more_ms) = (median(&mut of_less), median(&mut of_more));
    let points = SOURCES * SEALED_BATCHES * BATCH;
    let note = format!(
        "{} ms with {} sealed points, {} ms with {points}, from the start of the process; {} points in the tail; \
         medians of {RESTARTS} alternating restarts",
        significant(more_ms),
        10 * points,
        significant(less_ms),
        SOURCES * TAIL_BATCHES * BATCH
    );
    Ok(vec![Measured {
        value: more_ms / less_ms,
        note,
    }])
}

fn replay() -> Outcome<Vec<Measured>> {
    let each = 30;
    let mut load = Load::start(&[NO_CHECKPOINT])?;
    let points = (CLIENTS * each * BATCH) as f64;
    let live_s = load.drive(each, BATCH)?.as_secs_f64();
    let cpu_s = load.server.cpu_seconds()?;
    let dir = load.crash()?;
    let mut replays_s = Vec::new();
    for _ in 0..3 {
        let server = Server::start(&dir.path().join("data"), &[NO_CHECKPOINT])?;
        replays_s.push(server.ready_after.as_secs_f64());
        server.kill()?;
    }
    let replay_s = median(&mut replays_s);
    let note = format!(
        "{points} points: live {} million a second with {CLIENTS} clients on the same cores ({} µs of server CPU a \
         point), replayed {} million a second from the start of the process to ready",
        significant(points / live_s / 1e6),
        significant(cpu_s * 1e6 / points),
        significant(points / replay_s / 1e6)
    );
    Ok(vec![Measured {
        value: live_s / replay_s,
        note,
    }])
}
