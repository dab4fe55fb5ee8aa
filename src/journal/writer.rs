//! The journal's thread: takes what has gathered, writes it as one frame, syncs once, completes everyone in order.
//!
//! Alone, a record waits for nothing. Under load, those acknowledged by one sync come back while the next one runs, and
//! so would form two halves that never share a sync. Hence, when a sync ends, the next one begins as soon as all who were
//! then known to write are back, or after as long as the last one took: measured, it halves the syncs of 64 writers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wal::{Log, LogError, Sequence};

use super::JournalHandle;
use super::error::JournalError;
use super::queue::{Committed, Completion, Gather, Queue, Waiters, Work, complete};
use crate::catalog::{CatalogHandle, Frozen};

/// Bytes of one frame, unless a single record is larger: beyond this a sync takes longer than the records it would
/// save from waiting are worth.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// The next group waits for those who were writing at most as long as the last sync took, and never longer than this.
const GATHER_MAX: Duration = Duration::from_millis(10);

/// While requests are refused for want of room, a group waits for so many records, or so long: what a sync costs then is
/// better spent on taking more of them.
const PRESSED_RECORDS: usize = 64;
const PRESSED_GATHER: Duration = Duration::from_millis(5);

/// Refusals of one kind are logged at most this often.
const TELL_PERIOD: Duration = Duration::from_secs(1);

/// Bounds of the journal.
#[derive(Clone, Copy, Debug)]
pub struct JournalOptions {
    /// Bytes that may wait for the log.
    pub queue_bytes_max: usize,
    /// Log that a restart may have to replay, in bytes.
    pub tail_bytes_max: u64,
}

/// Counters since the start, and sizes now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalStats {
    /// Bytes of the live log files.
    pub tail_bytes: u64,
    /// Frames (groups) written.
    pub frames: u64,
    /// Records written.
    pub records: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Syncs of groups.
    pub syncs: u64,
    /// Time the syncs took.
    pub sync_nanoseconds: u64,
    /// Records that wait.
    pub waiting_records: u64,
    /// Bytes that wait.
    pub waiting_bytes: u64,
    /// Bytes that may wait.
    pub waiting_bytes_max: u64,
}

/// The thread, and what only its owner may ask of the log.
pub struct JournalWriter {
    queue: Arc<Queue>,
    catalog: CatalogHandle,
    thread: Option<JoinHandle<Option<Log>>>,
}

impl JournalWriter {
    /// Starts the thread. `progress` is told the bytes of the live log files after each group.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub fn start(
        log: Log,
        catalog: CatalogHandle,
        options: JournalOptions,
        progress: impl Fn(u64) + Send + 'static,
    ) -> std::io::Result<(Self, JournalHandle)> {
        let queue = Arc::new(Queue::new(options.queue_bytes_max, options.tail_bytes_max));
        queue
            .figures
            .tail_bytes
            .store(log.tail_bytes(), Ordering::Relaxed);
        let for_thread = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                let _ending = Ending(Arc::clone(&for_thread));
                Writer {
                    log,
                    queue: for_thread,
                    progress: Box::new(progress),
                    gather: Gather {
                        records: 1,
                        until: Instant::now(),
                    },
                    told_at: None,
                }
                .run()
            })?;
        let handle = JournalHandle {
            queue: Arc::clone(&queue),
            catalog: catalog.clone(),
        };
        Ok((
            JournalWriter {
                queue,
                catalog,
                thread: Some(thread),
            },
            handle,
        ))
    }

    /// Everything up to this sequence has been handed on: a message sent to an actor from now on arrives behind it.
    /// Whoever was acknowledged before asking is in it.
    ///
    /// # Errors
    /// The journal has ended.
    pub fn dispatched(&self) -> Result<Sequence, JournalError> {
        // Asked between two groups: those who wait for a group hear of it before its thread is through with it.
        self.ask(|log| log.durable_sequence())
    }

    /// The catalog as of the sequence that stands beside it: the last durable one. After a failed sync the log holds
    /// records behind it that were never applied, and whose sequences are given again when they are lost.
    ///
    /// # Errors
    /// The journal has ended.
    pub fn freeze_catalog(&self) -> Result<(Frozen, Sequence), JournalError> {
        let catalog = self.catalog.clone();
        self.ask(move |log| (catalog.freeze(), log.durable_sequence()))
    }

    /// Drops log files that hold nothing behind `covered`.
    ///
    /// # Errors
    /// The disk's, or the journal has ended.
    pub fn trim(&self, covered: Sequence) -> Result<(), JournalError> {
        let queue = Arc::clone(&self.queue);
        let trimmed = self.ask(move |log| {
            let outcome = trim(log, covered);
            queue
                .figures
                .tail_bytes
                .store(log.tail_bytes(), Ordering::Relaxed);
            outcome
        })?;
        trimmed.map_err(|error| JournalError::of(Arc::new(error)))
    }

    fn ask<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Log) -> R + Send + 'static,
    ) -> Result<R, JournalError> {
        let (done, answer) = std::sync::mpsc::sync_channel(1);
        self.queue.control(Box::new(move |log| {
            // The asker waits below.
            let _ = done.send(work(log));
        }))?;
        // Dropped without an answer only when the thread ends by a panic.
        answer.recv().map_err(|_| JournalError::Panicked)
    }

    /// Whether the data directory was found to be gone: nothing may be written to what stands in its place.
    pub fn directory_is_gone(&self) -> bool {
        self.queue.directory_is_gone()
    }

    /// Bytes of the live log files.
    pub fn tail_bytes(&self) -> u64 {
        self.queue.figures.tail_bytes.load(Ordering::Relaxed)
    }

    /// Takes nothing more, completes what waits, and closes the log in order.
    ///
    /// # Errors
    /// The log could not mark its end; nothing acknowledged is lost.
    pub fn close(&mut self) -> Result<(), LogError> {
        self.queue.close();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Some(log))) => log.close(),
            _ => Ok(()),
        }
    }
}

/// What can go without room goes first: on a full disk that may be what makes room.
fn trim(log: &mut Log, covered: Sequence) -> Result<(), LogError> {
    log.trim(covered)?;
    if log.last_sequence() == covered {
        // The active file is begun anew, so that what it holds can go too.
        match log.rotate() {
            Err(error) if error.is_passing() => {}
            rotated => {
                rotated?;
                log.trim(covered)?;
            }
        }
    }
    Ok(())
}

/// Has the queue refused when the thread ends, in whatever way.
struct Ending(Arc<Queue>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

struct Writer {
    log: Log,
    queue: Arc<Queue>,
    progress: Box<dyn Fn(u64) + Send>,
    /// What the next group waits for.
    gather: Gather,
    /// When a refusal was last told.
    told_at: Option<Instant>,
}

impl Writer {
    /// Until the queue is closed and empty, or something panicked: then what is in memory may be behind the log, and
    /// neither a record nor a checkpoint may go on from there. Answers the log unless it is poisoned.
    fn run(mut self) -> Option<Log> {
        loop {
            let is_whole = match self.queue.next(GROUP_BYTES_MAX, self.gather) {
                Work::Group(group) => self.commit(group),
                Work::Control(control) => catch_unwind(AssertUnwindSafe(|| control(&mut self.log))).is_ok(),
                Work::End => break,
            };
            if !is_whole {
                return None;
            }
        }
        self.log.poisoned().is_none().then_some(self.log)
    }

    /// Notes and logs why a group is refused. A full disk refuses each group: that is told once a second.
    fn tell_refusal(&mut self, failure: &JournalError) {
        let is_passing = match failure {
            JournalError::Full(cause) | JournalError::Descriptors(cause) => cause.is_passing(),
            _ => false,
        };
        let changed = is_passing && self.queue.note(Some(failure));
        if changed
            || self
                .told_at
                .is_none_or(|told_at| told_at.elapsed() >= TELL_PERIOD)
        {
            tracing::error!(%failure, "records refused");
            self.told_at = Some(Instant::now());
        }
    }

    /// What the group behind one of so many records waits for, whose sync took so long.
    fn next_gather(&self, records: usize, took: Duration) -> Gather {
        let now = Instant::now();
        if self.queue.is_pressed(now) {
            return Gather {
                records: PRESSED_RECORDS,
                until: now + PRESSED_GATHER,
            };
        }
        Gather {
            records: records + self.queue.waiting(),
            until: now + took.min(GATHER_MAX),
        }
    }

    /// Answers whether all completions came to their end.
    fn commit(&mut self, group: Vec<(Vec<u8>, Completion)>) -> bool {
        let (records, completions): (Vec<Vec<u8>>, Vec<Completion>) = group.into_iter().unzip();
        let waiters = Waiters::new(completions);
        let mut is_whole = true;
        let written = self.log.append(&records).and_then(|first| {
            let started = Instant::now();
            self.log.sync()?;
            let took = started.elapsed();
            self.gather = self.next_gather(records.len(), took);
            let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            self.queue
                .figures
                .sync_nanoseconds
                .fetch_add(took, Ordering::Relaxed);
            Ok(first)
        });
        match written {
            Ok(first) => {
                self.queue.note(None);
                for (sequence, (record, waiter)) in (first..).zip(records.into_iter().zip(waiters)) {
                    is_whole &= complete(waiter, Ok(Committed { sequence, record }));
                }
            }
            Err(error) => {
                let failure = JournalError::of(Arc::new(error));
                self.tell_refusal(&failure);
                for waiter in waiters {
                    is_whole &= complete(waiter, Err(failure.clone()));
                }
                if matches!(failure, JournalError::Poisoned(_)) {
                    self.queue.fail(&failure);
                }
            }
        }
        let counters = self.log.counters();
        let figures = &self.queue.figures;
        for (figure, value) in [
            (&figures.tail_bytes, self.log.tail_bytes()),
            (&figures.frames, counters.frames),
            (&figures.records, counters.records),
            (&figures.bytes, counters.bytes),
            (&figures.syncs, counters.syncs),
        ] {
            figure.store(value, Ordering::Relaxed);
        }
        (self.progress)(self.log.tail_bytes());
        is_whole
    }
}
