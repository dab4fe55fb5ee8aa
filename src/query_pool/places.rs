//! Places for turns and helpers. Helpers are threads that share the work of a long turn while cores have no query to
//! run. There are as many places as cores, but at most twice as many as configured threads. A turn takes a place whether
//! or not one is free; a helper takes a free one, and leaves when a turn has come for which there is none.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::thread::{self, available_parallelism};

use super::Stop;

/// How many places are free.
pub(super) struct Places(AtomicIsize);

/// A place that is taken; free again when dropped.
pub(super) struct Place<'p>(&'p Places);

impl Places {
    pub(super) fn new(threads: usize) -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Places(AtomicIsize::new(cores.min(2 * threads) as isize))
    }

    /// Takes a place for a turn, whether or not one is free.
    pub(super) fn take(&self) -> Place<'_> {
        self.0.fetch_sub(1, Relaxed);
        Place(self)
    }

    /// The places that are free; negative while there are too few.
    pub(super) fn free(&self) -> isize {
        self.0.load(Relaxed)
    }

    /// Takes a place that is free.
    fn take_free(&self) -> Option<Place<'_>> {
        let less = |free: isize| (free > 0).then_some(free - 1);
        self.0.fetch_update(Relaxed, Relaxed, less).ok()?;
        Some(Place(self))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Relaxed);
    }
}

/// Who works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// The thread of the turn.
    Turn,
    /// A thread that helps it.
    Helper,
}

impl Stop {
    /// Whether work is worth dividing: in a long turn, while places are free.
    pub fn may_have_helpers(&self) -> bool {
        self.is_long && self.shared.places.free() > 0
    }

    /// Whether a worker should take another portion of the work: a helper leaves its place to a turn.
    pub fn goes_on(&self, worker: Worker) -> bool {
        worker == Worker::Turn || self.shared.places.free() >= 0
    }

    /// Runs `work` on this thread and, in a long turn, at the same time on helpers, up to this many. Returns what each
    /// returned, that of this thread first.
    pub fn with_helpers<R: Send>(&self, helpers_max: usize, work: impl Fn(Worker) -> R + Sync) -> Vec<R> {
        let places = &self.shared.places;
        let helpers_max = if self.may_have_helpers() { helpers_max } else { 0 };
        thread::scope(|scope| {
            let work = &work;
            let helpers = (0..helpers_max).map_while(|_| {
                let place = places.take_free()?;
                let help = move || {
                    let _place = place;
                    crate::priority::lower_for_help();
                    work(Worker::Helper)
                };
                // Without another thread, the work takes longer.
                let named = thread::Builder::new().name("query-helper".to_owned());
                named.spawn_scoped(scope, help).ok()
            });
            let helpers: Vec<_> = helpers.collect();
            let mut all = vec![work(Worker::Turn)];
            for helper in helpers {
                // A panic is one of the query.
                all.push(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            all
        })
    }
}
