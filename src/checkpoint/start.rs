//! Starts the rooms of a shard: recovery, then the buckets' actors and the checkpointer, connected to each other and to the
//! journal.

use std::collections::HashSet;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread::available_parallelism;

use disk::{Disk, StdDisk};
use engine::Cache;
use log_store::Shard;
use wal::{LogOptions, SyncPolicy};

use super::checkpointer::{Checkpointer, Orders};
use super::expiry::DeletionClock;
use super::format_1::{Damage, convert};
use super::layout::Layout;
use super::open::{Opened, Recovered, open_with};
use super::open_error::OpenError;
use super::pools::{PoolOptions, Pools};
use super::publish::Publish;
use super::segments::HeldElsewhere;
use super::set_apart::SetApart;
use super::task::Task;
use super::usage::Usage;
use crate::bucket::{BucketPoolOptions, Buckets, DamagedBlocks, Dependencies};
use crate::catalog::CatalogHandle;
use crate::clock::Clock;
use crate::config::{Config, SyncMode};
use crate::journal::{Journal, JournalHandle, JournalOptions, LocalShard, ShardLog, StoredShard, THE_SHARD};
use crate::ledger::Ledger;

/// Limit on bytes queued for one bucket: a few batches of the largest size that the API accepts.
const MAILBOX_BYTES_MAX: u64 = 32 << 20;
/// Limit on bytes queued for the log, over all buckets.
const QUEUE_BYTES_MAX: usize = 64 << 20;

/// Log files between two checkpoints. The file being written cannot be dropped, so a checkpoint leaves up to one whole
/// file of log that it covers. With few files, the next checkpoint would be due soon afterwards.
const LOG_FILES: u64 = 4;
/// Limits on the size of a log file. Smaller files would be created more often than they are synced; larger ones save
/// nothing.
const LOG_FILE_BYTES: RangeInclusive<u64> = 1 << 20..=64 << 20;

/// The running rooms that keep state.
pub struct Rooms {
    /// The catalog's objects.
    pub catalog: CatalogHandle,
    /// Accepts commands.
    pub journal: JournalHandle,
    /// Writes the log, as long as this is held.
    pub log_writer: Arc<Journal>,
    /// The points.
    pub buckets: Buckets,
    /// Histories and deliveries.
    pub ledger: Ledger,
    /// Takes checkpoints, and closes all of this in order.
    pub checkpointer: Checkpointer,
    /// What recovery found.
    pub recovered: Recovered,
}

/// Options of a shard's rooms.
#[derive(Clone, Copy)]
pub(crate) struct RoomsOptions {
    pub(crate) journal: JournalOptions,
    /// Log bytes after which a checkpoint is requested.
    pub(crate) checkpoint_bytes: u64,
}

impl RoomsOptions {
    fn of(config: &Config) -> Self {
        RoomsOptions {
            journal: JournalOptions {
                queue_bytes_max: QUEUE_BYTES_MAX,
                tail_bytes_max: config.wal.tail_bytes_max,
            },
            checkpoint_bytes: config.storage.checkpoint_bytes,
        }
    }

    fn log(&self, sync: SyncPolicy) -> LogOptions {
        let (min, max) = LOG_FILE_BYTES.into_inner();
        LogOptions {
            sync,
            file_bytes_max: (self.checkpoint_bytes / LOG_FILES).clamp(min, max),
            ..LogOptions::default()
        }
    }
}

/// What the rooms of a shard are started on.
pub(crate) struct Home {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) layout: Layout,
    pub(crate) pools: Arc<Pools>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: RoomsOptions,
    /// Where checkpoints are kept, too.
    pub(crate) publish: Option<Box<dyn Publish>>,
}

/// The pools that this configuration asks for, for `checkpoints` checkpoints and recoveries at the same time. Must be
/// called within an actix system.
///
/// # Errors
/// A thread could not be started.
pub fn start_pools(config: &Config, checkpoints: usize) -> io::Result<Arc<Pools>> {
    let cores = available_parallelism().map_or(1, usize::from);
    Pools::start(PoolOptions {
        buckets: BucketPoolOptions {
            mailbox_bytes_max: MAILBOX_BYTES_MAX,
            memory_bytes_max: config.storage.point_bytes_max(),
            cache_bytes_max: config.storage.cache_bytes_max,
            series_max: config.storage.series_max,
            threads: cores.div_ceil(2),
        },
        checkpoints,
        recoveries: checkpoints,
    })
}

/// Recovers the data directory, whose log is in it, and starts the rooms and the journal. The caller holds the directory's
/// lock. Must be called within an actix system. Checkpoints are also given to `publish`, if there is one.
///
/// # Errors
/// A disk error, or damage.
pub async fn start(
    config: &Config,
    pools: Arc<Pools>,
    clock: Arc<dyn Clock>,
    publish: Option<Box<dyn Publish>>,
) -> Result<Rooms, OpenError> {
    let sync = match config.wal.sync {
        SyncMode::Always => SyncPolicy::Always,
        SyncMode::Interval => SyncPolicy::Interval(config.wal.sync_interval),
        SyncMode::Never => SyncPolicy::Never,
    };
    let home = Home {
        disk: Arc::new(StdDisk),
        layout: Layout::of(&config.storage.data_dir),
        pools,
        clock,
        options: RoomsOptions::of(config),
        publish,
    };
    start_local(home, sync).await
}

/// Like `start`, over a given disk.
pub(crate) async fn start_local(home: Home, sync: SyncPolicy) -> Result<Rooms, OpenError> {
    let failed = |error| OpenError::Io(home.layout.data_dir.clone(), error);
    let log = LocalShard::new(
        Arc::clone(&home.disk),
        home.layout.log_dir(),
        home.options.log(sync),
    );
    let (opened, log) = recover(&home, HeldElsewhere::new(), log).await?;
    let log = log
        .into_log()
        .ok_or_else(|| failed(io::Error::other("BUG: the log was not opened")))?;
    let journal = Journal::start(log).map_err(failed)?;
    Ok(start_opened(opened, &journal, THE_SHARD, home))
}

/// What a shard of a cluster is started with, besides its log.
pub struct StoredHome {
    /// The shard.
    pub shard: Shard,
    /// The directory with its last checkpoint, except for `elsewhere`.
    pub layout: Layout,
    /// Writes the logs of all shards of the node.
    pub journal: Arc<Journal>,
    /// Where checkpoints are kept.
    pub publish: Box<dyn Publish>,
    /// The segments of that checkpoint that are not in the directory.
    pub elsewhere: HeldElsewhere,
}

/// Recovers a shard whose log is in a log store, and starts its rooms.
///
/// # Errors
/// A disk error, damage, or the log store fails.
pub async fn start_stored(
    config: &Config,
    pools: Arc<Pools>,
    clock: Arc<dyn Clock>,
    stored: StoredHome,
    log: StoredShard,
) -> Result<Rooms, OpenError> {
    let home = Home {
        disk: Arc::new(StdDisk),
        layout: stored.layout,
        pools,
        clock,
        options: RoomsOptions::of(config),
        publish: Some(stored.publish),
    };
    let (opened, _) = recover(&home, stored.elsewhere, log).await?;
    Ok(start_opened(opened, &stored.journal, stored.shard, home))
}

/// Recovers a shard on a thread of its own, when there is a place for it. Returns its log, too, to be written to.
async fn recover<L: ShardLog + Send + 'static>(
    home: &Home,
    elsewhere: HeldElsewhere,
    mut log: L,
) -> Result<(Opened, L), OpenError> {
    let failed = |error| OpenError::Io(home.layout.data_dir.clone(), error);
    let place = home.pools.recoveries.acquire().await;
    let place = place.map_err(|_| failed(io::Error::other("BUG: the places of recoveries are gone")))?;
    let (done, recovered) = tokio::sync::oneshot::channel();
    let (disk, layout) = (Arc::clone(&home.disk), home.layout.clone());
    let cache = home.pools.buckets.cache().clone();
    std::thread::Builder::new()
        .name("recovery".to_owned())
        .spawn(move || {
            // Sending fails only when the process is about to end and nobody waits.
            let opened = open_converted(&disk, &layout, &mut log, cache, &elsewhere);
            let _ = done.send(opened.map(|opened| (opened, log)));
        })
        .map_err(failed)?;
    let recovered = recovered.await;
    drop(place);
    recovered.unwrap_or_else(|_| Err(failed(io::Error::other("recovery panicked"))))
}

/// Opens the directory, after converting it from format 1 if necessary.
fn open_converted(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    log: &mut dyn ShardLog,
    cache: Cache,
    elsewhere: &HeldElsewhere,
) -> Result<Opened, OpenError> {
    layout.refuse_marked(&**disk)?;
    convert(disk, &layout.data_dir, Damage::SetApart).map_err(OpenError::Convert)?;
    open_with(disk, layout, log, cache, elsewhere)
}

/// Starts the rooms of a shard that was recovered, whose log the journal writes.
fn start_opened(opened: Opened, journal: &Arc<Journal>, shard: Shard, mut home: Home) -> Rooms {
    let (pools, log_bytes) = (Arc::clone(&home.pools), home.options.checkpoint_bytes);
    let publish = home.publish.take();
    let (rooms, orders, mut task) = assemble(opened, journal, shard, home);
    if let Some(publish) = publish {
        task.publish_to(publish);
    }
    orders.serve(task, rooms.journal.clone(), log_bytes, &pools);
    rooms
}

/// Connects everything except recovery and the serving of the checkpointer. The owner of the task decides when a
/// checkpoint is taken.
pub(super) fn assemble(
    opened: Opened,
    journal: &Arc<Journal>,
    shard: Shard,
    home: Home,
) -> (Rooms, Orders, Task) {
    let Home {
        disk,
        layout,
        pools,
        clock,
        options,
        publish,
    } = home;
    let (checkpointer, orders) = Checkpointer::new(&opened.recovered, opened.manifest.covered);
    let catalog = CatalogHandle::new(opened.catalog);
    let order = checkpointer.clone();
    let progress = move |tail_bytes: u64| {
        if tail_bytes > options.checkpoint_bytes {
            order.order();
        }
    };
    let log_writer = Arc::clone(journal);
    let (writer, journal) = journal.open(shard, opened.tail, catalog.clone(), options.journal, progress);
    let mut states = opened.buckets;
    let mut usage = Usage::default();
    for state in &mut states {
        usage.set(state.ordinal, state.store.live_segments());
    }
    for ordinal in opened.set_apart.keys() {
        // Its live rows are not known per block, so all its rows count as live.
        usage.set(*ordinal, opened.segments.rows_of(*ordinal));
    }
    let (on_full, on_deleted) = (checkpointer.clone(), checkpointer.clone());
    let segment_place = opened.segments.places();
    let dependencies = Dependencies {
        journal: journal.clone(),
        catalog: catalog.clone(),
        clock: Arc::clone(&clock),
        pool: Arc::clone(&pools.buckets),
        ledger: opened.ledger.ledger().clone(),
        order_checkpoint: Box::new(move || on_full.order()),
        deleted: Box::new(move |ordinal| on_deleted.remove(ordinal)),
        damaged: DamagedBlocks::new(catalog.clone(), segment_place),
    };
    let mut set_apart = SetApart::default();
    set_apart.buckets.extend(opened.set_apart.keys());
    let buckets = Buckets::start(states, opened.set_apart, dependencies);
    let ledger = opened.ledger.ledger().clone();
    let mut task = Task {
        disk,
        layout,
        buckets: buckets.clone(),
        catalog: catalog.clone(),
        clock,
        deletion: DeletionClock::default(),
        deletes_at_ns: None,
        swept_at_ns: None,
        journal: writer,
        segments: opened.segments,
        usage,
        ledger: opened.ledger,
        manifest: opened.manifest,
        manifest_in_doubt: false,
        saved: opened.saved,
        merges: 0,
        merge_again_at_ns: i64::MIN,
        unmergeable: HashSet::new(),
        set_apart,
        publish,
    };
    // Remove leftovers of a crash: their content was replayed from the log.
    task.remove_unnamed();
    let rooms = Rooms {
        catalog,
        journal,
        log_writer,
        buckets,
        ledger,
        checkpointer,
        recovered: opened.recovered,
    };
    (rooms, orders, task)
}
