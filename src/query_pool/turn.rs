//! The turns of a query: how long it may run each time, and when it has to stop.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use engine::query::{Budget, Touched};

use super::Shared;
use crate::error::{ErrorKind, ServiceError};

/// How long a query may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Some hundreds of microseconds, because the thread of the request serves others, too.
    Immediate,
    /// Some milliseconds, because others wait for it to end.
    Short,
    /// Without limit, except for the query's deadline.
    Long,
}

/// The result of a turn.
#[derive(Debug)]
pub enum Step<R> {
    Answer(R),
    /// The query needs a longer turn, and has released what it held.
    Long,
}

/// A turn that exceeds its time is aborted, and the query restarted in a longer one.
const SHORT_TURN_MAX: Duration = Duration::from_millis(25);
pub(super) const IMMEDIATE_TURN_MAX: Duration = Duration::from_millis(1);

/// An immediate turn may do the work of a short one, and hold the memory of others, divided by this.
const IMMEDIATE_SHARE: u64 = 16;

impl Turn {
    /// How much may be done in such a turn, if `short_max` may be done in a short one.
    pub fn max(self, short_max: u64) -> u64 {
        match self {
            Turn::Immediate => short_max / IMMEDIATE_SHARE,
            Turn::Short => short_max,
            Turn::Long => u64::MAX,
        }
    }

    fn memory_bytes_max(self, bytes_max: usize) -> usize {
        match self {
            Turn::Immediate => bytes_max / IMMEDIATE_SHARE as usize,
            Turn::Short | Turn::Long => bytes_max,
        }
    }

    fn time_max(self) -> Option<Duration> {
        match self {
            Turn::Immediate => Some(IMMEDIATE_TURN_MAX),
            Turn::Short => Some(SHORT_TURN_MAX),
            Turn::Long => None,
        }
    }
}

/// Passed to a running query: tells it when to stop, limits its memory, and collects its statistics.
pub struct Stop {
    /// `None` for a query that may take as long as it needs.
    deadline: Option<Instant>,
    /// The end of the turn; `None` for a long one.
    turn_ends: Option<Instant>,
    /// Whether the turn is a long one.
    pub(super) is_long: bool,
    /// Gone when the request is dropped.
    request: Weak<()>,
    pub(super) shared: Arc<Shared>,
    budget: Budget,
    /// What the turn has read.
    rows: AtomicU64,
    blocks: AtomicU64,
}

impl Stop {
    /// Counts what the query read. What an aborted turn has read does not count.
    pub fn touched(&self, touched: Touched) {
        self.rows.fetch_add(touched.rows + touched.cells, Relaxed);
        self.blocks.fetch_add(touched.blocks, Relaxed);
    }

    /// Whether to stop: the answer is no longer wanted, or the turn is over.
    pub fn now(&self) -> bool {
        self.is_unwanted() || self.turn_is_over()
    }

    /// Whether a turn has exceeded its time.
    pub fn turn_is_over(&self) -> bool {
        self.turn_ends.is_some_and(|end| Instant::now() >= end)
    }

    pub(super) fn is_unwanted(&self) -> bool {
        self.request.strong_count() == 0 || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The memory that the query may allocate.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}

/// A query between its turns.
pub(super) struct Running<Q> {
    pub(super) stop: Stop,
    query: Q,
    /// The time of its turns so far.
    took: Duration,
}

impl<Q> Running<Q> {
    /// A query of a request, which is not wanted any more when the request is dropped.
    pub(super) fn new(shared: &Arc<Shared>, request: &Arc<()>, deadline: Option<Instant>, query: Q) -> Self {
        let stop = Stop {
            deadline,
            turn_ends: None,
            is_long: false,
            request: Arc::downgrade(request),
            shared: Arc::clone(shared),
            budget: Budget::new(shared.memory_bytes_max),
            rows: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
        };
        Running {
            stop,
            query,
            took: Duration::ZERO,
        }
    }

    /// Runs the query for a turn; `None` if it needs a longer one.
    pub(super) fn turn<R>(&mut self, turn: Turn) -> Option<Result<R, ServiceError>>
    where
        Q: FnMut(&Stop, Turn) -> Result<Step<R>, ServiceError>,
    {
        let stop = &mut self.stop;
        let began = Instant::now();
        stop.turn_ends = turn.time_max().map(|max| began + max);
        stop.is_long = turn == Turn::Long;
        stop.budget = Budget::new(turn.memory_bytes_max(stop.shared.memory_bytes_max));
        (stop.rows, stop.blocks) = Default::default();
        let stop = &*stop;
        let place = stop.is_long.then(|| stop.shared.places.take());
        // A panic affects only this query, which is not called again.
        let step = catch_unwind(AssertUnwindSafe(|| (self.query)(stop, turn))).unwrap_or_else(|_| {
            // Nobody may be there to get the answer.
            tracing::error!("BUG: a query panicked");
            Err(ServiceError::internal("BUG: a query panicked"))
        });
        drop(place);
        self.took += began.elapsed();
        let answer = match step {
            Ok(Step::Long) if stop.is_long => Err(ServiceError::internal("BUG: a long turn was not enough")),
            Ok(Step::Long) => return None,
            Ok(Step::Answer(answer)) => Ok(answer),
            // Stopped because the turn was over, not because of the client.
            Err(error)
                if error.kind == ErrorKind::Unavailable && stop.turn_is_over() && !stop.is_unwanted() =>
            {
                return None;
            }
            Err(error) => Err(error),
        };
        let counts = &stop.shared.counts;
        counts.durations.observe(self.took);
        counts.touched.fetch_add(stop.rows.load(Relaxed), Relaxed);
        counts.blocks.fetch_add(stop.blocks.load(Relaxed), Relaxed);
        Some(answer)
    }
}
