//! Requests of evaluators: the cost of a poll for due rules by the number of rules, and the throughput of verdicts.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::Outcome;
use crate::client::{Connection, drive, request};
use crate::ingest::CLIENTS;
use crate::points::FIELDS;
use crate::server::{Account, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const RULES: Experiment = Experiment {
    figures: &[
        Figure {
            what: "server CPU per poll that lists 100 due rules, 100 rules in total",
            required: Requirement::Shown,
            unit: "µs",
        },
        Figure {
            what: "server CPU per poll that lists 100 due rules, 10,000 rules in total",
            required: Requirement::Shown,
            unit: "µs",
        },
        Figure {
            what: "server CPU per poll that lists 100 due rules, 100,000 rules in total",
            required: Requirement::Shown,
            unit: "µs",
        },
        Figure {
            what: "poll of due rules, 1,000× more rules, as many listed",
            required: Requirement::AtMost(1.3),
            unit: "× CPU",
        },
        Figure {
            what: "durable verdicts, 64 connections",
            required: Requirement::Shown,
            unit: "/s",
        },
    ],
    run: rules,
};

const COUNTS: [usize; 3] = [100, 10_000, 100_000];
const LISTED: usize = 100;
pub const POLLS: usize = 4_000;
/// Verdicts of each connection.
const VERDICTS: usize = 500;

/// The request that creates a rule for evaluators.
pub fn rule(account: &Account, bucket: &str, source: &str) -> Vec<u8> {
    let body = json!({
        "bucketId": bucket, "dataSourceId": source, "name": "too hot",
        "naturalLanguageQuery": "is it hotter than it should be?",
        "evaluation": {
            "kind": "threshold", "intervalSeconds": 60, "windowSeconds": 3_600, "dwellSeconds": 0,
            "parameters": {"operator": "gt", "value": 80},
            "inputs": [{"key": "a", "field": FIELDS[0]}],
        },
    });
    request(
        "POST",
        "/api/alerts",
        &account.credential,
        body.to_string().as_bytes(),
    )
}

/// The request that posts a verdict on a rule.
pub fn verdict(account: &Account, rule: &str, outcome: &str) -> Vec<u8> {
    let body = json!({"outcome": outcome, "evidence": {"currentValue": 81.5, "threshold": 80}});
    let path = format!("/api/evaluations/{rule}/verdict");
    request("POST", &path, &account.credential, body.to_string().as_bytes())
}

/// Creates rules over several connections.
pub fn create(server: &Server, request: &[u8], count: usize) -> Outcome<()> {
    let of_client = |client| vec![request.to_vec(); count / CLIENTS + usize::from(client < count % CLIENTS)];
    let clients: Vec<_> = (0..CLIENTS.min(count)).map(of_client).collect();
    drive(server.address, &clients).map(drop)
}

fn rules() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let server = Server::start(&dir.path().join("data"), &[])?;
    let mut account = Account::sign_up(&server, "plant")?;
    let bucket = account.bucket("plant")?;
    let source = account.source(&bucket, "boiler")?;
    let create_one = rule(&account, &bucket, &source);
    let path = format!("/api/evaluations/due?limit={LISTED}");
    let poll = request("GET", &path, &account.credential, b"");
    let (mut measured, mut existing) = (Vec::new(), 0);
    for count in COUNTS {
        create(&server, &create_one, count - existing)?;
        existing = count;
        let (cpu_us, took) = polls(&server, &poll)?;
        measured.push(Measured {
            value: cpu_us,
            note: format!(
                "{POLLS} polls on one connection, latency {} µs each",
                significant(took.as_secs_f64() * 1e6 / POLLS as f64)
            ),
        });
    }
    let ratio = measured[2].value / measured[0].value;
    measured.push(Measured {
        value: ratio,
        note: String::from("100,000 rules against 100"),
    });
    measured.push(verdicts(&server, &mut account, &bucket)?);
    Ok(measured)
}

/// CPU time of a request in microseconds, and the total time of all, one after the other on one connection.
pub fn polls(server: &Server, poll: &[u8]) -> Outcome<(f64, Duration)> {
    let mut connection = Connection::open(server.address)?;
    connection.send_ok(poll)?;
    server.settle()?;
    let (used_before, started) = (server.cpu_seconds()?, Instant::now());
    for _ in 0..POLLS {
        connection.send_ok(poll)?;
    }
    let took = started.elapsed();
    Ok(((server.cpu_seconds()? - used_before) * 1e6 / POLLS as f64, took))
}

fn verdicts(server: &Server, account: &mut Account, bucket: &str) -> Outcome<Measured> {
    let rules = account.rules(bucket, CLIENTS * VERDICTS)?;
    let of_client = |rules: &[String]| {
        rules
            .iter()
            .map(|rule| verdict(account, rule, "not_met"))
            .collect()
    };
    let clients: Vec<Vec<_>> = rules.chunks(VERDICTS).map(of_client).collect();
    server.settle()?;
    let used_before = server.cpu_seconds()?;
    let took = drive(server.address, &clients)?;
    server.settle()?;
    let used = server.cpu_seconds()? - used_before;
    Ok(Measured {
        value: rules.len() as f64 / took.as_secs_f64(),
        note: format!(
            "{} verdicts with evidence, one for each rule, {} µs of server CPU each",
            rules.len(),
            significant(used * 1e6 / rules.len() as f64)
        ),
    })
}
