//! Starts the rooms on a data directory: recovery, then the journal's thread, the buckets' actors and the checkpointer,
//! connected to each other.

use std::collections::HashSet;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread::available_parallelism;

use disk::{Disk, StdDisk};
use engine::Cache;
use wal::{LogOptions, SyncPolicy};

use super::checkpointer::{Checkpointer, Orders};
use super::expiry::DeletionClock;
use super::format_1::{Damage, convert};
use super::layout::Layout;
use super::open::{Opened, Recovered, open_with};
use super::open_error::OpenError;
use super::publish::Publish;
use super::set_apart::SetApart;
use super::task::Task;
use super::usage::Usage;
use crate::bucket::{Buckets, BucketsOptions, DamagedBlocks, Dependencies, Sealer};
use crate::catalog::CatalogHandle;
use crate::clock::Clock;
use crate::config::{Config, SyncMode};
use crate::journal::{Journal, JournalHandle, JournalOptions, LocalShard, ShardLog, THE_SHARD};
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

/// Options of the rooms, besides their disks.
pub(crate) struct RoomsOptions {
    pub(crate) sync: SyncPolicy,
    pub(crate) journal: JournalOptions,
    pub(crate) buckets: BucketsOptions,
    /// Log bytes after which a checkpoint is requested.
    pub(crate) checkpoint_bytes: u64,
    /// Size of the block cache that the stores of all buckets share.
    pub(crate) cache_bytes_max: u64,
}

impl RoomsOptions {
    fn log(&self) -> LogOptions {
        let (min, max) = LOG_FILE_BYTES.into_inner();
        LogOptions {
            sync: self.sync,
            file_bytes_max: (self.checkpoint_bytes / LOG_FILES).clamp(min, max),
            ..LogOptions::default()
        }
    }
}

/// Recovers the data directory on a thread of its own and starts the rooms. The caller holds the directory's lock. Must
/// be called within an actix system. Checkpoints are also given to `publish`, if there is one.
///
/// # Errors
/// A disk error, or damage.
pub async fn start(
    config: &Config,
    clock: Arc<dyn Clock>,
    publish: Option<Box<dyn Publish>>,
) -> Result<Rooms, OpenError> {
    let disk: Arc<dyn Disk> = Arc::new(StdDisk);
    let layout = Layout::of(&config.storage.data_dir);
    let cores = available_parallelism().map_or(1, usize::from);
    let options = RoomsOptions {
        sync: match config.wal.sync {
            SyncMode::Always => SyncPolicy::Always,
            SyncMode::Interval => SyncPolicy::Interval(config.wal.sync_interval),
            SyncMode::Never => SyncPolicy::Never,
        },
        journal: JournalOptions {
            queue_bytes_max: QUEUE_BYTES_MAX,
            tail_bytes_max: config.wal.tail_bytes_max,
        },
        buckets: BucketsOptions {
            mailbox_bytes_max: MAILBOX_BYTES_MAX,
            memory_bytes_max: config.storage.point_bytes_max(),
            threads: cores.div_ceil(2),
        },
        checkpoint_bytes: config.storage.checkpoint_bytes,
        cache_bytes_max: config.storage.cache_bytes_max,
    };
    start_with(disk, layout, options, clock, publish).await
}

/// Like `start`, over a given disk, and without publishing.
#[cfg(test)]
pub(crate) async fn start_on(
    disk: Arc<dyn Disk>,
    layout: Layout,
    options: RoomsOptions,
    clock: Arc<dyn Clock>,
) -> Result<Rooms, OpenError> {
    start_with(disk, layout, options, clock, None).await
}

/// Like `start`, over a given disk.
async fn start_with(
    disk: Arc<dyn Disk>,
    layout: Layout,
    options: RoomsOptions,
    clock: Arc<dyn Clock>,
    publish: Option<Box<dyn Publish>>,
) -> Result<Rooms, OpenError> {
    let (data_dir, checkpoint_bytes) = (layout.data_dir.clone(), options.checkpoint_bytes);
    let failed = |error| OpenError::Io(data_dir.clone(), error);
    let (done, recovered) = tokio::sync::oneshot::channel();
    let (of_thread, dirs) = (Arc::clone(&disk), layout.clone());
    let mut log = LocalShard::new(Arc::clone(&disk), layout.log_dir(), options.log());
    let cache = Cache::new(options.cache_bytes_max);
    std::thread::Builder::new()
        .name("recovery".to_owned())
        .spawn(move || {
            // Sending fails only when the process is about to end and nobody waits.
            let opened = recover(&of_thread, &dirs, &mut log, cache);
            let _ = done.send(opened.map(|opened| (opened, log)));
        })
        .map_err(failed)?;
    let recovered = recovered.await;
    let panicked = |_| Err(failed(io::Error::other("recovery panicked")));
    let (opened, log) = recovered.unwrap_or_else(panicked)?;
    let log = log
        .into_log()
        .ok_or_else(|| failed(io::Error::other("BUG: the log was not opened")))?;
    let journal = Journal::start(log).map_err(failed)?;
    let (rooms, orders, mut task) = assemble(opened, &journal, disk, layout, options, clock)?;
    if let Some(publish) = publish {
        task.publish_to(publish);
    }
    orders.serve(task, checkpoint_bytes).map_err(failed)?;
    Ok(rooms)
}

/// Opens the directory, after converting it from format 1 if necessary.
fn recover(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    log: &mut dyn ShardLog,
    cache: Cache,
) -> Result<Opened, OpenError> {
    layout.refuse_restoring(&**disk)?;
    convert(disk, &layout.data_dir, Damage::SetApart).map_err(OpenError::Convert)?;
    open_with(disk, layout, log, cache)
}

/// Connects everything except recovery and the checkpointer's thread. The owner of the task decides when a checkpoint
/// is taken.
pub(super) fn assemble(
    opened: Opened,
    journal: &Arc<Journal>,
    disk: Arc<dyn Disk>,
    layout: Layout,
    options: RoomsOptions,
    clock: Arc<dyn Clock>,
) -> Result<(Rooms, Orders, Task), OpenError> {
    let (checkpointer, orders) = Checkpointer::new(&opened.recovered);
    let catalog = CatalogHandle::new(opened.catalog);
    let order = checkpointer.clone();
    let progress = move |tail_bytes: u64| {
        if tail_bytes > options.checkpoint_bytes {
            order.order();
        }
    };
    let log_writer = Arc::clone(journal);
    let (writer, journal) = journal.open(THE_SHARD, opened.tail, catalog.clone(), options.journal, progress);
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
    let sealer = Sealer::start(1, || ()).map_err(|error| OpenError::Io(layout.data_dir.clone(), error))?;
    let segments_dir = opened.segments.files.dir.clone();
    let dependencies = Dependencies {
        journal: journal.clone(),
        catalog: catalog.clone(),
        clock: Arc::clone(&clock),
        sealer,
        cache: opened.cache,
        ledger: opened.ledger.ledger().clone(),
        order_checkpoint: Box::new(move || on_full.order()),
        deleted: Box::new(move |ordinal| on_deleted.remove(ordinal)),
        damaged: DamagedBlocks::new(catalog.clone(), move |id| segments_dir.file_path(id)),
    };
    let mut set_apart = SetApart::default();
    set_apart.buckets.extend(opened.set_apart.keys());
    let buckets = Buckets::start(states, opened.set_apart, dependencies, options.buckets);
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
        publish: None,
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
    Ok((rooms, orders, task))
}
