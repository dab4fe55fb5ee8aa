//! The journal over a log store: a PostgreSQL server of the bench's own, which syncs each commit to the same disk.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use log_store::{InitOptions, LogStore, NodeId, Postgres as Store, Replication, Shard, Timeouts};
use tidewatch::catalog::{Bytes, Catalog, CatalogHandle, Command};
use tidewatch::journal::{
    Journal, JournalHandle, JournalOptions, JournalWriter, ShardLog, StoredLog, StoredShard,
};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{Client, NoTls, Statement};

use crate::Outcome;
use crate::postgres::Postgres;
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const LOG_STORE: Experiment = Experiment {
    figures: &[
        Figure {
            what: "log store: latency of one durable record, against a bare INSERT of as many bytes",
            required: Requirement::AtMost(1.5),
            unit: "× time",
        },
        Figure {
            what: "log store: acknowledgements per commit, 64 shards of one node with one writer each",
            required: Requirement::AtLeast(16.0),
            unit: "records",
        },
        Figure {
            what: "log store: latency of one durable record, 10× more rows in the log",
            required: Requirement::AtMost(1.3),
            unit: "× time",
        },
    ],
    run: log_store,
};

/// A commit returns when one of them has it, too.
const STANDBYS: usize = 2;
const SHARDS: u16 = 64;
const RECORDS: usize = 1_000;
const RECORDS_EACH: usize = 100;
const ROWS: u32 = 20_000;
const OPTIONS: JournalOptions = JournalOptions {
    queue_bytes_max: 1 << 30,
    tail_bytes_max: 1 << 40,
};

const LEASE: Duration = Duration::from_secs(3);

/// A node that owns shards.
struct Node {
    url: String,
    store: Store,
    id: NodeId,
    journal: Arc<Journal>,
}

impl Node {
    fn new(url: String) -> Outcome<Self> {
        let mut store = Store::new(&url, Timeouts::default())?;
        store.init(
            SHARDS,
            InitOptions {
                replication: Replication::Standbys,
            },
        )?;
        let log = Store::new(&url, Timeouts::default())?;
        Ok(Node {
            id: store.join("here", LEASE)?,
            store,
            journal: Journal::start(StoredLog::new(Box::new(log)))?,
            url,
        })
    }

    fn open(&mut self, shard: Shard) -> Outcome<(JournalWriter, JournalHandle)> {
        let claimed = self
            .store
            .claim(shard, self.id)?
            .ok_or("the shard has another owner")?;
        let store = Store::new(&self.url, Timeouts::default())?;
        let mut log = StoredShard::new(Box::new(store), shard, claimed);
        let replayed = log.replay(0, &mut |_, _| Ok(()))?;
        let catalog = CatalogHandle::new(Catalog::default());
        Ok(self
            .journal
            .open(shard, replayed.tail(), catalog, OPTIONS, |_| ()))
    }
}

/// Makes one small record durable.
fn commit(journal: &JournalHandle) -> Outcome<Duration> {
    let began = Instant::now();
    let (done, committed) = channel();
    let secret = Bytes([1; 32]);
    journal.submit_command(Command::ServerSecretSet { secret }, move |outcome| {
        // The receiver waits.
        let _ = done.send(outcome);
    });
    committed.recv()??;
    Ok(began.elapsed())
}

/// A client of the database that does nothing else.
struct Bare {
    runtime: Runtime,
    client: Client,
    insert: Statement,
    next: i64,
}

impl Bare {
    fn connect(url: &str) -> Outcome<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (client, insert) = runtime.block_on(async {
            let mut config: tokio_postgres::Config = url.parse()?;
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            client
                .batch_execute("CREATE TABLE bare (id bigint PRIMARY KEY, body bytea NOT NULL)")
                .await?;
            let insert = client.prepare("INSERT INTO bare VALUES ($1, $2)").await?;
            Ok::<_, tokio_postgres::Error>((client, insert))
        })?;
        Ok(Bare {
            runtime,
            client,
            insert,
            next: 0,
        })
    }

    fn insert(&mut self, body: &[u8]) -> Outcome<Duration> {
        self.next += 1;
        let began = Instant::now();
        let insert = async { self.client.execute(&self.insert, &[&self.next, &body]).await };
        self.runtime.block_on(insert)?;
        Ok(began.elapsed())
    }
}

fn milliseconds(times: &mut [Duration]) -> f64 {
    let mut times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    median(&mut times)
}

fn log_store() -> Outcome<Vec<Measured>> {
    let servers = Postgres::start(STANDBYS, &["fsync=on"]);
    let postgres = &servers[0];
    let database = postgres.database();
    let mut node = Node::new(Postgres::url_of_all(&servers, &database))?;
    let (_writer, journal) = node.open(Shard(0))?;
    let mut bare = Bare::connect(&node.url)?;
    commit(&journal)?;
    let size = postgres.sql(&database, "SELECT max(length(body)) FROM tidewatch.log");
    let body = vec![7; size.parse()?];
    let (mut of_journal, mut of_bare) = (Vec::new(), Vec::new());
    for round in 0..RECORDS + RECORDS / 10 {
        let (stored, inserted) = (commit(&journal)?, bare.insert(&body)?);
        // The first tenth warms up.
        if round >= RECORDS / 10 {
            of_journal.push(stored);
            of_bare.push(inserted);
        }
    }
    let (stored_ms, bare_ms) = (milliseconds(&mut of_journal), milliseconds(&mut of_bare));
    let latency = Measured {
        value: stored_ms / bare_ms,
        note: format!(
            "{} against {} ms, medians of {RECORDS} alternating records; one connection each, fsync on, a primary and {STANDBYS} standbys with quorum commit",
            significant(stored_ms),
            significant(bare_ms)
        ),
    };
    Ok(vec![
        latency,
        shared_commits(postgres, &database, &mut node)?,
        growth(postgres, &database, &mut node)?,
    ])
}

/// Writers of 64 shards, each of which sends its next record when the last one is durable.
fn shared_commits(postgres: &Postgres, database: &str, node: &mut Node) -> Outcome<Measured> {
    let shards: Vec<_> = (0..SHARDS)
        .map(|shard| node.open(Shard(shard)))
        .collect::<Outcome<_>>()?;
    let transactions = || -> Outcome<f64> {
        let inserted = postgres.sql(database, "SELECT count(DISTINCT xmin::text) FROM tidewatch.log");
        Ok(inserted.parse()?)
    };
    let before = transactions()?;
    let began = Instant::now();
    thread::scope(|scope| {
        let write = |journal: &JournalHandle| -> Outcome<()> {
            (0..RECORDS_EACH).try_for_each(|_| commit(journal).map(drop))
        };
        let writers: Vec<_> = shards
            .iter()
            .map(|(_, journal)| scope.spawn(move || write(journal)))
            .collect();
        writers
            .into_iter()
            .try_for_each(|writer| writer.join().map_err(|_| "a writer panicked")?)
    })?;
    let took = began.elapsed();
    let commits = transactions()? - before;
    let records = f64::from(SHARDS) * RECORDS_EACH as f64;
    Ok(Measured {
        value: records / commits,
        note: format!(
            "{records} records in {commits} commits, {} records a second; commits counted by the transactions of the rows",
            significant(records / took.as_secs_f64())
        ),
    })
}

fn growth(postgres: &Postgres, database: &str, node: &mut Node) -> Outcome<Measured> {
    let (_writer, journal) = node.open(Shard(0))?;
    let measure = |rows: u32| -> Outcome<f64> {
        // Rows of a shard that nobody writes to.
        let insert = format!(
            "INSERT INTO tidewatch.log SELECT 1000, n, n, 1, 0, '{}' FROM generate_series((SELECT coalesce(max(first), 0) + 1 \
             FROM tidewatch.log WHERE shard = 1000), {rows}) AS n; CHECKPOINT",
            "x".repeat(200)
        );
        postgres.sql(database, &insert);
        let mut times = (0..RECORDS)
            .map(|_| commit(&journal))
            .collect::<Outcome<Vec<_>>>()?;
        Ok(milliseconds(&mut times))
    };
    let few = measure(ROWS)?;
    let many = measure(10 * ROWS)?;
    Ok(Measured {
        value: many / few,
        note: format!(
            "{} ms with {} rows, {} ms with {ROWS}",
            significant(many),
            10 * ROWS,
            significant(few)
        ),
    })
}
