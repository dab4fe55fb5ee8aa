//! Wakes of a connection's task by the HTTP library.
//!
//! When a handler takes bytes of a body, hyper wakes the task of the connection to read more, even if these bytes were
//! the last. The task would be polled once more for each request with a body, with the handler and all middleware. So the
//! library is polled with a waker of ours, and its wakes while bytes are taken are held back until it is known whether
//! more are to come. With HTTP/2 it is polled with the task's own waker, so nothing is held back.

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

/// What happens to wakes.
#[derive(Default)]
enum Wakes {
    #[default]
    Passed,
    /// Held back; the waker that was called, if one was. Only one connection's library runs at a time.
    Held(Option<Arc<TaskWaker>>),
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
        // Nothing is held back on a thread that ends.
        match WAKES.try_with(Cell::take).unwrap_or_default() {
            Wakes::Passed => self.task.wake(),
            Wakes::Held(_) => WAKES.set(Wakes::Held(Some(Arc::clone(self)))),
        }
    }
}

/// Runs `take` and returns with its result the waker by which the library tried to wake the connection's task, if it did.
/// Whoever knows that the library has more to do wakes it.
pub(crate) fn held_back<T>(take: impl FnOnce() -> T) -> (T, Option<Arc<TaskWaker>>) {
    /// Ends the holding back, also when `take` panics.
    struct Holding;
    impl Drop for Holding {
        fn drop(&mut self) {
            WAKES.take();
        }
    }
    let holding = Holding;
    WAKES.set(Wakes::Held(None));
    let taken = take();
    let missed = match WAKES.take() {
        Wakes::Held(missed) => missed,
        Wakes::Passed => None,
    };
    drop(holding);
    (taken, missed)
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
        assert!(held_back(|| ()).1.is_none());
        let (_, missed) = held_back(|| waker.wake_by_ref());
        assert_eq!(count(), 1, "it was held back");
        missed.unwrap().wake();
        assert_eq!(count(), 2, "it is passed on");
        let waker = polled();
        let other = || thread::scope(|scope| scope.spawn(|| waker.wake_by_ref()).join().is_ok());
        let (is_joined, missed) = held_back(other);
        assert!(is_joined && missed.is_none());
        assert_eq!(count(), 3, "by another thread");
        let waker = polled();
        assert!(catch_unwind(AssertUnwindSafe(|| held_back(|| panic!()))).is_err());
        waker.wake();
        assert_eq!(count(), 4, "behind a panic");
    }
}
