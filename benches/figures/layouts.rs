//! Answers in columns against the same in rows. Over HTTP.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::Outcome;
use crate::client::{alternate, drive, request};
use crate::points::{BATCH, SECOND_NS, days_ago_ns};
use crate::server::{Account, NAME, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

const TEN: &str = "10,000 minutes of ten fields as columns, against rows";
const MERGED: &str = "10,000 minutes of three fields, data sources merged, as columns, against rows";
const CHART: &str = "chart of 10,000 rows of three fields as columns, against rows";

pub const COLUMNS: Experiment = Experiment {
    figures: &[
        bytes(TEN, Requirement::AtMost(0.25)),
        time(TEN, Requirement::AtMost(0.5)),
        bytes(MERGED, Requirement::AtMost(0.25)),
        time(MERGED, Requirement::AtMost(0.5)),
        // Each row has a timestamp and the id of its source in both layouts.
        bytes(CHART, Requirement::Shown),
        time(CHART, Requirement::Shown),
    ],
    run: columns,
};

const fn bytes(what: &'static str, required: Requirement) -> Figure {
    Figure {
        what,
        required,
        unit: "× bytes",
    }
}

const fn time(what: &'static str, required: Requirement) -> Figure {
    Figure {
        what,
        required,
        unit: "× time",
    }
}

const MINUTES: usize = 10_000;
const ROUNDS: usize = 21;
const SEED: u64 = 11;

/// A bucket with one source that sends every second; its values are walks in tenths.
fn filled(server: &Server, account: &mut Account, fields: usize) -> Outcome<String> {
    let bucket = account.bucket(&format!("fields {fields}"))?;
    let path = format!("/write?bucket={bucket}");
    let first_ns = days_ago_ns(20)? / (60 * SECOND_NS) * 60 * SECOND_NS;
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut tenths = vec![500_i64; fields];
    let mut requests = Vec::new();
    for first in (0..60 * MINUTES).step_by(BATCH) {
        let mut lines = String::new();
        for second in first..(first + BATCH).min(60 * MINUTES) {
            lines.push_str("plant");
            for (field, level) in tenths.iter_mut().enumerate() {
                *level = (*level + random.i64(-2..=2)).clamp(0, 1_000);
                let before = if field == 0 { ' ' } else { ',' };
                write!(lines, "{before}sensor_{field}={}", *level as f64 / 10.0)?;
            }
            writeln!(lines, " {}", first_ns + second as i64 * SECOND_NS)?;
        }
        requests.push(request("POST", &path, &account.credential, lines.as_bytes()));
    }
    drive(server.address, &[requests])?;
    Ok(bucket)
}

fn columns() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let server = Server::start(&dir.path().join("data"), &[])?;
    let mut account = Account::sign_up(&server, NAME)?;
    let [three, ten] = [3, 10].map(|fields| filled(&server, &mut account, fields));
    let (three, ten) = (three?, ten?);
    server.settle()?;
    let mut measured = Vec::new();
    let by_minute = json!({"aggregation": "max", "groupBy": "minute", "limit": MINUTES});
    let merged = json!({"aggregation": "max", "groupBy": "minute", "limit": MINUTES, "mergeSources": true});
    let chart = json!({"maxPoints": MINUTES});
    for (bucket, body) in [(&ten, by_minute), (&three, merged), (&three, chart)] {
        let requests = ["columns", "rows"].map(|layout| {
            let mut body = body.clone();
            (body["bucketId"], body["layout"]) = (Value::from(bucket.as_str()), Value::from(layout));
            account.query(&body)
        });
        let [columns, rows] = alternate(server.address, ROUNDS, requests.each_ref().map(Vec::as_slice))?;
        measured.push(Measured {
            value: columns.1 as f64 / rows.1 as f64,
            note: format!("{} against {} B", columns.1, rows.1),
        });
        measured.push(Measured {
            value: columns.0 / rows.0,
            note: format!(
                "{} against {} ms, medians of {ROUNDS} alternating rounds",
                significant(columns.0),
                significant(rows.0)
            ),
        });
    }
    Ok(measured)
}
