//! The cost of a bucket that is set apart to the other buckets.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::Outcome;
use crate::client::{Connection, drive, request};
use crate::metrics::{CHECKPOINTS, LOG_TAIL, Metrics, SEGMENTS, metric};
use crate::points::{BATCH, SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, NAME, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, quantile, significant};

pub const DAMAGE: Experiment = Experiment {
    figures: &[
        // Its records are carried on once for each checkpoint, which does not affect ingests.
        Figure {
            what: "server CPU per point ingested into other buckets, with a bucket set apart against without",
            required: Requirement::AtMost(1.1),
            unit: "×",
        },
        // As without a damaged bucket, the log of one checkpoint may wait while that of the next is written.
        Figure {
            what: "greatest length of the log with a bucket set apart, against storage.checkpoint_bytes",
            required: Requirement::AtMost(2.0),
            unit: "×",
        },
    ],
    run: damage,
};

const CHECKPOINT_BYTES: (&str, &str) = ("storage.checkpoint_bytes", "4194304");
/// Connections, each with its own source.
const CLIENTS: usize = 4;
/// Requests of each client in a round; together they fill the log for several checkpoints.
const EACH: usize = 250;
/// The first round only warms up.
const ROUNDS: usize = 8;
/// The end of a segment: offset of the table, its rows, its checksum, end magic.
const TRAILER_BYTES: usize = 24;

/// A server with two buckets, one of which may be damaged.
struct Scene {
    server: Server,
    account: Account,
    bucket: String,
    sources: Vec<(String, Series)>,
    /// A batch for the other bucket.
    to_other: Vec<u8>,
    _dir: TempDir,
}

impl Scene {
    fn start(damaged: bool) -> Outcome<Self> {
        let dir = data_root()?;
        let data_dir = dir.path().join("data");
        let server = Server::start(&data_dir, &[CHECKPOINT_BYTES])?;
        let mut account = Account::sign_up(&server, NAME)?;
        let first_ns = days_ago_ns(20)?;
        let bucket = account.bucket("whole")?;
        let ids = account.sources(&bucket, CLIENTS)?.into_iter().enumerate();
        let series = |seed: usize| Series::new(seed as u64, first_ns, SECOND_NS);
        let mut sources: Vec<_> = ids.map(|(seed, id)| (id, series(seed))).collect();
        // Created later, it has the greater ordinal and so the last entries of a segment.
        let other = account.bucket("other")?;
        let (of_other, mut other_series) = (account.source(&other, "other")?, series(CLIENTS));
        let mut connection = Connection::open(server.address)?;
        let mut fill = |connection: &mut Connection| -> Outcome<()> {
            let (source, series) = &mut sources[0];
            connection.send_ok(&account.batch(&series.batch(&bucket, source, BATCH)))?;
            connection.send_ok(&account.batch(&other_series.batch(&other, &of_other, BATCH)))?;
            Ok(())
        };
        fill(&mut connection)?;
        server.stop()?;
        // The log must also have records of both: those of a bucket that does not open are carried on.
        let server = Server::start(&data_dir, &[CHECKPOINT_BYTES])?;
        fill(&mut Connection::open(server.address)?)?;
        server.kill()?;
        if damaged {
            damage_last_entry(&data_dir)?;
        }
        let server = Server::start(&data_dir, &[CHECKPOINT_BYTES])?;
        let apart = metric(&server, "tidewatch_buckets_set_apart")?;
        if apart != f64::from(u8::from(damaged)) {
            return Err(format!("{apart} buckets are set apart").into());
        }
        let account = account.on(&server)?;
        let body = other_series.batch(&other, &of_other, BATCH);
        Ok(Scene {
            to_other: request("POST", "/api/data/batch", &account.credential, &body),
            server,
            account,
            bucket,
            sources,
            _dir: dir,
        })
    }

    /// Status of an ingest into the other bucket.
    fn status_of_other(&self) -> Outcome<u16> {
        let mut connection = Connection::open(self.server.address)?;
        Ok(connection.send(&self.to_other)?.0)
    }

    /// CPU time of a point in µs.
    fn cost_us(&mut self) -> Outcome<f64> {
        let (account, bucket) = (&self.account, &self.bucket);
        let of_client = |(source, series): &mut (String, Series)| {
            (0..EACH)
                .map(|_| account.batch(&series.batch(bucket, source, BATCH)))
                .collect()
        };
        let requests: Vec<Vec<Vec<u8>>> = self.sources.iter_mut().map(of_client).collect();
        self.server.settle()?;
        let before = self.server.cpu_seconds()?;
        drive(self.server.address, &requests)?;
        self.server.settle()?;
        Ok((self.server.cpu_seconds()? - before) * 1e6 / (CLIENTS * EACH * BATCH) as f64)
    }
}

/// Flips a bit in the last entry of the only segment.
fn damage_last_entry(data_dir: &Path) -> Outcome<()> {
    let segments = fs::read_dir(data_dir.join("segments"))?;
    let paths: Vec<_> = segments.map(|entry| Ok(entry?.path())).collect::<Outcome<_>>()?;
    let [path] = paths.as_slice() else {
        return Err(format!("{} segments where there should be one", paths.len()).into());
    };
    let mut bytes = fs::read(path)?;
    let trailer = bytes.len().checked_sub(TRAILER_BYTES).ok_or("a short segment")?;
    let table = u64::from_le_bytes(bytes[trailer..trailer + 8].try_into()?) as usize;
    bytes[table - 1] ^= 1;
    Ok(fs::write(path, bytes)?)
}

fn damage() -> Outcome<Vec<Measured>> {
    let (mut whole, mut damaged) = (Scene::start(false)?, Scene::start(true)?);
    let statuses = [whole.status_of_other()?, damaged.status_of_other()?];
    if statuses[1] != 503 {
        return Err(format!("an ingest into the damaged bucket was answered {}", statuses[1]).into());
    }
    let (mut ratios, mut costs, mut longest) = (Vec::new(), [Vec::new(), Vec::new()], [0.0f64; 2]);
    for round in 0..ROUNDS {
        // The order alternates, so that a machine that becomes slower favours neither.
        let mut of_round = [0.0; 2];
        for turn in [round % 2, 1 - round % 2] {
            let scene = if turn == 0 { &mut whole } else { &mut damaged };
            of_round[turn] = scene.cost_us()?;
            longest[turn] = longest[turn].max(metric(&scene.server, LOG_TAIL)?);
        }
        if round > 0 {
            ratios.push(of_round[1] / of_round[0]);
            for (costs, cost) in costs.iter_mut().zip(of_round) {
                costs.push(cost);
            }
        }
    }
    let metrics = Metrics::of(&damaged.server)?;
    let apart_after = metrics.get("tidewatch_buckets_set_apart")?;
    let [whole_us, damaged_us] = costs.map(|mut costs| median(&mut costs));
    let [least, most] = [0.0, 1.0].map(|share| significant(quantile(&mut ratios, share)));
    let note = format!(
        "{} against {} µs on two servers, {CLIENTS} connections, {EACH} batches of {BATCH} points each a round, median of \
         the ratios of {} alternating rounds ({least} to {most}); the damaged bucket answers 503; {apart_after} set apart at \
         the end, {} against {} segments",
        significant(damaged_us),
        significant(whole_us),
        ROUNDS - 1,
        metrics.get(SEGMENTS)?,
        metric(&whole.server, SEGMENTS)?
    );
    let checkpoint_bytes: f64 = CHECKPOINT_BYTES.1.parse()?;
    let log_note = format!(
        "measured after each round, {} checkpoints of {} MiB; {} × without a damaged bucket",
        metrics.get(CHECKPOINTS)?,
        checkpoint_bytes / f64::from(1 << 20),
        significant(longest[0] / checkpoint_bytes)
    );
    Ok(vec![
        Measured {
            value: median(&mut ratios),
            note,
        },
        Measured {
            value: longest[1] / checkpoint_bytes,
            note: log_note,
        },
    ])
}
