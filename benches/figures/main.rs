//! `make bench`: the performance figures that the project promises, measured in one run and printed as a table.
//!
//! Most figures are measured on the release binary, driven over HTTP by this process on the same machine. The client's
//! CPU time is never counted; the server's is read from `/proc`. Ratios compare rounds that alternate within the run.
//! Arguments after `--` select the rows whose names contain one of them.

mod analytics;
mod answer;
mod backtests;
mod budget;
mod charts;
mod checkpoints;
mod client;
mod computing;
mod concurrent;
mod damage;
mod deletions;
mod deliveries;
mod dimensions;
mod durability;
mod exports;
mod files;
mod fleet;
mod forgetting;
mod growth;
mod history;
mod hosts;
mod ingest;
mod layouts;
mod log_store;
mod log_tables;
mod logins;
mod machine;
mod many_series;
mod memory;
mod metrics;
mod nodes;
mod open_loop;
mod overload;
mod owed;
mod points;
#[expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a database that does not start says so by its panic"
)]
#[path = "../../tests/support/postgres.rs"]
mod postgres;
mod publishing;
mod querying;
mod questions;
mod restart;
mod rules;
mod scans;
mod server;
#[path = "../sonic/mod.rs"]
mod sonic;
mod stale_sources;
mod storage;
mod table;
mod take_over;
mod waiting;
mod wide;
mod writers;

use std::error::Error;
use std::time::Instant;

use table::{Experiment, Table};

/// The error of a measurement is a readable message.
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const EXPERIMENTS: &[Experiment] = &[
    computing::PARSE,
    computing::ALLOCATIONS,
    querying::ROWS_READ,
    querying::HOURLY,
    querying::MINUTELY,
    querying::TENFOLD,
    querying::MANY_SOURCES,
    questions::MONTH,
    questions::YEAR,
    layouts::COLUMNS,
    analytics::BUCKET,
    analytics::OVERVIEW,
    ingest::BATCHES,
    ingest::SINGLES,
    waiting::WAITING,
    wide::WIDE,
    writers::WRITERS,
    durability::SLOW_SYNC,
    storage::DISK,
    restart::READY,
    restart::REPLAY,
    many_series::MANY_SERIES,
    dimensions::SERIES,
    dimensions::GROUPS,
    forgetting::FORGETTING,
    hosts::HOSTS,
    files::FILES,
    checkpoints::SYNCS,
    damage::DAMAGE,
    history::HISTORY,
    memory::IDLE_SERIES,
    growth::GROWTH,
    deletions::DELETIONS,
    exports::EXPORTS,
    charts::CHARTS,
    charts::CHANGES,
    scans::SCANS,
    budget::MEMORY,
    budget::OTHER_ORGANIZATION,
    logins::LOGINS,
    overload::INGEST,
    overload::GZIP_INGEST,
    overload::QUERIES,
    rules::RULES,
    stale_sources::STALE_SOURCES,
    backtests::CYCLES,
    deliveries::DELIVERIES,
    owed::OWED,
    log_store::LOG_STORE,
    nodes::NODES,
    nodes::BACK,
    log_tables::LOG_TABLES,
    take_over::TAKE_OVER,
    publishing::PUBLISHING,
];

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let chosen = |experiment: &&Experiment| {
        let names = |word: &String| {
            experiment
                .figures
                .iter()
                .any(|figure| figure.what.contains(word.as_str()))
        };
        words.is_empty() || words.iter().any(names)
    };
    machine::describe()?;
    println!(
        "points    three number fields, one point a second unless said otherwise: {}\n",
        points::DESCRIPTION
    );
    let started = Instant::now();
    let mut table = Table::default();
    for experiment in EXPERIMENTS.iter().filter(chosen) {
        let began = Instant::now();
        let measured = (experiment.run)();
        eprintln!(
            "{:5.1} s  {}",
            began.elapsed().as_secs_f64(),
            experiment.figures[0].what
        );
        table.add(experiment, measured);
    }
    println!();
    table.print();
    println!("\n{}  (again, at the end)", machine::disk_floor()?);
    println!("measured in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}
