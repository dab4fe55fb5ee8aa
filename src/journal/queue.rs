//! The queues of all shards, between many submitters and the one writer of a node's log.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use log_store::Shard;
use parking_lot::{Condvar, Mutex};

use super::completion::{Completion, complete};
use super::error::JournalError;
use super::log::{LogSizes, NodeLog, Tail};
use super::shard_queue::{Opening, Progress, Records, ShardQueue, TailSize};
use super::writer::{JournalOptions, JournalStats};

/// A refused request counts as overload for this long.
const OVERLOAD_PERIOD: Duration = Duration::from_millis(100);

/// An operation on the log itself (trim, freeze), run between two groups.
pub(super) type Control = Box<dyn FnOnce(&mut dyn NodeLog) + Send>;

/// The writer's next step.
pub(super) enum Work {
    /// Groups to commit together, one for each shard that has records.
    Groups(Vec<(Opening, Records)>),
    /// An operation on the log of a shard.
    Control(Opening, Control),
}

/// State shared by the handles and the writer.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
    /// When requests were last refused because of overload.
    overloaded_at: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct State {
    shards: BTreeMap<Shard, ShardQueue>,
    /// The shards that have records, each once. The first of them is served first.
    ready: VecDeque<Shard>,
    /// Records queued, of all shards, and their bytes.
    waiting: usize,
    waiting_bytes: usize,
    controls: VecDeque<(Opening, Control)>,
    /// What ends a closed shard, once its records are done.
    closing: VecDeque<(Opening, Control)>,
    /// Openings so far.
    openings: u64,
    /// Whether the writer ends once nothing is queued.
    stopping: bool,
    /// Whether the writer's thread has ended, so that nothing is processed any more.
    ended: bool,
    /// Number of queued records, and of their bytes, at which a submission wakes the writer.
    wanted: usize,
    wanted_bytes: usize,
}

impl State {
    fn queue(&mut self, opening: Opening) -> Option<&mut ShardQueue> {
        self.shards
            .get_mut(&opening.shard)
            .filter(|queue| queue.opening == opening)
    }

    /// Why nothing is accepted for any shard.
    fn is_over(&self) -> Option<JournalError> {
        match (self.stopping, self.ended) {
            (true, _) => Some(JournalError::Closed),
            (false, true) => Some(JournalError::Panicked),
            (false, false) => None,
        }
    }

    /// Takes what is queued, up to `group_bytes_max` and at least one record. A shard that has more waits at the end of
    /// the line.
    fn take_groups(&mut self, group_bytes_max: usize) -> Vec<(Opening, Records)> {
        let mut groups = Vec::with_capacity(self.ready.len());
        let mut bytes = 0;
        while let Some(shard) = self.ready.pop_front() {
            let Some(queue) = self.shards.get_mut(&shard) else {
                continue;
            };
            let bytes_before = queue.bytes;
            let records = queue.take(&mut bytes, group_bytes_max);
            self.waiting_bytes -= bytes_before - queue.bytes;
            let (opening, is_full) = (queue.opening, !queue.records.is_empty());
            self.waiting -= records.len();
            match (is_full, records.is_empty()) {
                // A shard whose first record did not fit keeps its place.
                (true, true) => self.ready.push_front(shard),
                (true, false) => self.ready.push_back(shard),
                (false, _) => {}
            }
            if !records.is_empty() {
                groups.push((opening, records));
            }
            if is_full {
                break;
            }
        }
        groups
    }

    /// The next operation on a log: one that was asked for, or the end of a shard whose records are done.
    fn next_control(&mut self) -> Option<(Opening, Control)> {
        if let Some(control) = self.controls.pop_front() {
            return Some(control);
        }
        let shards = &self.shards;
        let is_done = |of: &Opening| shards.get(&of.shard).is_none_or(|queue| queue.records.is_empty());
        let done = self.closing.iter().position(|(of, _)| is_done(of))?;
        self.closing.remove(done)
    }

    /// Drops what was asked of a shard's log, which tells those who asked.
    fn drop_controls(&mut self, shard: Shard) {
        self.controls.retain(|(of, _)| of.shard != shard);
        self.closing.retain(|(of, _)| of.shard != shard);
    }

    /// Takes a shard's records out of the queue.
    fn drain(&mut self, shard: Shard) -> VecDeque<(Vec<u8>, Completion)> {
        let Some(queue) = self.shards.get_mut(&shard) else {
            return VecDeque::new();
        };
        self.waiting_bytes -= queue.bytes;
        let records = queue.drain();
        self.waiting -= records.len();
        self.ready.retain(|ready| *ready != shard);
        records
    }
}

/// How many records the next group waits for, and until when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gather {
    pub(super) records: usize,
    pub(super) until: Instant,
}

impl Queue {
    /// Adds a shard, whose log ends at this tail. If it was open before, what it still had queued is refused.
    pub(super) fn add(
        &self,
        shard: Shard,
        tail: Tail,
        options: JournalOptions,
        progress: Progress,
    ) -> (Opening, Arc<TailSize>) {
        let mut state = self.state.lock();
        state.openings += 1;
        let opening = Opening {
            shard,
            number: state.openings,
        };
        let queue = ShardQueue::new(opening, tail, options, progress);
        let size = Arc::clone(&queue.tail);
        let before = state.drain(shard);
        state.drop_controls(shard);
        state.shards.insert(shard, queue);
        let attach: Control = Box::new(move |log| log.attach(shard, tail));
        state.controls.push_back((opening, attach));
        self.arrived.notify_one();
        drop(state);
        for (_, completion) in before {
            complete(completion, Err(JournalError::Closed));
        }
        (opening, size)
    }

    /// Queues a record. If it is refused, its completion runs at once.
    pub(super) fn push(&self, opening: Opening, record: Vec<u8>, completion: Completion) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let is_over = state.is_over();
        let queue = state.shards.get_mut(&opening.shard);
        let queue = queue
            .filter(|queue| queue.opening == opening)
            .ok_or(JournalError::Closed);
        let queue = queue.and_then(|queue| queue.check().and(is_over.map_or(Ok(()), Err)).map(|()| queue));
        let queue = match queue {
            Ok(queue) => queue,
            Err(refusal) => {
                drop(guard);
                complete(completion, Err(refusal));
                return;
            }
        };
        if queue.records.is_empty() {
            state.ready.push_back(opening.shard);
        }
        state.waiting_bytes += record.len();
        queue.push(record, completion);
        state.waiting += 1;
        if state.waiting >= state.wanted || state.waiting_bytes >= state.wanted_bytes {
            self.arrived.notify_one();
        }
    }

    /// Queues an operation on a shard's log. Fails only if the writer, or the shard in it, has ended.
    pub(super) fn control(&self, opening: Opening, control: Control) -> Result<(), JournalError> {
        let mut state = self.state.lock();
        let queue = state.queue(opening).filter(|queue| !queue.closed);
        let is_behind = queue.ok_or(JournalError::Closed)?.is_behind;
        if is_behind || state.ended {
            return Err(JournalError::Panicked);
        }
        state.controls.push_back((opening, control));
        self.arrived.notify_one();
        Ok(())
    }

    /// Blocks until there is work; `None` once the queue is stopped and empty. `gather` says for how many records to wait,
    /// and how long; a group that is full does not wait.
    pub(super) fn next(&self, group_bytes_max: usize, gather: Gather) -> Option<Work> {
        let mut state = self.state.lock();
        loop {
            if let Some((shard, control)) = state.next_control() {
                return Some(Work::Control(shard, control));
            }
            let waiting = state.waiting;
            let is_full = state.waiting_bytes >= group_bytes_max;
            let enough =
                waiting >= gather.records || is_full || state.stopping || Instant::now() >= gather.until;
            if waiting > 0 && enough {
                state.wanted = 1;
                return Some(Work::Groups(state.take_groups(group_bytes_max)));
            }
            if waiting == 0 && state.stopping {
                return None;
            }
            // The submission that completes a group wakes the writer. A single submission does not wait.
            state.wanted = if enough { 1 } else { gather.records };
            state.wanted_bytes = group_bytes_max;
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
        self.state.lock().waiting
    }

    /// Marks a shard's log as failed for good: all queued and future records are refused.
    pub(super) fn fail(&self, opening: Opening, failure: &JournalError) {
        let mut state = self.state.lock();
        let Some(queue) = state.queue(opening) else {
            return;
        };
        queue.failure.get_or_insert_with(|| failure.clone());
        let waiting = state.drain(opening.shard);
        drop(state);
        for (_, completion) in waiting {
            complete(completion, Err(failure.clone()));
        }
    }

    /// Something of the shard has panicked: its state in memory may be behind the log. Nothing may continue from it,
    /// neither a record nor a checkpoint, until the shard is opened again.
    pub(super) fn fall_behind(&self, opening: Opening) {
        tracing::error!(shard = %opening.shard, "BUG: the journal panicked: nothing can be stored until the server is restarted");
        let mut state = self.state.lock();
        let Some(queue) = state.queue(opening) else {
            return;
        };
        queue.is_behind = true;
        state.drop_controls(opening.shard);
        drop(state);
        self.fail(opening, &JournalError::Panicked);
    }

    pub(super) fn directory_is_gone(&self, opening: Opening) -> bool {
        let mut state = self.state.lock();
        let failure = state.queue(opening).and_then(|queue| queue.failure.as_ref());
        matches!(failure, Some(JournalError::DirectoryGone))
    }

    /// Called when the writer's thread ends. After a panic in the log itself, every shard has failed.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        let is_expected = state.stopping && state.waiting == 0;
        let openings: Vec<Opening> = state.shards.values().map(|queue| queue.opening).collect();
        let controls = (
            std::mem::take(&mut state.controls),
            std::mem::take(&mut state.closing),
        );
        drop(state);
        // Dropping a control tells its submitter that it will not run.
        drop(controls);
        if !is_expected {
            openings.into_iter().for_each(|opening| self.fall_behind(opening));
        }
    }

    /// Records the outcome of a shard's last group; returns whether it differs in kind from the previous one.
    pub(super) fn note(&self, opening: Opening, refusal: Option<&JournalError>) -> bool {
        let kind = |it: Option<&JournalError>| it.map(std::mem::discriminant);
        let mut state = self.state.lock();
        let Some(queue) = state.queue(opening) else {
            return false;
        };
        let changed = kind(queue.refusal.as_ref()) != kind(refusal);
        queue.refusal = refusal.cloned();
        changed
    }

    /// Refuses new records of a shard. `end` runs when the queued ones are done, unless the shard has failed.
    pub(super) fn close(&self, opening: Opening, end: Control) {
        let mut state = self.state.lock();
        let ended = state.ended;
        let Some(queue) = state.queue(opening) else {
            return;
        };
        queue.closed = true;
        if !queue.is_behind && !ended {
            state.closing.push_back((opening, end));
            self.arrived.notify_one();
        }
    }

    /// Ends the writer once nothing is queued.
    pub(super) fn stop(&self) {
        self.state.lock().stopping = true;
        self.arrived.notify_one();
    }

    /// Why the shard's log takes no more records until the shard is opened again; `None` if it takes some.
    pub(super) fn failure(&self, opening: Opening) -> Option<JournalError> {
        let state = self.state.lock();
        let queue = state.shards.get(&opening.shard);
        match queue.filter(|queue| queue.opening == opening) {
            Some(queue) => queue.failure.clone().or_else(|| state.is_over()),
            None => Some(JournalError::Closed),
        }
    }

    /// Why records are refused. If that may be for lack of space, a check for free space begins: a server that is not
    /// ready receives no writes, so no write would discover that there is space again.
    pub(super) fn readiness(self: &Arc<Self>, opening: Opening) -> Result<(), String> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let is_over = state.is_over();
        let Some(queue) = state
            .shards
            .get_mut(&opening.shard)
            .filter(|queue| queue.opening == opening)
        else {
            return Err("the shard is closed".to_owned());
        };
        let may_pass = queue.failure.is_none() && !queue.closed && is_over.is_none();
        if queue.refusal.is_some() && may_pass && !queue.probing {
            queue.probing = true;
            let shared = Arc::clone(self);
            let probe: Control = Box::new(move |log| shared.probed(opening, log.has_room(opening.shard)));
            state.controls.push_back((opening, probe));
            self.arrived.notify_one();
        }
        match queue.check().err().or(is_over).or_else(|| queue.refusal.clone()) {
            None => Ok(()),
            Some(JournalError::Closed) => Err("the server is stopping".to_owned()),
            Some(gone @ JournalError::DirectoryGone) => Err(gone.in_short().to_owned()),
            Some(failure) => Err(format!("the log takes no writes: {}", failure.in_short())),
        }
    }

    fn probed(&self, opening: Opening, has_room: bool) {
        if let Some(queue) = self.state.lock().queue(opening) {
            queue.probing = false;
            queue.refusal = queue.refusal.take().filter(|_| !has_room);
        }
    }

    /// Copies the sizes of a shard's log for other threads. Returns who is told about its progress.
    pub(super) fn set_sizes(&self, opening: Opening, sizes: LogSizes) -> Option<Progress> {
        let mut state = self.state.lock();
        let queue = state.queue(opening)?;
        queue.set_sizes(sizes);
        Some(Arc::clone(&queue.progress))
    }

    pub(super) fn stats(&self, opening: Opening) -> JournalStats {
        let mut state = self.state.lock();
        let queue = state.queue(opening);
        queue.map_or_else(JournalStats::default, |queue| queue.stats())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_counts_as_overload_for_a_short_time() {
        let queue = Queue::default();
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
