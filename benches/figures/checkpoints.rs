//! The cost of a checkpoint by the number of buckets changed since the last one.

use std::path::Path;

use crate::Outcome;
use crate::client::{drive, request};
use crate::fleet::{Filler, Fleet};
use crate::ingest::CLIENTS;
use crate::metrics::{CHECKPOINTS, DISK_SYNCS, LOG_SYNCS, Metrics, metric, wait_for_merges};
use crate::points::{SECOND_NS, Series, days_ago_ns};
use crate::server::{Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, quantile, significant};

pub const SYNCS: Experiment = Experiment {
    figures: &[
        // A checkpoint writes one segment, one run for each stream with changes, and the manifest. All buckets share
        // these files, so their number has no effect.
        Figure {
            what: "syncs of a checkpoint, 10,000 changed buckets against 1",
            required: Requirement::AtMost(1.0),
            unit: "×",
        },
        Figure {
            what: "duration of a checkpoint, 10,000 changed buckets against 1",
            required: Requirement::Shown,
            unit: "×",
        },
        Figure {
            what: "duration of a checkpoint with 1 changed bucket, 10,000 buckets against 1,000",
            required: Requirement::AtMost(2.0),
            unit: "×",
        },
    ],
    run: syncs,
};

const BUCKETS: usize = 10_000;
const FEW_BUCKETS: usize = BUCKETS / 10;
const CHECKPOINT_BYTES: (&str, &str) = ("storage.checkpoint_bytes", "8388608");
/// The remaining part of the log, up to the checkpoint, is sent while syncs are counted.
const FILLED_BYTES: f64 = 8_388_608.0 * 0.96;
const ROUNDS: usize = 5;
const SECONDS: &str = "tidewatch_checkpoint_seconds_total";

/// Checkpoints with one changed bucket and with all buckets changed.
#[derive(Default)]
struct Rounds {
    one: Costs,
    all: Costs,
}

/// The costs of several checkpoints.
#[derive(Default)]
struct Costs {
    syncs: Vec<f64>,
    milliseconds: Vec<f64>,
}

impl Costs {
    fn push(&mut self, took: Cost) {
        self.syncs.push(took.syncs);
        self.milliseconds.push(took.milliseconds);
    }
}

/// The cost of one checkpoint.
struct Cost {
    syncs: f64,
    milliseconds: f64,
}

fn syncs() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let data_dir = dir.path().join("data");
    let server = Server::start(&data_dir, &[])?;
    let mut fleet = Fleet::sign_up(&server)?;
    fleet.create(&server, FEW_BUCKETS, 1)?;
    server.stop()?;
    let few = rounds(&data_dir, &mut fleet, 0)?;
    let server = Server::start(&data_dir, &[])?;
    fleet.create(&server, BUCKETS - FEW_BUCKETS, 1)?;
    server.stop()?;
    let Rounds { mut one, mut all } = rounds(&data_dir, &mut fleet, 1)?;
    let note = format!(
        "{:?} against {:?} syncs of files and directories, without those of tidewatch_log_syncs_total; the least of \
         {ROUNDS} alternating rounds, since some include a new file of the log or a merge of the ledger",
        all.syncs, one.syncs
    );
    let mut few_ms = few.one.milliseconds;
    let (few_ms, one_ms, all_ms) = (
        median(&mut few_ms),
        median(&mut one.milliseconds),
        median(&mut all.milliseconds),
    );
    let against = |ms: f64, other_ms: f64| Measured {
        value: ms / other_ms,
        note: format!(
            "{} against {} ms, medians of {ROUNDS} rounds",
            significant(ms),
            significant(other_ms)
        ),
    };
    Ok(vec![
        Measured {
            value: quantile(&mut all.syncs, 0.0) / quantile(&mut one.syncs, 0.0),
            note,
        },
        against(all_ms, one_ms),
        against(one_ms, few_ms),
    ])
}

/// Takes checkpoints with one changed bucket and with all buckets changed, in alternation. Account `filling` fills the
/// log.
fn rounds(data_dir: &Path, fleet: &mut Fleet, filling: usize) -> Outcome<Rounds> {
    let server = Server::start(data_dir, &[CHECKPOINT_BYTES])?;
    let account = fleet.accounts.remove(filling).on(&server)?;
    fleet.accounts.insert(filling, account);
    let mut filler = Filler::of(&server, &mut fleet.accounts[filling])?;
    filler.until_checkpoint(&server, metric(&server, CHECKPOINTS)?)?;
    let mut rounds = Rounds::default();
    for round in 0..ROUNDS {
        send_round(&server, fleet, round)?;
        rounds.all.push(checkpoint(&server, &mut filler)?);
        rounds.one.push(checkpoint(&server, &mut filler)?);
    }
    server.stop()?;
    Ok(rounds)
}

/// Sends one point to each bucket.
fn send_round(server: &Server, fleet: &Fleet, round: usize) -> Outcome<()> {
    let first_ns = days_ago_ns(20)? + round as i64 * 60 * SECOND_NS;
    let requests = fleet.buckets.iter().map(|bucket| {
        let body = Series::new(round as u64, first_ns, SECOND_NS).single(&bucket.id, &bucket.sources[0]);
        request("POST", "/api/data", fleet.credential(bucket), &body)
    });
    let requests: Vec<Vec<u8>> = requests.collect();
    let each = requests.len().div_ceil(CLIENTS);
    let clients: Vec<Vec<Vec<u8>>> = requests.chunks(each).map(<[_]>::to_vec).collect();
    drive(server.address, &clients).map(drop)
}

/// Fills the log until a checkpoint is taken, and measures that checkpoint.
fn checkpoint(server: &Server, filler: &mut Filler) -> Outcome<Cost> {
    filler.fill(server, FILLED_BYTES)?;
    wait_for_merges(server)?;
    let before = Metrics::of(server)?;
    let done = before.get(CHECKPOINTS)?;
    filler.until_checkpoint(server, done)?;
    let after = Metrics::of(server)?;
    if after.get(CHECKPOINTS)? != done + 1.0 {
        return Err("more than one checkpoint was counted".into());
    }
    let delta = |name: &str| -> Outcome<f64> { Ok(after.get(name)? - before.get(name)?) };
    let took = Cost {
        syncs: delta(DISK_SYNCS)? - delta(LOG_SYNCS)?,
        milliseconds: delta(SECONDS)? * 1e3,
    };
    wait_for_merges(server)?;
    Ok(took)
}
