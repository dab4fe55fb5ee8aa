//! Sealing during log replay. Sealing costs several times as much as applying, so it runs on all cores, in parallel
//! with the replay. The replay waits for it only when unsealed rows would take too much memory. Seals that have not
//! started when the log ends are left to the buckets' actors, so that a restart does not wait for them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::available_parallelism;

use engine::{Seal, Sealed};

use crate::bucket::{BucketState, Sealer};

type Buckets = BTreeMap<u32, BucketState>;
type Done = (u32, Option<Sealed>);

/// Rows that are being sealed into blocks during replay.
pub(super) struct Sealing {
    sealer: Sealer,
    /// Number of running seals that keeps all threads busy.
    begun_max: usize,
    begun: usize,
    /// Seals not started, oldest first, with the bucket and the memory of each.
    waiting: VecDeque<(u32, usize, Seal)>,
    waiting_bytes: usize,
    waiting_bytes_max: usize,
    done: Sender<Done>,
    sealed: Receiver<Done>,
}

impl Sealing {
    /// Starts the threads.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub(super) fn start(waiting_bytes_max: usize) -> std::io::Result<Self> {
        let threads = available_parallelism().map_or(1, usize::from);
        let (done, sealed) = channel();
        Ok(Sealing {
            sealer: Sealer::start(threads, crate::priority::lower)?,
            // One more than threads, so that a thread that finishes finds the next one queued.
            begun_max: threads + 1,
            begun: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            waiting_bytes_max,
            done,
            sealed,
        })
    }

    /// Queues the rows of a bucket that fill blocks.
    pub(super) fn take(&mut self, state: &mut BucketState) {
        for seal in state.store.take_seals() {
            let bytes = seal.memory_bytes();
            self.waiting_bytes += bytes;
            self.waiting.push_back((state.ordinal, bytes, seal));
        }
    }

    /// Installs finished blocks and starts queued seals. Blocks while the queue uses too much memory.
    pub(super) fn advance(&mut self, buckets: &mut Buckets) {
        loop {
            self.begin();
            let next = if self.waiting_bytes > self.waiting_bytes_max {
                self.sealed.recv().ok()
            } else {
                self.sealed.try_recv().ok()
            };
            let Some(done) = next else { return };
            self.put(done, buckets);
        }
    }

    /// Waits for the running seals and returns the queued ones to their buckets.
    pub(super) fn finish(&mut self, buckets: &mut Buckets) {
        for (ordinal, _, seal) in self.waiting.drain(..) {
            if let Some(state) = buckets.get_mut(&ordinal) {
                state.store.give_back(seal);
            }
        }
        while self.begun > 0
            && let Ok(done) = self.sealed.recv()
        {
            self.put(done, buckets);
        }
    }

    fn begin(&mut self) {
        while self.begun < self.begun_max
            && let Some((ordinal, bytes, seal)) = self.waiting.pop_front()
        {
            self.waiting_bytes -= bytes;
            self.begun += 1;
            let done = self.done.clone();
            self.sealer.seal(seal, move |sealed| {
                // The receiver lives until the replay ends.
                let _ = done.send((ordinal, sealed));
            });
        }
    }

    fn put(&mut self, (ordinal, sealed): Done, buckets: &mut Buckets) {
        self.begun -= 1;
        if let (Some(state), Some(sealed)) = (buckets.get_mut(&ordinal), sealed) {
            state.store.finish_seal(sealed);
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::rows::RowsWriter;
    use engine::{BLOCK_ROWS_MAX, Cache};

    use super::*;
    use crate::journal::IngestView;
    use crate::ledger::Ledger;

    const BUCKET: u32 = 1;
    const BLOCKS: usize = 5;

    /// A bucket with a source whose rows fill this many blocks, and some rows more.
    fn buckets() -> Buckets {
        let mut state = BucketState::new(BUCKET, Cache::new(1 << 20), Ledger::default()).unwrap();
        let rows = (BLOCKS * BLOCK_ROWS_MAX) as u32 + 1_025;
        let mut writer = RowsWriter::new();
        for row in 0..rows {
            writer.begin(0);
            writer.number(0, f64::from(row), 0);
            writer.commit(i64::from(row));
        }
        let mut encoded = Vec::new();
        writer.encode(&mut encoded);
        let record = IngestView {
            bucket: BUCKET,
            first_sequence: 1,
            created_at_ns: 0,
            rows,
            idempotency: None,
            encoded_series: &[],
            encoded_rows: &encoded,
        };
        assert!(state.apply(1, &record).unwrap());
        Buckets::from([(BUCKET, state)])
    }

    fn left(buckets: &mut Buckets) -> Vec<Seal> {
        let state = buckets.get_mut(&BUCKET).unwrap();
        state.store.take_seals()
    }

    #[test]
    fn blocks_beyond_the_waiting_limit_are_sealed_during_the_replay() {
        let mut buckets = buckets();
        let mut sealing = Sealing::start(0).unwrap();
        sealing.take(buckets.get_mut(&BUCKET).unwrap());
        assert_eq!(sealing.waiting.len(), BLOCKS);
        // A timestamp, a sequence and a double for each row.
        assert!(sealing.waiting_bytes >= BLOCKS * BLOCK_ROWS_MAX * 24);
        sealing.advance(&mut buckets);
        assert_eq!((sealing.waiting.len(), sealing.waiting_bytes), (0, 0));
        sealing.finish(&mut buckets);
        assert!(left(&mut buckets).is_empty());
    }

    #[test]
    fn blocks_not_begun_are_left_for_later_sealing() {
        let mut buckets = buckets();
        let mut sealing = Sealing::start(usize::MAX).unwrap();
        sealing.take(buckets.get_mut(&BUCKET).unwrap());
        sealing.finish(&mut buckets);
        assert_eq!(left(&mut buckets).len(), BLOCKS);
    }
}
