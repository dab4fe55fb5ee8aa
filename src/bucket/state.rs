//! The state of a bucket: the store, the next sequence, the idempotency keys. Points are added only by
//! `apply`, both live and during replay.

use std::sync::Arc;

use engine::{Cache, EngineError, Store};
use wal::Sequence;

use super::idempotency::IdempotencyIndex;
use crate::journal::{IngestView, RecordSeries};
use crate::ledger::{Ledger, LedgerError};
use crate::series::{Labels, NewSeries, SeriesIndex};

/// The points of one bucket and related state.
pub struct BucketState {
    /// The bucket's ordinal.
    pub ordinal: u32,
    pub store: Store,
    pub idempotency: IdempotencyIndex,
    /// The series of sources that are split by dimensions.
    pub series: Arc<SeriesIndex>,
    /// Sequence of the next row.
    pub next_sequence: u64,
    /// When the last ingest was received, UTC nanoseconds; `None` before the first.
    pub ingested_at_ns: Option<i64>,
    /// Log sequence of the last record that was applied, or is covered by the segments.
    pub applied: Sequence,
}

impl BucketState {
    /// A bucket without points. It caches decoded block parts in `cache`, and looks up older answers and series in
    /// `ledger`.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn new(ordinal: u32, cache: Cache, ledger: Ledger) -> Result<Self, LedgerError> {
        Ok(BucketState {
            ordinal,
            store: Store::with_cache(cache),
            series: Arc::new(SeriesIndex::open(ordinal, ledger.clone())?),
            idempotency: IdempotencyIndex::new(ordinal, ledger),
            next_sequence: 1,
            ingested_at_ns: None,
            applied: 0,
        })
    }

    /// Assigns the series in the store's segments to their sources. Called once all segments are added.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn assign_series(&mut self) -> Result<(), LedgerError> {
        let Some(greatest) = self.store.greatest_series() else {
            return Ok(());
        };
        self.series.reserve(greatest);
        let store = &mut self.store;
        self.series.for_each_saved(|series| store.assign(series))?;
        if self.store.has_unassigned() {
            let store = &mut self.store;
            self.series
                .for_each_forgotten(|ordinal| store.drop_unassigned(ordinal))?;
        }
        if self.store.has_unassigned() {
            // They belong to deleted sources, or entries of the ledger are lost.
            let store = &mut self.store;
            self.series.for_each_digest(|series| store.assign(series))?;
        }
        Ok(())
    }

    /// Memory of rows and series that no file contains yet, in bytes.
    pub fn unsaved_bytes(&self) -> u64 {
        self.store.unsaved().1 + self.series.unsaved_bytes() as u64
    }

    /// Applies the record at `sequence` of the log, unless a segment covers it; returns whether it was applied.
    ///
    /// # Errors
    /// The rows cannot be decoded although the log's checksum matches: a bug. The state is unusable then.
    pub fn apply(&mut self, sequence: Sequence, record: &IngestView<'_>) -> Result<bool, EngineError> {
        if sequence <= self.applied {
            return Ok(false);
        }
        let (mut named, mut new) = (Vec::new(), Vec::new());
        for RecordSeries { series, labels } in record.series() {
            named.push(series);
            if let Some(labels) = labels {
                let labels = Labels::decode(labels).ok_or(EngineError::Corrupt {
                    what: "series of a log record",
                    offset: 0,
                    expected: "labels",
                })?;
                new.push(NewSeries { series, labels });
            }
        }
        // Before the rows, so that whoever sees the rows finds their series.
        self.series.add(&new);
        let points = self
            .store
            .apply(record.encoded_rows, record.first_sequence, &named)?;
        if let Some(entry) = &record.idempotency {
            self.idempotency.insert(entry, record.created_at_ns);
        }
        self.next_sequence = self
            .next_sequence
            .max(record.first_sequence + u64::from(record.rows));
        let has_only_ends = points == 0 && record.rows > 0;
        if !has_only_ends {
            self.ingested_at_ns = self.ingested_at_ns.max(Some(record.created_at_ns));
        }
        self.applied = sequence;
        Ok(true)
    }

    /// Size of the bucket on disk in bytes: its segments, its answers in the ledger, and its rows in the log that no
    /// file contains yet.
    ///
    /// # Errors
    /// The ledger's files cannot be read.
    pub fn disk_bytes(&self) -> Result<u64, LedgerError> {
        let answers_bytes = self.idempotency.file_bytes()?;
        Ok(self.store.segment_bytes() + answers_bytes + self.store.unsaved_encoded_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::query::{ScanQuery, Selection, scan};
    use engine::rows::RowsWriter;
    use engine::{SegmentFile, SegmentWriter};

    use super::*;

    fn rows(state: &BucketState) -> usize {
        let series = &state.store.view().series(0).unwrap();
        let query = ScanQuery {
            range_ns: (i64::MIN, i64::MAX),
            descending: false,
            after: None,
            skip: 0,
            limit: 1 << 20,
            metadata: None,
            stop: &|| false,
        };
        scan(&[Selection::new(series, None)], &query).unwrap().rows.len()
    }

    /// Regression: both the blocks and the segment contained these rows, so they were read twice, and the next
    /// checkpoint made that permanent.
    #[test]
    fn rows_sealed_during_their_checkpoint_are_stored_once() {
        const ROWS: u32 = 10_000;
        let mut state = BucketState::new(1, Cache::new(1 << 20), Ledger::default()).unwrap();
        let mut writer = RowsWriter::new();
        for row in 0..ROWS {
            writer.begin(0);
            writer.number(0, f64::from(row), 0);
            writer.commit(i64::from(row));
        }
        let mut encoded = Vec::new();
        writer.encode(&mut encoded);
        let record = IngestView {
            bucket: 1,
            first_sequence: 1,
            created_at_ns: 0,
            rows: ROWS,
            idempotency: None,
            encoded_series: &[],
            encoded_rows: &encoded,
        };
        assert!(state.apply(1, &record).unwrap());
        let mut seals = state.store.take_seals();
        assert_eq!(seals.len(), 1, "a block is full");
        let checkpoint = state.store.begin_checkpoint().unwrap();
        let segment = SegmentWriter::of_bucket(1, |segment| checkpoint.write(segment)).unwrap();
        let segment = SegmentFile::open(1, Arc::new(segment)).unwrap();
        state.store.finish_seal(seals.remove(0).run());
        assert_eq!(rows(&state), ROWS as usize, "before the checkpoint ends");
        state
            .store
            .finish_checkpoint(checkpoint, segment.part(1).unwrap(), i64::MIN);
        assert_eq!(rows(&state), ROWS as usize, "behind it");
        assert!(
            state.store.begin_checkpoint().is_none(),
            "nothing is left to write"
        );
    }
}
