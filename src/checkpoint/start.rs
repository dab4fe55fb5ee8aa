//! From a data directory to running rooms: recovery, then the journal's thread, the buckets' actors and the
//! checkpointer, each given what it needs of the others.

use std::sync::Arc;
use std::thread::available_parallelism;

use wal::disk::{Disk, StdDisk};

use super::checkpointer::Checkpointer;
use super::layout::Layout;
use super::open::{OpenError, Recovered, open};
use super::task::Task;
use crate::bucket::{Buckets, BucketsOptions, Neighbours, Sealer};
use crate::catalog::CatalogHandle;
use crate::clock::Clock;
use crate::config::{Config, SyncMode};
use crate::journal::{JournalHandle, JournalOptions, JournalWriter, RelaxedDisk};

/// Bytes that may be on their way into one bucket: some of the largest batches the API takes.
const MAILBOX_BYTES_MAX: u64 = 32 << 20;
/// Bytes that may wait for the log, over all buckets.
const QUEUE_BYTES_MAX: usize = 64 << 20;

/// The running rooms that keep state.
pub struct Rooms {
    /// What exists.
    pub catalog: CatalogHandle,
    /// Takes commands.
    pub journal: JournalHandle,
    /// The points.
    pub buckets: Buckets,
    /// Closes it all in order.
    pub checkpointer: Checkpointer,
    /// What recovery found.
    pub recovered: Recovered,
}

/// Recovers the data directory, whose lock the caller holds, and starts the rooms. Must be called within an actix
/// system.
///
/// # Errors
/// The disk's, or damage.
pub fn start(config: &Config, clock: Arc<dyn Clock>) -> Result<Rooms, OpenError> {
    let disk: Arc<dyn Disk> = Arc::new(StdDisk);
    let log_disk: Arc<dyn Disk> = match config.wal.sync {
        SyncMode::Always => Arc::clone(&disk),
        SyncMode::Interval => Arc::new(RelaxedDisk::new(
            Arc::clone(&disk),
            Some(config.wal.sync_interval),
        )),
        SyncMode::Never => Arc::new(RelaxedDisk::new(Arc::clone(&disk), None)),
    };
    start_on(disk, log_disk, config, clock)
}

/// The same over any disk; the log may have one of its own.
pub(super) fn start_on(
    disk: Arc<dyn Disk>,
    log_disk: Arc<dyn Disk>,
    config: &Config,
    clock: Arc<dyn Clock>,
) -> Result<Rooms, OpenError> {
    let layout = Layout {
        data_dir: config.storage.data_dir.clone(),
    };
    let opened = open(&disk, log_disk, &layout)?;
    let io = |error| OpenError::Io(layout.data_dir.clone(), error);

    let (checkpointer, orders) = Checkpointer::new();
    let catalog = CatalogHandle::new(opened.catalog);
    let journal_options = JournalOptions {
        queue_bytes_max: QUEUE_BYTES_MAX,
        tail_bytes_max: config.wal.tail_bytes_max,
    };
    let checkpoint_bytes = config.storage.checkpoint_bytes;
    let order = checkpointer.clone();
    let progress = move |tail_bytes: u64| {
        if tail_bytes > checkpoint_bytes {
            order.order();
        }
    };
    let (writer, journal) =
        JournalWriter::start(opened.log, catalog.clone(), journal_options, progress).map_err(io)?;
    let cores = available_parallelism().map_or(1, usize::from);
    let options = BucketsOptions {
        mailbox_bytes_max: MAILBOX_BYTES_MAX,
        memory_bytes_max: config.storage.memory_bytes_max,
        threads: cores.div_ceil(2),
    };
    let (states, files): (Vec<_>, Vec<_>) = opened.buckets.into_iter().unzip();
    let files = states.iter().map(|state| state.ordinal).zip(files).collect();
    let (on_full, on_deleted) = (checkpointer.clone(), checkpointer.clone());
    let neighbours = Neighbours {
        journal: journal.clone(),
        catalog: catalog.clone(),
        clock: Arc::clone(&clock),
        sealer: Sealer::start().map_err(io)?,
        memory_full: Box::new(move || on_full.order()),
        deleted: Box::new(move |ordinal| on_deleted.remove(ordinal)),
    };
    let buckets = Buckets::start(states, neighbours, options);
    let task = Task {
        disk,
        layout: layout.clone(),
        buckets: buckets.clone(),
        catalog: catalog.clone(),
        clock,
        journal: writer,
        files,
        catalog_covered: opened.catalog_covered,
        merges: 0,
    };
    orders.serve(task).map_err(io)?;
    Ok(Rooms {
        catalog,
        journal,
        buckets,
        checkpointer,
        recovered: opened.recovered,
    })
}
