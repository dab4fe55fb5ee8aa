//! The journal's thread, which implements group commit: it takes the queued records of all shards, appends a group for each
//! shard, makes them durable together, and runs the completions in order.
//!
//! A single record does not wait. Under load, the clients acknowledged by one sync send their next record while the
//! next sync is running, so they would form several parts that never share a sync. Therefore, after a sync, the next group
//! waits until as many records are queued as there were active writers, for a limited time ([`expected`]). With 64
//! writers of single points, 59 records share a sync, so that a sync and the threads that it wakes cost each of them
//! little.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use log_store::Shard;
use parking_lot::Mutex;
use wal::Sequence;

use super::JournalHandle;
use super::completion::{Committed, Completion, complete};
use super::error::JournalError;
use super::log::{Group, NodeLog, Tail};
use super::queue::{Gather, Queue, Work};
use super::shard_queue::{Opening, Records, TailSize};
use crate::catalog::{CatalogHandle, Frozen};

/// Maximum size of a frame in bytes, unless a single record is larger. Beyond this, a longer sync costs more than
/// grouping further records saves.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// Upper limit of the time that a group waits for more records.
const GATHER_MAX: Duration = Duration::from_millis(10);

/// How long a group waits for each record that is expected: about the time in which a core handles a request.
const GATHER_FOR_RECORD: Duration = Duration::from_micros(25);

/// How many times longer than the last sync a group may wait for many records.
const GATHER_SYNCS_MAX: u32 = 8;

/// While requests are refused because of overload, a group waits for this many records, or this long: it is better to
/// spend a sync on more records.
const OVERLOAD_RECORDS: usize = 64;
const OVERLOAD_GATHER: Duration = Duration::from_millis(5);

/// Refusals of one kind are logged at most this often.
const REFUSAL_LOG_PERIOD: Duration = Duration::from_secs(1);

/// Limits of the journal.
#[derive(Clone, Copy, Debug)]
pub struct JournalOptions {
    /// Maximum number of bytes queued for the log.
    pub queue_bytes_max: usize,
    /// Maximum size of the log in bytes: what a restart may have to replay.
    pub tail_bytes_max: u64,
}

/// Statistics: counters since the start, and current sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalStats {
    /// Sequence of the last record that is durable.
    pub durable_sequence: Sequence,
    /// Size of the log files in bytes.
    pub tail_bytes: u64,
    /// Frames (groups) written.
    pub frames: u64,
    /// Records written.
    pub records: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Syncs of groups.
    pub syncs: u64,
    /// Total duration of the syncs.
    pub sync_nanoseconds: u64,
    /// Records queued.
    pub waiting_records: u64,
    /// Bytes queued.
    pub waiting_bytes: u64,
    /// Limit of the bytes queued.
    pub waiting_bytes_max: u64,
}

/// A node's journal: the thread that writes the log of its shards. It ends when this is dropped.
pub struct Journal {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Journal {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(log: impl NodeLog + 'static) -> std::io::Result<Arc<Self>> {
        let queue = Arc::new(Queue::default());
        let for_thread = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                let writer = Writer {
                    log: Box::new(log),
                    queue: Arc::clone(&for_thread),
                    gather: Gather {
                        records: 1,
                        until: Instant::now(),
                    },
                    logged_at: None,
                };
                // A panic is reported by the queue to everybody who waits.
                let _ = catch_unwind(AssertUnwindSafe(|| writer.run()));
                for_thread.end();
            })?;
        Ok(Arc::new(Journal {
            queue,
            thread: Mutex::new(Some(thread)),
        }))
    }

    /// Begins to write a shard, whose log has been replayed up to this tail. `progress` is called with the size of its log
    /// in bytes after each group.
    pub fn open(
        self: &Arc<Self>,
        shard: Shard,
        tail: Tail,
        catalog: CatalogHandle,
        options: JournalOptions,
        progress: impl Fn(u64) + Send + Sync + 'static,
    ) -> (JournalWriter, JournalHandle) {
        let (opening, size) = self.queue.add(shard, tail, options, Arc::new(progress));
        let handle = JournalHandle {
            queue: Arc::clone(&self.queue),
            opening,
            tail: Arc::clone(&size),
            catalog: catalog.clone(),
        };
        let writer = JournalWriter {
            journal: Arc::clone(self),
            opening,
            tail: size,
            catalog,
        };
        (writer, handle)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.queue.stop();
        let thread = self.thread.lock().take();
        // A completion may hold the last reference.
        let is_other = |thread: &JoinHandle<()>| thread.thread().id() != std::thread::current().id();
        if let Some(thread) = thread.filter(is_other) {
            // It has caught its panic.
            let _ = thread.join();
        }
    }
}

/// The owner of a shard in the journal, with the operations on its log that only the owner may perform.
pub struct JournalWriter {
    journal: Arc<Journal>,
    opening: Opening,
    tail: Arc<TailSize>,
    catalog: CatalogHandle,
}

impl JournalWriter {
    /// All records up to the returned sequence have been forwarded: a message sent to an actor from now on arrives
    /// after them. That includes every record that was acknowledged before this call.
    ///
    /// # Errors
    /// The journal has ended.
    pub fn dispatched(&self) -> Result<Sequence, JournalError> {
        // Runs between two groups: clients of a group are notified before the thread has finished it.
        let shard = self.opening.shard;
        self.ask(move |log| log.sizes(shard).durable_sequence)
    }

    /// The catalog together with the sequence that it covers: the last durable one. After a failed sync the log
    /// contains later records that were never applied, and whose sequences are reused if the records are lost.
    ///
    /// # Errors
    /// The journal has ended.
    pub fn freeze_catalog(&self) -> Result<(Frozen, Sequence), JournalError> {
        let (catalog, shard) = (self.catalog.clone(), self.opening.shard);
        self.ask(move |log| (catalog.freeze(), log.sizes(shard).durable_sequence))
    }

    /// Makes the log durable under any sync policy. Required before a file claims to cover a part of the log.
    ///
    /// # Errors
    /// The log is poisoned, or the journal has ended.
    pub fn flush(&self) -> Result<(), JournalError> {
        let shard = self.opening.shard;
        self.ask(move |log| log.flush(shard))?
    }

    /// Drops the part of the log that contains nothing after `covered`.
    ///
    /// # Errors
    /// I/O errors, or the journal has ended.
    pub fn trim(&self, covered: Sequence) -> Result<(), JournalError> {
        self.trim_behind(covered, None)
    }

    /// As [`trim`](Self::trim), and notes in the same step that the object of this name holds everything up to `covered`.
    /// Once this returns, the shard's next owner starts from it.
    ///
    /// # Errors
    /// As for `trim`.
    pub fn trim_to_root(&self, covered: Sequence, root: String) -> Result<(), JournalError> {
        self.trim_behind(covered, Some(root))
    }

    fn trim_behind(&self, covered: Sequence, root: Option<String>) -> Result<(), JournalError> {
        let (queue, opening) = (Arc::clone(&self.journal.queue), self.opening);
        self.ask(move |log| {
            let outcome = log.trim(opening.shard, covered, root.as_deref());
            queue.set_sizes(opening, log.sizes(opening.shard));
            outcome
        })?
    }

    fn ask<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn NodeLog) -> R + Send + 'static,
    ) -> Result<R, JournalError> {
        let (done, answer) = std::sync::mpsc::sync_channel(1);
        let control = move |log: &mut dyn NodeLog| {
            // The caller waits below.
            let _ = done.send(work(log));
        };
        self.journal.queue.control(self.opening, Box::new(control))?;
        // Dropped without an answer only after a panic.
        answer.recv().map_err(|_| JournalError::Panicked)
    }

    /// Whether the data directory is gone: nothing may be written to whatever has replaced it.
    pub fn directory_is_gone(&self) -> bool {
        self.journal.queue.directory_is_gone(self.opening)
    }

    /// Size of the log in bytes.
    pub fn tail_bytes(&self) -> u64 {
        self.tail.bytes()
    }

    /// Refuses new records, completes the queued ones, and closes the log cleanly.
    ///
    /// # Errors
    /// The log's end marker could not be written; nothing acknowledged is lost.
    pub fn close(&mut self) -> Result<(), JournalError> {
        let shard = self.opening.shard;
        let (done, closed) = std::sync::mpsc::sync_channel(1);
        let end = move |log: &mut dyn NodeLog| {
            // The caller waits below.
            let _ = done.send(log.close(shard));
        };
        self.journal.queue.close(self.opening, Box::new(end));
        // Without an answer, the shard has failed before; then there is nothing to close.
        closed.recv().unwrap_or(Ok(()))
    }
}

/// Completions of a group in log order. Those that have not run when this is dropped, because of a panic, are completed
/// with an error.
struct Waiters(std::vec::IntoIter<Completion>);

impl Drop for Waiters {
    fn drop(&mut self) {
        for completion in self.0.by_ref() {
            complete(completion, Err(JournalError::Panicked));
        }
    }
}

/// For how many records the next group waits, and how long, when `records` were written or arrived during a sync that took
/// so long. It waits for all of them as long as the sync took. Many come one after the other, as fast as the processor
/// handles the requests; sharing one sync leaves it more time for them, so it may wait longer for most of them: a writer
/// that does not come back delays the others little.
fn expected(records: usize, sync: Duration) -> (usize, Duration) {
    let of_records = GATHER_FOR_RECORD.saturating_mul(u32::try_from(records).unwrap_or(u32::MAX));
    let of_records = of_records.min(sync.saturating_mul(GATHER_SYNCS_MAX));
    if of_records > sync {
        (records - records / 16, of_records.min(GATHER_MAX))
    } else {
        (records, sync.min(GATHER_MAX))
    }
}

struct Writer {
    log: Box<dyn NodeLog>,
    queue: Arc<Queue>,
    /// Condition for the next group.
    gather: Gather,
    /// When a refusal was last logged.
    logged_at: Option<Instant>,
}

/// A group that is being committed.
struct Committing {
    opening: Opening,
    records: Vec<Vec<u8>>,
    waiters: Waiters,
}

impl Committing {
    fn new((opening, records): (Opening, Records)) -> Self {
        let (records, completions): (Vec<Vec<u8>>, Vec<Completion>) = records.into_iter().unzip();
        Committing {
            opening,
            records,
            waiters: Waiters(completions.into_iter()),
        }
    }
}

impl Writer {
    /// Runs until the queue is stopped and empty, or until the log itself panics.
    fn run(mut self) {
        while let Some(work) = self.queue.next(GROUP_BYTES_MAX, self.gather) {
            match work {
                Work::Groups(groups) => self.commit(groups),
                Work::Control(opening, control) => {
                    let log = &mut *self.log;
                    if catch_unwind(AssertUnwindSafe(|| control(log))).is_err() {
                        self.queue.fall_behind(opening);
                    }
                }
            }
        }
    }

    /// Records and logs why a group is refused. A full disk refuses every group, so repeated refusals are logged once a
    /// second.
    fn report_refusal(&mut self, opening: Opening, failure: &JournalError) {
        let is_passing = matches!(
            failure,
            JournalError::Full(_) | JournalError::Descriptors(_) | JournalError::Unavailable(_)
        );
        let changed = is_passing && self.queue.note(opening, Some(failure));
        if changed
            || self
                .logged_at
                .is_none_or(|logged_at| logged_at.elapsed() >= REFUSAL_LOG_PERIOD)
        {
            tracing::error!(shard = %opening.shard, %failure, "records refused");
            self.logged_at = Some(Instant::now());
        }
    }

    /// Condition for the next group, after groups of `records` records whose sync took `took`.
    fn next_gather(&self, records: usize, took: Duration) -> Gather {
        let now = Instant::now();
        if self.queue.is_overloaded(now) {
            return Gather {
                records: OVERLOAD_RECORDS,
                until: now + OVERLOAD_GATHER,
            };
        }
        let (records, time) = expected(records + self.queue.waiting(), took);
        Gather {
            records,
            until: now + time,
        }
    }

    fn syncing(&self, groups: &[Committing]) -> Duration {
        let longest = groups
            .iter()
            .map(|group| self.log.sizes(group.opening.shard).syncing)
            .max();
        longest.unwrap_or_default()
    }

    /// Commits groups together, and completes their records.
    fn commit(&mut self, groups: Vec<(Opening, Records)>) {
        let groups: Vec<Committing> = groups.into_iter().map(Committing::new).collect();
        let records = groups.iter().map(|group| group.records.len()).sum();
        let before = self.syncing(&groups);
        let to_append: Vec<Group<'_>> = groups
            .iter()
            .map(|group| Group {
                shard: group.opening.shard,
                records: &group.records,
            })
            .collect();
        let outcomes = self.log.append(&to_append);
        let took = self.syncing(&groups).saturating_sub(before);
        if outcomes.iter().any(Result::is_ok) {
            self.gather = self.next_gather(records, took);
        }
        for (group, outcome) in groups.into_iter().zip(outcomes) {
            let opening = group.opening;
            let mut is_whole = self.finish(group, outcome);
            let sizes = self.log.sizes(opening.shard);
            if let Some(progress) = self.queue.set_sizes(opening, sizes) {
                let tail_bytes = sizes.tail_bytes;
                is_whole &= catch_unwind(AssertUnwindSafe(|| progress(tail_bytes))).is_ok();
            }
            if !is_whole {
                self.queue.fall_behind(opening);
            }
        }
    }

    /// Runs the completions of a group; returns whether none panicked.
    fn finish(&mut self, group: Committing, outcome: Result<Sequence, JournalError>) -> bool {
        let Committing {
            opening,
            records,
            mut waiters,
        } = group;
        let waiters = waiters.0.by_ref();
        let mut is_whole = true;
        match outcome {
            Ok(first) => {
                self.queue.note(opening, None);
                for (sequence, (record, waiter)) in (first..).zip(records.into_iter().zip(waiters)) {
                    is_whole &= complete(waiter, Ok(Committed { sequence, record }));
                }
            }
            Err(failure) => {
                self.report_refusal(opening, &failure);
                for waiter in waiters {
                    is_whole &= complete(waiter, Err(failure.clone()));
                }
                if matches!(failure, JournalError::Poisoned(_) | JournalError::Lost) {
                    self.queue.fail(opening, &failure);
                }
            }
        }
        is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_waits_longer_than_a_sync_for_most_of_many_records() {
        let (none, short, long) = (Duration::ZERO, Duration::from_micros(150), Duration::from_secs(1));
        assert_eq!(expected(1, short), (1, short));
        assert_eq!(expected(6, short), (6, short));
        assert_eq!(expected(40, short), (38, Duration::from_millis(1)));
        assert_eq!(expected(64, short), (60, 8 * short));
        assert_eq!(expected(64, none), (64, none), "there is no sync to share");
        assert_eq!(expected(64, long), (64, GATHER_MAX));
        assert_eq!(expected(usize::MAX, short).1, 8 * short);
    }
}
