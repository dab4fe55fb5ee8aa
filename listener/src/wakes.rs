//! Wakes of a connection's task by the HTTP library.
//!
//! When a handler takes bytes of a body, hyper wakes the task of the connection to read more, also if these bytes were
//! the last. The task would be polled once more for each request with a body, with the handler and all middleware. So the
//! library is polled with a waker of ours, and its wakes while bytes are taken are held back until it is known whether
//! more are to come.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Wake, Waker};

use futures_util::task::AtomicWaker;

/// Wakes the task of a connection, unless wakes are held back.
#[derive(Default)]
pub(crate) struct TaskWaker {
    task: AtomicWaker,
}

/// A waker for the HTTP library, and its way to the task.
pub(crate) struct LibraryWaker {
    of_task: Arc<TaskWaker>,
    waker: Waker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wakes {
    Passed,
    /// Held back; none so far.
    Held,
    /// Held back, and there was one.
    Missed,
}

thread_local! {
    /// Of this thread's wakes: a wake by another thread always reaches its task.
    static WAKES: Cell<Wakes> = const { Cell::new(Wakes::Passed) };
}

impl LibraryWaker {
    pub fn new() -> Self {
        let of_task = Arc::<TaskWaker>::default();
        LibraryWaker {
            waker: Waker::from(Arc::clone(&of_task)),
            of_task,
        }
    }

    /// The waker, which wakes this task from now on.
    pub fn of_task(&self, task: &Waker) -> &Waker {
        self.of_task.task.register(task);
        &self.waker
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match WAKES.get() {
            Wakes::Passed => self.task.wake(),
            Wakes::Held | Wakes::Missed => WAKES.set(Wakes::Missed),
        }
    }
}

/// Runs `take` and returns with its result whether it tried to wake a connection's task.
pub(crate) fn held_back<T>(take: impl FnOnce() -> T) -> (T, bool) {
    /// Ends the holding back, also when `take` panics.
    struct Holding(Wakes);
    impl Drop for Holding {
        fn drop(&mut self) {
            WAKES.set(self.0);
        }
    }
    let _holding = Holding(WAKES.replace(Wakes::Held));
    let taken = take();
    (taken, WAKES.get() == Wakes::Missed)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn wakes_are_held_back_on_the_thread_that_takes_bytes_only() {
        let woken = Arc::<Woken>::default();
        let (task, library) = (Waker::from(Arc::clone(&woken)), LibraryWaker::new());
        let polled = || library.of_task(&task).clone();
        let count = || woken.0.load(Ordering::Relaxed);
        polled().wake_by_ref();
        assert_eq!(count(), 1);
        let waker = polled();
        assert!(!held_back(|| ()).1);
        assert!(held_back(|| waker.wake_by_ref()).1);
        assert_eq!(count(), 1, "it was held back");
        let other = || thread::scope(|scope| scope.spawn(|| waker.wake_by_ref()).join().is_ok());
        assert_eq!(held_back(other), (true, false));
        assert_eq!(count(), 2, "by another thread");
        let waker = polled();
        assert!(catch_unwind(AssertUnwindSafe(|| held_back(|| panic!()))).is_err());
        waker.wake();
        assert_eq!(count(), 3, "behind a panic");
    }
}
