//! Nodes of a cluster: what the log store costs them against the local log, and what it costs to pass a request on.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use log_store::{InitOptions, Postgres as Store, Replication, Timeouts};
use serde_json::json;

use crate::Outcome;
use crate::client::{Connection, drive};
use crate::ingest::{CHECKPOINT_BYTES, CLIENTS, Load};
use crate::points::BATCH;
use crate::postgres::Postgres;
use crate::server::{Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const NODES: Experiment = Experiment {
    figures: &[
        Figure {
            what: "cluster: CPU of nodes per ingested point, against one machine, batches of 1,000",
            required: Requirement::AtMost(1.5),
            unit: "×",
        },
        Figure {
            what: "cluster: CPU of nodes per single-point request, against one machine",
            required: Requirement::AtMost(1.5),
            unit: "×",
        },
        Figure {
            what: "cluster: CPU of nodes per ingested point, passed on against at its owner, batches of 1,000",
            required: Requirement::AtMost(2.0),
            unit: "×",
        },
        Figure {
            what: "cluster: CPU of nodes per single-point request, passed on against at its owner",
            required: Requirement::AtMost(2.0),
            unit: "×",
        },
        Figure {
            what: "cluster: p50 of a single-point request, passed on, beyond that at its owner",
            required: Requirement::AtMost(0.3),
            unit: "ms",
        },
    ],
    run: nodes,
};

pub const BACK: Experiment = Experiment {
    figures: &[Figure {
        what: "cluster: time until requests are answered again after kill -9 of their node, lease of 3 s, 64 MiB of tail",
        required: Requirement::AtMost(5.0),
        unit: "s",
    }],
    run: back,
};

/// A commit returns when one of them has it, too.
const STANDBYS: usize = 2;
const SHARDS: u16 = 8;
const ROUNDS: usize = 9;
const SINGLES_EACH: usize = 300;
const BATCHES_EACH: usize = 8;
/// Requests one after the other, in each way.
const SEQUENTIAL: usize = 1_000;

/// Least length of the log behind the last checkpoint when a node is killed.
const TAIL_BYTES: u64 = 64 << 20;
/// Time for an answer after that.
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// Two nodes.
struct Pair {
    /// The node that owns all shards: the first one keeps them for a minute.
    owner: Load,
    other: Server,
    databases: Vec<Postgres>,
    database: String,
}

/// Two nodes and a server on one machine.
struct World {
    nodes: Pair,
    alone: Load,
}

/// How requests are sent.
#[derive(Clone, Copy)]
enum Way {
    Alone,
    AtOwner,
    PassedOn,
}

/// In the order of the type.
const WAYS: [Way; 3] = [Way::Alone, Way::AtOwner, Way::PassedOn];

/// CPU of a point in each way, in µs, by round.
struct Rounds(Vec<[f64; WAYS.len()]>);

impl Rounds {
    /// The median of the rounds' ratios, and a note. A ratio is taken within a round, because the machine's pace differs
    /// between rounds.
    fn ratio(&self, way: Way, against: Way) -> (f64, String) {
        let of_rounds =
            |value: &dyn Fn(&[f64; WAYS.len()]) -> f64| -> Vec<f64> { self.0.iter().map(value).collect() };
        let mut ratios = of_rounds(&|used| used[way as usize] / used[against as usize]);
        let [used, used_against] =
            [way, against].map(|way| median(&mut of_rounds(&|used| used[way as usize])));
        let ratio = median(&mut ratios);
        let range =
            |pick: fn(f64, f64) -> f64| significant(ratios.iter().copied().reduce(pick).unwrap_or(ratio));
        let note = format!(
            "{} against {} µs of all nodes, {CLIENTS} connections, the median of each; the ratio is the median of those of {ROUNDS} \
             rounds, {} to {}",
            significant(used),
            significant(used_against),
            range(f64::min),
            range(f64::max),
        );
        (ratio, note)
    }
}

impl Pair {
    fn start(dir: &Path, further: &[(&str, &str)]) -> Outcome<Self> {
        let databases = Postgres::start(STANDBYS, &["fsync=on"]);
        let database = databases[0].database();
        let log = Postgres::url_of_all(&databases, &database);
        let replication = Replication::Standbys;
        Store::new(&log, Timeouts::default())?.init(SHARDS, InitOptions { replication })?;
        let objects = dir.join("objects");
        fs::create_dir(&objects)?;
        let objects = format!("file://{}", objects.display());
        let mut settings = vec![
            ("cluster.log", &*log),
            ("cluster.objects", &objects),
            ("cluster.listen", "127.0.0.1:0"),
            ("cluster.secret", "a secret of the bench"),
        ];
        settings.extend(further);
        Ok(Pair {
            owner: Load::start(&settings)?,
            other: Server::start(&dir.join("other"), &settings)?,
            databases,
            database,
        })
    }

    /// Bytes in the log store.
    fn tail_bytes(&self) -> Outcome<u64> {
        let sum = "SELECT coalesce(sum(length(body)), 0) FROM tidewatch.log";
        Ok(self.databases[0].sql(&self.database, sum).parse()?)
    }
}

impl World {
    fn start(dir: &Path) -> Outcome<Self> {
        let checkpoints = ("storage.checkpoint_bytes", CHECKPOINT_BYTES);
        Ok(World {
            nodes: Pair::start(dir, &[checkpoints])?,
            alone: Load::start(&[checkpoints])?,
        })
    }

    /// CPU of all servers for these requests, in seconds, with the work that they leave behind.
    fn cpu_seconds(&mut self, way: Way, each: usize, points: usize) -> Outcome<f64> {
        let load = match way {
            Way::Alone => &mut self.alone,
            Way::AtOwner | Way::PassedOn => &mut self.nodes.owner,
        };
        let requests = load.requests(each, points);
        let address = match way {
            Way::Alone => self.alone.server.address,
            Way::AtOwner => self.nodes.owner.server.address,
            Way::PassedOn => self.nodes.other.address,
        };
        let servers: Vec<&Server> = match way {
            Way::Alone => vec![&self.alone.server],
            Way::AtOwner | Way::PassedOn => vec![&self.nodes.owner.server, &self.nodes.other],
        };
        let used =
            |servers: &[&Server]| -> Outcome<f64> { servers.iter().map(|server| server.cpu_seconds()).sum() };
        let before = used(&servers)?;
        drive(address, &requests)?;
        servers.iter().try_for_each(|server| server.settle())?;
        Ok(used(&servers)? - before)
    }

    /// CPU of requests in these ways in turn, over the rounds.
    fn measure(&mut self, each: usize, points: usize) -> Outcome<Rounds> {
        let mut rounds = Rounds(Vec::new());
        for round in 0..=ROUNDS {
            let mut used = [0.0; WAYS.len()];
            for (way, used) in WAYS.into_iter().zip(&mut used) {
                *used = self.cpu_seconds(way, each, points)? * 1e6 / (CLIENTS * each * points) as f64;
            }
            // The first round only warms up.
            if round > 0 {
                rounds.0.push(used);
            }
        }
        Ok(rounds)
    }

    /// Medians of requests of one client at the owner and at the other node, in ms.
    fn latencies(&mut self) -> Outcome<[f64; 2]> {
        let requests: Vec<Vec<u8>> = self
            .nodes
            .owner
            .requests(2 * SEQUENTIAL / CLIENTS + 1, 1)
            .concat();
        let mut connections = [
            Connection::open(self.nodes.owner.server.address)?,
            Connection::open(self.nodes.other.address)?,
        ];
        let mut times = [Vec::new(), Vec::new()];
        for pair in requests.chunks_exact(2).take(SEQUENTIAL) {
            for ((connection, times), request) in connections.iter_mut().zip(&mut times).zip(pair) {
                let began = Instant::now();
                connection.send_ok(request)?;
                times.push(milliseconds(began.elapsed()));
            }
        }
        Ok(times.map(|mut times| median(&mut times)))
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn nodes() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let mut world = World::start(dir.path())?;
    let batches = world.measure(BATCHES_EACH, BATCH)?;
    let singles = world.measure(SINGLES_EACH, 1)?;
    let [at_owner_ms, passed_on_ms] = world.latencies()?;
    let store =
        format!("a primary and {STANDBYS} standbys with quorum commit; the database's own CPU is left out");
    let mut measured = Vec::new();
    for (way, against) in [(Way::AtOwner, Way::Alone), (Way::PassedOn, Way::AtOwner)] {
        for rounds in [&batches, &singles] {
            let (value, note) = rounds.ratio(way, against);
            let note = format!("{note}; {store}");
            measured.push(Measured { value, note });
        }
    }
    let note = format!(
        "{} against {} ms, {SEQUENTIAL} alternating requests of one client",
        significant(passed_on_ms),
        significant(at_owner_ms)
    );
    let value = passed_on_ms - at_owner_ms;
    measured.push(Measured { value, note });
    Ok(measured)
}

fn back() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let settings = [
        ("cluster.lease_seconds", "3"),
        // Nothing is covered by a checkpoint.
        ("storage.checkpoint_bytes", "1073741824"),
        ("wal.tail_bytes_max", "4294967296"),
        ("storage.remote_period_seconds", "3600"),
    ];
    let mut nodes = Pair::start(dir.path(), &settings)?;
    let mut batches = 0;
    while nodes.tail_bytes()? < TAIL_BYTES {
        nodes.owner.drive(BATCHES_EACH, BATCH)?;
        batches += CLIENTS * BATCHES_EACH;
    }
    let tail_bytes = nodes.tail_bytes()?;
    let newest = json!({"bucketId": nodes.owner.bucket, "limit": 1, "sort": "desc"});
    let newest = nodes.owner.account.query(&newest);
    let Pair { owner, other, .. } = nodes;
    let began = Instant::now();
    let _dir = owner.crash()?;
    while Connection::open(other.address)?.send(&newest)?.0 != 200 {
        if began.elapsed() > BACK_WITHIN {
            return Err("the other node does not take the shard over".into());
        }
    }
    Ok(vec![Measured {
        value: began.elapsed().as_secs_f64(),
        note: format!(
            "{} points in {tail_bytes} B of log behind the last checkpoint; one request through the other node, which waits for \
             the next owner",
            batches * BATCH
        ),
    }])
}
