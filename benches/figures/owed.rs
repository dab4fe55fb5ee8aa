//! What deliveries that are owed for long cost the disk: a checkpoint writes what has changed, not all there is.

use std::net::{SocketAddr, TcpListener};

use serde_json::json;

use crate::Outcome;
use crate::client::{Connection, drive};
use crate::deliveries::silent;
use crate::fleet::Filler;
use crate::ingest::{CHECKPOINT_BYTES, CLIENTS, Load};
use crate::metrics::{CHECKPOINTS, LOG_BYTES, MERGES, Metrics, metric};
use crate::points::BATCH;
use crate::rules::{create, rule, verdict};
use crate::table::{Bar, Experiment, Figure, Measured, significant};

pub const OWED: Experiment = Experiment {
    figures: &[
        // The log is one; segments and their merges are about another. What is owed was written when it became so.
        Figure {
            what: "bytes written a byte of log, 100,000 owed deliveries that are refused",
            bar: Bar::AtMost(3.0),
            unit: "B",
        },
        Figure {
            what: "bytes written a byte of log, 100,000 owed deliveries that wait",
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
const ATTEMPTS: &str = "tidewatch_delivery_attempts_total{outcome=\"unanswered\"}";
/// Requests of a client in a load: about five checkpoints' worth of log.
const EACH: usize = 160;

struct Written {
    bytes: f64,
    log_bytes: f64,
    checkpoints: f64,
    merges: f64,
    attempts: f64,
}

fn owed() -> Outcome<Vec<Measured>> {
    // Closed at once: nobody listens there any more.
    let refusing = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let (silent, _connections) = silent()?;
    let refused = with_owed(Some(refusing))?;
    let waiting = with_owed(Some(silent))?;
    let none = with_owed(None)?;
    Ok(vec![refused, waiting, none])
}

/// A load beside deliveries that are owed to this receiver.
fn with_owed(receiver: Option<SocketAddr>) -> Outcome<Measured> {
    let settings = [
        ("storage.checkpoint_bytes", CHECKPOINT_BYTES),
        ("webhooks.allow_private_networks", "true"),
    ];
    let mut load = Load::start(&settings)?;
    if let Some(receiver) = receiver {
        owe(&mut load, receiver)?;
    }
    // What they cost when they arose is not what is measured.
    let mut filler = Filler::of(&load.server, &mut load.account)?;
    filler.until_checkpoint(&load.server, metric(&load.server, CHECKPOINTS)?)?;
    let pending = metric(&load.server, PENDING)?;
    // Those whose attempt is being recorded are not counted.
    if receiver.is_some() && pending < 0.99 * OWED_DELIVERIES as f64 {
        return Err(format!("only {pending} deliveries are owed").into());
    }
    let written = written(&mut load)?;
    let note = format!(
        "{} MB handed to the system to write, {} MB of them log, {} checkpoints, {} merges, {} attempts at deliveries; \
         {pending} owed before and {} after; batches of {BATCH} points on {CLIENTS} connections",
        significant(written.bytes / 1e6),
        significant(written.log_bytes / 1e6),
        written.checkpoints,
        written.merges,
        written.attempts,
        metric(&load.server, PENDING)?
    );
    Ok(Measured {
        value: written.bytes / written.log_bytes,
        note,
    })
}

/// Has rules trigger for webhooks of one receiver.
fn owe(load: &mut Load, receiver: SocketAddr) -> Outcome<()> {
    let mut connection = Connection::open(load.server.address)?;
    for _ in 0..WEBHOOKS {
        let body = json!({"url": format!("http://{receiver}/"), "events": ["alert.triggered"],
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

/// A load, and what was written meanwhile.
fn written(load: &mut Load) -> Outcome<Written> {
    let (metrics, bytes) = (Metrics::of(&load.server)?, load.server.written_bytes()?);
    load.drive(EACH, BATCH)?;
    let after = Metrics::of(&load.server)?;
    let delta = |name: &str| -> Outcome<f64> { Ok(after.get(name)? - metrics.get(name)?) };
    Ok(Written {
        bytes: load.server.written_bytes()? - bytes,
        log_bytes: delta(LOG_BYTES)?,
        checkpoints: delta(CHECKPOINTS)?,
        merges: delta(MERGES)?,
        attempts: delta(ATTEMPTS)?,
    })
}
