//! Disk writes caused by deliveries that stay pending: a checkpoint writes changes, not all pending deliveries.

use std::net::{SocketAddr, TcpListener};

use serde_json::json;

use crate::Outcome;
use crate::client::{Connection, drive};
use crate::deliveries::unresponsive_receiver;
use crate::fleet::Filler;
use crate::ingest::{CHECKPOINT_BYTES, CLIENTS, Load};
use crate::metrics::{CHECKPOINTS, LOG_BYTES, MERGES, Metrics, metric};
use crate::points::BATCH;
use crate::rules::{create, rule, verdict};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const OWED: Experiment = Experiment {
    figures: &[
        // One byte for the log itself, and about one for segments and their merges. Pending deliveries were written
        // when they were created.
        Figure {
            what: "bytes written per byte of log, 100,000 pending deliveries whose receiver refuses connections",
            required: Requirement::AtMost(3.0),
            unit: "B",
        },
        Figure {
            what: "bytes written per byte of log, 100,000 pending deliveries whose receiver never answers",
            required: Requirement::AtMost(3.0),
            unit: "B",
        },
        Figure {
            what: "bytes written per byte of log, no pending deliveries",
            required: Requirement::Shown,
            unit: "B",
        },
    ],
    run: owed,
};

const PENDING_DELIVERIES: usize = 100_000;
const WEBHOOKS: usize = 10;
const PENDING: &str = "tidewatch_deliveries_pending";
const ATTEMPTS: &str = "tidewatch_delivery_attempts_total{outcome=\"unanswered\"}";
/// Requests of each client: the log of about five checkpoints.
const EACH: usize = 160;

struct WriteCosts {
    bytes: f64,
    log_bytes: f64,
    checkpoints: f64,
    merges: f64,
    attempts: f64,
}

fn owed() -> Outcome<Vec<Measured>> {
    // Closed at once, so that connections to this address are refused.
    let refusing = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let (unresponsive, _connections) = unresponsive_receiver()?;
    let refused = measure(Some(refusing))?;
    let waiting = measure(Some(unresponsive))?;
    let none = measure(None)?;
    Ok(vec![refused, waiting, none])
}

/// Measures ingest while deliveries to this receiver are pending.
fn measure(receiver: Option<SocketAddr>) -> Outcome<Measured> {
    let settings = [
        ("storage.checkpoint_bytes", CHECKPOINT_BYTES),
        ("webhooks.allow_private_networks", "true"),
    ];
    let mut load = Load::start(&settings)?;
    if let Some(receiver) = receiver {
        create_pending(&mut load, receiver)?;
    }
    // The cost of creating the deliveries is not part of the measurement.
    let mut filler = Filler::of(&load.server, &mut load.account)?;
    filler.until_checkpoint(&load.server, metric(&load.server, CHECKPOINTS)?)?;
    let pending = metric(&load.server, PENDING)?;
    // Deliveries whose attempt is being recorded are not counted.
    if receiver.is_some() && pending < 0.99 * PENDING_DELIVERIES as f64 {
        return Err(format!("only {pending} deliveries are pending").into());
    }
    let costs = measure_writes(&mut load)?;
    let note = format!(
        "{} MB written, {} MB of them log, {} checkpoints, {} merges, {} attempts at deliveries; \
         {pending} pending before and {} after; batches of {BATCH} points on {CLIENTS} connections",
        significant(costs.bytes / 1e6),
        significant(costs.log_bytes / 1e6),
        costs.checkpoints,
        costs.merges,
        costs.attempts,
        metric(&load.server, PENDING)?
    );
    Ok(Measured {
        value: costs.bytes / costs.log_bytes,
        note,
    })
}

/// Triggers rules for webhooks of one receiver.
fn create_pending(load: &mut Load, receiver: SocketAddr) -> Outcome<()> {
    let mut connection = Connection::open(load.server.address)?;
    for _ in 0..WEBHOOKS {
        let body = json!({"url": format!("http://{receiver}/"), "events": ["alert.triggered"],
            "retryConfig": {"maxRetries": 10, "backoffMultiplier": 10}});
        connection.json("POST", "/api/webhooks", &load.account.credential, &body)?;
    }
    let count = PENDING_DELIVERIES / WEBHOOKS;
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

/// Sends a load; returns the bytes written meanwhile.
fn measure_writes(load: &mut Load) -> Outcome<WriteCosts> {
    let (metrics, bytes) = (Metrics::of(&load.server)?, load.server.written_bytes()?);
    load.drive(EACH, BATCH)?;
    let after = Metrics::of(&load.server)?;
    let delta = |name: &str| -> Outcome<f64> { Ok(after.get(name)? - metrics.get(name)?) };
    Ok(WriteCosts {
        bytes: load.server.written_bytes()? - bytes,
        log_bytes: delta(LOG_BYTES)?,
        checkpoints: delta(CHECKPOINTS)?,
        merges: delta(MERGES)?,
        attempts: delta(ATTEMPTS)?,
    })
}
