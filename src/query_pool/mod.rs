//! The thread pool that scans and aggregates. It has few threads, so that many queries do not take the cores that ingest
//! needs; a bounded queue, so that excess queries are refused immediately; and a lower priority, so that a full scan
//! does not delay an acknowledgement. A query whose client has gone, or whose time is up, stops at the next block.
//!
//! Organizations are scheduled round-robin (`turns`). A query first gets a short turn, in which it is planned and, if
//! it is cheap, answered. A long query releases what it holds and is queued again in a lane of its own; one that is known
//! to be long is queued there at once. There is one thread in addition to the configured number that runs only short
//! turns, so that small queries never wait behind another organization's scans.
//!
//! Waking a query thread and being woken by it takes longer than a small query. A query may therefore get an immediate
//! turn before it is queued, on the thread of its request (`immediate`).
//!
//! A long turn may divide its work among helpers while there are cores to spare (`places`).
//!
//! Each query accounts for its memory (`Stop::budget`), so the memory of all queries is limited by the number of
//! threads; the threads of requests add a sixteenth each.

mod immediate;
mod places;
mod turn;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::metrics::{Distribution, Histogram};
use immediate::Immediate;
use places::Places;
pub use places::Worker;
use turn::Running;
pub use turn::{Step, Stop, Turn};
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
    immediate: Immediate,
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
    immediate: AtomicU64,
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
    /// Queries answered in an immediate turn, on the threads of their requests.
    pub immediate: u64,
    /// Time that all queries ran, except those that were refused or dropped.
    pub durations: Distribution,
    /// Rows and rollup cells that queries read.
    pub touched: u64,
    /// Blocks that queries opened.
    pub blocks_opened: u64,
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
            immediate: Immediate::new(Instant::now()),
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
        let request = Arc::new(());
        let running = Running::new(&self.0.shared, &request, Some(self.deadline()), query);
        self.queue(organization, Turn::Short, running).await
    }

    /// The same, but the query is called with an immediate turn first, on this thread.
    ///
    /// # Errors
    /// As [`QueryPool::run`].
    pub async fn run_here_first<R: Send + 'static>(
        &self,
        organization: ObjectId,
        query: impl FnMut(&Stop, Turn) -> Result<Step<R>, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        let request = Arc::new(());
        let mut running = Running::new(&self.0.shared, &request, Some(self.deadline()), query);
        match self.0.shared.run_immediately(&mut running) {
            Some(answer) => answer,
            None => self.queue(organization, Turn::Short, running).await,
        }
    }

    /// Runs a query of an organization that is always given a long turn, and waits for its result.
    ///
    /// # Errors
    /// As [`QueryPool::run`].
    pub async fn run_long<R: Send + 'static>(
        &self,
        organization: ObjectId,
        query: impl FnOnce(&Stop) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        self.run_once(Some(self.deadline()), organization, query).await
    }

    /// The same for a query that may take as long as it needs.
    ///
    /// # Errors
    /// As [`QueryPool::run`].
    pub async fn run_to_the_end<R: Send + 'static>(
        &self,
        organization: ObjectId,
        query: impl FnOnce(&Stop) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        self.run_once(None, organization, query).await
    }

    async fn run_once<R: Send + 'static>(
        &self,
        deadline: Option<Instant>,
        organization: ObjectId,
        query: impl FnOnce(&Stop) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        let request = Arc::new(());
        let mut query = Some(query);
        let once = move |stop: &Stop, _: Turn| match query.take() {
            Some(query) => query(stop).map(Step::Answer),
            None => Err(ServiceError::internal("BUG: a second long turn")),
        };
        let running = Running::new(&self.0.shared, &request, deadline, once);
        self.queue(organization, Turn::Long, running).await
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.0.shared.timeout
    }

    /// Queues a query for its first turn on the pool.
    async fn queue<R: Send + 'static>(
        &self,
        organization: ObjectId,
        first: Turn,
        mut running: Running<impl FnMut(&Stop, Turn) -> Result<Step<R>, ServiceError> + Send + 'static>,
    ) -> Result<R, ServiceError> {
        let shared = &self.0.shared;
        let (done, answer) = oneshot::channel();
        let mut done = Some(done);
        let job: Job = Box::new(move |turn| {
            let counts = &running.stop.shared.counts;
            let answer = match turn {
                None => Err(counts.refused()),
                Some(_) if running.stop.is_unwanted() => {
                    counts.abandoned.fetch_add(1, Ordering::Relaxed);
                    return false;
                }
                Some(turn) => match running.turn(turn) {
                    Some(answer) => answer,
                    None => return true,
                },
            };
            if let Some(done) = done.take() {
                // The receiver may have been dropped meanwhile.
                let _ = done.send(answer);
            }
            false
        });
        if shared.wait_in(organization, first, job).is_err() {
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
            immediate: load(&shared.counts.immediate),
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

    /// Runs a query for an immediate turn; `None` if it needs a longer one, or if none may run now.
    fn run_immediately<R>(
        &self,
        running: &mut Running<impl FnMut(&Stop, Turn) -> Result<Step<R>, ServiceError>>,
    ) -> Option<Result<R, ServiceError>> {
        let began = Instant::now();
        if !self.immediate.may_run(began) {
            return None;
        }
        let answer = running.turn(Turn::Immediate);
        let now = Instant::now();
        self.immediate.ran(now - began, now);
        let is_answered = matches!(answer, Some(Ok(_)));
        self.counts
            .immediate
            .fetch_add(u64::from(is_answered), Ordering::Relaxed);
        answer
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
            let wants_long = job(Some(turn));
            if wants_long && let Err(mut job) = self.wait_in(organization, Turn::Long, job) {
                job(None);
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
