//! The queues of all shards, between many submitters and the one writer of a node's log.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use log_store::Shard;
use parking_lot::{Condvar, Mutex};

use super::completion::{Completion, complete};
use super::error::JournalError;
use super::log::{LogSizes, NodeLog, Tail};
use super::shard_queue::{Progress, Records, ShardQueue, TailSize};
use super::writer::{JournalOptions, JournalStats};

/// A refused request counts as overload for this long.
const OVERLOAD_PERIOD: Duration = Duration::from_millis(100);

/// An operation on the log itself (trim, freeze), run between two groups.
pub(super) type Control = Box<dyn FnOnce(&mut dyn NodeLog) + Send>;

/// The writer's next step.
pub(super) enum Work {
    /// Groups to commit together, one for each shard that has records.
    Groups(Vec<(Shard, Records)>),
    /// An operation on the log of a shard.
    Control(Shard, Control),
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
    /// Records queued, of all shards.
    waiting: usize,
    controls: VecDeque<(Shard, Control)>,
    /// What ends a closed shard, once its records are done.
    closing: VecDeque<(Shard, Control)>,
    /// Whether the writer ends once nothing is queued.
    stopping: bool,
    /// Whether the writer's thread has ended, so that nothing is processed any more.
    ended: bool,
    /// Number of queued records at which a submission wakes the writer.
    wanted: usize,
}

impl State {
    /// Takes what is queued, up to `group_bytes_max` and at least one record. A shard that has more waits at the end of
    /// the line.
    fn take_groups(&mut self, group_bytes_max: usize) -> Vec<(Shard, Records)> {
        let mut groups = Vec::with_capacity(self.ready.len());
        let mut bytes = 0;
        while let Some(shard) = self.ready.pop_front() {
            let Some(queue) = self.shards.get_mut(&shard) else {
                continue;
            };
            let records = queue.take(&mut bytes, group_bytes_max);
            let is_full = !queue.records.is_empty();
            if is_full {
                self.ready.push_back(shard);
            }
            self.waiting -= records.len();
            if !records.is_empty() {
                groups.push((shard, records));
            }
            if is_full {
                break;
            }
        }
        groups
    }

    /// The next operation on a log: one that was asked for, or the end of a shard whose records are done.
    fn next_control(&mut self) -> Option<(Shard, Control)> {
        if let Some(control) = self.controls.pop_front() {
            return Some(control);
        }
        let shards = &self.shards;
        let is_done = |shard: &Shard| shards.get(shard).is_none_or(|queue| queue.records.is_empty());
        let done = self.closing.iter().position(|(shard, _)| is_done(shard))?;
        self.closing.remove(done)
    }

    /// Takes a shard's records out of the queue.
    fn drain(&mut self, shard: Shard) -> VecDeque<(Vec<u8>, Completion)> {
        let Some(queue) = self.shards.get_mut(&shard) else {
            return VecDeque::new();
        };
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
    ) -> Arc<TailSize> {
        let queue = ShardQueue::new(tail.bytes, options, progress);
        let size = Arc::clone(&queue.tail);
        let mut state = self.state.lock();
        let before = state.drain(shard);
        state.shards.insert(shard, queue);
        state
            .controls
            .push_back((shard, Box::new(move |log| log.attach(shard, tail))));
        self.arrived.notify_one();
        drop(state);
        for (_, completion) in before {
            complete(completion, Err(JournalError::Closed));
        }
        size
    }

    /// Queues a record. If it is refused, its completion runs at once.
    pub(super) fn push(&self, shard: Shard, record: Vec<u8>, completion: Completion) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let queue = state.shards.get_mut(&shard).filter(|_| !state.stopping);
        let checked = queue.ok_or(JournalError::Closed);
        let queue = match checked.and_then(|queue| queue.check().map(|()| queue)) {
            Ok(queue) => queue,
            Err(refusal) => {
                drop(guard);
                complete(completion, Err(refusal));
                return;
            }
        };
        if queue.records.is_empty() {
            state.ready.push_back(shard);
        }
        queue.push(record, completion);
        state.waiting += 1;
        if state.waiting >= state.wanted {
            self.arrived.notify_one();
        }
    }

    /// Queues an operation on a shard's log. Fails only if the writer, or the shard in it, has ended.
    pub(super) fn control(&self, shard: Shard, control: Control) -> Result<(), JournalError> {
        let mut state = self.state.lock();
        let queue = state.shards.get(&shard).filter(|queue| !queue.closed);
        let is_behind = queue.ok_or(JournalError::Closed)?.is_behind;
        if is_behind || state.ended {
            return Err(JournalError::Panicked);
        }
        state.controls.push_back((shard, control));
        self.arrived.notify_one();
        Ok(())
    }

    /// Blocks until there is work; `None` once the queue is stopped and empty. `gather` says for how many records to wait,
    /// and how long.
    pub(super) fn next(&self, group_bytes_max: usize, gather: Gather) -> Option<Work> {
        let mut state = self.state.lock();
        loop {
            if let Some((shard, control)) = state.next_control() {
                return Some(Work::Control(shard, control));
            }
            let waiting = state.waiting;
            let enough = waiting >= gather.records || state.stopping || Instant::now() >= gather.until;
            if waiting > 0 && enough {
                state.wanted = 1;
                return Some(Work::Groups(state.take_groups(group_bytes_max)));
            }
            if waiting == 0 && state.stopping {
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
        self.state.lock().waiting
    }

    /// Marks a shard's log as failed for good: all queued and future records are refused.
    pub(super) fn fail(&self, shard: Shard, failure: &JournalError) {
        let mut state = self.state.lock();
        if let Some(queue) = state.shards.get_mut(&shard) {
            queue.failure.get_or_insert_with(|| failure.clone());
        }
        let waiting = state.drain(shard);
        drop(state);
        for (_, completion) in waiting {
            complete(completion, Err(failure.clone()));
        }
    }

    /// Something of the shard has panicked: its state in memory may be behind the log. Nothing may continue from it,
    /// neither a record nor a checkpoint, until the shard is opened again.
    pub(super) fn fall_behind(&self, shard: Shard) {
        tracing::error!(%shard, "BUG: the journal panicked: nothing can be stored until the server is restarted");
        let mut state = self.state.lock();
        if let Some(queue) = state.shards.get_mut(&shard) {
            queue.is_behind = true;
        }
        // Dropping a control tells its submitter that it will not run.
        state.controls.retain(|(of, _)| *of != shard);
        state.closing.retain(|(of, _)| *of != shard);
        drop(state);
        self.fail(shard, &JournalError::Panicked);
    }

    pub(super) fn directory_is_gone(&self, shard: Shard) -> bool {
        let state = self.state.lock();
        let failure = state.shards.get(&shard).and_then(|queue| queue.failure.as_ref());
        matches!(failure, Some(JournalError::DirectoryGone))
    }

    /// Called when the writer's thread ends. After a panic in the log itself, every shard has failed.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        let is_expected = state.stopping && state.waiting == 0;
        let shards: Vec<Shard> = state.shards.keys().copied().collect();
        drop(state);
        if !is_expected {
            shards.into_iter().for_each(|shard| self.fall_behind(shard));
        }
    }

    /// Records the outcome of a shard's last group; returns whether it differs in kind from the previous one.
    pub(super) fn note(&self, shard: Shard, refusal: Option<&JournalError>) -> bool {
        let kind = |it: Option<&JournalError>| it.map(std::mem::discriminant);
        let mut state = self.state.lock();
        let Some(queue) = state.shards.get_mut(&shard) else {
            return false;
        };
        let changed = kind(queue.refusal.as_ref()) != kind(refusal);
        queue.refusal = refusal.cloned();
        changed
    }

    /// Refuses new records of a shard. `end` runs when the queued ones are done, unless the shard has failed.
    pub(super) fn close(&self, shard: Shard, end: Control) {
        let mut state = self.state.lock();
        let ended = state.ended;
        let Some(queue) = state.shards.get_mut(&shard) else {
            return;
        };
        queue.closed = true;
        if !queue.is_behind && !ended {
            state.closing.push_back((shard, end));
            self.arrived.notify_one();
        }
    }

    /// Ends the writer once nothing is queued.
    pub(super) fn stop(&self) {
        self.state.lock().stopping = true;
        self.arrived.notify_one();
    }

    /// Why records are refused. If that may be for lack of space, a check for free space begins: a server that is not
    /// ready receives no writes, so no write would discover that there is space again.
    pub(super) fn readiness(self: &Arc<Self>, shard: Shard) -> Result<(), String> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let ended = state.ended;
        let Some(queue) = state.shards.get_mut(&shard) else {
            return Err("the shard is closed".to_owned());
        };
        if queue.refusal.is_some() && queue.failure.is_none() && !queue.closed && !ended && !queue.probing {
            queue.probing = true;
            let shared = Arc::clone(self);
            let probe: Control = Box::new(move |log| shared.probed(shard, log.has_room(shard)));
            state.controls.push_back((shard, probe));
            self.arrived.notify_one();
        }
        match queue.check().err().or_else(|| queue.refusal.clone()) {
            None => Ok(()),
            Some(JournalError::Closed) => Err("the server is stopping".to_owned()),
            Some(gone @ JournalError::DirectoryGone) => Err(gone.in_short().to_owned()),
            Some(failure) => Err(format!("the log takes no writes: {}", failure.in_short())),
        }
    }

    fn probed(&self, shard: Shard, has_room: bool) {
        if let Some(queue) = self.state.lock().shards.get_mut(&shard) {
            queue.probing = false;
            queue.refusal = queue.refusal.take().filter(|_| !has_room);
        }
    }

    /// Copies the sizes of a shard's log for other threads. Returns who is told about its progress.
    pub(super) fn set_sizes(&self, shard: Shard, sizes: LogSizes) -> Option<Progress> {
        let mut state = self.state.lock();
        let queue = state.shards.get_mut(&shard)?;
        queue.set_sizes(sizes);
        Some(Arc::clone(&queue.progress))
    }

    pub(super) fn stats(&self, shard: Shard) -> JournalStats {
        let state = self.state.lock();
        let queue = state.shards.get(&shard);
        queue.map_or_else(JournalStats::default, ShardQueue::stats)
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
