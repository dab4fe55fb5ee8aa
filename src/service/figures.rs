//! What all rooms count, at one moment: gathered here for `/metrics`, which writes it down.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Service;
use crate::bucket::BucketsLoad;
use crate::checkpoint::CheckpointStats;
use crate::delivery::DeliveryStats;
use crate::journal::JournalStats;
use crate::ledger::LedgerStats;
use crate::query_pool::QueryPoolStats;

/// The figures of all rooms.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Whether writes are taken.
    pub ready: bool,
    /// Points taken in.
    pub ingest: IngestFigures,
    /// The buckets' actors.
    pub buckets: BucketsLoad,
    /// The log.
    pub journal: JournalStats,
    pub checkpoints: CheckpointStats,
    /// Histories and finished deliveries.
    pub ledger: LedgerStats,
    /// The query pool.
    pub queries: QueryPoolStats,
    /// Webhooks.
    pub deliveries: DeliveryStats,
    /// Rules that are due and free; `None` when the rules' actor has too much to do to say.
    pub rules_due: Option<u64>,
    /// Changes and polls of rules that wait, and how many may.
    pub rules_waiting: (u64, u64),
}

/// What was ingested since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestFigures {
    /// Points stored.
    pub points: u64,
    /// Bytes of the bodies that they came in, decompressed.
    pub bytes: u64,
    /// Entries of batches that were refused.
    pub entry_errors: u64,
    /// Requests answered from their idempotency key.
    pub replays: u64,
}

/// The same, counting.
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
    /// What all rooms count, now.
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
