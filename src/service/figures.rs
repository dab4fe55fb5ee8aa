//! Collects the statistics of all rooms for `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Service;
use crate::bucket::BucketsLoad;
use crate::checkpoint::CheckpointStats;
pub use crate::checkpoint::PublishFigures;
use crate::delivery::DeliveryStats;
use crate::extents::ExtentStats;
use crate::journal::JournalStats;
use crate::ledger::LedgerStats;
use crate::query_pool::QueryPoolStats;

/// Statistics of all rooms, taken at one time.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Whether the server accepts writes.
    pub ready: bool,
    /// The monotonic time.
    pub monotonic_ns: i64,
    /// Ingested points.
    pub ingest: IngestFigures,
    /// Load of the buckets' actors.
    pub buckets: BucketsLoad,
    pub journal: JournalStats,
    pub checkpoints: CheckpointStats,
    /// Trigger histories and finished deliveries.
    pub ledger: LedgerStats,
    pub queries: QueryPoolStats,
    pub deliveries: DeliveryStats,
    /// Due rules that are not claimed; `None` when the rules' actor is too busy to answer.
    pub rules_due: Option<u64>,
    /// Queued changes and polls of rules, and the queue's capacity.
    pub rules_waiting: (u64, u64),
    /// The cache of blocks from the object store, in a cluster.
    pub extents: Option<ExtentStats>,
}

/// Ingestion statistics since start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestFigures {
    pub points: u64,
    /// Decompressed bytes of the bodies that had these points.
    pub bytes: u64,
    /// Refused entries of batches.
    pub entry_errors: u64,
    /// Requests answered from their idempotency key.
    pub replays: u64,
}

/// The counters behind [`IngestFigures`].
#[derive(Debug, Default)]
pub(super) struct IngestCounts {
    points: AtomicU64,
    bytes: AtomicU64,
    entry_errors: AtomicU64,
    replays: AtomicU64,
}

impl IngestCounts {
    pub fn stored(&self, points: u32, bytes: usize) {
        self.points.fetch_add(u64::from(points), Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn refused(&self, entries: usize) {
        if entries > 0 {
            self.entry_errors.fetch_add(entries as u64, Ordering::Relaxed);
        }
    }

    pub fn replayed(&self) {
        self.replays.fetch_add(1, Ordering::Relaxed);
    }
}

/// Adds the named members of one struct to another's.
macro_rules! add {
    ($to:expr, $from:expr; $($member:ident),+) => {$($to.$member += $from.$member;)+};
}

impl Figures {
    /// Adds the statistics of another shard of the node. What shards share counts once: the queries, and the memory, cache
    /// and disk of the process.
    pub(super) fn add(&mut self, other: &Figures) {
        add!(self.ingest, other.ingest; points, bytes, entry_errors, replays);
        let (own, more) = (&mut self.buckets, &other.buckets);
        add!(own, more; actors, set_apart, mailbox_bytes, damaged_blocks, damaged_reads, refused);
        own.fullest_mailbox_bytes = own.fullest_mailbox_bytes.max(more.fullest_mailbox_bytes);
        (own.memory_bytes, own.memory_bytes_max) = (more.memory_bytes, more.memory_bytes_max);
        (own.cache_bytes, own.cache_bytes_max) = (more.cache_bytes, more.cache_bytes_max);
        own.mailbox_bytes_max = more.mailbox_bytes_max;
        let (own, more) = (&mut self.journal, &other.journal);
        add!(own, more; tail_bytes, frames, records, bytes, syncs, sync_nanoseconds);
        add!(own, more; waiting_records, waiting_bytes, waiting_bytes_max);
        let (own, more) = (&mut self.checkpoints, &other.checkpoints);
        add!(own, more; checkpoints, failures, merges, nanoseconds, segments);
        (own.disk_syncs, own.unreadable_pages) = (more.disk_syncs, more.unreadable_pages);
        add!(own.recovery, more.recovery; catalog, footers, replay);
        own.published = match (own.published.take(), more.published.clone()) {
            (Some(own), Some(more)) => Some(Arc::new(own.plus(&more))),
            (own, more) => own.or(more),
        };
        self.monotonic_ns = other.monotonic_ns;
        add!(self.ledger, other.ledger; runs, entries, bytes);
        let (own, more) = (&mut self.deliveries, &other.deliveries);
        add!(own, more; attempts_delivered, attempts_refused, attempts_unanswered, dropped, pending, in_flight);
        add!(own, more; offered_bytes, offered_bytes_max);
        self.rules_due = self.rules_due.zip(other.rules_due).map(|(own, more)| own + more);
        self.rules_waiting.0 += other.rules_waiting.0;
        self.rules_waiting.1 += other.rules_waiting.1;
    }
}

impl Service {
    /// Collects the statistics of the shard's rooms.
    pub(super) async fn figures(&self) -> Figures {
        let mut ingest = IngestFigures::default();
        for counts in self.ingested.all() {
            ingest.points += counts.points.load(Ordering::Relaxed);
            ingest.bytes += counts.bytes.load(Ordering::Relaxed);
            ingest.entry_errors += counts.entry_errors.load(Ordering::Relaxed);
            ingest.replays += counts.replays.load(Ordering::Relaxed);
        }
        let (waiting, waiting_max) = self.alerts.waiting();
        Figures {
            ready: self.readiness().is_ok(),
            monotonic_ns: self.clock.monotonic_ns(),
            ingest,
            buckets: self.buckets.load(),
            journal: self.decisions.journal_stats(),
            checkpoints: self.checkpointer.stats(),
            ledger: self.ledger.stats(),
            queries: self.resources.queries.stats(),
            deliveries: self.deliveries.stats(),
            rules_due: self.alerts.due_count().await.ok().map(|due| due as u64),
            rules_waiting: (waiting as u64, waiting_max as u64),
            extents: None,
        }
    }
}
