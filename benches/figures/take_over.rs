//! A node takes over a shard from another one: what it reads of the object store, and how long it takes, by the number of
//! sealed points.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use log_store::Replication;
use tempfile::TempDir;
use tidewatch::startup::cluster;

use crate::Outcome;
use crate::client::drive;
use crate::metrics::{Metrics, SEGMENTS, wait_for_merges};
use crate::points::{BATCH, SECOND_NS, Series, days_ago_ns};
use crate::postgres::Postgres;
use crate::server::{Account, Server, bytes_below, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const TAKE_OVER: Experiment = Experiment {
    figures: &[
        Figure {
            what: "time to take over a shard, 10× more sealed points",
            required: Requirement::AtMost(1.3),
            unit: "× time",
        },
        Figure {
            what: "bytes read from the object store to take over a shard, of those of its sealed points, 10× more points",
            required: Requirement::AtMost(0.05),
            unit: "of the bytes",
        },
        Figure {
            what: "requests to the object store to take over a shard, 10× more sealed points",
            required: Requirement::Shown,
            unit: "requests",
        },
    ],
    run: take_over,
};

const SOURCES: usize = 10;
const BATCHES: usize = 30;
const ROUNDS: usize = 7;
const TAKEN_WITHIN: Duration = Duration::from_secs(60);
const REQUESTS: &str = "tidewatch_take_over_requests_total";
const BYTES: &str = "tidewatch_take_over_bytes_total";

/// A cluster of one shard, and the node that owns it.
struct Cluster {
    url: String,
    objects: TempDir,
    node: Option<(Server, TempDir)>,
}

/// A take-over, as the new owner counts it.
struct Taken {
    milliseconds: f64,
    bytes: f64,
    requests: f64,
}

impl Cluster {
    /// Fills a shard with points, which are all in the object store after the first hand-over.
    fn filled(postgres: &Postgres, batches: usize) -> Outcome<Self> {
        let url = postgres.url(&postgres.database(), postgres.port);
        cluster::init(&url, 1, Replication::Storage)?;
        let mut cluster = Cluster {
            url,
            objects: data_root()?,
            node: None,
        };
        let (server, dir) = cluster.start()?;
        let mut account = Account::sign_up(&server, "plant")?;
        let bucket = account.bucket("plant")?;
        let first_ns = days_ago_ns(20)?;
        let mut requests = Vec::new();
        for (seed, source) in account.sources(&bucket, SOURCES)?.iter().enumerate() {
            let mut series = Series::new(seed as u64, first_ns, SECOND_NS);
            let batch = |_| account.batch(&series.batch(&bucket, source, BATCH));
            requests.push((0..batches).map(batch).collect());
        }
        drive(server.address, &requests)?;
        wait_for_merges(&server)?;
        cluster.node = Some((server, dir));
        Ok(cluster)
    }

    fn start(&self) -> Outcome<(Server, TempDir)> {
        let dir = data_root()?;
        let objects = format!("file://{}", self.objects.path().canonicalize()?.display());
        let settings = [
            ("cluster.log", self.url.as_str()),
            ("cluster.objects", &objects),
            ("cluster.listen", "127.0.0.1:0"),
            ("cluster.secret", "the secret of the bench"),
        ];
        Ok((Server::start(dir.path(), &settings)?, dir))
    }

    /// Starts a node on an empty disk, to which the owner hands the shard over.
    fn hand_over(&mut self) -> Outcome<Taken> {
        let (server, dir) = self.start()?;
        if let Some((owner, _)) = self.node.take() {
            owner.stop()?;
        }
        let began = Instant::now();
        let metrics = loop {
            let metrics = Metrics::of(&server)?;
            if metrics.get(SEGMENTS)? > 0.0 {
                break metrics;
            }
            if began.elapsed() > TAKEN_WITHIN {
                return Err("the shard was not taken over".into());
            }
            thread::sleep(Duration::from_millis(20));
        };
        let mut seconds = metrics.get("tidewatch_take_over_seconds_total")?;
        for part in ["catalog", "footers", "replay"] {
            seconds += metrics.get(&format!("tidewatch_recovery_seconds{{part=\"{part}\"}}"))?;
        }
        self.node = Some((server, dir));
        Ok(Taken {
            milliseconds: seconds * 1e3,
            bytes: metrics.get(BYTES)?,
            requests: metrics.get(REQUESTS)?,
        })
    }

    fn segment_bytes(&self) -> Outcome<f64> {
        let shard: &Path = self.objects.path();
        Ok(bytes_below(shard)?.0 as f64)
    }
}

fn take_over() -> Outcome<Vec<Measured>> {
    let mut servers = Postgres::start(0, &[]);
    let postgres = servers.remove(0);
    let mut less = Cluster::filled(&postgres, BATCHES)?;
    let mut more = Cluster::filled(&postgres, 10 * BATCHES)?;
    let (mut of_less, mut of_more) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_less.push(less.hand_over()?);
        of_more.push(more.hand_over()?);
    }
    let points = SOURCES * BATCHES * BATCH;
    let median_ms = |taken: &[Taken]| median(&mut taken.iter().map(|it| it.milliseconds).collect::<Vec<_>>());
    let (less_ms, more_ms) = (median_ms(&of_less), median_ms(&of_more));
    let (Some(less_last), Some(more_last)) = (of_less.last(), of_more.last()) else {
        return Err("no rounds".into());
    };
    let (less_bytes, more_bytes) = (less.segment_bytes()?, more.segment_bytes()?);
    let kilobytes = |bytes: f64| significant(bytes / 1e3);
    Ok(vec![
        Measured {
            value: more_ms / less_ms,
            note: format!(
                "{} ms with {} sealed points, {} ms with {points}: copying what is needed and opening it, medians of {ROUNDS} \
                 alternating hand-overs to nodes with empty disks",
                significant(more_ms),
                10 * points,
                significant(less_ms)
            ),
        },
        Measured {
            value: more_last.bytes / more_bytes,
            note: format!(
                "{} KB of {} KB in the object store, against {} KB of {} KB with a tenth of the points",
                kilobytes(more_last.bytes),
                kilobytes(more_bytes),
                kilobytes(less_last.bytes),
                kilobytes(less_bytes)
            ),
        },
        Measured {
            value: more_last.requests,
            note: format!("{} with a tenth of the points", less_last.requests),
        },
    ])
}
