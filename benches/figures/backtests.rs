//! Backtests of rules: the cost of a page of cycles by the length of the range.

use serde_json::{Value, json};

use crate::Outcome;
use crate::client::{Connection, request};
use crate::rules::{POLLS, polls, rule};
use crate::server::{Account, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const CYCLES: Experiment = Experiment {
    figures: &[
        Figure {
            what: "server CPU per page of 100 cycles, the last of 100,000",
            required: Requirement::Shown,
            unit: "µs",
        },
        Figure {
            what: "server CPU per page of 100 cycles, the last of 1,000,000",
            required: Requirement::Shown,
            unit: "µs",
        },
        Figure {
            what: "page of cycles, range 10× longer",
            required: Requirement::AtMost(1.3),
            unit: "× CPU",
        },
    ],
    run: cycles,
};

const PAGE: u64 = 100;
/// The end of the range of each length, at one cycle a minute from the beginning of the year 2000.
const RANGES: [(u64, &str); 2] = [
    (100_000, "2000-03-10T10:39:00Z"),
    (1_000_000, "2001-11-25T10:39:00Z"),
];

fn cycles() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let server = Server::start(&dir.path().join("data"), &[])?;
    let mut account = Account::sign_up(&server, "plant")?;
    let bucket = account.bucket("plant")?;
    let source = account.source(&bucket, "boiler")?;
    let mut connection = Connection::open(server.address)?;
    let created: Value = serde_json::from_slice(connection.send_ok(&rule(&account, &bucket, &source))?)?;
    let id = created["alertRule"]["_id"].as_str().ok_or("no rule")?;
    let path = format!("/api/alerts/{id}/backtest");
    let mut measured = Vec::new();
    for (count, end) in RANGES {
        let body = json!({
            "startTime": "2000-01-01T00:00:00Z", "endTime": end, "limit": PAGE, "offset": count - PAGE,
        });
        let page = request("POST", &path, &account.credential, body.to_string().as_bytes());
        let answer: Value = serde_json::from_slice(connection.send_ok(&page)?)?;
        if answer["pagination"]["total"] != count || answer["cycles"].as_array().map(Vec::len) != Some(100) {
            return Err(format!("not the last page of {count}").into());
        }
        let (cpu_us, took) = polls(&server, &page)?;
        measured.push(Measured {
            value: cpu_us,
            note: format!(
                "{POLLS} requests on one connection, latency {} µs each",
                significant(took.as_secs_f64() * 1e6 / POLLS as f64)
            ),
        });
    }
    let ratio = measured[1].value / measured[0].value;
    measured.push(Measured {
        value: ratio,
        note: String::from("1,000,000 cycles against 100,000"),
    });
    Ok(measured)
}
