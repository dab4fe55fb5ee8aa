//! The thread pool that scans and aggregates. It has few threads, so that many queries do not take the cores that ingest
//! needs; a bounded queue, so that excess queries are refused immediately; and a lower priority, so that a full scan
//! does not delay an acknowledgement. A query whose client has gone, or whose time is up, stops at the next block.
//!
//! Organizations are scheduled round-robin (`turns`). A query first gets a short turn, in which it is planned and, if
//! it is cheap, answered. A long query releases what it holds and is queued again in a lane of its own. There is one
//! thread in addition to the configured number that runs only short turns, so that small queries never wait behind
//! another organization's scans.
//!
//! A long turn may divide its work among helpers while there are cores to spare (`places`).
//!
//! Each query accounts for its memory (`Stop::budget`), so the memory of all queries is limited by the number of
//! threads.

mod places;
mod turns;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use engine::query::{Budget, Touched};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::error::{ErrorKind, ServiceError};
use crate::ids::ObjectId;
use crate::metrics::{Distribution, Histogram};
use places::Places;
pub use places::Worker;
use turns::Turns;

/// The pool. Cheap to clone; its threads end when the last clone is dropped.
#[derive(Clone)]
pub struct QueryPool(Arc<Owner>);

struct Owner {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// Where threads wait that run turns of both lengths.
    both: Condvar,
    /// Where the thread waits that runs only short turns.
    short_only: Condvar,
    places: Places,
    counts: Counts,
    timeout: Duration,
    memory_bytes_max: usize,
}

struct Queue {
    turns: Turns<Job>,
    /// Number of threads that wait at `both`, and have not been woken up.
    idle: usize,
    /// The same at `short_only`.
    idle_short_only: usize,
}

/// A queued query. Called with its turn, or with `None` if it is refused because the queue is full; returns whether it
/// needs a long turn.
type Job = Box<dyn FnMut(Option<Turn>) -> bool + Send>;

#[derive(Default)]
struct Counts {
    refused: AtomicU64,
    abandoned: AtomicU64,
    durations: Histogram,
    touched: AtomicU64,
    blocks: AtomicU64,
}

/// State of the queue, and statistics since the start of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryPoolStats {
    /// Queries that wait for a thread.
    pub waiting: u64,
    /// Maximum number of waiting queries.
    pub waiting_max: u64,
    /// Queries refused because the queue was full.
    pub refused: u64,
    /// Queries dropped from the queue because their client had gone or their time was up.
    pub abandoned: u64,
    /// Time that the other queries ran on their thread.
    pub durations: Distribution,
    /// Rows and rollup cells that queries read.
    pub touched: u64,
    /// Blocks that queries opened.
    pub blocks_opened: u64,
}

/// How long a query may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Some milliseconds, because others wait for it to end.
    Short,
    /// Without limit, except for the query's deadline.
    Long,
}

/// The result of a turn.
#[derive(Debug)]
pub enum Step<R> {
    Answer(R),
    /// The query needs more than a short turn, and has released what it held.
    Long,
}

/// A short turn that exceeds this time is aborted and restarted as a long one.
const SHORT_TURN_MAX: Duration = Duration::from_millis(25);

/// Passed to a running query: tells it when to stop, limits its memory, and collects its statistics.
pub struct Stop {
    /// `None` for a query that may take as long as it needs.
    deadline: Option<Instant>,
    /// The end of a short turn; `None` for a long one.
    turn_ends: Option<Instant>,
    /// Whether the turn is a long one.
    is_long: bool,
    /// Gone when the request is dropped.
    request: Weak<()>,
    shared: Arc<Shared>,
    budget: Budget,
}

impl Stop {
    /// Counts what the query read.
    pub fn touched(&self, touched: Touched) {
        let counts = &self.shared.counts;
        counts
            .touched
            .fetch_add(touched.rows + touched.cells, Ordering::Relaxed);
        counts.blocks.fetch_add(touched.blocks, Ordering::Relaxed);
    }

    /// Whether to stop: the answer is no longer wanted, or the turn is over.
    pub fn now(&self) -> bool {
        self.is_unwanted() || self.turn_is_over()
    }

    /// Whether a short turn has exceeded its time.
    pub fn turn_is_over(&self) -> bool {
        self.turn_ends.is_some_and(|end| Instant::now() >= end)
    }

    fn is_unwanted(&self) -> bool {
        self.request.strong_count() == 0 || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The memory that the query may allocate.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}

impl QueryPool {
    /// Starts this many threads, at least one, and one more for short turns. A query may hold `memory_bytes_max` bytes.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub fn start(
        threads: usize,
        queue_max: usize,
        timeout: Duration,
        memory_bytes_max: usize,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue {
                turns: Turns::new(queue_max),
                idle: 0,
                idle_short_only: 0,
            }),
            both: Condvar::new(),
            short_only: Condvar::new(),
            places: Places::new(threads.max(1)),
            counts: Counts::default(),
            timeout,
            memory_bytes_max,
        });
        let names = (0..threads.max(1)).map(|index| (format!("query-{index}"), true));
        for (name, takes_long) in names.chain([("query-short".to_owned(), false)]) {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name(name).spawn(move || {
                crate::priority::lower();
                shared.run(takes_long);
            })?;
        }
        Ok(QueryPool(Arc::new(Owner { shared })))
    }

    /// Runs a query of an organization on the pool and waits for its result. The query is called with a short turn
    /// first, and again with a long one if it returns [`Step::Long`].
    ///
    /// # Errors
    /// 503 if too many queries are queued, in total or of this organization; any error of the query.
    pub async fn run<R: Send + 'static>(
        &self,
        organization: ObjectId,
        query: impl FnMut(&Stop, Turn) -> Result<Step<R>, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        let deadline = Instant::now() + self.0.shared.timeout;
        self.run_until(Some(deadline), organization, query).await
    }

    /// The same for a query that may take as long as it needs.
    ///
    /// # Errors
    /// As [`QueryPool::run`].
    pub async fn run_to_the_end<R: Send + 'static>(
        &self,
        organization: ObjectId,
        query: impl FnMut(&Stop, Turn) -> Result<Step<R>, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        self.run_until(None, organization, query).await
    }

    async fn run_until<R: Send + 'static>(
        &self,
        deadline: Option<Instant>,
        organization: ObjectId,
        mut query: impl FnMut(&Stop, Turn) -> Result<Step<R>, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        let shared = &self.0.shared;
        // Dropped with the future: then the query is not wanted any more.
        let request = Arc::new(());
        let mut stop = Stop {
            deadline,
            turn_ends: None,
            is_long: false,
            request: Arc::downgrade(&request),
            shared: Arc::clone(shared),
            budget: Budget::new(shared.memory_bytes_max),
        };
        let (done, answer) = oneshot::channel();
        let mut done = Some(done);
        let mut took = Duration::ZERO;
        let job: Job = Box::new(move |turn| {
            let answer = match turn {
                None => Err(stop.shared.counts.refused()),
                Some(_) if stop.is_unwanted() => {
                    stop.shared.counts.abandoned.fetch_add(1, Ordering::Relaxed);
                    return false;
                }
                Some(turn) => {
                    let began = Instant::now();
                    stop.turn_ends = (turn == Turn::Short).then(|| began + SHORT_TURN_MAX);
                    stop.is_long = turn == Turn::Long;
                    let place = stop.is_long.then(|| stop.shared.places.take());
                    let step = query(&stop, turn);
                    drop(place);
                    took += began.elapsed();
                    let answer = match (step, turn) {
                        (Ok(Step::Long), Turn::Short) => return true,
                        (Ok(Step::Long), Turn::Long) => {
                            Err(ServiceError::internal("BUG: a long turn was not enough"))
                        }
                        (Ok(Step::Answer(answer)), _) => Ok(answer),
                        // Stopped because the turn was over, not because of the client.
                        (Err(error), Turn::Short)
                            if error.kind == ErrorKind::Unavailable
                                && stop.turn_is_over()
                                && !stop.is_unwanted() =>
                        {
                            return true;
                        }
                        (Err(error), _) => Err(error),
                    };
                    stop.shared.counts.durations.observe(took);
                    answer
                }
            };
            if let Some(done) = done.take() {
                // The receiver may have been dropped meanwhile.
                let _ = done.send(answer);
            }
            false
        });
        if shared.wait_in(organization, Turn::Short, job).is_err() {
            return Err(shared.counts.refused());
        }
        answer.await.unwrap_or_else(|_| Err(took_too_long()))
    }

    /// State of the queue, and statistics since the start of the server.
    pub fn stats(&self) -> QueryPoolStats {
        let shared = &self.0.shared;
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut durations = Distribution::default();
        shared.counts.durations.add_to(&mut durations);
        let turns = &shared.queue.lock().turns;
        QueryPoolStats {
            waiting: turns.waiting as u64,
            waiting_max: turns.waiting_max as u64,
            refused: load(&shared.counts.refused),
            abandoned: load(&shared.counts.abandoned),
            durations,
            touched: load(&shared.counts.touched),
            blocks_opened: load(&shared.counts.blocks),
        }
    }
}

/// The error of a query whose time is up.
pub fn took_too_long() -> ServiceError {
    ServiceError::unavailable(
        "the query took too long; ask for a shorter range or a coarser unit",
        1,
    )
}

impl Counts {
    fn refused(&self) -> ServiceError {
        self.refused.fetch_add(1, Ordering::Relaxed);
        ServiceError::unavailable("too many queries are waiting; send it again in a moment", 1)
    }
}

impl Shared {
    fn wait_in(&self, organization: ObjectId, turn: Turn, job: Job) -> Result<(), Job> {
        let mut queue = self.queue.lock();
        let evicted = queue.turns.push(organization, turn, job)?;
        self.wake_up_for(turn, &mut queue);
        drop(queue);
        if let Some(mut evicted) = evicted {
            evicted(None);
        }
        Ok(())
    }

    /// Wakes up one idle thread that runs such turns; waking up more than are needed costs small queries as much as they
    /// cost themselves.
    fn wake_up_for(&self, turn: Turn, queue: &mut Queue) {
        if turn == Turn::Short && queue.idle_short_only > 0 {
            queue.idle_short_only -= 1;
            self.short_only.notify_one();
        } else if queue.idle > 0 {
            queue.idle -= 1;
            self.both.notify_one();
        }
    }

    fn run(&self, takes_long: bool) {
        while let Some((organization, mut job, turn)) = self.next(takes_long) {
            // A panic affects only this query: its sender is dropped, and its request gets an error.
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let wants_long = job(Some(turn));
                if wants_long && let Err(mut job) = self.wait_in(organization, Turn::Long, job) {
                    job(None);
                }
            }));
            if ran.is_err() {
                tracing::error!("BUG: a query panicked");
            }
        }
    }

    /// Waits for the next job; returns `None` after the pool was closed. Threads that run long turns prefer them,
    /// because short ones have a thread of their own.
    fn next(&self, takes_long: bool) -> Option<(ObjectId, Job, Turn)> {
        let mut queue = self.queue.lock();
        loop {
            let turns = [Turn::Long, Turn::Short];
            for turn in turns.into_iter().skip(usize::from(!takes_long)) {
                if let Some((organization, job)) = queue.turns.pop(turn) {
                    return Some((organization, job, turn));
                }
            }
            if queue.turns.closed {
                return None;
            }
            // Whoever wakes it up takes it from the idle ones.
            if takes_long {
                queue.idle += 1;
                self.both.wait(&mut queue);
            } else {
                queue.idle_short_only += 1;
                self.short_only.wait(&mut queue);
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.queue.lock().turns.closed = true;
        self.shared.both.notify_all();
        self.shared.short_only.notify_all();
    }
}

#[cfg(test)]
mod tests;
