//! Memory of a series with occasional points, over many checkpoints.

use crate::Outcome;
use crate::client::drive;
use crate::fleet::{Filler, Fleet};
use crate::metrics::{CHECKPOINTS, SEGMENTS, metric, wait_for_merges};
use crate::points::{BATCH, SECOND_NS, Series, days_ago_ns};
use crate::server::{Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const GROWTH: Experiment = Experiment {
    figures: &[
        // The same limit as for an idle series: a checkpoint leaves 40 bytes for each block in a file, and merges keep
        // the number of blocks low.
        Figure {
            what: "memory per series after ten checkpoints, 100,000 series",
            required: Requirement::AtMost(1_024.0),
            unit: "B",
        },
        Figure {
            what: "growth of memory per series from the second to the tenth of these checkpoints",
            required: Requirement::Shown,
            unit: "B",
        },
    ],
    run: growth,
};

const SERIES: usize = 100_000;
/// Series of each organization's single bucket.
const SERIES_OF_A_BUCKET: usize = 3_125;
const TEN: usize = 10;
/// More than the log of a round.
const CHECKPOINT_BYTES: (&str, &str) = ("storage.checkpoint_bytes", "16777216");

fn growth() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let data_dir = dir.path().join("data");
    let server = Server::start(&data_dir, &[CHECKPOINT_BYTES])?;
    let mut fleet = Fleet::sign_up(&server)?;
    let mut filler = Filler::of(&server, &mut fleet.accounts[0])?;
    // Memory that the process allocates once is allocated before the measurement.
    filler.until_checkpoint(&server, metric(&server, CHECKPOINTS)?)?;
    server.settle()?;
    let before = server.anonymous_bytes()?;
    fleet.create(&server, SERIES / SERIES_OF_A_BUCKET, SERIES_OF_A_BUCKET)?;
    let mut seen = Vec::new();
    let mut counted = 0.0;
    for round in 0..TEN {
        let done = metric(&server, CHECKPOINTS)?;
        send_round(&server, &fleet, round)?;
        filler.until_checkpoint(&server, done.max(metric(&server, CHECKPOINTS)?))?;
        wait_for_merges(&server)?;
        counted += metric(&server, CHECKPOINTS)? - done;
        seen.push((server.anonymous_bytes()? - before) / SERIES as f64);
    }
    let shown: Vec<String> = seen.iter().map(|bytes| format!("{bytes:.0}")).collect();
    let last = seen[TEN - 1];
    let note = format!(
        "RssAnon per series after each checkpoint, without the {} MB before the series were created: {} B; {counted} checkpoints, {} \
         segments at the end",
        significant(before / 1e6),
        shown.join(", "),
        metric(&server, SEGMENTS)?
    );
    server.stop()?;
    let server = Server::start(&data_dir, &[])?;
    server.settle()?;
    let restarted = server.anonymous_bytes()?;
    Ok(vec![
        Measured { value: last, note },
        Measured {
            value: last - seen[1],
            note: format!("{} MB in total after a restart", significant(restarted / 1e6)),
        },
    ])
}

/// Sends one point to each series.
fn send_round(server: &Server, fleet: &Fleet, round: usize) -> Outcome<()> {
    let first_ns = days_ago_ns(20)? + round as i64 * 3_600 * SECOND_NS;
    let of_bucket = |bucket: &crate::fleet::Bucket| {
        let mut series = Series::new(round as u64, first_ns, SECOND_NS);
        let account = &fleet.accounts[bucket.account];
        let batch = |sources: &[String]| {
            let entries: Vec<_> = sources.iter().map(|source| series.entry(source)).collect();
            account.batch(&Series::batch_of(&bucket.id, &entries))
        };
        bucket.sources.chunks(BATCH).map(batch).collect()
    };
    let clients: Vec<Vec<Vec<u8>>> = fleet.buckets.iter().map(of_bucket).collect();
    drive(server.address, &clients).map(drop)
}
