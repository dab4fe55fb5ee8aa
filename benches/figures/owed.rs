//! What deliveries that are owed for long cost the disk: a checkpoint writes what has changed, not all there is.

use std::net::TcpListener;

use serde_json::json;

use crate::Outcome;
use crate::client::{Connection, drive};
use crate::ingest::{CHECKPOINT_BYTES, CLIENTS, Load};
use crate::metrics::{CHECKPOINTS, LOG_BYTES, MERGES, Metrics, merges_stand_still, metric};
use crate::points::BATCH;
use crate::rules::{create, rule, verdict};
use crate::table::{Bar, Experiment, Figure, Measured, significant};

pub const OWED: Experiment = Experiment {
    figures: &[
        // The log is one; segments, their merges and attempts at deliveries are the rest.
        Figure {
            what: "bytes written a byte of log, 100,000 owed deliveries",
            bar: Bar::AtMost(3.0),
            unit: "B",
        },
        Figure {
            what: "bytes written a byte of log, nothing owed",
            bar: Bar::Shown,
            unit: "B",
        },
    ],
    run: owed,
};

const OWED_DELIVERIES: usize = 100_000;
const WEBHOOKS: usize = 10;
const PENDING: &str = "tidewatch_deliveries_pending";
/// Requests of a client in a load: about five checkpoints' worth of log.
const EACH: usize = 60;

struct Written {
    bytes: f64,
    log_bytes: f64,
    checkpoints: f64,
    merges: f64,
}

fn owed() -> Outcome<Vec<Measured>> {
    let settings = [
        ("storage.checkpoint_bytes", CHECKPOINT_BYTES),
        ("webhooks.allow_private_networks", "true"),
    ];
    let mut load = Load::start(&settings)?;
    let none = written(&mut load)?;
    owe(&mut load)?;
    let pending = metric(&load.server, PENDING)?;
    // Those whose attempt is being recorded are not counted.
    if pending < 0.99 * OWED_DELIVERIES as f64 {
        return Err(format!("only {pending} deliveries are owed").into());
    }
    let with = written(&mut load)?;
    let still = metric(&load.server, PENDING)?;
    let measured = |written: &Written, more: String| Measured {
        value: written.bytes / written.log_bytes,
        note: format!(
            "{} MB written, {} MB of them log, {} checkpoints, {} merges; batches of {BATCH} points on {CLIENTS} \
             connections{more}",
            significant(written.bytes / 1e6),
            significant(written.log_bytes / 1e6),
            written.checkpoints,
            written.merges
        ),
    };
    let more =
        format!("; attempts, all refused, are made meanwhile; {pending} owed before and {still} after");
    Ok(vec![measured(&with, more), measured(&none, String::new())])
}

/// Has rules trigger for webhooks whose receiver refuses connections.
fn owe(load: &mut Load) -> Outcome<()> {
    // Closed at once: nobody listens there any more.
    let refusing = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut connection = Connection::open(load.server.address)?;
    for _ in 0..WEBHOOKS {
        let body = json!({"url": format!("http://{refusing}/"), "events": ["alert.triggered"],
            "retryConfig": {"maxRetries": 10, "backoffMultiplier": 10}});
        connection.json("POST", "/api/webhooks", &load.account.credential, &body)?;
    }
    let count = OWED_DELIVERIES / WEBHOOKS;
    let source = load.account.source(&load.bucket, "boiler")?;
    create(&load.server, &rule(&load.account, &load.bucket, &source), count)?;
    let rules = load.account.rules(&load.bucket, count)?;
    let of_client = |rules: &[String]| {
        let verdicts = rules.iter().map(|rule| verdict(&load.account, rule, "met"));
        verdicts.collect()
    };
    let clients: Vec<Vec<_>> = rules.chunks(count.div_ceil(CLIENTS)).map(of_client).collect();
    drive(load.server.address, &clients).map(drop)
}

/// A load, and what was written until its checkpoints and merges are done.
fn written(load: &mut Load) -> Outcome<Written> {
    let (metrics, bytes) = (Metrics::of(&load.server)?, load.server.written_bytes()?);
    load.drive(EACH, BATCH)?;
    if metrics.get(PENDING)? == 0.0 {
        merges_stand_still(&load.server)?;
    }
    let after = Metrics::of(&load.server)?;
    let delta = |name: &str| -> Outcome<f64> { Ok(after.get(name)? - metrics.get(name)?) };
    Ok(Written {
        bytes: load.server.written_bytes()? - bytes,
        log_bytes: delta(LOG_BYTES)?,
        checkpoints: delta(CHECKPOINTS)?,
        merges: delta(MERGES)?,
    })
}
