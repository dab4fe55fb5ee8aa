//! The sides of the port, as the tests use them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use disk::Disk;
use disk::sim::{Crash, Fault as DiskFault, Operation, SimDisk};
use fastrand::Rng;
use log_store::sim::{Fault as StoreFault, SimStore, Written};
use log_store::{
    Epoch, Group, InitOptions, LogStore, NodeId, Outcome, Postgres, Replication, Shard, Timeouts,
};
use tidewatch::journal::{
    LocalShard, NodeLog, ReplayError, ShardLog, StoredLog, StoredShard, THE_SHARD, Tail,
};
use wal::{LogOptions, Sequence};

use crate::postgres;
use crate::proxy::{self, Proxy};

/// Short enough for a test that waits until an append is given up, long enough for a busy machine.
pub const IMPATIENT: Timeouts = Timeouts {
    attempt: Duration::from_millis(1_500),
    append: Duration::from_millis(1_600),
};

/// The servers of most tests have no standbys.
pub const OPTIONS: InitOptions = InitOptions {
    replication: Replication::Storage,
};

const LEASE: Duration = Duration::from_secs(3);

/// What the next append meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing of it is written.
    Refused,
    /// Its outcome stays unknown.
    Unknown,
}

/// A log as its owner has opened it.
pub struct Opened {
    pub log: Box<dyn NodeLog>,
    pub tail: Tail,
    pub records: Records,
}

/// One side of the port.
pub trait Side {
    /// Opens the log of `shard` as the next process does. Whoever had it open has died without closing it.
    fn open(&mut self, from: Sequence) -> Result<Opened, ReplayError>;

    /// The next append meets this.
    fn fail_next(&mut self, fault: Fault);

    /// From here on, appends are as they should be again.
    fn mend(&mut self);

    /// The shard that the tests write to.
    fn shard(&self) -> Shard {
        THE_SHARD
    }
}

/// Records with their sequences.
type Records = Vec<(Sequence, Vec<u8>)>;

fn replay(log: &mut dyn ShardLog, from: Sequence) -> Result<(Tail, Records), ReplayError> {
    let mut records = Vec::new();
    let replayed = log.replay(from, &mut |sequence, record| {
        records.push((sequence, record.to_vec()));
        Ok(())
    })?;
    assert_eq!(replayed.records, records.len() as u64);
    Ok((replayed.tail(), records))
}

/// The log in a directory of a simulated disk. Opening it again is a power cut.
pub struct Local {
    disk: SimDisk,
    rng: Rng,
}

impl Local {
    pub fn new(seed: u64) -> Self {
        Local {
            disk: SimDisk::new(seed),
            rng: Rng::with_seed(seed),
        }
    }
}

impl Side for Local {
    fn open(&mut self, from: Sequence) -> Result<Opened, ReplayError> {
        let crash = self.rng.choice(Crash::KINDS).unwrap();
        self.disk = self.disk.crash(crash);
        let options = LogOptions {
            // Several files, and a fault is met by the next append.
            file_bytes_max: 2_000,
            room_bytes: 0,
            ..LogOptions::default()
        };
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        let mut log = LocalShard::new(disk, Path::new("log").to_owned(), options);
        let (tail, records) = replay(&mut log, from)?;
        Ok(Opened {
            log: Box::new(log.into_log().unwrap()),
            tail,
            records,
        })
    }

    fn fail_next(&mut self, fault: Fault) {
        match fault {
            Fault::Refused => self.disk.set_budget_bytes(Some(self.disk.used_bytes())),
            Fault::Unknown => self.disk.fail(Operation::Sync, 1, DiskFault::Io),
        }
    }

    fn mend(&mut self) {
        self.disk.set_budget_bytes(None);
    }
}

/// Claims the shard for a new node, after the death of the one before.
fn claim(
    store: &mut dyn LogStore,
    shard: Shard,
    before: &mut Option<NodeId>,
) -> (NodeId, log_store::Claimed) {
    if let Some(before) = before.take() {
        assert!(store.remove(before, 0).unwrap());
    }
    let node = store.join("here", LEASE).unwrap();
    *before = Some(node);
    (node, store.claim(shard, node).unwrap().unwrap())
}

fn open_stored(
    mut store: Box<dyn LogStore>,
    log: Box<dyn LogStore>,
    shard: Shard,
    node: &mut Option<NodeId>,
    from: Sequence,
) -> Result<Opened, ReplayError> {
    let (_, claimed) = claim(&mut *store, shard, node);
    let (tail, records) = replay(&mut StoredShard::new(store, shard, claimed), from)?;
    let mut log = StoredLog::new(log);
    log.attach(shard, tail);
    Ok(Opened {
        log: Box::new(log),
        tail,
        records,
    })
}

/// The log store in memory.
pub struct Simulated {
    store: SimStore,
    rng: Rng,
    node: Option<NodeId>,
}

impl Simulated {
    pub fn new(seed: u64) -> Self {
        Simulated {
            store: SimStore::new(3),
            rng: Rng::with_seed(seed),
            node: None,
        }
    }
}

impl Side for Simulated {
    fn open(&mut self, from: Sequence) -> Result<Opened, ReplayError> {
        let (store, log) = (self.store.clone(), self.store.clone());
        open_stored(Box::new(store), Box::new(log), self.shard(), &mut self.node, from)
    }

    fn fail_next(&mut self, fault: Fault) {
        let fault = match fault {
            Fault::Refused => self.rng.choice([StoreFault::Unavailable, StoreFault::Full]),
            Fault::Unknown => {
                let written = [Written::Now, Written::Late, Written::Never];
                self.rng.choice(written).map(StoreFault::Unknown)
            }
        };
        self.store.set_faults(move || fault.unwrap());
    }

    fn mend(&mut self) {
        self.store.set_faults(|| StoreFault::None);
    }

    fn shard(&self) -> Shard {
        Shard(2)
    }
}

/// Makes the database refuse to insert.
const REFUSE: &str = "
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'as the test wants it' USING ERRCODE = 'STATE'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON tidewatch.log EXECUTE FUNCTION refuse();";

/// The log store in PostgreSQL. The log is written through a proxy, and opened past it.
pub struct Stored {
    database: String,
    direct: String,
    through: String,
    proxy: Proxy,
    rng: Rng,
    node: Option<NodeId>,
}

impl Stored {
    pub fn new(seed: u64) -> Self {
        let postgres = postgres::shared();
        let database = postgres.database();
        let proxy = Proxy::start(postgres.port);
        let direct = postgres.url(&database, postgres.port);
        store(&direct).init(3, OPTIONS).unwrap();
        Stored {
            through: postgres.url(&database, proxy.port),
            database,
            direct,
            proxy,
            rng: Rng::with_seed(seed),
            node: None,
        }
    }
}

/// A store with the usual time-outs.
pub fn store(url: &str) -> Postgres {
    Postgres::new(url, Timeouts::default()).unwrap()
}

impl Side for Stored {
    fn open(&mut self, from: Sequence) -> Result<Opened, ReplayError> {
        let (direct, log) = (
            store(&self.direct),
            Postgres::new(&self.through, IMPATIENT).unwrap(),
        );
        open_stored(
            Box::new(direct),
            Box::new(log),
            self.shard(),
            &mut self.node,
            from,
        )
    }

    fn fail_next(&mut self, fault: Fault) {
        match fault {
            Fault::Refused => {
                let state = self.rng.choice(["53100", "42501", "40001"]).unwrap();
                postgres::shared().sql(&self.database, &REFUSE.replace("STATE", state));
            }
            Fault::Unknown => {
                let faults = [
                    proxy::Fault::LoseRequests,
                    proxy::Fault::LoseAnswers,
                    proxy::Fault::Silence,
                ];
                self.proxy.fail(self.rng.choice(faults).unwrap(), u32::MAX);
            }
        }
    }

    fn mend(&mut self) {
        self.proxy.fail(proxy::Fault::None, 0);
        postgres::shared().sql(&self.database, "DROP TRIGGER IF EXISTS refuse ON tidewatch.log");
    }

    fn shard(&self) -> Shard {
        Shard(2)
    }
}

/// Appends a record to a shard; returns the store's answer.
pub fn append(store: &mut dyn LogStore, shard: Shard, epoch: Epoch, first: Sequence) -> Vec<Outcome> {
    let records = [format!("record {first}").into_bytes()];
    let group = Group {
        shard,
        epoch,
        first,
        records: &records,
    };
    store.append(&[group]).unwrap()
}
