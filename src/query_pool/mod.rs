//! The threads that scan and aggregate: few, so that queries never take the cores that ingest needs; with a bounded
//! queue, so that too many are refused at once; at a lower priority, so that a full scan does not delay an
//! acknowledgement. A query whose client has gone, or whose time is up, stops at the next block.
//!
//! Organizations take turns (`turns`). A query first gets a short turn, in which it is planned and, if that costs
//! little, answered; one that will take its time gives up what it holds and waits in a lane of its own. One thread more
//! than was asked for takes short turns only, so that nobody's small query waits behind a neighbour's scans.
//!
//! Each query counts the memory it holds (`Stop::budget`), so all of them together hold at most so much for each thread.

mod turns;

use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use engine::query::{Budget, Touched};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::error::{ErrorKind, ServiceError};
use crate::ids::ObjectId;
use crate::metrics::{Distribution, Histogram};
use turns::{Lane, Turns};

/// The pool. Cheap to clone; its threads end with the last clone.
#[derive(Clone)]
pub struct QueryPool(Arc<Owner>);

struct Owner {
    shared: Arc<Shared>,
    timeout: Duration,
    memory_bytes_max: usize,
}

struct Shared {
    queue: Mutex<Queue>,
    /// Somebody waits, in whichever lane.
    arrived: Condvar,
    counts: Counts,
}

struct Queue {
    turns: Turns<Job>,
    closed: bool,
}

/// A query that waits. Called when it has its turn; answers whether it wants a long one.
type Job = Box<dyn FnMut(Call) -> bool + Send>;

#[derive(Clone, Copy)]
enum Call {
    Run(Turn),
    /// There is no place for it.
    Refuse,
}

#[derive(Default)]
struct Counts {
    refused: AtomicU64,
    abandoned: AtomicU64,
    durations: Histogram,
    touched: AtomicU64,
    blocks: AtomicU64,
}

/// What waits, and what was done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryPoolStats {
    /// Queries that wait for a thread.
    pub waiting: u64,
    /// Queries that may wait.
    pub waiting_max: u64,
    /// Queries refused for want of room.
    pub refused: u64,
    /// Queries that waited until nobody wanted their answer any more.
    pub abandoned: u64,
    /// How long the others took on their thread.
    pub durations: Distribution,
    /// Rows and cells of rollups that queries looked at.
    pub touched: u64,
    /// Blocks that queries opened.
    pub blocks_opened: u64,
}

/// How long a query may take the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Some milliseconds: others wait for it to be over.
    Short,
    /// As long as it takes.
    Long,
}

/// What a query comes to in a turn.
#[derive(Debug)]
pub enum Step<R> {
    Answer(R),
    /// It takes more than a short turn, and has let go of what it held.
    Long,
}

/// A short turn that has taken so long was no small query: it begins anew as a long one.
const SHORT_TURN_MAX: Duration = Duration::from_millis(25);

/// Tells a running query whether to go on and what it may hold, and is told what it did.
pub struct Stop {
    deadline: Instant,
    /// When the turn is over; `None` for a long one.
    turn_ends: Cell<Option<Instant>>,
    abandoned: Arc<AtomicBool>,
    shared: Arc<Shared>,
    budget: Budget,
}

impl Stop {
    /// Counts what the query looked at.
    pub fn touched(&self, touched: Touched) {
        let counts = &self.shared.counts;
        counts
            .touched
            .fetch_add(touched.rows + touched.cells, Ordering::Relaxed);
        counts.blocks.fetch_add(touched.blocks, Ordering::Relaxed);
    }

    /// Whether to stop: nobody waits for the answer any more, or the turn is over.
    pub fn now(&self) -> bool {
        self.is_unwanted() || self.turn_is_over()
    }

    /// Whether a short turn has taken longer than one may.
    pub fn turn_is_over(&self) -> bool {
        self.turn_ends.get().is_some_and(|end| Instant::now() >= end)
    }

    fn is_unwanted(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }

    /// The memory that the query may hold.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}

/// Marks a query as abandoned when its request is dropped.
struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl QueryPool {
    /// Starts so many threads, one at least, and one more for short turns. A query may hold `memory_bytes_max` bytes.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub fn start(
        threads: usize,
        queue_max: usize,
        timeout: Duration,
        memory_bytes_max: usize,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue {
                turns: Turns::new(queue_max),
                closed: false,
            }),
            arrived: Condvar::new(),
            counts: Counts::default(),
        });
        let names = (0..threads.max(1)).map(|index| (format!("query-{index}"), true));
        for (name, takes_long) in names.chain([("query-short".to_owned(), false)]) {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name(name).spawn(move || {
                crate::priority::lower();
                shared.run(takes_long);
            })?;
        }
        Ok(QueryPool(Arc::new(Owner {
            shared,
            timeout,
            memory_bytes_max,
        })))
    }

    /// Runs a query of an organization on the pool and waits for it. It is called with a short turn first, and once
    /// more with a long one when it says so.
    ///
    /// # Errors
    /// 503 when too many queries wait already, of all or of this organization; whatever the query answers.
    pub async fn run<R: Send + 'static>(
        &self,
        organization: ObjectId,
        mut query: impl FnMut(&Stop, Turn) -> Result<Step<R>, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        let abandoned = Arc::new(AtomicBool::new(false));
        let stop = Stop {
            deadline: Instant::now() + self.0.timeout,
            turn_ends: Cell::new(None),
            abandoned: Arc::clone(&abandoned),
            shared: Arc::clone(&self.0.shared),
            budget: Budget::new(self.0.memory_bytes_max),
        };
        let (done, answer) = oneshot::channel();
        let mut done = Some(done);
        let mut took = Duration::ZERO;
        let job: Job = Box::new(move |call| {
            let counts = &stop.shared.counts;
            let answer = match call {
                Call::Refuse => Err(refused(counts)),
                Call::Run(_) if stop.is_unwanted() => {
                    counts.abandoned.fetch_add(1, Ordering::Relaxed);
                    return false;
                }
                Call::Run(turn) => {
                    let began = Instant::now();
                    stop.turn_ends
                        .set((turn == Turn::Short).then(|| began + SHORT_TURN_MAX));
                    let step = query(&stop, turn);
                    took += began.elapsed();
                    let answer = match (step, turn) {
                        (Ok(Step::Long), Turn::Short) => return true,
                        (Ok(Step::Long), Turn::Long) => {
                            Err(ServiceError::internal("BUG: a long turn was not enough"))
                        }
                        (Ok(Step::Answer(answer)), _) => Ok(answer),
                        // Stopped because the turn was over, not for the client.
                        (Err(error), Turn::Short)
                            if error.kind == ErrorKind::Unavailable
                                && stop.turn_is_over()
                                && !stop.is_unwanted() =>
                        {
                            return true;
                        }
                        (Err(error), _) => Err(error),
                    };
                    counts.durations.observe(took);
                    answer
                }
            };
            if let Some(done) = done.take() {
                // The asker may have gone meanwhile.
                let _ = done.send(answer);
            }
            false
        });
        let shared = &self.0.shared;
        if shared.wait_in(organization, Lane::Cheap, job).is_err() {
            return Err(refused(&shared.counts));
        }
        let _abandon = Abandon(abandoned);
        answer.await.unwrap_or_else(|_| {
            Err(ServiceError::unavailable(
                "the query took too long; ask for a shorter range or a coarser unit",
                1,
            ))
        })
    }

    /// What waits, and what was done since the start.
    pub fn stats(&self) -> QueryPoolStats {
        let shared = &self.0.shared;
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut durations = Distribution::default();
        shared.counts.durations.add_to(&mut durations);
        let (waiting, waiting_max) = {
            let queue = shared.queue.lock();
            (queue.turns.waiting(), queue.turns.waiting_max())
        };
        QueryPoolStats {
            waiting: waiting as u64,
            waiting_max: waiting_max as u64,
            refused: load(&shared.counts.refused),
            abandoned: load(&shared.counts.abandoned),
            durations,
            touched: load(&shared.counts.touched),
            blocks_opened: load(&shared.counts.blocks),
        }
    }
}

fn refused(counts: &Counts) -> ServiceError {
    counts.refused.fetch_add(1, Ordering::Relaxed);
    ServiceError::unavailable("too many queries are waiting; send it again in a moment", 1)
}

impl Shared {
    fn wait_in(&self, organization: ObjectId, lane: Lane, job: Job) -> Result<(), Job> {
        let evicted = self.queue.lock().turns.push(organization, lane, job)?;
        if let Some(mut evicted) = evicted {
            evicted(Call::Refuse);
        }
        // All, for whoever is woken first may not be one that takes this lane.
        self.arrived.notify_all();
        Ok(())
    }

    fn run(&self, takes_long: bool) {
        while let Some((organization, mut job, turn)) = self.next(takes_long) {
            // A panic is one query's matter: its sender is dropped, and its request answered with an error.
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let wants_long = job(Call::Run(turn));
                if wants_long && let Err(mut job) = self.wait_in(organization, Lane::Long, job) {
                    job(Call::Refuse);
                }
            }));
            if ran.is_err() {
                tracing::error!("BUG: a query panicked");
            }
        }
    }

    /// Waits for the next turn; `None` at the end. Who may take long turns takes them first: the others have their own
    /// thread.
    fn next(&self, takes_long: bool) -> Option<(ObjectId, Job, Turn)> {
        let mut queue = self.queue.lock();
        loop {
            let lanes = [(Lane::Long, Turn::Long), (Lane::Cheap, Turn::Short)];
            for (lane, turn) in lanes.into_iter().skip(usize::from(!takes_long)) {
                if let Some((organization, job)) = queue.turns.pop(lane) {
                    return Some((organization, job, turn));
                }
            }
            if queue.closed {
                return None;
            }
            self.arrived.wait(&mut queue);
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.arrived.notify_all();
    }
}

/// Waits on a thread of the pool for what another thread is going to answer.
pub fn wait<F: Future>(answer: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut answer = pin!(answer);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match answer.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests;
