//! The deadlines of a worker's requests.
//!
//! All requests have the same time, so that they are due in the order in which they began. One timer for the worker, set
//! to the first deadline, serves them all. Most requests are answered before it fires once, and a timer for each would
//! have to be set and removed for each.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use actix_web::rt;
use actix_web::rt::time::sleep_until;

/// A worker has one.
#[derive(Debug)]
pub struct Deadlines {
    /// How long a request may take.
    timeout: Duration,
    waiting: Rc<RefCell<Waiting>>,
}

/// The requests that wait, by their deadline and, of those with the same, by their number.
#[derive(Debug, Default)]
struct Waiting {
    wakers: BTreeMap<(Instant, u64), Waker>,
    /// Number of the next request.
    next: u64,
    /// Whether the timer runs.
    is_timed: bool,
}

/// The request whose time is over first.
enum First {
    Over(Waker),
    Due(Instant),
    Nobody,
}

/// A request's entry among those that wait, from its first wait on.
struct Entry<'a> {
    of: &'a Deadlines,
    due: Instant,
    number: Option<u64>,
}

impl Deadlines {
    pub fn new(timeout: Duration) -> Self {
        Deadlines {
            timeout,
            waiting: Rc::default(),
        }
    }

    /// How long a request may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Runs what a request that began then waits for; `None` if its time is over first. Requests call this in the order in
    /// which they began: the timer is not set to an earlier deadline than that of the first who waits.
    pub async fn within<F: Future>(&self, began: Instant, mut future: Pin<&mut F>) -> Option<F::Output> {
        let mut entry = Entry {
            of: self,
            due: began + self.timeout,
            number: None,
        };
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if entry.is_over(context) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Starts the timer, which runs while requests wait.
    fn start_timer(&self) {
        let waiting = Rc::clone(&self.waiting);
        rt::spawn(async move {
            loop {
                let first = waiting.borrow_mut().first(Instant::now());
                match first {
                    First::Over(waker) => waker.wake(),
                    First::Due(due) => sleep_until(due.into()).await,
                    First::Nobody => break,
                }
            }
        });
    }
}

impl Waiting {
    /// The request whose time is over first. It is removed if it is over; the timer ends when nobody waits.
    fn first(&mut self, now: Instant) -> First {
        let Some(first) = self.wakers.first_entry() else {
            self.is_timed = false;
            return First::Nobody;
        };
        let (due, _) = *first.key();
        if due > now {
            First::Due(due)
        } else {
            First::Over(first.remove())
        }
    }
}

impl Entry<'_> {
    /// Whether the time is over. Otherwise the request is woken when it is.
    fn is_over(&mut self, context: &Context<'_>) -> bool {
        let mut waiting = self.of.waiting.borrow_mut();
        if let Some(number) = self.number {
            // The timer has removed it if its time is over.
            let Some(waker) = waiting.wakers.get_mut(&(self.due, number)) else {
                return true;
            };
            if !waker.will_wake(context.waker()) {
                let former = mem::replace(waker, context.waker().clone());
                drop(waiting);
                // What a waker does when it is dropped may come back here.
                drop(former);
            }
            return false;
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.wakers.insert((self.due, number), context.waker().clone());
        self.number = Some(number);
        if !waiting.is_timed {
            waiting.is_timed = true;
            drop(waiting);
            self.of.start_timer();
        }
        false
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = self.of.waiting.borrow_mut().wakers.remove(&(self.due, number));
            // As above, after the borrow.
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use actix_web::rt::System;
    use actix_web::rt::task::yield_now;
    use futures_util::future::{join, join_all};

    use super::*;

    const SHORT: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(3_600);

    async fn run<F: Future>(deadlines: &Deadlines, future: F) -> Option<F::Output> {
        deadlines.within(Instant::now(), pin!(future)).await
    }

    fn waiting(deadlines: &Deadlines) -> usize {
        deadlines.waiting.borrow().wakers.len()
    }

    #[test]
    fn an_answer_that_takes_longer_is_given_up_again_and_again() {
        System::new().block_on(async {
            let deadlines = Deadlines::new(SHORT);
            for _ in 0..3 {
                assert_eq!(run(&deadlines, pending::<u8>()).await, None);
                assert_eq!(waiting(&deadlines), 0);
            }
        });
    }

    #[test]
    fn requests_of_one_instant_are_all_given_up() {
        System::new().block_on(async {
            let (deadlines, began) = (Deadlines::new(SHORT), Instant::now());
            let all = (0..100).map(|_| async { deadlines.within(began, pin!(pending::<()>())).await });
            assert!(join_all(all).await.iter().all(Option::is_none));
            assert_eq!(waiting(&deadlines), 0);
        });
    }

    #[test]
    fn a_later_request_has_its_own_time() {
        System::new().block_on(async {
            let deadlines = Deadlines::new(LONG);
            let began = Instant::now();
            // Its time is over when it begins to wait.
            let late = async { deadlines.within(began - LONG, pin!(pending::<()>())).await };
            let answered = async {
                yield_now().await;
                while waiting(&deadlines) > 1 {
                    yield_now().await;
                }
                waiting(&deadlines)
            };
            let (late, answered) = join(late, run(&deadlines, answered)).await;
            assert_eq!(late, None);
            assert_eq!(answered, Some(1), "it waited when the other one was given up");
            assert_eq!(waiting(&deadlines), 0);
        });
    }

    #[test]
    fn the_timer_goes_on_for_the_next_request_when_the_first_is_answered() {
        System::new().block_on(async {
            let deadlines = Deadlines::new(Duration::from_millis(20));
            let first = run(&deadlines, async {
                // The timer is set while this one waits.
                yield_now().await;
                yield_now().await;
            });
            assert_eq!(first.await, Some(()));
            assert!(deadlines.waiting.borrow().is_timed);
            let began = Instant::now();
            assert_eq!(deadlines.within(began, pin!(pending::<()>())).await, None);
            assert!(began.elapsed() >= deadlines.timeout());
        });
    }

    #[test]
    fn an_answer_without_a_wait_sets_no_timer() {
        System::new().block_on(async {
            let deadlines = Deadlines::new(SHORT);
            assert_eq!(run(&deadlines, ready(7)).await, Some(7));
            assert!(!deadlines.waiting.borrow().is_timed);
        });
    }

    #[test]
    fn a_request_that_is_dropped_is_forgotten() {
        System::new().block_on(async {
            let deadlines = Deadlines::new(LONG);
            let mut request = Box::pin(run(&deadlines, pending::<()>()));
            assert!(futures_util::poll!(&mut request).is_pending());
            assert_eq!(waiting(&deadlines), 1);
            drop(request);
            assert_eq!(waiting(&deadlines), 0);
        });
    }
}
