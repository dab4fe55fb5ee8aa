//! A queue, bounded in bytes, between many submitters and the one writer of the log.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use wal::{Counters, Log, Sequence};

use super::error::JournalError;
use super::writer::{JournalOptions, JournalStats};

/// A refused request counts as overload for this long.
const OVERLOAD_PERIOD: Duration = Duration::from_millis(100);

/// A durable record.
pub struct Committed {
    /// Sequence of the record in the log.
    pub sequence: Sequence,
    /// The record's bytes, as submitted.
    pub record: Vec<u8>,
}

/// Runs on the journal's thread, in log order; a refused record's runs on the submitter's thread. It must not block or
/// panic.
pub type Completion = Box<dyn FnOnce(Result<Committed, JournalError>) + Send>;

/// Runs a completion. A panic in it is logged and does not affect the others. Returns whether it did not panic.
pub(super) fn complete(completion: Completion, outcome: Result<Committed, JournalError>) -> bool {
    let completed = catch_unwind(AssertUnwindSafe(|| completion(outcome)));
    if completed.is_err() {
        tracing::error!("BUG: a record's completion panicked");
    }
    completed.is_ok()
}

/// An operation on the log itself (trim, freeze), run between two groups.
pub(super) type Control = Box<dyn FnOnce(&mut Log) + Send>;

/// The writer's next step.
pub(super) enum Work {
    /// Records to commit together.
    Group(Vec<(Vec<u8>, Completion)>),
    /// An operation on the log.
    Control(Control),
}

/// State shared by the handles and the writer.
pub(super) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
    options: JournalOptions,
    /// When requests were last refused because of overload.
    overloaded_at: Mutex<Option<Instant>>,
    /// Size of the log files in bytes.
    pub(super) tail_bytes: AtomicU64,
}

#[derive(Default)]
struct State {
    records: VecDeque<(Vec<u8>, Completion)>,
    bytes: usize,
    controls: VecDeque<Control>,
    closed: bool,
    /// Whether the writer's thread has ended, so that nothing is processed any more.
    ended: bool,
    failure: Option<JournalError>,
    /// Why the last group was refused although the log stays usable; `None` after the next successful group.
    refusal: Option<JournalError>,
    /// Whether a check for free space is in progress.
    probing: bool,
    /// Number of queued records at which a submission wakes the writer.
    wanted: usize,
    /// A copy of the log's statistics.
    counters: Counters,
    /// Total duration of the syncs.
    syncing: Duration,
}

impl State {
    fn take_group(&mut self, group_bytes_max: usize) -> Vec<(Vec<u8>, Completion)> {
        let mut group = Vec::with_capacity(self.records.len());
        let mut bytes = 0;
        while let Some(next) = self
            .records
            .pop_front_if(|(record, _)| group.is_empty() || bytes + record.len() <= group_bytes_max)
        {
            bytes += next.0.len();
            group.push(next);
        }
        self.bytes -= bytes;
        group
    }
}

/// How many records the next group waits for, and until when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gather {
    pub(super) records: usize,
    pub(super) until: Instant,
}

impl Queue {
    pub(super) fn new(options: JournalOptions, tail_bytes: u64) -> Self {
        Queue {
            state: Mutex::default(),
            arrived: Condvar::new(),
            options,
            overloaded_at: Mutex::default(),
            tail_bytes: AtomicU64::new(tail_bytes),
        }
    }

    /// Whether the log is below its size limit.
    pub(super) fn admit(&self) -> Result<(), JournalError> {
        if self.tail_bytes.load(Ordering::Relaxed) > self.options.tail_bytes_max {
            return Err(JournalError::TailTooLong);
        }
        Ok(())
    }

    /// Why a record would be refused now, except for reasons that only a write reveals.
    fn check(&self, state: &State) -> Result<(), JournalError> {
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        if state.closed {
            return Err(JournalError::Closed);
        }
        self.admit()?;
        if state.bytes > self.options.queue_bytes_max {
            return Err(JournalError::Saturated);
        }
        Ok(())
    }

    /// Queues a record. If it is refused, its completion runs at once.
    pub(super) fn push(&self, record: Vec<u8>, completion: Completion) {
        let mut state = self.state.lock();
        if let Err(refusal) = self.check(&state) {
            drop(state);
            complete(completion, Err(refusal));
            return;
        }
        state.bytes += record.len();
        state.records.push_back((record, completion));
        if state.records.len() >= state.wanted {
            self.arrived.notify_one();
        }
    }

    /// Queues an operation on the log. Fails only if the writer has ended.
    pub(super) fn control(&self, control: Control) -> Result<(), JournalError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(JournalError::Closed);
        }
        if state.ended {
            return Err(JournalError::Panicked);
        }
        state.controls.push_back(control);
        self.arrived.notify_one();
        Ok(())
    }

    /// Blocks until there is work; `None` once the queue is closed and empty. A group is everything that is queued, up to `group_bytes_max` and at least one
    /// record; `gather` says how long to wait for more.
    pub(super) fn next(&self, group_bytes_max: usize, gather: Gather) -> Option<Work> {
        let mut state = self.state.lock();
        loop {
            if let Some(control) = state.controls.pop_front() {
                return Some(Work::Control(control));
            }
            let waiting = state.records.len();
            let enough = waiting >= gather.records || state.closed || Instant::now() >= gather.until;
            if waiting > 0 && enough {
                state.wanted = 1;
                return Some(Work::Group(state.take_group(group_bytes_max)));
            }
            if waiting == 0 && state.closed {
                return None;
            }
            // The submission that completes a group wakes the writer. A single submission does not wait.
            state.wanted = if enough { 1 } else { gather.records };
            if enough {
                self.arrived.wait(&mut state);
            } else {
                self.arrived.wait_until(&mut state, gather.until);
            }
        }
    }

    /// Records that requests are being refused because of overload.
    pub(super) fn note_overload(&self, now: Instant) {
        *self.overloaded_at.lock() = Some(now);
    }

    /// Whether requests were refused within the last moment ([`OVERLOAD_PERIOD`]).
    pub(super) fn is_overloaded(&self, now: Instant) -> bool {
        let overloaded_at = *self.overloaded_at.lock();
        overloaded_at.is_some_and(|at| now.saturating_duration_since(at) <= OVERLOAD_PERIOD)
    }

    /// Number of queued records.
    pub(super) fn waiting(&self) -> usize {
        self.state.lock().records.len()
    }

    /// Marks the log as failed for good: all queued and future records are refused.
    pub(super) fn fail(&self, failure: &JournalError) {
        let mut state = self.state.lock();
        state.failure.get_or_insert_with(|| failure.clone());
        let waiting = std::mem::take(&mut state.records);
        state.bytes = 0;
        drop(state);
        for (_, completion) in waiting {
            complete(completion, Err(failure.clone()));
        }
    }

    pub(super) fn directory_is_gone(&self) -> bool {
        matches!(self.state.lock().failure, Some(JournalError::DirectoryGone))
    }

    /// Called when the writer's thread ends. After a panic, queued and future records are refused.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        let is_expected = state.closed && state.records.is_empty();
        let controls = std::mem::take(&mut state.controls);
        drop(state);
        // Dropping a control tells its submitter that it will not run.
        drop(controls);
        if !is_expected {
            tracing::error!(
                "BUG: the journal's thread has ended: nothing can be stored until the server is restarted"
            );
            self.fail(&JournalError::Panicked);
        }
    }

    /// Records the outcome of the last group; returns whether it differs in kind from the previous one.
    pub(super) fn note(&self, refusal: Option<&JournalError>) -> bool {
        let kind = |it: Option<&JournalError>| it.map(std::mem::discriminant);
        let mut state = self.state.lock();
        let changed = kind(state.refusal.as_ref()) != kind(refusal);
        state.refusal = refusal.cloned();
        changed
    }

    /// Refuses new records; queued ones are still processed.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Why records are refused. If that may be for lack of space, a check for free space begins: a server that is not
    /// ready receives no writes, so no write would discover that there is space again.
    pub(super) fn readiness(self: &Arc<Self>) -> Result<(), String> {
        let mut state = self.state.lock();
        if state.refusal.is_some() && !state.closed && !state.ended && !state.probing {
            state.probing = true;
            let queue = Arc::clone(self);
            state.controls.push_back(Box::new(move |log| {
                let has_room = log.rotate().is_ok();
                let mut state = queue.state.lock();
                state.probing = false;
                state.refusal = state.refusal.take().filter(|_| !has_room);
            }));
            self.arrived.notify_one();
        }
        match self.check(&state).err().or_else(|| state.refusal.clone()) {
            None => Ok(()),
            Some(JournalError::Closed) => Err("the server is stopping".to_owned()),
            Some(gone @ JournalError::DirectoryGone) => Err(gone.in_short().to_owned()),
            Some(failure) => Err(format!("the log takes no writes: {}", failure.in_short())),
        }
    }

    /// Copies the log's statistics for other threads, after a sync that took `syncing`.
    pub(super) fn set_stats(&self, log: &Log, syncing: Duration) {
        self.tail_bytes.store(log.tail_bytes(), Ordering::Relaxed);
        let mut state = self.state.lock();
        state.counters = log.counters();
        state.syncing += syncing;
    }

    pub(super) fn stats(&self) -> JournalStats {
        let state = self.state.lock();
        JournalStats {
            tail_bytes: self.tail_bytes.load(Ordering::Relaxed),
            frames: state.counters.frames,
            records: state.counters.records,
            bytes: state.counters.bytes,
            syncs: state.counters.syncs,
            sync_nanoseconds: u64::try_from(state.syncing.as_nanos()).unwrap_or(u64::MAX),
            waiting_records: state.records.len() as u64,
            waiting_bytes: state.bytes as u64,
            waiting_bytes_max: self.options.queue_bytes_max as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_counts_as_overload_for_a_short_time() {
        let options = JournalOptions {
            queue_bytes_max: 1,
            tail_bytes_max: 1,
        };
        let queue = Queue::new(options, 0);
        let began = Instant::now();
        let after = |ms| began + Duration::from_millis(ms);
        assert!(!queue.is_overloaded(after(0)));
        queue.note_overload(after(5));
        assert!(queue.is_overloaded(after(5)));
        assert!(queue.is_overloaded(after(5) + OVERLOAD_PERIOD));
        assert!(!queue.is_overloaded(after(6) + OVERLOAD_PERIOD));
        queue.note_overload(after(1_000));
        assert!(queue.is_overloaded(after(1_001)));
    }
}
