//! The threads that scan and aggregate: few, so that queries never take the cores that ingest needs; with a bounded
//! queue, so that too many are refused at once; at a lower priority, so that a full scan does not delay an
//! acknowledgement. A query whose client has gone, or whose time is up, stops at the next block.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::error::ServiceError;
use crate::metrics::{Distribution, Histogram};

type Job = Box<dyn FnOnce() + Send>;

/// The pool. Cheap to clone; its threads end with the last clone.
#[derive(Clone)]
pub struct QueryPool(Arc<Owner>);

struct Owner {
    shared: Arc<Shared>,
    timeout: Duration,
}

struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    queue_max: usize,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    refused: AtomicU64,
    abandoned: AtomicU64,
    durations: Histogram,
    touched: AtomicU64,
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
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

/// Tells a running query whether to go on, and is told what it did.
pub struct Stop {
    deadline: Instant,
    abandoned: Arc<AtomicBool>,
    shared: Arc<Shared>,
}

impl Stop {
    /// Counts rows and cells that the query looked at.
    pub fn touched(&self, rows: u64) {
        self.shared.counts.touched.fetch_add(rows, Ordering::Relaxed);
    }

    /// Whether nobody waits for the answer any more.
    pub fn now(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || Instant::now() >= self.deadline
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
    /// Starts the threads.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub fn start(threads: usize, queue_max: usize, timeout: Duration) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            arrived: Condvar::new(),
            queue_max,
            counts: Counts::default(),
        });
        for index in 0..threads.max(1) {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name(format!("query-{index}"))
                .spawn(move || {
                    crate::priority::lower();
                    shared.run();
                })?;
        }
        Ok(QueryPool(Arc::new(Owner { shared, timeout })))
    }

    /// Runs a query on the pool and waits for it.
    ///
    /// # Errors
    /// 503 when too many queries wait already; whatever the query answers.
    pub async fn run<R: Send + 'static>(
        &self,
        query: impl FnOnce(&Stop) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        let abandoned = Arc::new(AtomicBool::new(false));
        let stop = Stop {
            deadline: Instant::now() + self.0.timeout,
            abandoned: Arc::clone(&abandoned),
            shared: Arc::clone(&self.0.shared),
        };
        let (done, answer) = oneshot::channel();
        let job: Job = Box::new(move || {
            if stop.now() {
                stop.shared.counts.abandoned.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let began = Instant::now();
            let answer = query(&stop);
            stop.shared.counts.durations.observe(began.elapsed());
            // The asker may have gone meanwhile.
            let _ = done.send(answer);
        });
        let shared = &self.0.shared;
        {
            let mut queue = shared.queue.lock();
            if queue.jobs.len() >= shared.queue_max {
                drop(queue);
                shared.counts.refused.fetch_add(1, Ordering::Relaxed);
                return Err(ServiceError::unavailable(
                    "too many queries are waiting; send it again in a moment",
                    1,
                ));
            }
            queue.jobs.push_back(job);
        }
        shared.arrived.notify_one();
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
        QueryPoolStats {
            waiting: shared.queue.lock().jobs.len() as u64,
            waiting_max: shared.queue_max as u64,
            refused: load(&shared.counts.refused),
            abandoned: load(&shared.counts.abandoned),
            durations,
            touched: load(&shared.counts.touched),
        }
    }
}

impl Shared {
    fn run(&self) {
        loop {
            let job = {
                let mut queue = self.queue.lock();
                loop {
                    if let Some(job) = queue.jobs.pop_front() {
                        break job;
                    }
                    if queue.closed {
                        return;
                    }
                    self.arrived.wait(&mut queue);
                }
            };
            // A panic is one query's matter: its sender is dropped, and its request answered with an error.
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)).is_err() {
                tracing::error!("BUG: a query panicked");
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.arrived.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn block_on<F: Future>(future: F) -> F::Output {
        actix_web::rt::System::new().block_on(future)
    }

    #[test]
    fn a_full_queue_refuses_at_once() {
        let pool = QueryPool::start(1, 1, Duration::from_secs(60)).unwrap();
        let (started, is_started) = channel();
        let (release, released) = channel::<()>();
        block_on(async {
            let busy = pool.run(move |_| {
                started.send(()).unwrap();
                released.recv().unwrap();
                Ok(1)
            });
            let mut busy = std::pin::pin!(busy);
            std::future::poll_fn(|context| {
                let _ = busy.as_mut().poll(context);
                std::task::Poll::Ready(())
            })
            .await;
            is_started.recv().unwrap();
            let mut waiting = std::pin::pin!(pool.run(|_| Ok(2)));
            std::future::poll_fn(|context| {
                let _ = waiting.as_mut().poll(context);
                std::task::Poll::Ready(())
            })
            .await;
            let refused = pool.run(|_| Ok(3)).await.unwrap_err();
            assert_eq!(refused.kind, crate::error::ErrorKind::Unavailable);
            release.send(()).unwrap();
            assert_eq!(busy.await.unwrap(), 1);
            assert_eq!(waiting.await.unwrap(), 2);
        });
    }

    #[test]
    fn a_dropped_request_stops_its_query() {
        let pool = QueryPool::start(1, 8, Duration::from_secs(60)).unwrap();
        let (saw_stop, stopped) = channel();
        let (started, is_started) = channel();
        block_on(async {
            let mut query = Box::pin(pool.run(move |stop| {
                started.send(()).unwrap();
                while !stop.now() {
                    std::thread::yield_now();
                }
                saw_stop.send(()).unwrap();
                Ok(())
            }));
            std::future::poll_fn(|context| {
                let _ = query.as_mut().poll(context);
                std::task::Poll::Ready(())
            })
            .await;
            is_started.recv().unwrap();
            drop(query);
            stopped.recv().unwrap();
        });
    }

    #[test]
    fn a_query_out_of_time_is_503() {
        let pool = QueryPool::start(1, 8, Duration::ZERO).unwrap();
        let refused = block_on(pool.run(|_| Ok(()))).unwrap_err();
        assert_eq!(refused.kind, crate::error::ErrorKind::Unavailable);
    }
}
