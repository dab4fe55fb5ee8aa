//! Sources that fall silent, and time that brings nothing about.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Outcome;
use crate::client::Connection;
use crate::deliveries::unresponsive_receiver;
use crate::metrics::metric;
use crate::points::{BATCH, Series, days_ago_ns};
use crate::server::{Account, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const STALE_SOURCES: Experiment = Experiment {
    figures: &[
        Figure {
            what: "server CPU for each of 1,000 sources that fall silent at once, told to a webhook",
            required: Requirement::Shown,
            unit: "µs",
        },
        Figure {
            what: "the same for each of 10,000 sources",
            required: Requirement::AtMost(1.3),
            unit: "× CPU",
        },
        Figure {
            what: "server CPU a second while 10,000 sources are waited for and nothing happens",
            required: Requirement::AtMost(10.0),
            unit: "ms",
        },
    ],
    run: stale_sources,
};

const COUNTS: [usize; 2] = [1_000, 10_000];
const PENDING: &str = "tidewatch_deliveries_pending";
const QUIET: Duration = Duration::from_secs(5);
const LOOK_PERIOD: Duration = Duration::from_millis(50);

fn stale_sources() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let settings = [("webhooks.allow_private_networks", "true"), ("wal.sync", "never")];
    let server = Server::start(&dir.path().join("data"), &settings)?;
    let mut account = Account::sign_up(&server, "plant")?;
    let (receiver, _connections) = unresponsive_receiver()?;
    account.webhook_of(receiver, &["source.stale"])?;
    let (mut measured, mut quiet_ms) = (Vec::new(), 0.0);
    for count in COUNTS {
        let (cpu_us, took) = fall_silent(&server, &mut account, count)?;
        measured.push(Measured {
            value: cpu_us,
            note: format!(
                "from their first points, which are old, until the last one is told, {} s; deliveries are pending",
                significant(took.as_secs_f64())
            ),
        });
        server.settle()?;
        let before = server.cpu_seconds()?;
        thread::sleep(QUIET);
        quiet_ms = (server.cpu_seconds()? - before) * 1e3 / QUIET.as_secs_f64();
    }
    measured[1] = Measured {
        value: measured[1].value / measured[0].value,
        note: format!("{} µs each; {}", significant(measured[1].value), measured[1].note),
    };
    measured.push(Measured {
        value: quiet_ms,
        note: String::from("the clock ticks in steps of 10 ms; attempts at deliveries are under way"),
    });
    Ok(measured)
}

/// Creates sources whose first point is older than three of their intervals. Returns the server's CPU time for each, from the
/// points until all are told, in microseconds, and the time that it took.
fn fall_silent(server: &Server, account: &mut Account, count: usize) -> Outcome<(f64, Duration)> {
    let bucket = account.bucket(&format!("plant {count}"))?;
    let mut connection = Connection::open(server.address)?;
    let sources = account.sources(&bucket, count)?;
    for source in &sources {
        let path = format!("/api/buckets/{bucket}/sources/{source}");
        let body = json!({"expectedIntervalSeconds": 60});
        connection.json("PATCH", &path, &account.credential, &body)?;
    }
    let told_before = metric(server, PENDING)?;
    let mut series = Series::new(7, days_ago_ns(1)?, 1);
    let batch = |sources: &[String]| {
        let entries: Vec<Vec<u8>> = sources.iter().map(|source| series.entry(source)).collect();
        account.batch(&Series::batch_of(&bucket, &entries))
    };
    let batches: Vec<Vec<u8>> = sources.chunks(BATCH).map(batch).collect();
    server.settle()?;
    let (used_before, started) = (server.cpu_seconds()?, Instant::now());
    for batch in &batches {
        connection.send_ok(batch)?;
    }
    while metric(server, PENDING)? - told_before < 0.99 * count as f64 {
        thread::sleep(LOOK_PERIOD);
    }
    let took = started.elapsed();
    Ok(((server.cpu_seconds()? - used_before) * 1e6 / count as f64, took))
}
