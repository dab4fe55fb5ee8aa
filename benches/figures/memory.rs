//! Memory of an idle series.

use std::thread;

use serde_json::json;

use crate::Outcome;
use crate::client::{Connection, request};
use crate::points::{FIELDS, SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const IDLE_SERIES: Experiment = Experiment {
    figures: &[Figure {
        what: "memory per idle series, from 10,000 to 110,000 series",
        required: Requirement::AtMost(1_024.0),
        unit: "B",
    }],
    run: idle_series,
};

/// An organization's commands are decided one at a time; several organizations share syncs.
const ORGANIZATIONS: usize = 20;
const FEW: usize = 10_000;
const MANY: usize = 110_000;
const NO_CHECKPOINT: (&str, &str) = ("storage.checkpoint_bytes", "268435456");

fn idle_series() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let data_dir = dir.path().join("data");
    let server = Server::start(&data_dir, &[NO_CHECKPOINT])?;
    let mut accounts = Vec::new();
    for index in 0..ORGANIZATIONS {
        let mut account = Account::sign_up(&server, &format!("plant{index}"))?;
        let bucket = account.bucket("plant")?;
        accounts.push((account, bucket));
    }
    let grow = |from: usize, to: usize| -> Outcome<f64> {
        thread::scope(|scope| {
            let threads: Vec<_> = accounts
                .iter()
                .map(|(account, bucket)| {
                    let server = &server;
                    scope.spawn(move || {
                        let sources = from / ORGANIZATIONS..to / ORGANIZATIONS;
                        sources
                            .clone()
                            .collect::<Vec<_>>()
                            .chunks(1_000)
                            .try_for_each(|part| add_sources(server, account, bucket, part))
                    })
                })
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().map_err(|_| "a client panicked")?)
        })?;
        server.settle()?;
        server.resident_bytes()
    };
    let few = grow(0, FEW)?;
    let many = grow(FEW, MANY)?;
    server.stop()?;
    let server = Server::start(&data_dir, &[])?;
    server.settle()?;
    let sealed = server.resident_bytes()?;
    let note = format!(
        "VmRSS {} → {} MB live: sources created over HTTP in {ORGANIZATIONS} organizations, one point each, not yet \
         sealed; after a restart, all sealed, {} MB",
        significant(few / 1e6),
        significant(many / 1e6),
        significant(sealed / 1e6)
    );
    Ok(vec![Measured {
        value: (many - few) / (MANY - FEW) as f64,
        note,
    }])
}

/// Creates sources and sends one point to each.
fn add_sources(server: &Server, account: &Account, bucket: &str, indexes: &[usize]) -> Outcome<()> {
    let mut connection = Connection::open(server.address)?;
    let number = json!({"type": "number"});
    let schema: serde_json::Map<_, _> = FIELDS
        .iter()
        .map(|field| ((*field).to_owned(), number.clone()))
        .collect();
    let path = format!("/api/buckets/{bucket}/sources");
    let mut series = Series::new(1, days_ago_ns(1)?, SECOND_NS);
    let mut points = Vec::new();
    for index in indexes {
        let body = json!({"name": format!("source {index}"), "schema": schema}).to_string();
        let answer = connection.send_ok(&request("POST", &path, &account.credential, body.as_bytes()))?;
        let answer: serde_json::Value = serde_json::from_slice(answer)?;
        let id = answer
            .pointer("/dataSource/_id")
            .and_then(serde_json::Value::as_str)
            .ok_or("no source id")?;
        points.push(series.entry(id));
    }
    connection.send_ok(&account.batch(&Series::batch_of(bucket, &points)))?;
    Ok(())
}
