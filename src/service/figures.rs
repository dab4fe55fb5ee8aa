//! Collects the statistics of all rooms for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Service;
use crate::bucket::BucketsLoad;
use crate::checkpoint::CheckpointStats;
pub use crate::checkpoint::PublishFigures;
use crate::delivery::DeliveryStats;
use crate::journal::JournalStats;
use crate::ledger::LedgerStats;
use crate::query_pool::QueryPoolStats;

/// Statistics of all rooms, taken at one time.
#[derive(Clone, Debug)]
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

impl Service {
    /// Collects the statistics of all rooms.
    pub async fn figures(&self) -> Figures {
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
            queries: self.queries.stats(),
            deliveries: self.deliveries.stats(),
            rules_due: self.alerts.due_count().await.ok().map(|due| due as u64),
            rules_waiting: (waiting as u64, waiting_max as u64),
        }
    }
}
