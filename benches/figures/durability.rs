//! Group commit on a slow disk: requests acknowledged by one sync.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::Outcome;
use crate::client::drive;
use crate::ingest::CLIENTS;
use crate::points::{SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const SLOW_SYNC: Experiment = Experiment {
    figures: &[
        Figure {
            what: "acknowledgements per fdatasync of 5 ms, 64 clients, 1 bucket",
            required: Requirement::AtLeast(32.0),
            unit: "requests",
        },
        Figure {
            what: "acknowledgements per fdatasync of 5 ms, 64 clients, 64 buckets",
            required: Requirement::AtLeast(32.0),
            unit: "requests",
        },
    ],
    run: slow_sync,
};

const REQUESTS_EACH: usize = 100;

fn slow_sync() -> Outcome<Vec<Measured>> {
    if Command::new("strace").arg("-V").output().is_err() {
        return Err("strace is not installed: it delays fdatasync and counts the calls".into());
    }
    let dir = data_root()?;
    let trace = dir.path().join("syncs");
    let trace_path = trace.to_str().ok_or("a path that is not UTF-8")?;
    // strace as a separate process that is not the server's parent; only fdatasync stops for it.
    let tool = [
        "strace",
        "-D",
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-ttt",
        "-e",
        "trace=fdatasync",
        "-e",
        "signal=none",
        "-e",
        "inject=fdatasync:delay_exit=5000",
        "-o",
        trace_path,
        "--",
    ];
    let server = Server::start_under(&tool, &dir.path().join("data"), &[])?;
    let mut account = Account::sign_up(&server, "plant")?;
    let one = account.bucket("one")?;
    let in_one = account
        .sources(&one, CLIENTS)?
        .into_iter()
        .map(|source| (one.clone(), source))
        .collect();
    let mut in_many = Vec::new();
    for index in 0..CLIENTS {
        let bucket = account.bucket(&format!("bucket {index}"))?;
        let source = account.source(&bucket, "source")?;
        in_many.push((bucket, source));
    }
    let mut measured = Vec::new();
    for sources in [in_one, in_many] {
        let requests = singles(&account, &sources)?;
        let from = now_s()?;
        let took = drive(server.address, &requests)?;
        let until = now_s()?;
        let syncs = syncs_between(&fs::read_to_string(&trace)?, from, until);
        if syncs == 0 {
            return Err("strace saw no fdatasync".into());
        }
        let acknowledged = CLIENTS * REQUESTS_EACH;
        let note = format!(
            "single points over HTTP; {acknowledged} requests, {syncs} syncs seen by strace, {} requests a second",
            significant(acknowledged as f64 / took.as_secs_f64())
        );
        measured.push(Measured {
            value: acknowledged as f64 / syncs as f64,
            note,
        });
    }
    server.stop()?;
    Ok(measured)
}

fn singles(account: &Account, sources: &[(String, String)]) -> Outcome<Vec<Vec<Vec<u8>>>> {
    let first_ns = days_ago_ns(1)?;
    let of_client = |(seed, (bucket, source)): (usize, &(String, String))| {
        let mut series = Series::new(seed as u64, first_ns, SECOND_NS);
        (0..REQUESTS_EACH)
            .map(|_| account.single(&series.single(bucket, source)))
            .collect()
    };
    Ok(sources.iter().enumerate().map(of_client).collect())
}

fn now_s() -> Outcome<f64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64())
}

/// Each line of the trace has the thread, the start time of the call, and the call.
fn syncs_between(trace: &str, from_s: f64, until_s: f64) -> usize {
    let began = |line: &str| -> Option<f64> {
        let mut words = line.split_whitespace();
        let (_, time, call) = (words.next()?, words.next()?, words.next()?);
        call.starts_with("fdatasync(").then(|| time.parse().ok())?
    };
    trace
        .lines()
        .filter_map(began)
        .filter(|time| (from_s..until_s).contains(time))
        .count()
}
